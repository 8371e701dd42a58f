"""Fronts of energy and cycles: `tw.front`."""
