"""The promises of plugins, kind by kind."""
