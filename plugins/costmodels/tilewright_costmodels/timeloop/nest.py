"""Loop nests of mappings in SIMD lanes, by storage level.

The loops of one lane, for the matrix product of `mapspace.rules.scratch`. Its dimensions m, n, k are bits 1, 2, 4.

    row   loop           dimension   trips_outside   level
    0     m x 2          1           1               0: DRAM, with a fanout of k x 2
    1     n x 4          2           2               0
    2     m x 2          1           8               1: memory of a PE
    3     k x 2          4           16              1
    4     -              -           32              compute

Row 1 is the innermost loop of level 0 that moves the output [m, n]. So its `visits` at level 0 are 2 * 4 = 8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.compiled import LANES, compiled, kernel_part, lanes, passed_by_pointer, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import Scratch
from tilewright.mapspace.rules.tables import Rules
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.multicast import Deliveries, FanoutCache
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tables, Tensors


@passed_by_pointer
class Nest(NamedTuple):
    """Temporal loops of B mappings, one per SIMD lane, and derived quantities.

    Shapes: S slots, L levels, D dimensions, K loops. A row of loops exists if at least one mapping
    has that loop; rows are ordered outermost first. `c` is the innermost relevant temporal loop at or outside a level,
    for the tensor at hand. A *shift* is the displacement of a tile, packed into one number (see `Tensors.projection`).
    """

    live: Bools
    """[B]: valid so far."""
    loop_start: Ints
    """[S + 1]: first loop of each slot; the last value is the number of loops."""
    loop_dims: Ints
    """[S]: dimensions along which some mapping has a loop in the slot, as bits."""
    dimension: Ints
    """[K, B]: dimension of the loop, as a bit; 0: the loop has one trip."""
    trips_outside: Floats
    """[K + 1, B]: product of the trips of all loops outside."""
    subclusters: Floats
    """[L, B]: sub-clusters in use below one instance."""
    advance_sum: Ints
    """[K, B]: shift by one step of every loop down to this one, plus one more step of this one. Minus `step_sum` of a
    level, it is the shift when this loop advances and all inner loops restart."""
    step: Ints
    """[D, B]: shift by one step of each dimension, in the slot at hand."""
    visits: Floats
    """[L, B]: how often `c` advances or restarts: its trips times the trips of all loops outside
    it; 1 if no loop is relevant."""
    sweeps: Floats
    """[L, B]: product of the trips of all loops outside `c`."""
    c_dimension: Ints
    """[L, B]: dimension of `c`, as a bit; 0: no loop is relevant."""
    c_stride: Floats
    """[L, B]: iterations of that dimension per trip of `c`."""
    c_shift: Ints
    """[L, B]: shift per trip of `c`."""
    step_sum: Ints
    """[L, B]: shift by one step of every loop at or outside the level."""
    energy_pj: Floats
    """[B]: energy of the mapping."""
    cycles: Floats
    """[B]: cycles of the mapping."""
    selected: Bools
    """[B]: lanes to look up. This and the following fields are arguments and results of calls that
    work lane by lane."""
    words: Floats
    """[B]: words to look up."""
    shift: Ints
    """[B]: shift since neighbours held them."""
    deliveries: Floats
    """[B]: deliveries per word from the parent."""
    forwarded: Floats
    """[B]: words that neighbours forward."""
    saved: Floats
    """[B]: accesses that the parent saves."""
    received: Floats
    """[B]: words that sub-clusters receive from neighbours."""
    pattern: Ints
    """[B]: delivery pattern without forwarding."""
    neighbour_bits: Ints
    """[B]: `bit_of` all shifts between neighbours."""


@passed_by_pointer
class KernelInput(NamedTuple):
    """Input of the kernel: tables, mappings and scratch arrays."""

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
    """Check fanouts along each axis of the mesh only, as Timeloop's model does."""
    link_transfers: bool
    detailed: bool
    """Count the traffic of networks."""
    reported: bool
    """Keep what reports need, of the first mapping of the last group."""


def nest_of(tables: Tables) -> Nest:
    """Return an empty nest."""
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
    """Write the trips of mappings given as tile sizes. Return whether all tiles divide.

    Args:
        sizes: [D].
        temporal: [n, E, D], temporal tile sizes of each entry.
        spatial: [n, E, D], spatial tile sizes.
        trips: [n, 2 E - 1, D], written: of the first spatial slot, then of each temporal and spatial slot.
        tiles: [n, 2 E - 1, D], written: the tile inside each slot.
        sound: [n], becomes False if the outermost tile is not the whole dimension, or the innermost
            not one iteration. Also if a tile exceeds the one it is cut from.
    """
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
    """Build the loop nests of the mappings at hand.

    A mapping is no longer live if it uses more instances along an axis than exist (Timeloop's check).

    Args:
        may_be_ragged: some tiles may not divide.
    """
    hardware, nest, trips, dims = inputs.hardware, inputs.nest, inputs.scratch.trips, inputs.scratch.trips.shape[1]
    _place_loops(inputs)
    live, used_x, used_y, instances, trips_outside = (
        lanes(nest.live),
        splat16(1.0),
        splat16(1.0),
        splat16(1.0),
        splat16(1.0),
    )
    for number in range(len(hardware.level)):
        level, subclusters = hardware.level[number], splat16(1.0)
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
    ragged = splat16(False)
    if may_be_ragged:
        for s in range(len(trips)):
            for d in range(dims):
                tiles = lanes(trips[s, d]) * lanes(inputs.scratch.inside[s + 1, d])
                ragged = ragged | (tiles != lanes(inputs.scratch.inside[s, d]))
    inputs.counts.ragged[group][:] = ragged & live


@kernel_part
def _place_loops(inputs: KernelInput) -> None:
    """Write the dimension of every loop, and its trips to the next row of `trips_outside`."""
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
            dimension, trips = lanes(scratch.order[slot.order, position]), splat16(1.0)
            for d in range(dims):
                if loop_dims >> d & 1:
                    trips = np.where(dimension == d, lanes(scratch.trips[s, d]), trips)
            iterates = live & (trips > 1.0)
            nest.dimension[loop][:] = np.where(iterates, 1 << (dimension & 63), 0)
            nest.trips_outside[loop + 1][:] = trips
            loop += int(np.any(iterates))  # a row without loops is used again
    nest.loop_start[len(hardware.slot)] = loop
