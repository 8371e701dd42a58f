"""Conversion between notations of other tools, by way of the core schemas."""
