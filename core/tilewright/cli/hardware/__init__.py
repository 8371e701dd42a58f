"""Commands about hardware itself."""
