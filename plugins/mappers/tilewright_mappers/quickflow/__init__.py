"""Mapper `quickflow`: factors first, loop orders in one shot, and a multi-hop local beam search."""
