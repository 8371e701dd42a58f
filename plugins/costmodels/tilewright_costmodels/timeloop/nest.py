"""The loops of one mapping, by storage level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules import Rules, Scratch
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sharing import Accounts, Deliveries
from tilewright_costmodels.timeloop.tables import (
    ACROSS,
    DOWN,
    ENTRY,
    ORDER,
    START,
    STOP,
    VERTICAL,
    Hardware,
    Mappings,
    Tables,
    Tensors,
)

Indices = NDArray[np.uint32]
"""Unsigned, so that nobody asks whether they count from the end."""

TRIPS, OUTSIDE = range(2)
"""Columns of `Nest.trips`: of the loop; the product of those of all loops of its kind outside."""
DIMENSION, SLOT = range(2)
"""Columns of `Nest.loop`."""
STEP, SHIFT = range(2)
"""Columns of `Nest.move`: iterations of the dimension from one trip to the next; by how much that displaces the tile of the
tensor at hand."""


class Nest(NamedTuple):
    """The non-unit loops of one mapping, outermost first: K temporal ones at most from row 0, as many spatial ones from
    row K + 1. Shapes: L levels."""

    loop: Indices
    """[2 K + 2, 2]."""
    move: Ints
    """[2 K + 2, 2]."""
    trips: Floats
    """[2 K + 2, 2]."""
    end: Ints
    """[L + 1, 2]: the rows after the last temporal and the last spatial loop of the levels outside."""
    children: Floats
    """[L]: sub-clusters in use below one instance."""


class Job(NamedTuple):
    """What the kernel works with."""

    rules: Rules
    slots: Ints
    tensors: Tensors
    hardware: Hardware
    mappings: Mappings
    scratch: Scratch
    nest: Nest
    deliveries: Deliveries
    accounts: Accounts
    counts: Counts
    lax_fanout: bool
    link_transfers: bool
    detailed: bool
    """Count the traffic of the NoCs too; of use where they take energy."""


def nest_of(tables: Tables) -> Nest:
    """Room for mappings of these tables."""
    levels, _, dims = tables.shape
    loops = len(tables.hardware.slot) * dims + 1
    return Nest(
        loop=np.zeros((2 * loops, 2), np.uint32),
        move=np.zeros((2 * loops, 2), np.int64),
        trips=np.ones((2 * loops, 2)),
        end=np.array([[0, loops]] * (levels + 1), np.int64),
        children=np.ones(levels),
    )


@compiled
def divide(sizes: Ints, temporal: Ints, spatial: Ints, trips: Ints, good: Bools) -> None:
    """Trip counts of tiles [n, E, D]: of the first entry in space, then of each entry in time and in space. `good`
    becomes False where the tiles are not of whole tensors, down to one iteration, each dividing the one it is cut from."""
    last = temporal.shape[1] - 1
    for n in range(len(temporal)):
        for d in range(temporal.shape[2]):
            good[n] &= temporal[n, 0, d] == sizes[d] and spatial[n, last, d] == 1
            outer = temporal[n, 0, d]
            for e in range(last + 1):
                if good[n] and e > 0:
                    good[n] = temporal[n, e, d] > 0 and outer % temporal[n, e, d] == 0
                    if good[n]:
                        trips[n, 2 * e - 1, d] = outer // temporal[n, e, d]
                    outer = temporal[n, e, d]
                if good[n]:
                    good[n] = spatial[n, e, d] > 0 and outer % spatial[n, e, d] == 0
                    if good[n]:
                        trips[n, 2 * e, d] = outer // spatial[n, e, d]
                    outer = spatial[n, e, d]


@kernel_part
def unfold(job: Job, n: int, row: int) -> bool:
    """Lay out the loops, by level. False: more instances are in use along an axis than exist (Timeloop's check)."""
    trips, order, slot = job.mappings.trips, job.mappings.order, job.hardware.slot
    loop, ends, children = job.nest.loop, job.nest.end, job.nest.children
    dims = trips.shape[2]
    x = y = instances = 1.0
    end, last = ends[0, 0], ends[0, 1]
    for here in range(len(children)):
        job.counts.instances[row, here] = instances
        children[here] = 1.0
        for s in range(job.hardware.level[here, START], job.hardware.level[here, STOP]):
            temporal, block = slot[s, VERTICAL] < 0, slot[s, ORDER]
            at = end if temporal else last
            for position in range(dims):  # a unit loop is overwritten by the next: no branch that nobody can foresee
                d = position
                if block >= 0:
                    d = order[n, block, position]
                loop[at, DIMENSION], loop[at, SLOT] = d, s
                at += trips[n, s, d] > 1
            if temporal:
                end = at
            else:
                last = at
                used = job.scratch.used[slot[s, ENTRY]]
                children[here] *= used
                if slot[s, VERTICAL] > 0:
                    y *= used
                else:
                    x *= used
        if x > job.hardware.level[here, ACROSS] or y > job.hardware.level[here, DOWN]:
            return False
        instances *= children[here]
        ends[here + 1, 0], ends[here + 1, 1] = end, last
    for kind in range(2):
        passes = 1.0
        for at in range(ends[0, kind], ends[len(children), kind]):
            d, s = loop[at, DIMENSION], loop[at, SLOT]
            job.nest.move[at, STEP] = job.scratch.inside[s + 1, d]
            job.nest.trips[at, TRIPS], job.nest.trips[at, OUTSIDE] = trips[n, s, d], passes
            passes *= trips[n, s, d]
        job.nest.trips[ends[len(children), kind], OUTSIDE] = passes
    return True
