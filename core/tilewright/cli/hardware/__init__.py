"""Commands about hardware."""
