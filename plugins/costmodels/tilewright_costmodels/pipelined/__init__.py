"""Cost model `pipelined`: Timeloop's counts, with cycles for filling, draining and waiting."""
