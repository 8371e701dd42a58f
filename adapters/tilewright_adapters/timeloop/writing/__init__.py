"""Rendering of inputs as Timeloop's files, v0.3 and v4."""
