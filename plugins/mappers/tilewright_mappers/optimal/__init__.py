"""Mapper `optimal`: the best mapping of a map space, with a proof (docs/optimal.md)."""
