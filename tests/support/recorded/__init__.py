"""Recorded results of other tools, as typed objects."""
