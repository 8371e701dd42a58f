"""Timeloop's statistics."""
