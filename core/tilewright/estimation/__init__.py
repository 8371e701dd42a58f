"""Estimation of energy and area from sizes: query estimators in order, and complete architectures."""
