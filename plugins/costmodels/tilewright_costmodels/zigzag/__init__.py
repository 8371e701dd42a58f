"""The cost model `zigzag`: ZigZag's own cost model, from the package zigzag-dse, in a process of its own."""
