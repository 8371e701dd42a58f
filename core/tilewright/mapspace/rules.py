"""The rules of legality (Union, section IV-D, generalised), stated once: for one mapping at a time, compiled.

A rule goes over the tiles of one mapping and notes every fault in a table, as (code, where, which, value, limit). With
a table of no rows only the number of faults counts, and the first rule that is broken ends the judgement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import compiled, for_kernel, inlined, integer
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.problem import Problem, Tensor

Codes = NDArray[np.int8]

LEGAL, WHOLE, REST, TEMPORAL, SPATIAL, FANOUT, UNROLL, HOME, TWICE, BACKING, CAPACITY, ORDER = map(integer, range(12))
"""Codes of faults. WHOLE, REST: coverage outside and inside; TEMPORAL, SPATIAL: nesting; HOME: a tensor kept where no
single memory may hold it; ORDER: not every dimension once."""
NONE = integer(0)


class Terms(NamedTuple):
    """The coordinates of tensors. Shapes: T tensors, P terms of all of them."""

    start: Ints
    """[T + 1]: the terms of tensor t are those from start[t] to start[t + 1] - 1."""
    dimension: Ints
    """[P]."""
    coefficient: Ints
    last: Bools
    """The last term of its coordinate."""


class Rules(NamedTuple):
    """What the rules read. Shapes: E entries, T tensors, D dimensions, M memories."""

    sizes: Ints
    """[D]."""
    fanout: Ints
    """[E]: sub-clusters of the entry's cluster."""
    unrolls: Bools
    """[E]: the last entry on its cluster, the only one that may use the fanout."""
    first_alike: Ints
    """[E]: the first entry on the same cluster."""
    memory: Ints
    """[E, T]: number of the only memory of the entry's cluster that may hold the tensor, if the entry holds; else -1."""
    usable_words: Floats
    """[M]; inf: unlimited."""
    terms: Terms


class Scratch(NamedTuple):
    """Room for what is worked out of one mapping."""

    tile: Ints
    """[1, D]."""
    need: Floats
    """[M]: words held."""


def scratch_of(rules: Rules) -> Scratch:
    return Scratch(tile=np.ones((1, len(rules.sizes)), dtype=np.int64), need=np.zeros_like(rules.usable_words))


def rules_of(problem: Problem, architecture: Architecture, skeleton: Skeleton) -> Rules:
    """The rules for mappings over a skeleton whose targets exist."""
    targets = [entry.target for entry in skeleton.entries]
    clusters = [architecture.cluster(target) for target in targets]
    numbers = {memory.name: number for number, memory in enumerate(architecture.memories)}

    def home(cluster: Cluster, tensor: Tensor) -> int:
        able = [numbers[memory.name] for memory in cluster.memories if memory.may_hold(tensor)]
        return able[0] if len(able) == 1 else -1

    return Rules(
        sizes=for_kernel(np.array(problem.sizes, dtype=np.int64)),
        fanout=_ints([cluster.fanout.size for cluster in clusters]),
        unrolls=for_kernel(
            np.array([target not in targets[e + 1 :] for e, target in enumerate(targets)], dtype=np.bool_)
        ),
        first_alike=_ints([targets.index(target) for target in targets]),
        memory=_ints(
            [
                [home(cluster, tensor) if entry.holds else -1 for tensor in problem.tensors]
                for entry, cluster in zip(skeleton.entries, clusters, strict=True)
            ]
        ),
        usable_words=for_kernel(
            np.array(
                [np.inf if m.usable_words is None else m.usable_words for m in architecture.memories], dtype=np.float64
            )
        ),
        terms=terms_of(problem),
    )


def terms_of(problem: Problem) -> Terms:
    """The coordinates of a problem's tensors."""
    ranks = [[list(rank.terms.items()) for rank in tensor.projection] for tensor in problem.tensors]
    terms = [term for tensor in ranks for rank in tensor for term in rank]
    last = [n == len(rank) - 1 for tensor in ranks for rank in tensor for n in range(len(rank))]
    return Terms(
        start=_ints(np.cumsum([0, *(sum(map(len, tensor)) for tensor in ranks)])),
        dimension=_ints([problem.dimension_names.index(name) for name, _ in terms]),
        coefficient=_ints([coefficient for _, coefficient in terms]),
        last=for_kernel(np.array(last, dtype=np.bool_)),
    )


def _ints(values: object) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


@compiled
def judge_tiles(
    rules: Rules,
    lax_fanout: bool,
    temporal: Ints,
    spatial: Ints,
    order: Positions,
    spatial_order: Positions,
    keep: Bools,
    faults: Floats,
    codes: Codes,
    scratch: Scratch,
) -> int:
    """Write the code of the first broken rule of every mapping [n]; the faults of the last one stand in `faults`.

    Args:
        lax_fanout: let more sub-clusters be in use than there are, for models with a rule of their own.
        spatial_order: of no mappings where the problem's order stands.
        faults: rows (code, entry, which dimension, tensor or memory, value, limit). Of one row: the first fault is enough.

    Returns:
        How many faults the last mapping has.
    """
    entries, dims = temporal.shape[1], temporal.shape[2]
    found = NONE
    for n in range(len(temporal)):
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
                if used > 1:
                    found = _unrolled(rules, lax_fanout, e, used, faults, found)
        if found < len(faults):
            found = _kept(rules, keep, n, faults, found)
        if found < len(faults):
            _empty(scratch)
            for e in range(entries):
                for d in range(dims):
                    scratch.tile[0, d] = temporal[n, e, d]
                _hold(rules, e, keep, n, scratch)
            found = _fit(rules, faults, found, scratch)
        codes[n] = faults[0, 0] if found else LEGAL
        if not found and not (_are_orders(order, n) and (len(spatial_order) == 0 or _are_orders(spatial_order, n))):
            codes[n] = ORDER
    return found


@compiled
def judge_trips(
    rules: Rules,
    slots: Ints,
    trips: Ints,
    order: Positions,
    keep: Bools,
    faults: Floats,
    codes: Codes,
    scratch: Scratch,
) -> None:
    """The same for trip counts [n, slot, dimension] with an order per temporal slot.

    Args:
        slots: numbers of the temporal and the spatial slot of every entry, [E, 2]; -1: it has none.
        order: of no mappings where the problem's order stands.
        keep: of one mapping where all keep the same.
    """
    tile, dims = scratch.tile, trips.shape[2]
    shared = _kept(rules, keep, NONE, faults, NONE) if len(keep) == 1 else NONE
    for n in range(len(trips)):
        row = n if len(keep) > 1 else NONE
        found = shared if len(keep) == 1 else _kept(rules, keep, row, faults, NONE)
        least = 1
        _empty(scratch)
        for e in range(len(slots) - 1, -1, -1):
            inner, outer = slots[e, 1], slots[e, 0]
            if inner >= 0:
                used = 1.0
                for d in range(dims):
                    used *= trips[n, inner, d]
                    tile[0, d] *= trips[n, inner, d]
                    least = min(least, trips[n, inner, d])
                found = _unrolled(rules, False, e, used, faults, found)
            _hold(rules, e, keep, row, scratch)
            if outer >= 0:
                for d in range(dims):
                    tile[0, d] *= trips[n, outer, d]
                    least = min(least, trips[n, outer, d])
        for d in range(dims):
            if tile[0, d] != rules.sizes[d] or least < 1:
                found = _note(faults, found, WHOLE, NONE, d, float(tile[0, d]), float(rules.sizes[d]))
        found = _fit(rules, faults, found, scratch)
        codes[n] = faults[0, 0] if found else LEGAL
        if found == 0 and len(order) and not _are_orders(order, n):
            codes[n] = ORDER


@compiled
def _note(faults: Floats, found: int, code: int, where: int, which: int, value: float, limit: float) -> int:
    if found < len(faults):
        faults[found, 0], faults[found, 1], faults[found, 2] = code, where, which
        faults[found, 3], faults[found, 4] = value, limit
    return found + 1


@inlined
def _unrolled(rules: Rules, lax_fanout: bool, e: int, used: float, faults: Floats, found: int) -> int:
    """No more sub-clusters are in use than there are, and only below the last entry on a cluster."""
    if used > rules.fanout[e] and not lax_fanout:
        found = _note(faults, found, FANOUT, e, NONE, used, float(rules.fanout[e]))
    if used > 1 and not rules.unrolls[e]:
        found = _note(faults, found, UNROLL, e, NONE, used, 1.0)
    return found


@compiled
def _kept(rules: Rules, keep: Bools, n: int, faults: Floats, found: int) -> int:
    """A tensor is kept where one memory may hold it, once in a cluster, and by the outermost entry."""
    for t in range(keep.shape[2]):
        if not keep[n, 0, t]:
            found = _note(faults, found, BACKING, NONE, t, 0.0, 0.0)
    for e in range(keep.shape[1]):
        for t in range(keep.shape[2]):
            if keep[n, e, t]:
                for other in range(rules.first_alike[e], e):
                    if keep[n, other, t]:
                        found = _note(faults, found, TWICE, e, t, float(other), 0.0)
                if rules.memory[e, t] < 0:
                    found = _note(faults, found, HOME, e, t, 0.0, 0.0)
    return found


@inlined
def _empty(scratch: Scratch) -> None:
    """Nothing is held; the tile is one iteration."""
    for memory in range(len(scratch.need)):
        scratch.need[memory] = 0.0
    for d in range(scratch.tile.shape[1]):
        scratch.tile[0, d] = 1


@inlined
def _hold(rules: Rules, e: int, keep: Bools, n: int, scratch: Scratch) -> None:
    """Add the words that an entry keeps of the tile to what its memories need."""
    for t in range(keep.shape[2]):
        memory = rules.memory[e, t]
        if keep[n, e, t] and memory >= 0 and rules.usable_words[memory] < np.inf:
            scratch.need[memory] += tile_words(rules.terms, t, scratch.tile, NONE)


@inlined
def _fit(rules: Rules, faults: Floats, found: int, scratch: Scratch) -> int:
    """The tiles fit the memories; all entries of one memory share its capacity."""
    for memory in range(len(rules.usable_words)):
        if scratch.need[memory] > rules.usable_words[memory]:
            found = _note(faults, found, CAPACITY, NONE, memory, scratch.need[memory], rules.usable_words[memory])
    return found


@inlined
def tile_words(terms: Terms, tensor: int, tiles: Ints, row: int) -> float:
    """Words of the bounding box that the tile in a row of `tiles` [row, D] spans (as `Problem.tile_words`).

    Exact below 2**53; a larger product is at least that large, and so larger than any memory.
    """
    volume = side = 1.0
    for term in range(terms.start[tensor], terms.start[tensor + 1]):
        side += terms.coefficient[term] * (tiles[row, terms.dimension[term]] - 1.0)
        if terms.last[term]:
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


@compiled
def count_words(rules: Rules, temporal: Ints, keep: Bools, need: Floats, scratch: Scratch) -> None:
    """Write the words that the tiles of every mapping take in every memory of limited capacity, [n, M]."""
    for n in range(len(temporal)):
        _empty(scratch)
        for e in range(temporal.shape[1]):
            for d in range(temporal.shape[2]):
                scratch.tile[0, d] = temporal[n, e, d]
            _hold(rules, e, keep, n, scratch)
        for memory in range(need.shape[1]):
            need[n, memory] = scratch.need[memory]


@compiled
def count_words_of_trips(rules: Rules, slots: Ints, trips: Ints, keep: Bools, need: Floats, scratch: Scratch) -> None:
    """The same for trip counts [n, slot, dimension]; `slots` and `keep` as in `judge_trips`."""
    for n in range(len(trips)):
        row = n if len(keep) > 1 else 0
        _empty(scratch)
        for e in range(len(slots) - 1, -1, -1):
            if slots[e, 1] >= 0:
                for d in range(trips.shape[2]):
                    scratch.tile[0, d] *= trips[n, slots[e, 1], d]
            _hold(rules, e, keep, row, scratch)
            if slots[e, 0] >= 0:
                for d in range(trips.shape[2]):
                    scratch.tile[0, d] *= trips[n, slots[e, 0], d]
        for memory in range(need.shape[1]):
            need[n, memory] = scratch.need[memory]
