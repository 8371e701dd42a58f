"""Constructive placement: mappings built from nothing, one memory level after another."""
