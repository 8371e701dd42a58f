"""The schemas: problem, architecture, mapping, and what is read from and written to files with them."""
