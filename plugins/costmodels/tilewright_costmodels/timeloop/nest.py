"""The loops of one mapping, by storage level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import Index, Records, compiled, kernel_part, records, structure
from tilewright.mapspace.batch import Bools, Floats, Ints, in_one
from tilewright.mapspace.rules import Rules, Scratch
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sharing import Accounts, Deliveries
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tables, Tensors

PLACE = 16
"""Bits of a dimension."""


@structure
class Nest(NamedTuple):
    """The non-unit loops of one mapping, outermost first: K temporal ones at most from place 0, as many spatial ones from
    place K + 1. Shapes: L levels."""

    place: Ints
    """[2 K + 2]: the slot, and in the last `PLACE` bits the dimension."""
    loop: Records
    """[2 K + 2]: the dimension and the slot; iterations of the dimension from one trip to the next (`step`); by how much that displaces the tile
    of the tensor at hand (`shift`); the product of the trips of all loops of its kind outside."""
    ragged: Bools
    """[1]: whether some tile does not divide the one it is cut from."""
    level: Records
    """[L]: its first temporal loop and the place after the last (`end`), and those of the spatial ones; sub-clusters in use
    below one instance."""


@structure
class Tiles(NamedTuple):
    """What `judge` worked out of the mapping at hand (see `Scratch`)."""

    inside: Floats
    """[S + 2, D]."""
    used: Floats
    """[E]."""
    words: Floats
    """[E, T]."""
    rows: Floats
    """All three."""


class Job(NamedTuple):
    """What the kernel works with."""

    rules: Rules
    slots: Ints
    tensors: Tensors
    hardware: Hardware
    mappings: Mappings
    judged: Scratch
    scratch: Tiles
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
    places = dict.fromkeys(("dimension", "slot"), Index)
    return Nest(
        place=np.zeros(2 * loops, np.int64),
        ragged=np.zeros(1, np.bool_),
        loop=records(2 * loops, **places, step=int, shift=int, trips=float, outside=float),
        level=records(levels, first=Index, end=Index, unrolled=Index, unrolled_end=Index, children=float),
    )


def tiles_of(judged: Scratch) -> Tiles:
    """Room for one of those that are judged side by side."""
    return Tiles(*in_one([array.shape[:-1] for array in (judged.inside, judged.used, judged.words)]))


@kernel_part
def look_up(judged: Scratch, b: int, tiles: Tiles) -> None:
    """What was worked out of the mapping at place b."""
    for row in range(len(tiles.rows)):
        tiles.rows[row] = judged.rows[row, b]


@compiled
def divide(sizes: Ints, temporal: Ints, spatial: Ints, trips: Ints, tiles: Ints, good: Bools) -> bool:
    """Trip counts of tiles [n, E, D]: of the first entry in space, then of each entry in time and in space; and the `tiles`
    inside those. `good` becomes False where the tiles are not of whole tensors, down to one iteration, none larger than the
    one it is cut from. Whether all divide."""
    perfect = True
    last = temporal.shape[1] - 1
    for n in range(len(temporal)):
        for d in range(temporal.shape[2]):
            good[n] &= temporal[n, 0, d] == sizes[d] and spatial[n, last, d] == 1
            outer = temporal[n, 0, d]
            for e in range(last + 1):
                if good[n] and e > 0:
                    good[n] = 0 < temporal[n, e, d] <= outer
                    if good[n]:
                        trips[n, 2 * e - 1, d] = -(-outer // temporal[n, e, d])
                        perfect &= outer % temporal[n, e, d] == 0
                    outer = tiles[n, 2 * e - 1, d] = temporal[n, e, d]
                if good[n]:
                    good[n] = 0 < spatial[n, e, d] <= outer
                    if good[n]:
                        trips[n, 2 * e, d] = -(-outer // spatial[n, e, d])
                        perfect &= outer % spatial[n, e, d] == 0
                    outer = tiles[n, 2 * e, d] = spatial[n, e, d]
    return perfect


@kernel_part
def unfold(job: Job, n: int, row: int) -> bool:
    """Lay out the loops, by level. False: more instances are in use along an axis than exist (Timeloop's check)."""
    trips, order, nest, hardware, place = job.mappings.trips, job.mappings.order, job.nest, job.hardware, job.nest.place
    x = y = instances = 1.0
    end, unrolled = Index(0), Index(len(place) // 2)
    for number in range(len(hardware.level)):
        level, here = hardware.level[number], nest.level[number]
        job.counts.instances[row, number] = instances
        here.first, here.unrolled, here.children = end, unrolled, 1.0
        for s in range(level.start, level.stop):
            slot = hardware.slot[s]
            at, cell, block = end if slot.steps else unrolled, s << PLACE, slot.order
            if slot.ordered:
                for position in range(trips.shape[2]):
                    d = Index(order[n, block, position])
                    place[at] = cell | d
                    at = Index(
                        at + (trips[n, s, d] > 1)
                    )  # a unit loop is overwritten: no branch that nobody can foresee
            else:
                for d in range(trips.shape[2]):
                    place[at] = cell | d
                    at = Index(at + (trips[n, s, d] > 1))
            if slot.steps:
                end = at
            else:
                unrolled = at
                used = job.scratch.used[slot.entry]
                here.children *= used
                if slot.vertical:
                    y *= used
                else:
                    x *= used
        if x > level.across or y > level.down:
            return False
        instances *= here.children
        here.end, here.unrolled_end = end, unrolled
    nest.ragged[0] = _measure(job, n, Index(0), end) | _measure(job, n, Index(len(place) // 2), unrolled)
    return True


@kernel_part
def _measure(job: Job, n: int, first: int, end: int) -> bool:
    """Trips and steps of loops; whether some last step is a short one."""
    outside, ragged = 1.0, False
    for at in range(first, end):
        loop, place = job.nest.loop[at], job.nest.place[at]
        slot, d = Index(place >> PLACE), Index(place & (1 << PLACE) - 1)
        step, trips = job.scratch.inside[slot + 1, d], float(job.mappings.trips[n, slot, d])
        loop.dimension, loop.slot, loop.step, loop.trips, loop.outside = d, slot, step, trips, outside
        ragged |= trips * step != job.scratch.inside[slot, d]
        outside *= trips
    job.nest.loop[end].outside = outside
    return ragged
