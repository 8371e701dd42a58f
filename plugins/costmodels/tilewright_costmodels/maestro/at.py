"""Columns of the kernel's arrays (`work`), used as `at.FULL`. Sets of letters are bits of a number."""

FULL, OFFSET, CUT, PART, FRESH_PART, INSIDE, ORDER = range(7)
"""Of a letter in a level: a whole tile, the offset, the nominal size that is cut, the last tile, what is new in that, and
the letters placed inside; ORDER: of a place, the letter."""
SPATIAL, PAIR, CLUSTERS, ALONG, EDGE_CLUSTERS, LANES = range(6)
"""Of a level: first and second letter in space, sub-clusters, the letters in space, sub-clusters at work in the last fold,
MACs at once in each of the innermost level (0 outside it)."""
MET, SHORT, UNROLLED, EDGES, PARTIAL, INPUT_TILE, FILTER_TILE, CYCLES, FAULT = range(9)
"""Of a sub-problem: whether it is in the queue; letters whose first step is short, for which one step covers everything, that
have an edge state, and in whose edge in space the last sub-cluster has a short tile; elements of the inputs along letters
in time; cycles; four columns for a fault."""
OCCURRENCES, INPUT_SENT, FILTER_SENT, EGRESS, MACS, ARRIVING, LEAVING, COMPUTE = range(8)
"""Columns of `Result.steps`, for one occurrence, and but for two delays of `Work.sums`."""
ALL_MACS, ALL_CYCLES = 5, 6
"""Of `Work.sums`: operations with those of phases passed over, negative ones included; cycles."""
CRITICAL, AT_WORK, LAST_SHORT = 8, 9, 10
"""Of `Work.group`, beside columns of `Result.steps`: operations of the first sub-cluster, sub-clusters at work, whether the
last of them has a short tile."""
READS, FILLS, UPDATES = range(3)
L2, L1 = range(2)
