"""Drawings of results, mappings and architectures by matplotlib, which is imported when something is drawn.

`diagrams` shows values of the project. The other modules take numbers and texts.
"""
