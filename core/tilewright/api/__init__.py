"""What `import tilewright` offers, and the names and files that it takes; here, the plugins taken where none is named."""

MAPPER = "optimal"
OTHERWISE = "quickflow"
"""For layers of which `optimal` can prove nothing, and where many machines are compared."""
MODEL = "timeloop"
DIRECTIVE_MODEL = "maestro"
"""For programs of directives, which are MAESTRO's own."""
