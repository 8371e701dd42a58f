"""Exploration of spaces of architectures."""
