"""Timeloop's files, of every version, as inputs."""
