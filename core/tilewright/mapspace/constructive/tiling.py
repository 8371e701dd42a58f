"""Tiling trees: grow the tiles of a memory by one dimension at a time (Sunstone, section IV-B).

A tile grows when factors of a dimension move from the loops of slot `source` into those of an inner
slot. The other slots do not change. Tiles that cannot grow are the leaves of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import moves_of
from tilewright.mapspace.factoring.cuts import divisors


def tile_tree(rows: Candidates, source: int, slot: int, dims: Sequence[int]) -> Candidates:
    """Return all tiles that grow from each row and fit memories and fanouts.

    The row itself is included if it fits. Tiles only grow, so a branch ends at the first tile that does not fit.
    """
    rows = rows.take(rows.fits())
    for dim in dims:
        larger = moves_of(rows, dim, rows.space.whole_factors(dim), source, slot)
        rows = Candidates.join([rows, larger.take(larger.fits())])
    return rows


def maximal(rows: Candidates, source: int, slot: int, dims: Sequence[int]) -> Bools:
    """Return whether no dimension of `dims` can grow to its next larger factor and still fit the same machine, bool [n].

    These tiles are the leaves that the Tiling Principle keeps.
    """
    result, holders = np.ones(len(rows), dtype=np.bool_), rows.holders()
    for dim in dims:
        raised = _next(rows, _shared(rows, source, slot, dim), rows.trips[:, slot, dim])
        index = np.flatnonzero(result & (raised > 0))
        after = _with_trips(rows.take(index), source, slot, dim, raised[index])
        good = after.space.allowed(after.trips, source, dim) & after.space.allowed(after.trips, slot, dim)
        good[good] = after.take(good).holders() == holders[index[good]]
        result[index[good]] = False
    return result


def leaves(rows: Candidates, source: int, slot: int, dims: Sequence[int], most: int = 100_000) -> Candidates:
    """Return the maximal tiles of each row's tree without building the whole tree.

    A branch is pruned if a dimension could still grow with all later dimensions at their largest, unless there are
    several machines: then larger tiles may belong to another one.
    If an intermediate set exceeds `most` rows, an evenly spaced subset continues.
    """
    highest = rows.space.slots[slot].highest
    dims = [dim for dim in dims if highest[dim] > 1 and (rows.trips[:, source, dim] > 1).any()]
    for number, dim in enumerate(dims):
        rows = tile_tree(rows, source, slot, [dim])
        if rows.space.machines:
            continue
        full = rows
        for later in dims[number + 1 :]:
            full = _filled(full, source, slot, later)
        rows = rows.take(maximal(full, source, slot, [dim]) | ~full.fits())
        if len(rows) > most:
            rows = rows.take(np.linspace(0, len(rows) - 1, most).astype(np.int64))
    return rows.take(maximal(rows, source, slot, dims))


def _shared(rows: Candidates, source: int, slot: int, dim: int) -> Ints:
    """Return the trips of a dimension to be divided between two slots, [n]."""
    both = rows.trips[:, source, dim] * rows.trips[:, slot, dim]
    if rows.space.factors == "perfect":
        return both
    return np.asarray(-(-rows.space.problem.sizes[dim] // (rows.trips[:, :, dim].prod(axis=1) // both)))


def _with_trips(rows: Candidates, source: int, slot: int, dim: int, inner: Ints) -> Candidates:
    """Return rows with `inner` [n] trips of a dimension in the inner slot and the others in `source`."""
    if rows.space.factors == "ragged":
        return rows.give(dim, inner, source, slot)
    trips = rows.trips.copy()
    trips[:, source, dim] = trips[:, source, dim] * trips[:, slot, dim] // inner
    trips[:, slot, dim] = inner
    return replace(rows, trips=trips)


def _filled(rows: Candidates, source: int, slot: int, dim: int) -> Candidates:
    """Move as much of a dimension into the slot as its bounds allow, regardless of capacity."""
    highest = rows.space.slots[slot].highest[dim]
    shared = _shared(rows, source, slot, dim)
    if rows.space.factors == "ragged":
        left = -(-shared // np.minimum(shared, highest))
        return _with_trips(rows, source, slot, dim, -(-shared // left))
    products, which = np.unique(shared, return_inverse=True)
    largest = [max(factor for factor in divisors(product) if factor <= highest) for product in products.tolist()]
    return _with_trips(rows, source, slot, dim, np.array(largest, dtype=np.int64)[which])


def _next(rows: Candidates, whole: Ints, inner: Ints) -> Ints:
    """Return the smallest factor of `whole` above `inner`, [n], or 0 if there is none.

    In a ragged space, return the smallest number of trips that leaves fewer trips outside.
    """
    if rows.space.factors == "ragged":
        less = -(-whole // inner) - 1
        return np.where(less > 0, -(-whole // np.maximum(less, 1)), 0)
    span = int(whole.max(initial=1)) + 1
    pairs, which = np.unique(whole * span + inner, return_inverse=True)
    factors = [
        next((factor for factor in divisors(pair // span) if factor > pair % span), 0) for pair in pairs.tolist()
    ]
    return np.array(factors, dtype=np.int64)[which]
