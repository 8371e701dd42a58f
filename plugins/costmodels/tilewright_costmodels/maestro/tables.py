"""Tables that the kernel reads and writes. Sets of dimensions are bits of a number; records have named fields."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import FEW, integer
from tilewright.mapspace.batch import Floats, Ints
from tilewright_notations.directives.table import MAX_LEVELS

COUNTER_LIMIT = 2**31
"""MAESTRO counts the steps of a phase in 32 bits. Beyond that it aborts, or continues with a wrong number."""
DIVISIBLE = 2.0**53
"""Lane vectors of integers below this are divided exactly."""
NONE, ONCE = map(integer, range(2))
L2, L1 = range(2)
INPUT, FILTER, OUTPUT = map(integer, range(3))
READS, FILLS, UPDATES = range(3)
FINE, UNTRANSLATED, BEYOND_INT64, MOVES, OVERFLOW, NO_WORK_INSIDE, IDLE = map(integer, range(7))
"""Error codes. UNTRANSLATED: there are no directives; `Table.fault` has the reason. BEYOND_INT64:
counts may exceed 64 bits.

The other codes are MAESTRO's. MOVES: a loop (its dimension, its size) moves that nominally does
not. OVERFLOW: a phase occurs more often than a counter holds. NO_WORK_INSIDE: a step has
operations, but the level inside finds none. IDLE: nothing is computed at all."""


class Hardware(NamedTuple):
    """Hardware. Transfers are in elements per cycle and cycles, energies in pJ. Shapes: M memories."""

    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int
    energies: Floats
    """[level, tensor, action]: pJ of one access."""
    energy_per_operation_pj: float
    memory_index: Ints
    """[level, tensor]: index of the memory that holds the tensor; NOWHERE: one without limit."""
    capacity: Ints
    """[M]: elements."""
    held: Ints
    """[tensor]: elements of the whole tensor. Outputs ignore strides, as in MAESTRO."""

    @property
    def boundless(self) -> Hardware:
        """Copy with memories of unlimited capacity."""
        return self._replace(capacity=self.capacity[:0])


TILE = "full offset static_size steps part new new_part outputs part_outputs inside steady_times actual_size"
"""Tiles of all dimensions in a level, rows [L].

`full`: size of the map. `offset`: its offset. `static_size`: nominal size of the dimension. `steps`: whole offsets in
it after the first tile. `part`: last tile. `new`: elements that a temporal tile's own loop brings, at least 1.
`new_part`: elements that the last spatial tile does not share. `outputs`, `part_outputs`: both tiles in outputs; Y and
X ignore strides. `inside`: dimensions placed inside, and unused bits. `steady_times`, `actual_size`: repetitions of the
steady state and size, in the current sub-problem."""
LEVEL = "spatial second_spatial spatial_dims sub_clusters edge_sub_clusters lanes"
"""One level. `spatial`, `second_spatial`: dimensions of its SpatialMaps. `spatial_dims`: both, as bits.

`sub_clusters`: their number. `edge_sub_clusters`: those at work in the last fold. `lanes`: MACs per
cycle of each sub-cluster of the innermost level, 0 elsewhere."""
STATE = "queued init_edge unrolled edges partial_last movers input_tile filter_tile cycles active"
"""One sub-problem. `queued`: it is in the queue. Dimensions as bits: `init_edge`, `unrolled`, `edges`, `partial_last`.

`init_edge`: the first step is an edge. `unrolled`: one step covers everything. `edges`: there is an
edge state. `partial_last`: in its spatial edge the last sub-cluster has an edge tile. `movers`:
number of dimensions that move. `input_tile`, `filter_tile`: elements along temporal dimensions.
`cycles`; `active`: mean of sub-clusters at work over steps."""
MOVER = "dimension steady_times"
"""Dimension that moves, and repetitions of its steady state."""
SUMS = "occurrences input_sent filter_sent macs cycles active all_macs egress offchip"
"""Sums over the steps that compute. `all_macs` and `egress` are over all steps, even skipped ones
with negative numbers.

`offchip`: cycles of DRAM behind each step."""


class PhaseGroup(NamedTuple):
    """Phases with the same dimensions at their edge."""

    at_work: int
    """Sub-clusters at work."""
    partial_last: bool
    """Whether the last of them has an edge tile."""
    critical_macs: int
    """Operations of the first sub-cluster."""
    macs: int
    """Operations of all sub-clusters."""
    egress: int
    """Elements sent up."""
    egress_delay: int
    """Cycles of sending them."""
    compute_delay: int
    """Cycles of computing."""
    active_clusters: float
    """Sub-clusters of the innermost level at work."""


class PhaseStep(NamedTuple):
    """One phase, for one occurrence."""

    occurrences: int
    input_sent: int
    filter_sent: int
    egress: int
    macs: int
    ingress_delay: int
    egress_delay: int
    compute_delay: int


class Result(NamedTuple):
    """Costs of `n` mappings, or of one dataflow."""

    energy_pj: Floats
    """[n]. Unchanged, like `cycles`, after an error or if the memories do not hold the requirement."""
    cycles: Floats
    code: Ints
    """[n]: error code."""


class AnalysisScratch(NamedTuple):
    """Scratch arrays for one mapping, and the analysis of the last one.

    Shapes: V levels, N named dimensions, S = 2**N sub-problems. The bits of a sub-problem are the
    dimensions in which the outer level's tile is an edge tile.
    """

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
    """[V, 1 + S]: number of queued sub-problems, and the sub-problems."""
    sums: NDArray[Any]
    """[1]: SUMS of the current sub-problem."""
    steps: NDArray[Any]
    """[phase]: `PhaseStep` of the outermost level, in MAESTRO's order, if requested or needed."""
    phases: Ints
    """[1]: number of these phases."""
    counts: Ints
    """[level, tensor, action]: reads, fills and updates of L2 and L1. Reads of inputs from L1 are the operations."""
    required: Ints
    """[level, tensor]: elements of buffer, for both copies of a tile."""


def scratch_for(dimensions: int, kind: type) -> AnalysisScratch:
    """Return scratch arrays for layers with this many named dimensions. `kind`: type of integers."""
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
    """Return a record type. All fields are integers, or rows of integers, except for means."""
    fields = [(name, float if name == "active" else kind, row) for name in names.split()]
    return np.dtype((np.record, np.dtype(fields, align=True)))
