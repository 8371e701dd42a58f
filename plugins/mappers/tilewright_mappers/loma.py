"""`loma`: all orders of the loops' prime factors, each given to memories from the inside as far as they fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.mapspace.constructive.placement import Spreading, temporal_slots
from tilewright.mapspace.counting import prime_powers
from tilewright.plugin.mapper import Proposals, Run, Task

Factor = tuple[int, int]
"""(dimension, trips)"""


@dataclass(frozen=True)
class LomaMapper:
    """For every unrolling that uses most of the array, at most `unrollings` of them: all orders of the loop prime
    factors, merged until there are at most `limit`."""

    limit: int
    unrollings: int
    batch: int

    def search(self, task: Task, run: Run) -> Proposals:
        for spreading in Spreading.each(task.space, run.rng):
            rows = spreading.thin(spreading.fullest(spreading.unroll(spreading.start)), self.unrollings)
            for row in rows:
                factors = merged(loop_factors(spreading, row), self.limit)
                orders = distinct_orders(factors)
                while some := list(itertools.islice(orders, self.batch)):
                    yield allocate(spreading, np.repeat(row[None], len(some), axis=0), np.array(some, dtype=np.int64))


def loop_factors(spreading: Spreading, row: Ints) -> list[Factor]:
    """The prime factors that one row [slot, dimension] has at home and that the rules let go, ascending."""
    found = []
    for dim, home in enumerate(spreading.home):
        if home >= 0:
            lowest, rest = spreading.space.slots[home].lowest[dim], int(row[home, dim])
            for prime, power in reversed(prime_powers(rest)):
                for _ in range(power if prime > 1 else 0):
                    if rest // prime >= lowest:
                        found.append((dim, prime))
                        rest //= prime
    return sorted(found)


def merged(factors: list[Factor], limit: int) -> list[Factor]:
    """At most `limit` factors, or one per dimension: the two of one dimension with the least product become one."""
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
    """All different orders; one without factors is a loop of one trip."""
    if not factors:
        yield ((0, 1),)
        return
    count = {each: factors.count(each) for each in factors}

    def extend(head: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
        if len(head) == len(factors):
            yield head
            return
        for each in count:
            if count[each]:
                count[each] -= 1
                yield from extend((*head, each))
                count[each] += 1

    yield from extend(())


def allocate(spreading: Spreading, rows: Ints, factors: Ints) -> MappingBatch:
    """Loops, innermost first, [n, loop, (dimension, trips)], given to the memories from the inside as far as they fit.

    The tensors of a memory share one cut. A loop that a rule keeps out of a memory passes on to the next; loops of one
    dimension inside one memory become one, at the place of the innermost.
    """
    space = spreading.space
    dims, trips = factors[..., 0], factors[..., 1]
    where = np.broadcast_to(spreading.home[dims], dims.shape).copy()
    left = trips > 1
    for slot in reversed(temporal_slots(space)):
        able = left & (where != slot) & _within(spreading, rows, slot, dims, trips, left)
        count = _longest(spreading, rows, slot, factors, able)
        taken = able & (np.cumsum(able, axis=1) <= count[:, None])
        rows = _moved(spreading, rows, slot, factors, taken)
        where[taken], left = slot, left & ~taken
    place = np.full(rows.shape, factors.shape[1], dtype=np.int64)
    line = np.arange(len(rows))
    for loop in reversed(range(factors.shape[1])):
        turns = trips[:, loop] > 1
        place[line[turns], where[turns, loop], dims[turns, loop]] = loop
    order = np.empty((len(rows), len(space.skeleton), rows.shape[2]), dtype=np.int8)
    order[:] = np.arange(rows.shape[2], dtype=np.int8)
    for slot in temporal_slots(space):
        order[:, space.slots[slot].entry] = np.argsort(-place[:, slot], axis=1, kind="stable")
    return spreading.batch(rows, order)


def _within(spreading: Spreading, rows: Ints, slot: int, dims: Ints, trips: Ints, left: Bools) -> Bools:
    """Which loops a slot may take under its bounds, if it takes all before, [n, loop]."""
    good = np.zeros(dims.shape, dtype=np.bool_)
    for dim, highest in enumerate(spreading.space.slots[slot].highest):
        here = left & (dims == dim)
        grown = rows[:, slot, dim, None] * np.cumprod(np.where(here, trips, 1), axis=1)
        good |= here & (grown <= highest)
    return good


def _longest(spreading: Spreading, rows: Ints, slot: int, factors: Ints, able: Bools) -> Ints:
    """How many of the able loops, innermost first, fit, [n]: by bisection, since tiles only grow."""
    rank = np.cumsum(able, axis=1)
    low, high = np.zeros(len(rows), dtype=np.int64), rank[:, -1]
    while (low < high).any():
        middle = (low + high + 1) // 2
        good = spreading.fits(_moved(spreading, rows, slot, factors, able & (rank <= middle[:, None])))
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
    return low


def _moved(spreading: Spreading, rows: Ints, slot: int, factors: Ints, taken: Bools) -> Ints:
    """The rows with the taken loops moved from home into a slot."""
    rows = rows.copy()
    for dim, home in enumerate(spreading.home):
        grow = np.where(taken & (factors[..., 0] == dim), factors[..., 1], 1).prod(axis=1)
        if home >= 0:
            rows[:, home, dim] //= grow
            rows[:, slot, dim] *= grow
    return rows
