"""Factorisations of all dimensions over the slots of a map space: counted, ranked, and drawn uniformly."""
