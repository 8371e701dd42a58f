"""Execution of mappings on sparse hardware."""
