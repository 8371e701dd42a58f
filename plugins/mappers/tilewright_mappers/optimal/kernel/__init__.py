"""Compiled kernels of the staged search."""
