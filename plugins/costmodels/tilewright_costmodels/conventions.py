"""Conventions of the built-in cost models, by topic: how each counts what others count differently.

The pages of the manual on the models state the rules in full.
"""

from __future__ import annotations

_CLOSED: dict[str, str] = {
    "partial sums": "an update reads the word that it adds to; first writes need no read",
    "multicast": "one read serves all sub-clusters that need the same tile; neighbours may forward words",
    "halos": "a sub-cluster gets its whole tile; in time, only new words while the direction is unchanged",
    "DRAM": "energy and bandwidth, as for any memory",
}

TIMELOOP = _CLOSED | {
    "rounding": "tiles are counted piece by piece; counts are means over instances, rounded to the nearest",
    "ports": "reads and writes have a bandwidth each, or share one; ports are not counted",
    "overlap": "compute and all bandwidths overlap; no start, no end, no waits",
}
PIPELINED = TIMELOOP | {"overlap": "as memories declare; filling, draining and waits are counted"}
ORACLE = {
    "partial sums": "an update reads the word that it adds to; first writes need no read",
    "multicast": "one read serves all sub-clusters that need the word in the same step",
    "halos": "a word that several sub-clusters need is read once; in time, only the words that are new",
    "rounding": "every operation is executed; counts are means over instances, rounded to the nearest",
    "ports": TIMELOOP["ports"],
    "DRAM": _CLOSED["DRAM"],
    "overlap": TIMELOOP["overlap"],
}
MAESTRO = {
    "partial sums": "every step sends its output tile; sums over sub-clusters cost nothing",
    "multicast": "sub-clusters that need the same tile share one copy",
    "halos": "neighbours share the overlap of windows after the first step; in time, only the part that is new along the "
    "moved dimension",
    "rounding": "the last tile is a phase of its own; strided tiles are rounded",
    "ports": "one network between L2 and L1; the bandwidths of L2 and L1 are not counted",
    "DRAM": "bandwidth only, no energy; each outer step reads a whole L2 tile, half of it hidden",
    "overlap": "in each step, the slowest of compute, arrival and departure; the first step adds its arrival",
}
ZIGZAG = {
    "partial sums": "a sum over several steps comes in before each, the first one too; sums that go out are reads",
    "multicast": "one read serves all sub-clusters that need the same tile",
    "halos": "every tile moves as a whole",
    "rounding": "an unrolling that does not divide is a fraction in energy, and whole units in cycles",
    "ports": "reads and writes have a bandwidth each, or the declared ports share them",
    "DRAM": _CLOSED["DRAM"],
    "overlap": "double buffering where tiles change; first tiles come in before and last tiles go out after",
}
