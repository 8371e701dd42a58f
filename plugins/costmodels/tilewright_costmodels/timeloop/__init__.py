"""Timeloop's cost model, reimplemented: counts, energies and cycles on the same inputs."""
