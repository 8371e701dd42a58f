"""Drawings of results, mappings and architectures by matplotlib, which is imported when something is drawn.

This room knows no schema: its charts and pictures take numbers and texts.
"""
