"""Runs: searches, evaluations, whole networks, and their files."""
