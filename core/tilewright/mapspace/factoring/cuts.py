"""Trips that a slot may take of a dimension, and the remaining size.

Slots are processed from the inside out. A slot of `f` trips divides the remaining size by `f`. In a perfect space the
division is exact. In a ragged space the result is rounded up, because the outermost cut may be ragged. The trips never
exceed the remaining size, so no piece is empty, and 1 remains after the last slot. Rounding up once or repeatedly gives
the same result: ceil(ceil(n / a) / b) = ceil(n / ab). The possible remaining sizes of `n` are thus its divisors, or its
rounded quotients, about 2 sqrt(n) of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tilewright.schema.constraints import Cutting


class TripInterval(NamedTuple):
    """Interval of trip counts, `first` to `last`, that leave the same remaining size `left`."""

    first: int
    last: int
    left: int


@cache
def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


@cache
def quotients(number: int) -> tuple[int, ...]:
    """Return all distinct values of number / f, rounded up, ascending.

    >>> quotients(12)
    (1, 2, 3, 4, 6, 12)
    >>> quotients(7)
    (1, 2, 3, 4, 7)
    """
    return tuple(sorted(interval.left for interval in _rounded(number)))


def lefts(size: int, cutting: Cutting) -> tuple[int, ...]:
    """Return the possible remaining sizes of a dimension, ascending from 1 to its size."""
    return divisors(size) if cutting == "perfect" else quotients(size)


def trip_intervals(left: int, cutting: Cutting) -> Iterator[TripInterval]:
    """Yield the intervals of trips that leave the same size, one per size."""
    return _exact(left) if cutting == "perfect" else _rounded(left)


def _exact(left: int) -> Iterator[TripInterval]:
    return (TripInterval(divisor, divisor, left // divisor) for divisor in divisors(left))


def _rounded(left: int) -> Iterator[TripInterval]:
    """Yield the intervals of trips with the same rounded quotient.

    >>> [tuple(each) for each in _rounded(7)]
    [(1, 1, 7), (2, 2, 4), (3, 3, 3), (4, 6, 2), (7, 7, 1)]
    """
    first = 1
    while first <= left:
        after = -(-left // first)
        last = left if after == 1 else (left - 1) // (after - 1)
        yield TripInterval(first, last, after)
        first = last + 1
