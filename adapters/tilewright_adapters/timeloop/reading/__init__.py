"""Conversion of Timeloop's files of every version to inputs."""
