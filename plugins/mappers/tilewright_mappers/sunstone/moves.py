"""Moves between mappings: what repairs a choice that a principle made too early."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tilewright.mapspace.batch import Positions
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.mapspace.space import MapSpace
from tilewright_mappers.sunstone.points import Points, stepping


def shifted(space: MapSpace, points: Points) -> Points:
    """All points that move one prime factor to another slot."""
    return Points.of(space, space.neighbours(points.batch(space))[0])


def exchanged(space: MapSpace, points: Points) -> Points:
    """All points that exchange a prime factor between two slots for another prime or dimension: what a full memory or
    a full fanout lets happen only at once."""
    primes = [(dim, p) for dim, size in enumerate(space.problem.sizes) for p, _ in prime_powers(size) if p > 1]
    parts = [points.take(slice(0, 0))]
    for a, b in itertools.combinations(range(len(space.slots)), 2):
        inward = [(d, p) for d, p in primes if space.slots[b].highest[d] > 1]
        outward = [(d, p) for d, p in primes if space.slots[a].highest[d] > 1]
        for (d, p), (e, q) in itertools.product(inward, outward):
            if (d, p) == (e, q):
                continue
            rows = np.flatnonzero((points.trips[:, a, d] % p == 0) & (points.trips[:, b, e] % q == 0))
            if not len(rows):
                continue
            trips = points.trips[rows]
            trips[:, a, d] //= p
            trips[:, b, d] *= p
            trips[:, b, e] //= q
            trips[:, a, e] *= q
            good = np.ones(len(rows), dtype=np.bool_)
            for slot, dim in itertools.product((a, b), (d, e)):
                good &= space.allowed(trips, slot, dim)
            parts.append(Points(trips[good], points.order[rows[good]], points.keep[rows[good]]))
    return Points.join(parts)


def rekept(space: MapSpace, points: Points) -> Points:
    """All points that keep one more or one less of what is free."""
    parts = [points.take(slice(0, 0))]
    for entry, tensor in np.argwhere(space.keeps[1]):
        keep = points.keep.copy()
        keep[:, entry, tensor] ^= True
        parts.append(Points(points.trips, points.order, keep))
    return Points.join(parts)


def reordered(space: MapSpace, points: Points, choices: Sequence[Positions]) -> Points:
    """All points with another order, of `choices`, in one block of loops."""
    parts = [points.take(slice(0, 0))]
    for (slot, entry), orders in zip(stepping(space), choices, strict=True):
        rows = np.flatnonzero((points.trips[:, slot] > 1).sum(axis=1) > 1)
        for order in orders:
            changed = points.order[rows].copy()
            changed[:, entry] = order
            parts.append(Points(points.trips[rows], changed, points.keep[rows]))
    return Points.join(parts)


def choices_of_order(space: MapSpace) -> list[Positions]:
    """Per block of loops, outermost first, the orders worth trying: those of the trie for the tensors that some memory
    further in may keep. Where none does, in the innermost block, one order is as good as another."""
    may_keep = space.keeps[0] | space.keeps[1]
    return [
        distinct_reuse_orders(space.problem, np.flatnonzero(may_keep[entry:].any(axis=0)).tolist())
        for _, entry in stepping(space)
    ]
