"""What the kernel reads, writes and works in. Sets of letters are bits of a number; records have fields by name."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import FEW, integer
from tilewright.mapspace.batch import Floats, Ints
from tilewright.notations.directives.table import MAX_LEVELS

COUNTER_LIMIT = 2**31
"""MAESTRO counts the steps of a phase in 32 bits and aborts, or goes on with a wrong number, beyond."""
DIVISIBLE = 2.0**53
"""Rows of integers below this are divided exactly."""
NONE, ONCE = map(integer, range(2))
L2, L1 = range(2)
INPUT, FILTER, OUTPUT = map(integer, range(3))
READS, FILLS, UPDATES = range(3)
FINE, UNTRANSLATED, BEYOND_INT64, MOVES, OVERFLOW, NO_WORK_INSIDE, IDLE = map(integer, range(7))
"""Codes of faults. UNTRANSLATED: there are no directives, `Table.fault` says why. INEXACT: counts may pass 64 bits. Others are
MAESTRO's: a loop (its letter, what it covers) moves that nominally does not; a phase occurs (how often) more times than a
counter holds; a step has operations of which the level inside finds none; nothing is computed at all."""


class Hardware(NamedTuple):
    """Transfers in elements per cycle and cycles, energies in pJ. Shapes: M memories."""

    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int
    energies: Floats
    """[level, tensor, action]: of one access."""
    energy_per_operation_pj: float
    memory_index: Ints
    """[level, tensor]: the memory that holds the tensor; NOWHERE: one without limit."""
    capacity: Ints
    """[M]: elements."""
    held: Ints
    """[tensor]: elements of the whole tensor, outputs regardless of strides."""

    @property
    def boundless(self) -> Hardware:
        """The same, whatever the memories hold."""
        return self._replace(capacity=self.capacity[:0])


TILE = "full offset static_size steps part new new_part outputs part_outputs inside steady_times actual_size"
"""Of all letters in a level, rows [L]: a whole tile, the offset, the nominal size that is cut, whole offsets in it after the first
tile, the last tile; of a tile in time what its own loop brings, 1 at least; what the last one in space does not share; both
tiles in outputs, for Y and X regardless of strides; the letters placed inside (and bits that are no letter's); how often a
letter moves in its steady state on the sub-problem last looked at, and what there is of it."""
LEVEL = "spatial second_spatial spatial_dims sub_clusters edge_sub_clusters lanes"
"""First and second letter in space, the letters in space, sub-clusters, sub-clusters at work in the last fold, MACs at once
in each of the innermost level (0 outside it)."""
STATE = "queued init_edge unrolled edges partial_last movers input_tile filter_tile cycles active"
"""Of a sub-problem: whether it is in the queue; letters whose first step is short, for which one step covers everything, that
have an edge state, and in whose edge in space the last sub-cluster has a short tile; how many letters move; elements of the
inputs along letters in time; cycles; sub-clusters at work, the mean over steps."""
MOVER = "dimension steady_times"
"""A letter that moves, and how often it does so in its steady state."""
SUMS = "occurrences input_sent filter_sent macs cycles active all_macs egress offchip"
"""Over steps that do work, and (`all_macs`, `egress`) over all, even those passed over, of which some have negative numbers;
cycles of DRAM behind each step."""


class PhaseGroup(NamedTuple):
    """Phases with the same edges."""

    at_work: int
    """Sub-clusters."""
    partial_last: bool
    """Whether the last of them has a short tile."""
    critical_macs: int
    """Operations of the first."""
    macs: int
    """Those of all."""
    egress: int
    """Elements sent up."""
    egress_delay: int
    """Cycles of that."""
    compute_delay: int
    """Cycles of computing."""
    active_clusters: float
    """Sub-clusters of the innermost level at work."""


class PhaseStep(NamedTuple):
    """A phase, for one occurrence."""

    occurrences: int
    input_sent: int
    filter_sent: int
    egress: int
    macs: int
    ingress_delay: int
    egress_delay: int
    compute_delay: int


class Result(NamedTuple):
    """What `n` mappings cost, or one dataflow."""

    energy_pj: Floats
    """[n]; untouched, and `cycles` too, where there is a fault or the memories do not hold what is required."""
    cycles: Floats
    code: Ints
    """[n]: of the fault."""


class AnalysisScratch(NamedTuple):
    """Room for one mapping, and the account of the last one. Shapes: V levels, N letters with a name, S = 2**N sub-problems, each by
    the letters of the level outside whose tile is the short last one."""

    tiles: NDArray[Any]
    """[V]: TILE."""
    levels: NDArray[Any]
    """[V]: LEVEL."""
    states: NDArray[Any]
    """[V, S]: STATE."""
    errors: Ints
    """[V, S, 4]: code, level and two numbers."""
    movers: NDArray[Any]
    """[V, S, N]: MOVER, the first `movers` of a state, outermost first."""
    queue: Ints
    """[V, 1 + S]: how many sub-problems were met, and which."""
    sums: NDArray[Any]
    """[1]: SUMS, of the sub-problem last worked out."""
    steps: NDArray[Any]
    """[phase]: `PhaseStep`, of the outermost level in MAESTRO's order, where they were asked for or needed."""
    phases: Ints
    """[1]: how many they are."""
    counts: Ints
    """[level, tensor, action]: reads, fills, updates of L2 and L1; reads of inputs from L1 are the operations."""
    required: Ints
    """[level, tensor]: elements of buffer, both copies of a tile."""


def scratch_for(dimensions: int, kind: type) -> AnalysisScratch:
    """Room for layers of so many letters with a name, with integers of a kind."""
    levels, subproblems, phases = MAX_LEVELS, 2**dimensions, 3**dimensions
    return AnalysisScratch(
        tiles=np.zeros(levels, _record(TILE, kind, FEW)),
        levels=np.zeros(levels, _record(LEVEL, kind)),
        states=np.zeros((levels, subproblems), _record(STATE, kind)),
        errors=np.zeros((levels, subproblems, 4), kind),
        movers=np.zeros((levels, subproblems, dimensions), _record(MOVER, kind)),
        queue=np.zeros((levels, 1 + subproblems), kind),
        sums=np.zeros(1, _record(SUMS, kind)),
        steps=np.zeros(phases, _record(" ".join(PhaseStep._fields), kind)),
        phases=np.zeros(1, kind),
        counts=np.zeros((2, 3, 3), kind),
        required=np.zeros((2, 3), kind),
    )


@functools.cache
def _record(names: str, kind: type, *row: int) -> np.dtype[Any]:
    """All fields are integers, or rows of so many, but means."""
    return np.dtype([(name, float if name == "active" else kind, row) for name in names.split()], align=True)
