"""Sparse model for batches: its kernel follows the modules for one mapping, function by function."""
