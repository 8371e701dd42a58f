"""The rules of legality (Union, section IV-D, generalised), compiled: of tiles for one mapping at a time,
of trip counts for several side by side.

A rule goes over the tiles of one mapping and notes every fault in a table, as (code, where, which, value, limit). In a
table of one row, the first rule that is broken ends the judgement. Of trip counts, only whether all rules hold is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import (
    LANES,
    Index,
    Records,
    compiled,
    every,
    floats,
    for_kernel,
    inlined,
    integer,
    kernel_call,
    kernel_part,
    lanes,
    soon,
    structure,
    table,
)
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.problem import Problem, Tensor

Codes = NDArray[np.int8]
Orders = NDArray[np.uint8]
"""`Positions` as compiled functions read them."""

LEGAL, WHOLE, REST, TEMPORAL, SPATIAL, FANOUT, UNROLL, HOME, TWICE, BACKING, CAPACITY, ORDER = map(integer, range(12))
"""Codes of faults. WHOLE, REST: coverage outside and inside; TEMPORAL, SPATIAL: nesting; HOME: a tensor kept where no
single memory may hold it; ORDER: not every dimension once."""
NONE = integer(0)


@structure
class Terms(NamedTuple):
    """The coordinates of tensors. Shapes: T tensors, P terms of all of them."""

    start: NDArray[np.uint32]
    """[T + 1]: the terms of tensor t are those from start[t] to start[t + 1] - 1."""
    term: Records
    """[P]: its dimension and coefficient; whether it is the last of its coordinate."""


@structure
class Rules(NamedTuple):
    """What the rules read. Shapes: E entries, T tensors, D dimensions, M memories."""

    sizes: Ints
    """[D]."""
    entry: Records
    """[E]: sub-clusters of its cluster; whether it is the last entry there, the only one that may unroll; the first entry
    there."""
    memory: Ints
    """[E, T]: number of the only memory of the entry's cluster that may hold the tensor, if the entry holds; else -1."""
    usable: Floats
    """[M], slices (see `Memory.slices_per_word`); inf: unlimited."""
    slices: Floats
    """[M, T]: of one value."""
    terms: Terms


@structure
class Scratch(NamedTuple):
    """Room for what is worked out of B = `LANES` mappings of S slots side by side; what `judge` leaves there is of use to cost
    models."""

    trips: Floats
    """[S, D, B]."""
    inside: Floats
    """[S + 1, D, B]: iterations inside a slot and all those further in; ones inside the last slot."""
    order: Ints
    """[row, position, B]: dimensions, as many rows as temporal slots at least."""
    used: Floats
    """[E, B]: sub-clusters."""
    kept: Bools
    """[E, T, B]: whether the entry keeps the tensor."""
    need: Floats
    """[M, B]: slices held."""
    good: Bools
    """[B]: no rule is broken."""
    faults: Floats
    """[F, 5]."""


def scratch_of(rules: Rules, slots: int = 0, faults: int = 1) -> Scratch:
    """Room for mappings with so many slots, and for so many faults."""
    entries, tensors = rules.memory.shape
    return Scratch(
        trips=np.ones((slots, len(rules.sizes), LANES)),
        inside=np.ones((slots + 1, len(rules.sizes), LANES)),
        order=np.ones((slots + entries, len(rules.sizes), LANES), np.int64),
        used=np.ones((entries, LANES)),
        kept=np.ones((entries, tensors, LANES), np.bool_),
        need=np.zeros((len(rules.usable), LANES)),
        good=np.ones(LANES, np.bool_),
        faults=np.zeros((faults, 5)),
    )


def rules_of(problem: Problem, architecture: Architecture, skeleton: Skeleton) -> Rules:
    """The rules for mappings over a skeleton whose targets exist."""
    targets = [entry.target for entry in skeleton.entries]
    clusters = [architecture.cluster(target) for target in targets]
    numbers = {memory.name: number for number, memory in enumerate(architecture.memories)}

    def home(cluster: Cluster, tensor: Tensor) -> int:
        able = [numbers[memory.name] for memory in cluster.memories if memory.may_hold(tensor)]
        return able[0] if len(able) == 1 else -1

    entries = [
        (cluster.fanout.size, target not in targets[number + 1 :], targets.index(target))
        for number, (target, cluster) in enumerate(zip(targets, clusters, strict=True))
    ]
    usable = [memory.usable_slices for memory in architecture.memories]
    slices = [[memory.slices_of(tensor) for tensor in problem.tensors] for memory in architecture.memories]
    return Rules(
        sizes=_ints(problem.sizes),
        entry=table(entries, sub_clusters=int, unrolls=bool, first_alike=int),
        memory=_ints(
            [
                [home(cluster, tensor) if entry.holds else -1 for tensor in problem.tensors]
                for entry, cluster in zip(skeleton.entries, clusters, strict=True)
            ]
        ),
        usable=for_kernel(np.array(usable, dtype=np.float64)),
        slices=for_kernel(np.array(slices, dtype=np.float64)),
        terms=terms_of(problem),
    )


def terms_of(problem: Problem) -> Terms:
    """The coordinates of a problem's tensors."""
    ranks = [[list(rank.terms.items()) for rank in tensor.projection] for tensor in problem.tensors]
    terms = [
        (problem.dimension_names.index(name), coefficient, number == len(rank) - 1)
        for tensor in ranks
        for rank in tensor
        for number, (name, coefficient) in enumerate(rank)
    ]
    start = np.cumsum([0, *(sum(map(len, tensor)) for tensor in ranks)])
    return Terms(start=for_kernel(start.astype(Index)), term=table(terms, dimension=Index, coefficient=int, last=bool))


def slots_of_entries(slots: Sequence[Slot], entries: int) -> Ints:
    """Numbers of the temporal and the spatial slot of every entry, [E, 2]; -1: it has none."""
    numbers = {(slot.entry, slot.spatial): number for number, slot in enumerate(slots)}
    return _ints([[numbers.get((entry, spatial), -1) for spatial in (False, True)] for entry in range(entries)])


def _ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


@compiled
def judge_tiles(
    rules: Rules,
    temporal: Ints,
    spatial: Ints,
    order: Positions,
    spatial_order: Positions,
    keep: Bools,
    codes: Codes,
    scratch: Scratch,
) -> int:
    """Write the code of the first broken rule of every mapping [n]; the faults of the last one stand in `scratch`.

    Args:
        spatial_order: of no mappings where the problem's order stands.

    Returns:
        How many faults the last mapping has.
    """
    entries, dims, faults = temporal.shape[1], temporal.shape[2], scratch.faults
    found = NONE
    for n in range(len(temporal)):
        if n % LANES == 0:
            hold_tiles(rules, temporal, keep, n, scratch)
        found = NONE
        for d in range(dims):  # coverage
            if temporal[n, 0, d] != rules.sizes[d]:
                found = _note(faults, found, WHOLE, NONE, d, float(temporal[n, 0, d]), float(rules.sizes[d]))
            if spatial[n, entries - 1, d] != 1:
                found = _note(faults, found, REST, NONE, d, float(spatial[n, entries - 1, d]), 1.0)
        for e in range(entries):  # nesting: a tile is no larger than the tile it is cut from
            for d in range(dims):
                incoming = spatial[n, e - 1, d] if e else temporal[n, 0, d]
                if temporal[n, e, d] > incoming or temporal[n, e, d] < 1:
                    found = _note(faults, found, TEMPORAL, e, d, float(temporal[n, e, d]), float(incoming))
                if spatial[n, e, d] > temporal[n, e, d] or spatial[n, e, d] < 1:
                    found = _note(faults, found, SPATIAL, e, d, float(spatial[n, e, d]), float(temporal[n, e, d]))
        if found < len(faults):
            for e in range(entries):
                used = 1.0
                for d in range(dims):
                    if spatial[n, e, d] != temporal[n, e, d] and spatial[n, e, d] >= 1:
                        used *= -(-temporal[n, e, d] // spatial[n, e, d])
                found = _unrolled(rules, False, e, used, faults, found)
        if found < len(faults):
            found = _kept(rules, keep, n, faults, found)
        if found < len(faults):
            for memory in range(len(rules.usable)):  # all entries of one memory share its capacity
                need, usable = scratch.need[memory, n % LANES], rules.usable[memory]
                if need > usable:
                    found = _note(faults, found, CAPACITY, NONE, memory, need, usable)
        codes[n] = faults[0, 0] if found else LEGAL
        if not found and not (_are_orders(order, n) and (len(spatial_order) == 0 or _are_orders(spatial_order, n))):
            codes[n] = ORDER
    return found


@kernel_part
def judge(
    rules: Rules,
    slots: Ints,
    trips: Ints,
    tiles: Ints,
    order: Orders,
    keep: Bools,
    lax_fanout: bool,
    first: int,
    legal: Bools,
    scratch: Scratch,
) -> None:
    """Whether `LANES` mappings from `first` on break no rule; those that do are not `legal`.

    Args:
        slots: as `slots_of_entries` gives them.
        trips: with an order per temporal slot.
        tiles: the tile inside each slot, [n, slot, dimension]; of no mappings where it is what the trips say.
        order: of no mappings where the problem's order stands.
        keep: of one mapping where all keep the same.
        lax_fanout: let more sub-clusters be in use than there are, for models with a rule of their own.
    """
    spread(trips, first, scratch.trips)
    if len(keep) > 1 or first == 0:
        spread_keep(keep, first, scratch.kept)
    good = _are_kept(rules, scratch.kept)
    for e in range(len(slots)):
        used, slot = every(1.0), slots[e, 1]
        if slot >= 0:
            most = np.inf if lax_fanout else float(rules.entry[e].sub_clusters)
            most = most if rules.entry[e].unrolls else 1.0
            for d in range(trips.shape[2]):
                used = used * lanes(scratch.trips[slot, d])
            good = good & (used <= most)
        scratch.used[e][:] = used
    if len(tiles) > 0:
        spread(tiles, first, scratch.inside[1:])
        for d in range(tiles.shape[2]):
            scratch.inside[0, d][:] = every(float(rules.sizes[d]))
    else:
        good = good & lay_out(rules.sizes, scratch)
    hold_all(rules, slots, scratch)
    for memory in range(len(rules.usable)):
        good = good & (lanes(scratch.need[memory]) <= rules.usable[memory])
    if len(order) > 0:
        spread_order(order, first, scratch.order)
        for row in range(order.shape[1]):
            named = every(0)
            for position in range(order.shape[2]):
                named = named | (1 << (lanes(scratch.order[row, position]) & 63))  # out of range: beyond all of them
            good = good & (named == (1 << order.shape[2]) - 1)
    scratch.good[:] = good
    for n in range(first, min(first + LANES, len(trips))):
        legal[n] &= scratch.good[n - first]


@kernel_call
def _note(faults: Floats, found: int, code: int, where: int, which: int, value: float, limit: float) -> int:
    if found < len(faults):
        faults[found, 0], faults[found, 1], faults[found, 2] = code, where, which
        faults[found, 3], faults[found, 4] = value, limit
    return found + 1


@inlined
def _unrolled(rules: Rules, lax_fanout: bool, e: int, used: float, faults: Floats, found: int) -> int:
    """No more sub-clusters are in use than there are, and only below the last entry on a cluster."""
    if used > rules.entry[e].sub_clusters and not lax_fanout:
        found = _note(faults, found, FANOUT, e, NONE, used, float(rules.entry[e].sub_clusters))
    if used > 1 and not rules.entry[e].unrolls:
        found = _note(faults, found, UNROLL, e, NONE, used, 1.0)
    return found


@kernel_call
def _kept(rules: Rules, keep: Bools, n: int, faults: Floats, found: int) -> int:
    """A tensor is kept where one memory may hold it, once in a cluster, and by the outermost entry."""
    for t in range(keep.shape[2]):
        if not keep[n, 0, t]:
            found = _note(faults, found, BACKING, NONE, t, 0.0, 0.0)
    for e in range(keep.shape[1]):
        for t in range(keep.shape[2]):
            if keep[n, e, t]:
                for other in range(rules.entry[e].first_alike, e):
                    if keep[n, other, t]:
                        found = _note(faults, found, TWICE, e, t, float(other), 0.0)
                if rules.memory[e, t] < 0:
                    found = _note(faults, found, HOME, e, t, 0.0, 0.0)
    return found


@inlined
def _are_kept(rules: Rules, kept: Bools) -> Bools:
    """`_kept` of mappings side by side, [B]."""
    good = every(True)
    for t in range(kept.shape[1]):
        good = good & lanes(kept[0, t])
        for e in range(len(kept)):
            here = lanes(kept[e, t])
            if rules.memory[e, t] < 0:
                good = good & ~here
            for other in range(rules.entry[e].first_alike, e):
                good = good & ~(here & lanes(kept[other, t]))
    return good


@inlined
def spread(numbers: Ints, first: int, rows: Floats) -> None:
    """Numbers [n, slot, dimension] of mappings, laid side by side; after the last one comes the last one again."""
    last = first + LANES
    if last <= len(numbers):
        for s in range(numbers.shape[1]):
            for d in range(numbers.shape[2]):
                rows[s, d][:] = floats(lanes(numbers[first:last, s, d]))
        for n in range(last, min(last + LANES, len(numbers))):  # the next ones come while these are worked on
            for s in range(numbers.shape[1]):
                soon(numbers[n, s])
    else:
        for b in range(LANES):
            for s in range(numbers.shape[1]):
                for d in range(numbers.shape[2]):
                    rows[s, d, b] = numbers[min(first + b, len(numbers) - 1), s, d]


@inlined
def spread_order(order: Orders, first: int, rows: Ints) -> None:
    """The same of orders [n, row, position]."""
    last = first + LANES
    if last <= len(order):
        for row in range(order.shape[1]):
            for position in range(order.shape[2]):
                rows[row, position][:] = lanes(order[first:last, row, position])
    else:
        for b in range(LANES):
            for row in range(order.shape[1]):
                for position in range(order.shape[2]):
                    rows[row, position, b] = order[min(first + b, len(order) - 1), row, position]


@inlined
def spread_keep(keep: Bools, first: int, kept: Bools) -> None:
    """The same of what entries keep."""
    for b in range(LANES):
        n = min(first + b, len(keep) - 1)
        for e in range(keep.shape[1]):
            for t in range(keep.shape[2]):
                kept[e, t, b] = keep[n, e, t]


@inlined
def lay_out(sizes: Ints, scratch: Scratch) -> Bools:
    """Turn trips into iterations inside every slot and all those further in, at most all of them. Not good [B] is a trip count
    below 1, an empty piece of the last cut, and what is not the whole dimension."""
    trips, inside, good = scratch.trips, scratch.inside, every(True)
    for d in range(len(sizes)):
        size, tile = float(sizes[d]), every(1.0)
        for s in range(len(trips) - 1, -1, -1):
            here = lanes(trips[s, d])
            good = good & (here >= 1.0) & ((here - 1.0) * tile < size)
            tile = np.minimum(here * tile, size)
            inside[s, d][:] = tile
        good = good & (tile == size)
    return good


@inlined
def hold_tiles(rules: Rules, temporal: Ints, keep: Bools, first: int, scratch: Scratch) -> None:
    """Add up what all entries keep of the tiles of `LANES` mappings from `first` on."""
    spread_keep(keep, first, scratch.kept)
    scratch.need[:] = 0.0
    for e in range(temporal.shape[1]):
        for b in range(LANES):
            for d in range(temporal.shape[2]):
                scratch.inside[0, d, b] = temporal[min(first + b, len(temporal) - 1), e, d]
        hold(rules, e, NONE, scratch)


@inlined
def hold_all(rules: Rules, slots: Ints, scratch: Scratch) -> None:
    """Add up what all entries keep of the tiles in `scratch`."""
    scratch.need[:] = 0.0
    row = len(scratch.inside) - 1
    for e in range(len(slots) - 1, -1, -1):
        row = slots[e, 1] if slots[e, 1] >= 0 else row
        hold(rules, e, row, scratch)
        row = slots[e, 0] if slots[e, 0] >= 0 else row


@kernel_part
def hold(rules: Rules, e: int, row: int, scratch: Scratch) -> None:
    """Add the slices that an entry keeps of the tiles in a row to what its memories need."""
    for t in range(scratch.kept.shape[1]):
        memory = rules.memory[e, t]
        if memory >= 0 and (e > 0 or rules.usable[memory] < np.inf):
            kept, slices = lanes(scratch.kept[e, t]), rules.slices[memory, t]
            if np.any(kept):
                words = words_of(rules.terms, t, scratch.inside[row])
                scratch.need[memory][:] = lanes(scratch.need[memory]) + np.where(kept, words * slices, 0.0)


@inlined
def words_of(terms: Terms, tensor: int, tiles: Floats) -> Floats:
    """`tile_words` of tiles [D, B] side by side, [B]."""
    words, side = every(1.0), every(1.0)
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        side = side + float(terms.term[p].coefficient) * (lanes(tiles[terms.term[p].dimension]) - 1.0)
        if terms.term[p].last:
            words, side = words * side, every(1.0)
    return words


@inlined
def tile_words(terms: Terms, tensor: int, tiles: Floats | Ints, row: int) -> float:
    """Words of the bounding box that the tile in a row of `tiles` [row, D] spans (as `Problem.tile_words`).

    Exact below 2**53; a larger product is at least that large, and so larger than any memory.
    """
    volume = side = 1.0
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[p]
        side += term.coefficient * (tiles[row, term.dimension] - 1.0)
        if term.last:
            volume *= side
            side = 1.0
    return volume


@inlined
def _are_orders(order: Positions, n: int) -> bool:
    """Whether every row of a mapping names every dimension once."""
    all_named = (1 << order.shape[2]) - 1
    good = True
    for row in range(order.shape[1]):
        named = 0
        for position in range(order.shape[2]):
            named |= 1 << (order[n, row, position] & 63)  # out of range: beyond the dimensions, never all of them
        good &= named == all_named
    return good
