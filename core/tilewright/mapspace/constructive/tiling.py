"""Tiling trees: tiles of a memory grown one dimension at a time, and those that cannot grow (Sunstone, section IV-B).

A tile grows when factors of a dimension move from the loops of one slot, `source`, into those of a slot further in;
nothing else changes.
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
    """All tiles that grow from each row and fit the memories and fanouts, the row itself among them (if it fits).

    Dimensions are taken one after another, and since footprints only grow, what does not fit is left at once.
    """
    rows = rows.take(rows.fits())
    for dim in dims:
        larger = moves_of(rows, dim, rows.space.whole_factors(dim), source, slot)
        rows = Candidates.join([rows, larger.take(larger.fits())])
    return rows


def maximal(rows: Candidates, source: int, slot: int, dims: Sequence[int]) -> Bools:
    """Whether no dimension of `dims` can be raised to its next larger factor and still fit, bool [n]: the leaves that
    the Tiling Principle keeps."""
    result = np.ones(len(rows), dtype=np.bool_)
    for dim in dims:
        raised = _next(rows, _shared(rows, source, slot, dim), rows.trips[:, slot, dim])
        index = np.flatnonzero(result & (raised > 0))
        after = _with_trips(rows.take(index), source, slot, dim, raised[index])
        good = after.space.allowed(after.trips, source, dim) & after.space.allowed(after.trips, slot, dim)
        good[good] = after.take(good).fits()
        result[index[good]] = False
    return result


def leaves(rows: Candidates, source: int, slot: int, dims: Sequence[int], most: int = 100_000) -> Candidates:
    """The maximal tiles of each row's tree, without growing all of it.

    A dimension is not left small where it could be raised with all dimensions to come at their largest. Of more than
    `most` rows on the way, as many are taken at even distances.
    """
    highest = rows.space.slots[slot].highest
    dims = [dim for dim in dims if highest[dim] > 1 and (rows.trips[:, source, dim] > 1).any()]
    for number, dim in enumerate(dims):
        rows = tile_tree(rows, source, slot, [dim])
        full = rows
        for later in dims[number + 1 :]:
            full = _filled(full, source, slot, later)
        rows = rows.take(maximal(full, source, slot, [dim]) | ~full.fits())
        if len(rows) > most:
            rows = rows.take(np.linspace(0, len(rows) - 1, most).astype(np.int64))
    return rows.take(maximal(rows, source, slot, dims))


def _shared(rows: Candidates, source: int, slot: int, dim: int) -> Ints:
    """The trips of a dimension that two slots have to share, [n]."""
    both = rows.trips[:, source, dim] * rows.trips[:, slot, dim]
    if rows.space.factors == "perfect":
        return both
    return np.asarray(-(-rows.space.problem.sizes[dim] // (rows.trips[:, :, dim].prod(axis=1) // both)))


def _with_trips(rows: Candidates, source: int, slot: int, dim: int, inner: Ints) -> Candidates:
    """What two slots share of a dimension shared anew, `inner` [n] trips in the inner one."""
    if rows.space.factors == "ragged":
        return rows.give(dim, inner, source, slot)
    trips = rows.trips.copy()
    trips[:, source, dim] = trips[:, source, dim] * trips[:, slot, dim] // inner
    trips[:, slot, dim] = inner
    return replace(rows, trips=trips)


def _filled(rows: Candidates, source: int, slot: int, dim: int) -> Candidates:
    """As much of a dimension moved as the slot may take of it, whatever fits."""
    highest = rows.space.slots[slot].highest[dim]
    shared = _shared(rows, source, slot, dim)
    if rows.space.factors == "ragged":
        left = -(-shared // np.minimum(shared, highest))
        return _with_trips(rows, source, slot, dim, -(-shared // left))
    products, which = np.unique(shared, return_inverse=True)
    largest = [max(factor for factor in divisors(product) if factor <= highest) for product in products.tolist()]
    return _with_trips(rows, source, slot, dim, np.array(largest, dtype=np.int64)[which])


def _next(rows: Candidates, whole: Ints, inner: Ints) -> Ints:
    """The smallest factor of `whole` above `inner`, [n], in a ragged space the smallest number that leaves less; 0 where there
    is none."""
    if rows.space.factors == "ragged":
        less = -(-whole // inner) - 1
        return np.where(less > 0, -(-whole // np.maximum(less, 1)), 0)
    span = int(whole.max(initial=1)) + 1
    pairs, which = np.unique(whole * span + inner, return_inverse=True)
    found = [next((factor for factor in divisors(pair // span) if factor > pair % span), 0) for pair in pairs.tolist()]
    return np.array(found, dtype=np.int64)[which]
