"""Equivalent work for the layers of a network: asked for, executed on numbers, totalled."""
