"""Plugins that are taken where none is named."""

MAPPER = "random"
MODEL = "timeloop"
DIRECTIVE_MODEL = "maestro"
"""For programs of directives, which are MAESTRO's own."""
