"""Group mapper: the optimal group mapping of layers that share loops of two memories."""
