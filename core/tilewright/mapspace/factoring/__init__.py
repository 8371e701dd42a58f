"""Factorisations of all dimensions over the slots of a map space: counting, ranking and uniform sampling."""
