"""Tiling trees: tiles of a memory grown one dimension at a time, and those that cannot grow (Sunstone, section IV-B).

Rows are trip counts [n, slot, dimension] of a map space. A tile grows when factors of a dimension move from the loops
of one slot, `source`, into those of a slot further in; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.counting import divisors
from tilewright.mapspace.space import MapSpace


def tile_tree(
    space: MapSpace, rows: Ints, source: int, slot: int, dims: Sequence[int], keep: Bools | None = None
) -> Ints:
    """All tiles that grow from each row and fit the memories and fanouts, the row itself among them (if it fits).

    `keep`: what is kept, [entry, tensor]; without it what is free is bypassed. Dimensions are taken one after another,
    and since footprints only grow, what does not fit is left at once.
    """
    rows = rows[fitting(space, rows, keep)]
    for dim in dims:
        able = [factor for factor in divisors(space.problem.sizes[dim])[1:] if factor <= space.slots[slot].highest[dim]]
        grown = [_grown(space, rows, source, slot, dim, factor) for factor in able]
        larger = np.concatenate([rows[:0], *grown])
        rows = np.concatenate([rows, larger[fitting(space, larger, keep)]])
    return rows


def maximal(
    space: MapSpace, rows: Ints, source: int, slot: int, dims: Sequence[int], keep: Bools | None = None
) -> Bools:
    """Whether no dimension of `dims` can be raised to its next larger factor and still fit, bool [n]: the leaves that
    the Tiling Principle keeps."""
    result = np.ones(len(rows), dtype=np.bool_)
    for dim in dims:
        raised = _next(rows[:, source, dim] * rows[:, slot, dim], rows[:, slot, dim])
        index = np.flatnonzero(result & (raised > 0))
        after = rows[index]
        after[:, source, dim] = after[:, source, dim] * after[:, slot, dim] // raised[index]
        after[:, slot, dim] = raised[index]
        good = space.allowed(after, source, dim) & space.allowed(after, slot, dim)
        good[good] = fitting(space, after[good], keep)
        result[index[good]] = False
    return result


def leaves(
    space: MapSpace,
    rows: Ints,
    source: int,
    slot: int,
    dims: Sequence[int],
    keep: Bools | None = None,
    most: int = 100_000,
) -> Ints:
    """The maximal tiles of each row's tree, without growing all of it.

    A dimension is not left small where it could be raised with all dimensions to come at their largest. Of more than
    `most` rows on the way, as many are taken at even distances.
    """
    dims = [dim for dim in dims if space.slots[slot].highest[dim] > 1 and (rows[:, source, dim] > 1).any()]
    for number, dim in enumerate(dims):
        rows = tile_tree(space, rows, source, slot, [dim], keep)
        full = rows
        for later in dims[number + 1 :]:
            full = _filled(space, full, source, slot, later)
        rows = rows[maximal(space, full, source, slot, [dim], keep) | ~fitting(space, full, keep)]
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    return rows[maximal(space, rows, source, slot, dims, keep)]


def fitting(space: MapSpace, rows: Ints, keep: Bools | None = None) -> Bools:
    """Whether the tiles of rows fit the memories, bool [n]."""
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    kept = None if keep is None else np.broadcast_to(keep, (len(rows), *keep.shape))
    return space.fits(space.build(rows, keep=kept))


def _grown(space: MapSpace, rows: Ints, source: int, slot: int, dim: int, factor: int) -> Ints:
    after = rows[rows[:, source, dim] % factor == 0]
    after[:, source, dim] //= factor
    after[:, slot, dim] *= factor
    good: Bools = space.allowed(after, source, dim) & space.allowed(after, slot, dim)
    return np.asarray(after[good])


def _filled(space: MapSpace, rows: Ints, source: int, slot: int, dim: int) -> Ints:
    """As much of a dimension moved as the slot may take of it, whatever fits."""
    after = rows.copy()
    whole = rows[:, source, dim] * rows[:, slot, dim]
    for product in np.unique(whole).tolist():
        largest = max(factor for factor in divisors(product) if factor <= space.slots[slot].highest[dim])
        same = whole == product
        after[same, slot, dim], after[same, source, dim] = largest, product // largest
    return after


def _next(whole: Ints, inner: Ints) -> Ints:
    """The smallest factor of `whole` above `inner`, [n]; 0 where there is none."""
    products, a = np.unique(whole, return_inverse=True)
    lows, b = np.unique(inner, return_inverse=True)
    pairs, which = np.unique(a * len(lows) + b, return_inverse=True)
    found = [
        next((factor for factor in divisors(int(products[pair // len(lows)])) if factor > lows[pair % len(lows)]), 0)
        for pair in pairs
    ]
    return np.array(found, dtype=np.int64)[which]
