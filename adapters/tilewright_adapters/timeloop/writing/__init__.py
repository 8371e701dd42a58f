"""Inputs as Timeloop's files, v0.3 and v4."""
