"""Machines that are not decided yet: spaces of architectures."""
