"""Map spaces: the legal and illegal mappings of a problem on an architecture, stored as arrays."""
