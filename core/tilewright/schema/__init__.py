"""Schemas: problem, architecture, mapping, and the other contents of files."""
