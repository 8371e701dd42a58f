"""Executing a mapping: what every memory really holds, reads and writes, without a formula."""
