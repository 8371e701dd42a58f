"""Conversion between the notations of other tools, through the schemas."""
