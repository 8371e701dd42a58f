"""Figures of hardware from sizes: estimators are asked in order, and architectures are completed with their answers."""
