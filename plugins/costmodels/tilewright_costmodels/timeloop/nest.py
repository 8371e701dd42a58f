"""The loops of mappings side by side, by storage level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.compiled import LANES, compiled, every, kernel_part, lanes, structure
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import Scratch
from tilewright.mapspace.rules.tables import Rules
from tilewright_costmodels.timeloop.accounts import Accounts, Deliveries
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tables, Tensors


@structure
class Nest(NamedTuple):
    """The loops in time of B mappings side by side, and what is worked out of them. Shapes: K places, outermost first, of which only
    those are used at which some mapping has a loop; S slots, L levels."""

    live: Bools
    """[B]: valid so far."""
    place: Ints
    """[S + 1]: the first place of a slot, and the number of places."""
    looped: Ints
    """[S]: the dimensions along which some mapping has a loop in the slot, as bits."""
    dimension: Ints
    """[K, B]: of the loop, as a bit; 0: it has one trip."""
    outside: Floats
    """[K + 1, B]: the product of the trips of all loops outside."""
    children: Floats
    """[L, B]: sub-clusters in use below one instance."""
    displaced: Ints
    """[K, B]: of the tensor at hand: by how much the loop at a place and all those outside displace its tile, one step each, and
    the loop itself once more."""
    step: Ints
    """[D, B]: the same of one step of each dimension in the slot at hand."""
    visits: Floats
    """[L, B]: of the innermost loop that moves the tile, of those of a level and further out: the product of its trips and of those
    of all loops outside of it; ones if there is none."""
    before: Floats
    """[L, B]: the same without its own."""
    mover: Ints
    """[L, B]: its dimension, as a bit; 0: there is none."""
    iterations: Floats
    """[L, B]: iterations of the dimension from one of its trips to the next."""
    shift: Ints
    """[L, B]: by how much that displaces the tile."""
    undone: Ints
    """[L, B]: by how much all loops of a level and further out displace it, one step each."""
    wanted: Bools
    """[B]: whether something is to be looked up."""
    amount: Floats
    """[B]: of what it is to be looked up, as `by` and `deliveries`; what was found, as all to `received`."""
    by: Ints
    deliveries: Floats
    passed: Floats
    saved: Floats
    received: Floats
    account: Ints
    """[B]: where it is told how its children are served."""
    apart: Ints
    """[B]: by how much the tiles of neighbours may be displaced: the bits of all."""


@structure
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
    reported: bool
    """Keep what reports tell, of the last group's first mapping."""


def nest_of(tables: Tables) -> Nest:
    """Room for mappings of these tables."""
    levels, _, dims = tables.shape
    places = int(tables.hardware.slot["steps"].sum()) * dims
    by_place = dict.fromkeys(("dimension", "displaced"), places) | {"outside": places + 1}
    rows = (
        by_place
        | {"step": dims}
        | dict.fromkeys("children visits before mover iterations shift undone".split(), levels)
    )
    truths = "live", "wanted"
    integers = "dimension displaced step mover shift undone by account apart".split()
    made: dict[str, Any] = {}
    for name in Nest._fields:
        kind = np.bool_ if name in truths else np.int64 if name in integers else np.float64
        made[name] = np.ones((rows[name], LANES) if name in rows else LANES, kind)
    slots = len(tables.hardware.slot)
    return Nest(**made | {"place": np.zeros(slots + 1, np.int64), "looped": np.zeros(slots, np.int64)})


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
def unfold(job: Job, group: int, cut: bool) -> None:
    """Lay out the loops of the mappings at hand. No longer alive is where more instances are in use along an axis than exist
    (Timeloop's check). `cut`: tiles may not divide."""
    hardware, nest, trips, dims = job.hardware, job.nest, job.scratch.trips, job.scratch.trips.shape[1]
    _place(job)
    live, x, y, instances, outside = lanes(nest.live), every(1.0), every(1.0), every(1.0), every(1.0)
    for number in range(len(hardware.level)):
        level, children = hardware.level[number], every(1.0)
        job.counts.instances[group, number][:] = instances
        for s in range(level.start, level.stop):
            slot = hardware.slot[s]
            if slot.steps:
                for p in range(nest.place[s], nest.place[s + 1]):
                    outside = outside * lanes(nest.outside[p + 1])
                    nest.outside[p + 1][:] = outside
            else:
                used = lanes(job.scratch.used[slot.entry])
                children = children * used
                if slot.vertical:
                    y = y * used
                else:
                    x = x * used
        live = live & (x <= level.across) & (y <= level.down)
        instances = instances * children
        nest.children[number][:] = children
    nest.live[:] = live
    ragged = every(False)
    if cut:
        for s in range(len(trips)):
            for d in range(dims):
                tiles = lanes(trips[s, d]) * lanes(job.scratch.inside[s + 1, d])
                ragged = ragged | (tiles != lanes(job.scratch.inside[s, d]))
    job.counts.ragged[group][:] = ragged & live


@kernel_part
def _place(job: Job) -> None:
    """Write the dimension of the loop at every place, and its trips to the place after in `outside`."""
    hardware, nest, scratch, dims = job.hardware, job.nest, job.scratch, job.scratch.trips.shape[1]
    live, place = lanes(nest.live), 0
    for s in range(len(hardware.slot)):
        slot, looped = hardware.slot[s], 0
        nest.place[s] = place
        for d in range(dims):
            if np.any(live & (lanes(scratch.trips[s, d]) > 1.0)):
                looped |= 1 << d
        nest.looped[s] = looped
        for position in range(dims if looped and slot.steps else 0):
            at, trips = lanes(scratch.order[slot.order, position]), every(1.0)
            for d in range(dims):
                if looped >> d & 1:
                    trips = np.where(at == d, lanes(scratch.trips[s, d]), trips)
            some = live & (trips > 1.0)
            nest.dimension[place][:], nest.outside[place + 1][:] = np.where(some, 1 << (at & 63), 0), trips
            place += int(np.any(some))  # a place without loops is used again
    nest.place[len(hardware.slot)] = place
