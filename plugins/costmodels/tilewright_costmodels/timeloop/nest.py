"""The loops of one mapping, by storage level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sharing import DIMENSION, SLOT, STEP, UNROLLED, Accounts, Unrolled
from tilewright_costmodels.timeloop.tables import (
    ACROSS,
    DOWN,
    ORDER,
    START,
    STOP,
    VERTICAL,
    Hardware,
    Mappings,
    Tables,
    Tensors,
)

CHILDREN, PASSES, CONTENT, SERVED, SHARE, PEER, LINKED = range(7)
"""Columns of `Nest.level`: sub-clusters in use below one instance; iterations of all temporal loops down to those of the
level; of the tensor at hand, words that leave one instance towards the next level, counted as deliveries and as receipts,
words that the average instance receives from outside and from neighbours, and words passed on between neighbours below."""
TRIPS, OUTSIDE = range(2)
"""Columns of `Nest.trips`: of the loop; the product of those of all loops outside."""
SHIFT = 2
"""Columns of `Nest.loop` are DIMENSION, STEP and this: by how much an iteration displaces the tile of the tensor at hand."""


class Nest(NamedTuple):
    """The temporal loops of one mapping. Shapes: S slots, D dimensions, L levels, K loops at most."""

    inside: Ints
    """[S + 2, D]: iterations inside a slot and all those further in; the last row is for tiles in between."""
    loop: Ints
    """[K + 1, 3]: non-unit loops, outermost first."""
    trips: Floats
    """[K + 2, 2]."""
    end: Ints
    """[L]: loops up to and including those of a level."""
    level: Floats
    """[L, 7]."""


class Job(NamedTuple):
    """What the kernel works with."""

    tensors: Tensors
    hardware: Hardware
    mappings: Mappings
    nest: Nest
    unrolled: Unrolled
    accounts: Accounts
    counts: Counts
    link_transfers: bool
    detailed: bool
    """Count the traffic of the NoCs too; of use where they take energy."""


def nest_of(tables: Tables) -> Nest:
    """Room for mappings of these tables."""
    levels, _, dims = tables.shape
    slots = len(tables.slots)
    return Nest(
        inside=np.ones((slots + 2, dims), np.int64),
        loop=np.zeros((slots * dims + 1, 3), np.int64),
        trips=np.ones((slots * dims + 2, 2)),
        end=np.zeros(levels, np.int64),
        level=np.ones((levels, 7)),
    )


@compiled
def divide(temporal: Ints, spatial: Ints, trips: Ints, good: Bools) -> None:
    """Trip counts of tiles [n, E, D]: of the first entry in space, then of each entry in time and in space. `good`
    becomes False where a tile does not divide the one it is cut from."""
    for n in range(len(temporal)):
        for e in range(temporal.shape[1]):
            for d in range(temporal.shape[2]):
                if good[n] and e > 0:
                    good[n] = spatial[n, e - 1, d] % temporal[n, e, d] == 0
                    trips[n, 2 * e - 1, d] = spatial[n, e - 1, d] // temporal[n, e, d]
                if good[n]:
                    good[n] = temporal[n, e, d] % spatial[n, e, d] == 0
                    trips[n, 2 * e, d] = temporal[n, e, d] // spatial[n, e, d]


@kernel_part
def unfold(job: Job, n: int, row: int) -> bool:
    """Lay out the loops, by level. False: more instances are in use along an axis than exist (Timeloop's check)."""
    trips, nest, unrolled = job.mappings.trips, job.nest, job.unrolled
    slots, dims = trips.shape[1], trips.shape[2]
    for s in range(slots - 1, -1, -1):
        for d in range(dims):
            nest.inside[s, d] = nest.inside[s + 1, d] * trips[n, s, d]
    x = y = instances = passes = 1.0
    loop = unroll = 0
    for level in range(len(job.hardware.level)):
        job.counts.instances[row, level] = instances
        children = 1.0
        for s in range(job.hardware.level[level, START], job.hardware.level[level, STOP]):
            temporal, order = job.hardware.slot[s, VERTICAL] < 0, job.hardware.slot[s, ORDER]
            used = 1.0
            for position in range(dims):
                d = position
                if order >= 0:
                    d = job.mappings.order[n, order, position]
                count = trips[n, s, d]
                if count > 1:
                    if temporal:
                        nest.loop[loop, DIMENSION] = d
                        nest.loop[loop, STEP] = nest.inside[s + 1, d]
                        nest.trips[loop, TRIPS] = count
                        nest.trips[loop, OUTSIDE] = passes
                        passes *= count
                        loop += 1
                    else:
                        unrolled.loop[unroll, DIMENSION] = d
                        unrolled.loop[unroll, STEP] = nest.inside[s + 1, d]
                        unrolled.loop[unroll, SLOT] = s
                        unrolled.loop[unroll, UNROLLED] = count
                        used *= count
                        unroll += 1
            children *= used
            if job.hardware.slot[s, VERTICAL] > 0:
                y *= used
            else:
                x *= used
        if x > job.hardware.level[level, ACROSS] or y > job.hardware.level[level, DOWN]:
            return False
        instances *= children
        nest.level[level, CHILDREN] = children
        nest.level[level, PASSES] = passes
        nest.end[level] = loop
        unrolled.end[level + 1] = unroll
    nest.trips[loop, OUTSIDE] = passes
    return True
