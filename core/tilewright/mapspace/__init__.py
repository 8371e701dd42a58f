"""Map spaces: the mappings of a problem on an architecture, legal or not, as arrays."""
