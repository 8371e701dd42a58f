"""`quickflow`: factors first, their loop orders in one shot, a multi-hop local beam search."""
