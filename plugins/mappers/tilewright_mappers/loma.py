"""`loma`: all orders of the loops' prime factors, each given to memories from the inside as far as they fit."""

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
"""(dimension, trips)"""


@dataclass(frozen=True)
class Loma:
    """For every unrolling that uses most of the array, at most `unrollings` of them: all orders of the loop prime
    factors, merged until there are at most `limit`."""

    options: LomaOptions

    def search(self, task: Task, run: Run) -> Proposals:
        for placement in Placement.each(task.space, run.rng):
            full = placement.fullest(placement.unroll(placement.start))
            rows = placement.thin(full, self.options.unrollings)
            for row, trips in enumerate(rows.trips):
                orders = distinct_orders(merged(loop_factors(placement, trips), self.options.limit))
                while some := list(itertools.islice(orders, self.options.batch)):
                    same = rows.take(np.full(len(some), row))
                    yield allocate(placement, same, np.array(some, dtype=np.int64))


def loop_factors(placement: Placement, row: Ints) -> list[Factor]:
    """The prime factors that one row [slot, dimension] has at home and that the rules let go, ascending."""
    found = []
    for dim, home in enumerate(placement.home):
        if home >= 0:
            lowest, rest = placement.space.slots[home].lowest[dim], int(row[home, dim])
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


def allocate(placement: Placement, rows: Candidates, factors: Ints) -> Candidates:
    """Loops, innermost first, [n, loop, (dimension, trips)], given to the memories from the inside as far as they fit.

    The tensors of a memory share one cut. A loop that a rule keeps out of a memory passes on to the next; loops of one
    dimension inside one memory become one, at the place of the innermost.
    """
    space = placement.space
    dims, trips = factors[..., 0], factors[..., 1]
    where = np.broadcast_to(placement.home[dims], dims.shape).copy()
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
    """Which loops a slot may take under its bounds, if it takes all before, [n, loop]."""
    good = np.zeros(dims.shape, dtype=np.bool_)
    for dim, highest in enumerate(rows.space.slots[slot].highest):
        here = left & (dims == dim)
        grown = rows.trips[:, slot, dim, None] * np.cumprod(np.where(here, trips, 1), axis=1)
        good |= here & (grown <= highest)
    return good


def _longest(placement: Placement, rows: Candidates, slot: int, factors: Ints, able: Bools) -> Ints:
    """How many of the able loops, innermost first, fit, [n]: by bisection, since tiles only grow."""
    rank = np.cumsum(able, axis=1)
    low, high = np.zeros(len(rows), dtype=np.int64), rank[:, -1]
    while (low < high).any():
        middle = (low + high + 1) // 2
        good = _moved(placement, rows, slot, factors, able & (rank <= middle[:, None])).fits()
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
    return low


def _moved(placement: Placement, rows: Candidates, slot: int, factors: Ints, taken: Bools) -> Candidates:
    """The rows with the taken loops moved from home into a slot."""
    for dim, home in enumerate(placement.home):
        grow = np.where(taken & (factors[..., 0] == dim), factors[..., 1], 1).prod(axis=1)
        if home >= 0 and (grow > 1).any():
            rows = rows.move(dim, grow, int(home), slot)
    return rows
