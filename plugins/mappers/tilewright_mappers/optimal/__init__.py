"""The mapper `optimal`: the best mapping of a map space, proved."""
