"""The cost model `maestro`."""
