"""Functions behind `import tilewright`, and the default plugins."""

MAPPER = "optimal"
FALLBACK_MAPPER = "quickflow"
"""Fallback mapper for layers where `optimal` can prove nothing, and for comparing many architectures."""
MODEL = "timeloop"
DIRECTIVE_MODEL = "maestro"
"""Cost model for directive programs, which are MAESTRO's notation."""
