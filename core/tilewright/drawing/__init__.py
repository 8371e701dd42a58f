"""Drawings of results, mappings and architectures by matplotlib, which is imported when something is drawn.

The package imports no schema: its charts and pictures take numbers and texts.
"""
