"""Constructive placement: build mappings from scratch, one memory level at a time."""
