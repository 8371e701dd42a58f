"""Contract checks for each kind of plugin."""
