"""Densities, compressed formats, gating and skipping of one mapping, after its dense counts."""
