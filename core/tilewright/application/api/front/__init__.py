"""Pareto fronts of energy and cycles: `tw.front`."""
