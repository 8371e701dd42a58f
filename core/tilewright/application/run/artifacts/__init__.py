"""Files of a mapped layer: mapping and certificate."""
