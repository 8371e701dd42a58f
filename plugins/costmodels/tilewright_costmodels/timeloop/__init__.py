"""The cost model `timeloop`."""
