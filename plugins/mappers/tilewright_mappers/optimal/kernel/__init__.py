"""The compiled part of the walk."""
