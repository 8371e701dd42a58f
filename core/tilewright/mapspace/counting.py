"""Exact counts of distinct mappings.

The count processes the slots in sequence. Its state is the remaining size of every dimension, an array with one axis
per dimension (see `cuts`). A temporal slot with k non-unit loops has k! orders. The sum over all factor vectors is
therefore an elementary symmetric polynomial in the operators "take more than one trip of dimension d". Counts beyond
double precision are computed modulo a few primes, and combined by the Chinese remainder theorem.

`add_up` adds the ways of one dimension. A state is what remains of it, a choice is a number of trips. Of size 4:

    state          0        1          2
    remains        1        2          4
    choices        1        1, 2       1, 2, 4
    after          0        1, 0       2, 1, 0
    ways           1        1          1            one slot left: it takes all that remains
    result         1        2          3            two slots left

State 2: the choice 1 leads to state 2, 2 to state 1, and 4 to state 0. These are 1 + 1 + 1 = 3 ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import compiled
from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace.factoring.cuts import lefts, trip_intervals
from tilewright.mapspace.factoring.fanouts import (
    RemainingFanout,
    fanout_uses,
    remaining_fanout,
    tighten_single_dimension_fanouts,
)
from tilewright.mapspace.skeleton import Slot
from tilewright.schema.constraints import Cutting
from tilewright.schema.problem import Problem, Tensor, distinct_sums

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_EXACT = 2**62
"""Limit below which counts are stored as int64; larger counts are Python integers."""
MAX_FLOAT = 2**53
"""Limit below which integers are exact in floating point."""
MAX_STATES = 20_000_000
"""Maximum number of states, which must fit in memory."""
MAX_INDEX = 2**28
"""Largest value of an index of three or more terms that is enumerated, with one bit per value."""


def prime_powers(number: int) -> list[tuple[int, int]]:
    """Return (prime, power) pairs of the factorisation, ascending; 1 has the single pair (1, 1).

    >>> prime_powers(12), prime_powers(1)
    ([(2, 2), (3, 1)], [(1, 1)])
    """
    powers = []
    rest, prime = number, 2
    while prime * prime <= rest:
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        if power:
            powers.append((prime, power))
        prime += 1
    return [*powers, (rest, 1)] if rest > 1 or not powers else powers


def distinct_values(terms: Sequence[tuple[int, int]]) -> int:
    """Return the number of distinct values of the affine index c1*a1 + c2*a2 + ..., with 0 <= a < extent.

    `terms` are pairs (coefficient, extent). Strides and dilations leave holes. The bounding box counts the holes, this
    function does not. Up to two terms have a closed form (`distinct_sums`); more terms are enumerated.

    >>> distinct_values([(2, 4), (1, 3)]), distinct_values([(4, 3), (1, 2)])
    (9, 6)

    Raises:
        ValueError: A coefficient or an extent is below 1.
        SpaceTooLargeError: There are more than two terms, and the largest value exceeds MAX_INDEX.
    """
    if any(coefficient < 1 or extent < 1 for coefficient, extent in terms):
        raise ValueError(f"coefficients and extents are at least 1; got {list(terms)}")
    non_unit = [(coefficient, extent) for coefficient, extent in terms if extent > 1]
    common = math.gcd(*(coefficient for coefficient, _ in non_unit))
    non_unit = [(coefficient // common, extent) for coefficient, extent in non_unit]
    if len(non_unit) < 2:
        return math.prod(extent for _, extent in non_unit)
    if len(non_unit) == 2:
        (m, a), (n, b) = non_unit
        return distinct_sums(m, a, n, b)
    return _enumerated(non_unit)


def used_words(problem: Problem, tensor: Tensor) -> int:
    """Return a lower bound on the words of a tensor that operations use.

    A window with strides may skip words. If coordinates share a dimension, only the longest coordinate counts.

    Raises:
        SpaceTooLargeError: A coordinate has more than two terms, and its largest value exceeds MAX_INDEX.
    """
    lengths = [
        distinct_values([(step, problem.dimensions[name]) for name, step in rank.terms.items()])
        for rank in tensor.projection
    ]
    names = [name for rank in tensor.projection for name in rank.terms]
    return math.prod(lengths) if len(set(names)) == len(names) else max(lengths)


def _enumerated(terms: Sequence[tuple[int, int]]) -> int:
    """Return the number of distinct values by enumeration; bit v of an integer represents value v."""
    largest = sum(coefficient * (extent - 1) for coefficient, extent in terms)
    if largest > MAX_INDEX:
        raise SpaceTooLargeError(f"an index of {len(terms)} terms reaches {largest}; too many values to enumerate")
    values = 1
    for coefficient, extent in terms:
        done = 1
        while done < extent:  # double the terms covered, up to the extent
            more = min(done, extent - done)
            values |= values << coefficient * more
            done += more
    return values.bit_count()


def count_mappings(sizes: Sequence[int], slots: Sequence[Slot], cutting: Cutting, bound: int) -> int:
    """Return the number of pairs of a factorisation and its loop orders.

    Loops of one trip have no order. `bound` is an upper bound on the result.

    Raises:
        SpaceTooLargeError: The dimensions have too many remaining sizes for the states to fit in memory.
    """
    states = math.prod(len(lefts(size, cutting)) for size in sizes)
    if states > MAX_STATES:
        raise SpaceTooLargeError(f"cannot count the mappings: {states} partial factorisations do not fit in memory")
    counter = _Counter(sizes, slots, cutting)
    about = counter.count(math.inf)
    if about < MAX_FLOAT:  # the sums are exact: all terms are integers
        return int(about)
    # products of a residue with trips or orders must stay exact in floating point
    below = min(2**40, MAX_FLOAT // max(*sizes, math.factorial(len(sizes))))
    return exactly(lambda prime: int(counter.count(prime)), min(bound, 2 * int(min(about, 1e300))), below)


def exactly(modulo: Callable[[int], int], bound: int, below: int = 2**31) -> int:
    """Return an integer between 0 and `bound`, given its residues modulo primes below `below`."""
    result, modulus = 0, 1
    for prime in _primes(below):
        if modulus > bound:
            break
        result += modulus * ((modulo(prime) - result) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return result


def _primes(below: int) -> Iterator[int]:
    """Yield odd primes below `below`, descending."""
    number = below - 1 - below % 2
    while True:
        if all(number % d for d in range(3, math.isqrt(number) + 1, 2)):
            yield number
        number -= 2


class CountingChoices(NamedTuple):
    """Choices of trips for one dimension, for each remaining size.

    State s has the choices start[s] to start[s + 1] - 1. A choice represents `trips` different trip
    counts, and leads to state `after`.
    """

    start: Ints
    trips: Floats
    after: Ints


class _Counter:
    """Counter of mappings modulo a prime, or in floating point if the modulus is infinity."""

    def __init__(self, sizes: Sequence[int], slots: Sequence[Slot], cutting: Cutting) -> None:
        axes = sorted(range(len(sizes)), key=lambda dim: -sizes[dim])  # gives the kernel long rows to add
        self.left = [lefts(sizes[dim], cutting) for dim in axes]
        slots, self.shared = tighten_single_dimension_fanouts(slots, sizes)
        self.slots = [
            replace(
                slot,
                lowest=tuple(slot.lowest[dim] for dim in axes),
                highest=tuple(slot.highest[dim] for dim in axes),
                order=slot.order.renumbered(axes),
            )
            for slot in slots
        ]
        self.trip_intervals = [[list(trip_intervals(left, cutting)) for left in sizes_left] for sizes_left in self.left]
        self.options: dict[tuple[int, int, int], CountingChoices] = {}

    def count(self, prime: float) -> float:
        ways: Floats = np.zeros([len(sizes_left) for sizes_left in self.left])
        ways[(0,) * ways.ndim] = 1  # nothing remains after the last slot
        for index, slot in enumerate(self.slots):
            ways = (self._unroll if index in self.shared else self._step)(slot, ways, prime)
        return float(ways[(-1,) * ways.ndim])

    def _take(self, ways: Floats, dim: int, slot: Slot, first: int, last: int, prime: float) -> Floats | None:
        """Return the sum of `ways` after taking `first` to `last` trips of `dim` in `slot`.

        The result has one value per remaining size. It is None if the slot allows no such trips.
        """
        first, last = max(first, slot.lowest[dim]), min(last, slot.highest[dim], self.left[dim][-1])
        if first > last:
            return None
        if first == last == 1:
            return ways
        if (dim, first, last) not in self.options:
            number = {left: index for index, left in enumerate(self.left[dim])}
            start, able = [0], []
            for options in self.trip_intervals[dim]:
                trips = [(min(o.last, last) - max(o.first, first) + 1, number[o.left]) for o in options]
                able += [pair for pair in trips if pair[0] > 0]
                start.append(len(able))
            columns = np.array(able, dtype=np.int64).reshape(-1, 2).T
            choices = CountingChoices(np.array(start), columns[0].astype(np.float64), np.ascontiguousarray(columns[1]))
            self.options[dim, first, last] = choices
        shape = math.prod(ways.shape[:dim]), ways.shape[dim], math.prod(ways.shape[dim + 1 :])
        result = np.zeros(shape)
        add_up(*self.options[dim, first, last], prime, ways.reshape(shape), result)
        return result.reshape(ways.shape)

    def _step(self, slot: Slot, ways: Floats, prime: float) -> Floats:
        """Return the ways before a temporal slot, or before an unrolling by a single dimension.

        k loops of more than one trip, m of them in a fixed relative order, have k! / m! orders. Loops that a rule puts
        outermost or innermost do not count. An unrolling has one order.
        """
        states: dict[tuple[int, int], Floats] = {(0, 0): ways}
        for dim in range(ways.ndim):
            after: dict[tuple[int, int], Floats] = {}
            for (k, m), array in states.items():
                fixed = slot.spatial or dim in slot.order.outermost or dim in slot.order.innermost
                longer = (k, m) if fixed else (k + 1, m + (dim in slot.order.relative))
                for key, trips in (((k, m), (1, 1)), (longer, (2, slot.highest[dim]))):
                    part = self._take(array, dim, slot, *trips, prime)
                    if part is not None:
                        after[key] = _rest(after[key] + part, prime) if key in after else part
            states = after
        total = np.zeros_like(ways)
        for (k, m), array in states.items():
            total += _rest(array * (math.factorial(k) // math.factorial(m)), prime)
        return _rest(total, prime)

    def _unroll(self, slot: Slot, ways: Floats, prime: float) -> Floats:
        """Return the ways before an unrolling whose product of trips must stay within the fanout."""
        fanouts: dict[RemainingFanout, Floats] = {remaining_fanout(slot): ways}
        for dim in range(ways.ndim):
            after: dict[RemainingFanout, Floats] = {}
            options = self.trip_intervals[dim][
                -1
            ]  # the choices of the whole dimension include those of every remainder
            for fanout, array in fanouts.items():
                for use in fanout_uses(fanout):
                    if not any(option.first <= use.last and use.first <= option.last for option in options):
                        continue
                    part = self._take(array, dim, slot, use.first, use.last, prime)
                    if part is not None:
                        known = after.get(use.remaining)
                        after[use.remaining] = part if known is None else _rest(known + part, prime)
            fanouts = after
        total = np.zeros_like(ways)
        for fanout, array in fanouts.items():
            if fanout.enough:
                total += array
        return _rest(total, prime)


def _rest(ways: Floats, prime: float) -> Floats:
    """Return the ways modulo the prime."""
    return ways if prime == math.inf else ways - np.floor(ways / prime) * prime


@compiled
def add_up(start: Ints, trips: Floats, after: Ints, prime: float, ways: Floats, result: Floats) -> None:
    """Add the ways after all choices, modulo the prime, into `result` [outer, state, inner]."""
    for outer in range(ways.shape[0]):
        for state in range(ways.shape[1]):
            row = result[outer, state]
            for option in range(start[state], start[state + 1]):
                many, source = trips[option], ways[outer, after[option]]
                for inner in range(len(row)):
                    row[inner] += many * source[inner]
            if prime < np.inf:
                for inner in range(len(row)):
                    row[inner] -= np.floor(row[inner] / prime) * prime
