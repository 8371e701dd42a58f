"""Counting different mappings exactly.

The slots are taken one after another; the state is what is left of every dimension, an array with one axis per
dimension (see `cuts`). A temporal slot with k non-unit loops has k! orders, so the sum over all factor vectors is an
elementary symmetric polynomial in the per-dimension operators "take more than one trip". Everything runs
modulo a few primes and is put together by the Chinese remainder theorem, which keeps big numbers out of the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace.factoring.cuts import lefts, takes
from tilewright.mapspace.factoring.rooms import Room, room_of, shares_of
from tilewright.mapspace.skeleton import Slot
from tilewright.schema.constraints import Cutting

Ints = NDArray[np.int64]

EXACT = 2**62
"""Counts below this are kept in int64, above as Python's integers."""
MAX_STATES = 20_000_000
"""States of the count that fit in memory."""
MAX_INDEX = 2**28
"""Largest value of an index of three or more terms that is enumerated, one bit each."""


def prime_powers(number: int) -> list[tuple[int, int]]:
    """(prime, power) of the factorisation, ascending; 1 counts as the power 1 of itself.

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
    """How many different values the affine index c1*a1 + c2*a2 + ... takes; terms are (coefficient, extent), a < extent.

    Strides and dilations leave holes, which the bounding box counts and this does not. Up to two terms by a closed
    form (QuickFlow, section IV-A), more by enumeration.

    >>> distinct_values([(2, 4), (1, 3)]), distinct_values([(4, 3), (1, 2)])
    (9, 6)

    Raises:
        ValueError: a coefficient or an extent below 1.
        SpaceTooLargeError: more than two terms, and the largest value exceeds MAX_INDEX.
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
        if a <= n or b <= m:  # no value comes twice
            return a * b
        return m * (a - 1) + n * (b - 1) - (m - 1) * (n - 1) + 1
    return _enumerated(non_unit)


def _enumerated(terms: Sequence[tuple[int, int]]) -> int:
    """Bit v of a number stands for the value v."""
    largest = sum(coefficient * (extent - 1) for coefficient, extent in terms)
    if largest > MAX_INDEX:
        raise SpaceTooLargeError(f"an index of {len(terms)} terms reaches {largest}; too many values to enumerate")
    values = 1
    for coefficient, extent in terms:
        done = 1
        while done < extent:  # twice as many, as long as that is not too many
            more = min(done, extent - done)
            values |= values << coefficient * more
            done += more
    return values.bit_count()


def count_mappings(sizes: Sequence[int], slots: Sequence[Slot], cutting: Cutting, bound: int) -> int:
    """The number of (factorisation, orders of loops longer than one trip); `bound` is no less than it.

    Raises:
        SpaceTooLargeError: so much may be left of the sizes that the states do not fit in memory.
    """
    states = math.prod(len(lefts(size, cutting)) for size in sizes)
    if states > MAX_STATES:
        raise SpaceTooLargeError(f"cannot count the mappings: {states} ways to have tiled in part are too many")
    return exactly(lambda prime: _Counter(sizes, slots, cutting, prime).count(), bound)


def exactly(modulo: Callable[[int], int], bound: int) -> int:
    """A number of which one knows the rest modulo primes, and that it is at most `bound`."""
    result, modulus = 0, 1
    for prime in _primes():
        if modulus > bound:
            break
        result += modulus * ((modulo(prime) - result) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return result


def _primes() -> Iterator[int]:
    """Primes downward from 2**31."""
    number = 2**31 - 1
    while True:
        if all(number % d for d in range(3, math.isqrt(number) + 1, 2)):
            yield number
        number -= 2


class _Counter:
    def __init__(self, sizes: Sequence[int], slots: Sequence[Slot], cutting: Cutting, prime: int) -> None:
        self.prime = prime
        self.slots = slots
        self.left = [lefts(size, cutting) for size in sizes]
        self.takes = [[list(takes(left, cutting)) for left in each] for each in self.left]

    def count(self) -> int:
        ways: Ints = np.zeros([len(each) for each in self.left], dtype=np.int64)
        ways[(0,) * ways.ndim] = 1  # nothing is left after the last slot
        for slot in self.slots:
            ways = self._unroll(slot, ways) if slot.spatial else self._step(slot, ways)
        return int(ways[(-1,) * ways.ndim]) % self.prime

    def _take(self, ways: Ints, dim: int, slot: Slot, first: int, last: int) -> Ints | None:
        """For all that may be left of `dim`, the sum of `ways` after taking `first` to `last` trips of it, as the slot
        allows; None if it allows none."""
        first, last = max(first, slot.lowest[dim]), min(last, slot.highest[dim])
        if first > last:
            return None
        if first == last == 1:
            return ways
        number = {left: index for index, left in enumerate(self.left[dim])}
        source = np.moveaxis(ways, dim, 0)
        result = np.zeros_like(source)
        for index, options in enumerate(self.takes[dim]):
            able = [(min(o.last, last) - max(o.first, first) + 1, number[o.left]) for o in options]
            count, after = np.array([pair for pair in able if pair[0] > 0], dtype=np.int64).reshape(-1, 2).T
            result[index] = np.tensordot(count, source[after], axes=1) % self.prime
        return np.moveaxis(result, 0, dim)

    def _step(self, slot: Slot, ways: Ints) -> Ints:
        """k loops are longer than one trip, m of them in a fixed order among themselves: k! / m! orders."""
        states: dict[tuple[int, int], Ints] = {(0, 0): ways}
        for dim in range(ways.ndim):
            after: dict[tuple[int, int], Ints] = {}
            for (k, m), array in states.items():
                for key, trips in (((k, m), (1, 1)), ((k + 1, m + (dim in slot.order)), (2, slot.highest[dim]))):
                    part = self._take(array, dim, slot, *trips)
                    if part is not None:
                        after[key] = (after[key] + part) % self.prime if key in after else part
            states = after
        total = np.zeros_like(ways)
        for (k, m), array in states.items():
            total += array * (math.factorial(k) // math.factorial(m) % self.prime) % self.prime
        return total % self.prime

    def _unroll(self, slot: Slot, ways: Ints) -> Ints:
        """The product of all trips stays within the fanout."""
        rooms: dict[Room, Ints] = {room_of(slot): ways}
        for dim in range(ways.ndim):
            after: dict[Room, Ints] = {}
            options = self.takes[dim][-1]  # of the whole dimension: what is left of it has no others
            for room, array in rooms.items():
                for share in shares_of(room):
                    if not any(option.first <= share.last and share.first <= option.last for option in options):
                        continue
                    part = self._take(array, dim, slot, share.first, share.last)
                    if part is not None:
                        known = after.get(share.room)
                        after[share.room] = part if known is None else (known + part) % self.prime
            rooms = after
        total = np.zeros_like(ways)
        for room, array in rooms.items():
            if room.enough:
                total += array
        return total % self.prime
