"""Cost model `zigzag`: ZigZag's own cost model, from the package zigzag-dse, in a child process."""
