"""Functions about hardware: estimates of components, and exploration of architectures."""
