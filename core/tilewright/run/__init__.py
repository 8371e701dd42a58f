"""Runs: searches, evaluations, whole networks, and what is kept of them."""
