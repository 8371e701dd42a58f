"""The loops of mappings side by side, by storage level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.compiled import LANES, compiled, every, kernel_part, lanes, structure
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import Scratch
from tilewright.mapspace.rules.tables import Rules
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.multicast import Deliveries, FanoutCache
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tables, Tensors


@structure
class Nest(NamedTuple):
    """The loops in time of B mappings side by side, and what is worked out of them. Shapes: K places, outermost first, of which only
    those are used at which some mapping has a loop; S slots, L levels."""

    live: Bools
    """[B]: valid so far."""
    loop_start: Ints
    """[S + 1]: the first place of a slot, and the number of places."""
    loop_dims: Ints
    """[S]: the dimensions along which some mapping has a loop in the slot, as bits."""
    dimension: Ints
    """[K, B]: of the loop, as a bit; 0: it has one trip."""
    trips_outside: Floats
    """[K + 1, B]: the product of the trips of all loops outside."""
    subclusters: Floats
    """[L, B]: sub-clusters in use below one instance."""
    advance_sum: Ints
    """[K, B]: of the tensor at hand: by how much the loop at a place and all those outside displace its tile, one step each, and
    the loop itself once more."""
    step: Ints
    """[D, B]: the same of one step of each dimension in the slot at hand."""
    visits: Floats
    """[L, B]: of the innermost loop that moves the tile, of those of a level and further out: the product of its trips and of those
    of all loops outside of it; ones if there is none."""
    sweeps: Floats
    """[L, B]: the same without its own."""
    c_dimension: Ints
    """[L, B]: its dimension, as a bit; 0: there is none."""
    c_stride: Floats
    """[L, B]: iterations of the dimension from one of its trips to the next."""
    c_shift: Ints
    """[L, B]: by how much that displaces the tile."""
    step_sum: Ints
    """[L, B]: by how much all loops of a level and further out displace it, one step each."""
    selected: Bools
    """[B]: whether something is to be looked up."""
    words: Floats
    """[B]: of what it is to be looked up, as `c_shift` and `deliveries`; what was found, as all to `received`."""
    shift: Ints
    deliveries: Floats
    forwarded: Floats
    saved: Floats
    received: Floats
    pattern: Ints
    """[B]: where it is told how its children are served."""
    neighbour_bits: Ints
    """[B]: by how much the tiles of neighbours may be displaced: the bits of all."""


@structure
class KernelInput(NamedTuple):
    """What the kernel works with."""

    rules: Rules
    slots: Ints
    tensors: Tensors
    hardware: Hardware
    mappings: Mappings
    scratch: Scratch
    nest: Nest
    deliveries: Deliveries
    cache: FanoutCache
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
    loops = int(tables.hardware.slot["temporal"].sum()) * dims
    by_loop = dict.fromkeys(("dimension", "advance_sum"), loops) | {"trips_outside": loops + 1}
    rows = (
        by_loop
        | {"step": dims}
        | dict.fromkeys("subclusters visits sweeps c_dimension c_stride c_shift step_sum".split(), levels)
    )
    boolean = "live", "selected"
    integral = "dimension advance_sum step c_dimension c_shift step_sum shift pattern neighbour_bits".split()
    arrays: dict[str, Any] = {}
    for name in Nest._fields:
        kind = np.bool_ if name in boolean else np.int64 if name in integral else np.float64
        arrays[name] = np.ones((rows[name], LANES) if name in rows else LANES, kind)
    slots = len(tables.hardware.slot)
    return Nest(**arrays | {"loop_start": np.zeros(slots + 1, np.int64), "loop_dims": np.zeros(slots, np.int64)})


@compiled
def trips_of_tiles(sizes: Ints, temporal: Ints, spatial: Ints, trips: Ints, tiles: Ints, sound: Bools) -> bool:
    """Trip counts of tiles [n, E, D]: of the first entry in space, then of each entry in time and in space; and the `tiles`
    inside those. `sound` becomes False where the tiles are not of whole tensors, down to one iteration, none larger than the
    one it is cut from. Whether all divide."""
    perfect = True
    last = temporal.shape[1] - 1
    for n in range(len(temporal)):
        for d in range(temporal.shape[2]):
            sound[n] &= temporal[n, 0, d] == sizes[d] and spatial[n, last, d] == 1
            outer = temporal[n, 0, d]
            for e in range(last + 1):
                if sound[n] and e > 0:
                    sound[n] = 0 < temporal[n, e, d] <= outer
                    if sound[n]:
                        trips[n, 2 * e - 1, d] = -(-outer // temporal[n, e, d])
                        perfect &= outer % temporal[n, e, d] == 0
                    outer = tiles[n, 2 * e - 1, d] = temporal[n, e, d]
                if sound[n]:
                    sound[n] = 0 < spatial[n, e, d] <= outer
                    if sound[n]:
                        trips[n, 2 * e, d] = -(-outer // spatial[n, e, d])
                        perfect &= outer % spatial[n, e, d] == 0
                    outer = tiles[n, 2 * e, d] = spatial[n, e, d]
    return perfect


@kernel_part
def build_nest(inputs: KernelInput, group: int, may_be_ragged: bool) -> None:
    """Lay out the loops of the mappings at hand. No longer alive is where more instances are in use along an axis than exist
    (Timeloop's check). `may_be_ragged`: tiles may not divide."""
    hardware, nest, trips, dims = inputs.hardware, inputs.nest, inputs.scratch.trips, inputs.scratch.trips.shape[1]
    _place_loops(inputs)
    live, used_x, used_y, instances, trips_outside = lanes(nest.live), every(1.0), every(1.0), every(1.0), every(1.0)
    for number in range(len(hardware.level)):
        level, subclusters = hardware.level[number], every(1.0)
        inputs.counts.instances[group, number][:] = instances
        for s in range(level.start, level.stop):
            slot = hardware.slot[s]
            if slot.temporal:
                for p in range(nest.loop_start[s], nest.loop_start[s + 1]):
                    trips_outside = trips_outside * lanes(nest.trips_outside[p + 1])
                    nest.trips_outside[p + 1][:] = trips_outside
            else:
                used = lanes(inputs.scratch.used[slot.entry])
                subclusters = subclusters * used
                if slot.vertical:
                    used_y = used_y * used
                else:
                    used_x = used_x * used
        live = live & (used_x <= level.across) & (used_y <= level.down)
        instances = instances * subclusters
        nest.subclusters[number][:] = subclusters
    nest.live[:] = live
    ragged = every(False)
    if may_be_ragged:
        for s in range(len(trips)):
            for d in range(dims):
                tiles = lanes(trips[s, d]) * lanes(inputs.scratch.inside[s + 1, d])
                ragged = ragged | (tiles != lanes(inputs.scratch.inside[s, d]))
    inputs.counts.ragged[group][:] = ragged & live


@kernel_part
def _place_loops(inputs: KernelInput) -> None:
    """Write the dimension of the loop at every place, and its trips to the place after in `trips_outside`."""
    hardware, nest, scratch, dims = inputs.hardware, inputs.nest, inputs.scratch, inputs.scratch.trips.shape[1]
    live, loop = lanes(nest.live), 0
    for s in range(len(hardware.slot)):
        slot, loop_dims = hardware.slot[s], 0
        nest.loop_start[s] = loop
        for d in range(dims):
            if np.any(live & (lanes(scratch.trips[s, d]) > 1.0)):
                loop_dims |= 1 << d
        nest.loop_dims[s] = loop_dims
        for position in range(dims if loop_dims and slot.temporal else 0):
            dimension, trips = lanes(scratch.order[slot.order, position]), every(1.0)
            for d in range(dims):
                if loop_dims >> d & 1:
                    trips = np.where(dimension == d, lanes(scratch.trips[s, d]), trips)
            iterates = live & (trips > 1.0)
            nest.dimension[loop][:] = np.where(iterates, 1 << (dimension & 63), 0)
            nest.trips_outside[loop + 1][:] = trips
            loop += int(np.any(iterates))  # a place without loops is used again
    nest.loop_start[len(hardware.slot)] = loop
