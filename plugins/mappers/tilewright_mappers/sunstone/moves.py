"""Moves between mappings, which repair early decisions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.mapspace.space import MapSpace


@dataclass(frozen=True)
class Exchanges:
    """Exchanges of prime factors between two slots.

    A full memory or fanout allows a factor in only if another one leaves. Exchange `m` moves
    `inward[m]` of `dimension_in[m]` from slot `outer[m]` to `inner[m]`, and `outward[m]` of
    `dimension_out[m]` back. All arrays are int64 [exchange].
    """

    space: MapSpace
    outer: Ints
    inner: Ints
    dimension_in: Ints
    inward: Ints
    dimension_out: Ints
    outward: Ints

    @classmethod
    def of(cls, space: MapSpace) -> Exchanges:
        """Return the exchanges that the bounds of the slots can allow."""
        primes = [(dim, prime) for dim in range(len(space.problem.sizes)) for prime in space.primes(dim)]
        rows = [
            (a, b, d, p, e, q)
            for a, b in itertools.combinations(range(len(space.slots)), 2)
            for (d, p), (e, q) in itertools.product(primes, primes)
            if (d, p) != (e, q) and space.slots[b].highest[d] > 1 and space.slots[a].highest[e] > 1
        ]
        return cls(space, *np.array(rows, dtype=np.int64).reshape(-1, 6).T)

    def apply(self, rows: Candidates) -> Candidates:
        """Apply every exchange to every row, within the bounds of the space; capacity is not checked."""
        a, b, d, p, e, q = self.outer, self.inner, self.dimension_in, self.inward, self.dimension_out, self.outward
        divides = self.space.divides
        exchange, row = np.nonzero((divides(p, rows.trips[:, a, d]) & divides(q, rows.trips[:, b, e])).T)
        a, b, d, p, e, q = (column[exchange] for column in (a, b, d, p, e, q))
        after = rows.take(row).move(d, p, a, b).move(e, q, b, a)
        if self.space.factors == "ragged":
            return after.take(self.space.within(after.trips))
        lowest, highest, least, most = self.space.bounds
        line = np.arange(len(row))
        good = np.ones(len(row), dtype=np.bool_)
        for slot in (a, b):
            for dim in (d, e):
                trips = after.trips[line, slot, dim]
                good &= (trips >= lowest[slot, dim]) & (trips <= highest[slot, dim])
            used = after.trips[line, slot].prod(axis=1)
            good &= (used >= least[slot]) & (used <= most[slot])
        return after.take(good)


def rekept(rows: Candidates) -> Candidates:
    """Return all rows with one optional storage decision flipped."""
    parts = [rows.take(slice(0, 0))]
    for entry, tensor in np.argwhere(rows.space.keeps[1]):
        keep = rows.keeps.copy()
        keep[:, entry, tensor] ^= True
        parts.append(replace(rows, keep=keep))
    return Candidates.join(parts)


def reordered(rows: Candidates, choices: Sequence[Positions]) -> Candidates:
    """Return all rows with another order, of `choices`, in one block of loops."""
    parts = [rows.take(slice(0, 0))]
    for block, orders in enumerate(choices):
        several = (rows.trips[:, rows.space.temporal_slots[block]] > 1).sum(axis=1) > 1
        some = rows.take(several)
        for row in orders:
            order = some.orders.copy()
            order[:, block] = row
            parts.append(replace(some, order=order))
    return Candidates.join(parts)


def choices_of_order(space: MapSpace) -> list[Positions]:
    """Return the useful orders per block of loops, outermost first.

    They are distinct in the reuse of tensors that an inner memory may keep. Without such tensors one order is enough.
    """
    may_keep = space.keeps[0] | space.keeps[1]
    kept = [np.flatnonzero(may_keep[space.slots[slot].entry :].any(axis=0)).tolist() for slot in space.temporal_slots]
    return [
        space.lawful_block(distinct_reuse_orders(space.problem, tensors), slot)
        for slot, tensors in zip(space.temporal_slots, kept, strict=True)
    ]
