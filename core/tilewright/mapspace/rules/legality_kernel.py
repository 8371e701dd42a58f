"""Legality kernels: tile sizes are checked one mapping at a time, trip counts in SIMD lanes.

`check_tiles` records every violation in a table, as (code, where, which, value, limit). It stops at
the first one if the table has a single row. `check_trips` reports only whether all rules hold.

A row of the table, if a memory of 7 slices would have to keep 8:

    code           where     which         value   limit
    CAPACITY       NONE      memory 1      8       7
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import LANES, compiled, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.rules.scratch import Scratch, hold_all, hold_tiles, lay_out, to_lanes
from tilewright.mapspace.rules.tables import (
    BACKING,
    CAPACITY,
    FANOUT,
    HOME,
    LEGAL,
    NONE,
    ORDER,
    REST,
    SPATIAL,
    TEMPORAL,
    TWICE,
    UNROLL,
    WHOLE,
    Codes,
    Orders,
    Rules,
)


class TripBatch(NamedTuple):
    """Mappings as trips, for `check_trips`. Kernels make it."""

    trips: Ints
    """[n, slot, dimension]."""
    tiles: Ints
    """[n, slot, dimension]: tile inside each slot. Empty: the tiles follow from the trips."""
    order: Orders
    """Loop order of each temporal slot. Empty: the problem's order."""
    keep: Bools
    """[n, E, T]: kept tensors; one row if all mappings keep the same."""


@compiled
def check_tiles(
    rules: Rules,
    temporal: Ints,
    spatial: Ints,
    order: Positions,
    spatial_order: Positions,
    keep: Bools,
    codes: Codes,
    scratch: Scratch,
) -> int:
    """Write the code of the first violated rule of every mapping [n].

    The violations of the last mapping remain in `scratch`.

    Args:
        spatial_order: Spatial loop orders, or an array of no mappings for the problem's order.

    Returns:
        The number of violations of the last mapping.
    """
    entries, dims, faults = temporal.shape[1], temporal.shape[2], scratch.faults
    noted = NONE
    for n in range(len(temporal)):
        if n % LANES == 0:
            hold_tiles(rules, temporal, keep, n, scratch)
        noted = NONE
        for d in range(dims):  # coverage
            if temporal[n, 0, d] != rules.sizes[d]:
                noted = _note(faults, noted, WHOLE, NONE, d, float(temporal[n, 0, d]), float(rules.sizes[d]))
            if spatial[n, entries - 1, d] != 1:
                noted = _note(faults, noted, REST, NONE, d, float(spatial[n, entries - 1, d]), 1.0)
        for e in range(entries):  # nesting: a tile is no larger than the enclosing tile
            for d in range(dims):
                incoming = spatial[n, e - 1, d] if e else temporal[n, 0, d]
                if temporal[n, e, d] > incoming or temporal[n, e, d] < 1:
                    noted = _note(faults, noted, TEMPORAL, e, d, float(temporal[n, e, d]), float(incoming))
                if spatial[n, e, d] > temporal[n, e, d] or spatial[n, e, d] < 1:
                    noted = _note(faults, noted, SPATIAL, e, d, float(spatial[n, e, d]), float(temporal[n, e, d]))
        if noted < len(faults):
            for e in range(entries):
                used = 1.0
                for d in range(dims):
                    if spatial[n, e, d] != temporal[n, e, d] and spatial[n, e, d] >= 1:
                        used *= -(-temporal[n, e, d] // spatial[n, e, d])
                noted = _unrolled(rules, False, e, used, faults, noted)
        if noted < len(faults):
            noted = _kept(rules, keep, n, faults, noted)
        if noted < len(faults):
            for memory in range(len(rules.usable)):  # all entries of one memory share its capacity
                need, usable = scratch.need[memory, n % LANES], rules.usable[memory]
                if need > usable:
                    noted = _note(faults, noted, CAPACITY, NONE, memory, need, usable)
        codes[n] = faults[0, 0] if noted else LEGAL
        if not noted and not (_are_orders(order, n) and (len(spatial_order) == 0 or _are_orders(spatial_order, n))):
            codes[n] = ORDER
    return noted


@kernel_part
def check_trips(
    rules: Rules, slots: Ints, batch: TripBatch, lax_fanout: bool, first: int, legal: Bools, scratch: Scratch
) -> None:
    """Clear `legal` for those of `LANES` mappings from `first` on that break a rule.

    Args:
        slots: Slots of the entries, from `slots_of_entries`.
        lax_fanout: Whether more sub-clusters may be in use than exist, for models with their own rule.
    """
    trips, tiles, order, keep = batch
    to_lanes(trips, first, scratch.trips)
    if len(keep) > 1 or first == 0:
        to_lanes(keep, first, scratch.kept)
    good = _are_kept(rules, scratch.kept)
    for e in range(len(slots)):
        used, slot = splat16(1.0), slots[e, 1]
        if slot >= 0:
            most = np.inf if lax_fanout else float(rules.entry[e].sub_clusters)
            most = most if rules.entry[e].unrolls else 1.0
            for d in range(trips.shape[2]):
                used = used * lanes(scratch.trips[slot, d])
            good = good & (used <= most)
        scratch.used[e][:] = used
    if len(tiles) > 0:
        to_lanes(tiles, first, scratch.inside[1:])
        for d in range(tiles.shape[2]):
            scratch.inside[0, d][:] = splat16(float(rules.sizes[d]))
    else:
        good = good & lay_out(rules.sizes, scratch)
    hold_all(rules, slots, scratch)
    for memory in range(len(rules.usable)):
        good = good & (lanes(scratch.need[memory]) <= rules.usable[memory])
    if len(order) > 0:
        to_lanes(order, first, scratch.order)
        for row in range(order.shape[1]):
            named = splat16(0)
            for position in range(order.shape[2]):
                named = named | (1 << (lanes(scratch.order[row, position]) & 63))  # out of range: no dimension's bit
            good = good & (named == (1 << order.shape[2]) - 1)
    scratch.good[:] = good
    for n in range(first, min(first + LANES, len(trips))):
        legal[n] &= scratch.good[n - first]


@kernel_call
def _note(faults: Floats, noted: int, code: int, where: int, which: int, value: float, limit: float) -> int:
    if noted < len(faults):
        faults[noted, 0], faults[noted, 1], faults[noted, 2] = code, where, which
        faults[noted, 3], faults[noted, 4] = value, limit
    return noted + 1


@kernel_part
def _unrolled(rules: Rules, lax_fanout: bool, e: int, used: float, faults: Floats, noted: int) -> int:
    """Record an unrolling that exceeds the fanout, or that is not at the last entry of its cluster."""
    if used > rules.entry[e].sub_clusters and not lax_fanout:
        noted = _note(faults, noted, FANOUT, e, NONE, used, float(rules.entry[e].sub_clusters))
    if used > 1 and not rules.entry[e].unrolls:
        noted = _note(faults, noted, UNROLL, e, NONE, used, 1.0)
    return noted


@kernel_call
def _kept(rules: Rules, keep: Bools, n: int, faults: Floats, noted: int) -> int:
    """Record tensors that no entry keeps, that no memory may hold, or that are kept twice."""
    for t in range(keep.shape[2]):
        if not np.any(keep[n, :, t]):
            noted = _note(faults, noted, BACKING, NONE, t, 0.0, 0.0)
    for e in range(keep.shape[1]):
        for t in range(keep.shape[2]):
            if keep[n, e, t]:
                for other in range(rules.entry[e].first_alike, e):
                    if keep[n, other, t]:
                        noted = _note(faults, noted, TWICE, e, t, float(other), 0.0)
                if rules.memory[e, t] < 0:
                    noted = _note(faults, noted, HOME, e, t, 0.0, 0.0)
    return noted


@kernel_part
def _are_kept(rules: Rules, kept: Bools) -> Bools:
    """Return whether the rules of `_kept` hold, for mappings in SIMD lanes, [B]."""
    good = splat16(True)
    for t in range(kept.shape[1]):
        anywhere = splat16(False)
        for e in range(len(kept)):
            here = lanes(kept[e, t])
            anywhere = anywhere | here
            if rules.memory[e, t] < 0:
                good = good & ~here
            for other in range(rules.entry[e].first_alike, e):
                good = good & ~(here & lanes(kept[other, t]))
        good = good & anywhere
    return good


@kernel_part
def _are_orders(order: Positions, n: int) -> bool:
    """Return whether every row of a mapping names every dimension once."""
    all_named = (1 << order.shape[2]) - 1
    good = True
    for row in range(order.shape[1]):
        named = 0
        for position in range(order.shape[2]):
            named |= 1 << (order[n, row, position] & 63)  # out of range: a bit beyond the dimensions
        good &= named == all_named
    return good
