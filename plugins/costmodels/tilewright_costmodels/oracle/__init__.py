"""Execution of a mapping: what every memory holds, reads and writes, without formulas."""
