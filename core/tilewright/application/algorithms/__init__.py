"""Equivalent formulations of a layer: collect them, check them on numbers, add up their costs."""
