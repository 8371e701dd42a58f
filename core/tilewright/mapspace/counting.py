"""Counting different mappings exactly.

The slots are taken one after another; the state is what is left of every dimension, an array with one axis of divisors
per dimension. A temporal slot with k non-unit loops has k! orders, so the sum over all factor vectors is an
elementary symmetric polynomial in the per-dimension operators "divide by a divisor other than 1". Everything runs
modulo a few primes and is put together by the Chinese remainder theorem, which keeps big numbers out of the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace.skeleton import Slot

Ints = NDArray[np.int64]

MAX_STATES = 20_000_000
"""States of the count that fit in memory."""
MAX_INDEX = 2**28
"""Largest value of an index of three or more terms that is enumerated, one bit each."""


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


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


def count_mappings(sizes: Sequence[int], slots: Sequence[Slot], bound: int) -> int:
    """The number of (factorisation, orders of loops longer than one trip); `bound` is no less than it.

    Raises:
        SpaceTooLargeError: the sizes have so many divisors that the states do not fit in memory.
    """
    states = math.prod(len(divisors(size)) for size in sizes)
    if states > MAX_STATES:
        raise SpaceTooLargeError(f"cannot count the mappings: {states} ways to have tiled in part are too many")
    result, modulus = 0, 1
    for prime in _primes():
        if modulus > bound:
            break
        rest = _Counter(sizes, slots, prime).count()
        result += modulus * ((rest - result) * pow(modulus, -1, prime) % prime)
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
    def __init__(self, sizes: Sequence[int], slots: Sequence[Slot], prime: int) -> None:
        self.prime = prime
        self.slots = slots
        self.divisors = [divisors(size) for size in sizes]

    def count(self) -> int:
        left: Ints = np.zeros([len(divisors) for divisors in self.divisors], dtype=np.int64)
        left[(0,) * left.ndim] = 1  # nothing is left after the last slot
        for slot in reversed(self.slots):
            left = self._unroll(slot, left) if slot.spatial else self._step(slot, left)
        return int(left[(-1,) * left.ndim]) % self.prime

    def _divide(self, left: Ints, dim: int, slot: Slot, others: bool) -> Ints | None:
        """Sum over allowed divisors of `dim` (1, or all others) of the array after dividing; None if there is none."""
        able = [d for d in self.divisors[dim] if slot.allows(dim, d) and (d > 1) == others]
        if not able:
            return None
        if not others:
            return left
        result = np.zeros_like(left)
        for divisor in able:
            result += self._shift(left, dim, divisor)
        return result % self.prime

    def _shift(self, left: Ints, dim: int, divisor: int) -> Ints:
        """left[size / divisor] at every size that it divides."""
        divisors = self.divisors[dim]
        to = [index for index, d in enumerate(divisors) if d % divisor == 0]
        source = [divisors.index(divisors[index] // divisor) for index in to]
        result = np.zeros_like(left)
        result[(slice(None),) * dim + (to,)] = left[(slice(None),) * dim + (source,)]
        return result

    def _step(self, slot: Slot, left: Ints) -> Ints:
        """k loops are longer than one trip, m of them in a fixed order among themselves: k! / m! orders."""
        states: dict[tuple[int, int], Ints] = {(0, 0): left}
        for dim in range(left.ndim):
            after: dict[tuple[int, int], Ints] = {}
            for (k, m), array in states.items():
                for key, others in (((k, m), False), ((k + 1, m + (dim in slot.order)), True)):
                    part = self._divide(array, dim, slot, others)
                    if part is not None:
                        after[key] = (after[key] + part) % self.prime if key in after else part
            states = after
        total = np.zeros_like(left)
        for (k, m), array in states.items():
            total += array * (math.factorial(k) // math.factorial(m) % self.prime) % self.prime
        return total % self.prime

    def _unroll(self, slot: Slot, left: Ints) -> Ints:
        """The product of all trips stays within the fanout."""
        most = slot.most or 1
        products: dict[int, Ints] = {1: left}
        for dim in range(left.ndim):
            after: dict[int, Ints] = {}
            for product, array in products.items():
                for divisor in self.divisors[dim]:
                    if slot.allows(dim, divisor) and product * divisor <= most:
                        part = array if divisor == 1 else self._shift(array, dim, divisor)
                        key = product * divisor
                        after[key] = (after[key] + part) % self.prime if key in after else part
            products = after
        total = np.zeros_like(left)
        for product, array in products.items():
            if product >= slot.least:
                total += array
        return total % self.prime
