"""Mapper `loma`: all orders of the loops' prime factors, allocated to memories from inside."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.counting import prime_powers
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import LomaOptions

Factor = tuple[int, int]
"""Pair (dimension, trips)."""


@dataclass(frozen=True)
class Loma:
    """Mapper that tries all orders of the loop prime factors, for each of the fullest unrollings.

    There are at most `unrollings` of these. Factors are merged until there are at most `limit`.
    """

    options: LomaOptions

    def search(self, task: Task, run: Run) -> Proposals:
        for placement in Placement.each(task.space, run.rng):
            full = placement.fullest(placement.unroll(placement.start))
            rows = placement.subsample(full, self.options.unrollings)
            for row, trips in enumerate(rows.trips):
                orders = distinct_orders(merged(loop_factors(placement, trips), self.options.limit))
                while some := list(itertools.islice(orders, self.options.batch)):
                    same = rows.take(np.full(len(some), row))
                    yield allocate(placement, same, np.array(some, dtype=np.int64))


def loop_factors(placement: Placement, row: Ints) -> list[Factor]:
    """Return the prime factors that may leave their source slots, ascending.

    Args:
        row: trips [slot, dimension] of one mapping.
    """
    factors = []
    for dim, source_slot in enumerate(placement.source_slot):
        if source_slot >= 0:
            lowest, rest = placement.space.slots[source_slot].lowest[dim], int(row[source_slot, dim])
            for prime, power in reversed(prime_powers(rest)):
                for _ in range(power if prime > 1 else 0):
                    if rest // prime >= lowest:
                        factors.append((dim, prime))
                        rest //= prime
    return sorted(factors)


def merged(factors: list[Factor], limit: int) -> list[Factor]:
    """Merge factors until there are at most `limit`, or one per dimension.

    Each step merges the two factors of one dimension with the smallest product.
    """
    factors = list(factors)
    while len(factors) > limit:
        pairs = [(a, b) for a, b in itertools.combinations(factors, 2) if a[0] == b[0]]
        if not pairs:
            break
        a, b = min(pairs, key=lambda pair: (pair[0][1] * pair[1][1], pair))
        factors.remove(a)
        factors.remove(b)
        factors.append((a[0], a[1] * b[1]))
    return sorted(factors)


def distinct_orders(factors: Sequence[Factor]) -> Iterator[tuple[Factor, ...]]:
    """Yield all distinct orders; without factors, one loop of one trip."""
    if not factors:
        yield ((0, 1),)
        return
    count = {factor: factors.count(factor) for factor in factors}

    def extend(head: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
        if len(head) == len(factors):
            yield head
            return
        for factor in count:
            if count[factor]:
                count[factor] -= 1
                yield from extend((*head, factor))
                count[factor] += 1

    yield from extend(())


def allocate(placement: Placement, rows: Candidates, factors: Ints) -> Candidates:
    """Allocate loops to memories from inside, as far as they fit.

    The tensors of a memory share one cut. A loop that a rule excludes from a memory moves to the
    next. Loops of one dimension in one memory merge at the position of the innermost.

    Args:
        factors: loops [n, loop, (dimension, trips)], innermost first.
    """
    space = placement.space
    dims, trips = factors[..., 0], factors[..., 1]
    where = np.broadcast_to(placement.source_slot[dims], dims.shape).copy()
    left = trips > 1
    for slot in reversed(space.temporal_slots):
        able = left & (where != slot) & _within(rows, slot, dims, trips, left)
        count = _longest(placement, rows, slot, factors, able)
        taken = able & (np.cumsum(able, axis=1) <= count[:, None])
        rows = _moved(placement, rows, slot, factors, taken)
        where[taken], left = slot, left & ~taken
    place = np.full(rows.trips.shape, factors.shape[1], dtype=np.int64)
    line = np.arange(len(rows))
    for loop in reversed(range(factors.shape[1])):
        non_unit = trips[:, loop] > 1
        place[line[non_unit], where[non_unit, loop], dims[non_unit, loop]] = loop
    order = np.argsort(-place[:, space.temporal_slots], axis=2, kind="stable").astype(np.int8)
    return replace(rows, order=space.lawful(order))


def _within(rows: Candidates, slot: int, dims: Ints, trips: Ints, left: Bools) -> Bools:
    """Return the loops [n, loop] that a slot may take under its bounds, if it takes all inner ones."""
    good = np.zeros(dims.shape, dtype=np.bool_)
    for dim, highest in enumerate(rows.space.slots[slot].highest):
        here = left & (dims == dim)
        grown = rows.trips[:, slot, dim, None] * np.cumprod(np.where(here, trips, 1), axis=1)
        good |= here & (grown <= highest)
    return good


def _longest(placement: Placement, rows: Candidates, slot: int, factors: Ints, able: Bools) -> Ints:
    """Return how many of the loops fit [n], innermost first; by bisection, since tiles only grow."""
    rank = np.cumsum(able, axis=1)
    low, high = np.zeros(len(rows), dtype=np.int64), rank[:, -1]
    while (low < high).any():
        middle = (low + high + 1) // 2
        good = _moved(placement, rows, slot, factors, able & (rank <= middle[:, None])).fits()
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
    return low


def _moved(placement: Placement, rows: Candidates, slot: int, factors: Ints, taken: Bools) -> Candidates:
    """Return the rows with the taken loops moved from their source slots into a slot."""
    for dim, source_slot in enumerate(placement.source_slot):
        grow = np.where(taken & (factors[..., 0] == dim), factors[..., 1], 1).prod(axis=1)
        if source_slot >= 0 and (grow > 1).any():
            rows = rows.move(dim, grow, int(source_slot), slot)
    return rows
