"""Benchmarks: programs that measure, and the experiments of papers."""
