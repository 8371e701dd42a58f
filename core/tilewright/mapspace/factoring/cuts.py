"""Cuts: what a slot may take of a dimension, and what it leaves.

From the inside out, a slot that takes `f` trips of what is left leaves that over `f`: exactly, where tiles divide; rounded up,
where the outermost cut may be ragged. It never takes more than is left, so no piece is empty, and at the end 1 is left.
Rounding up once or time after time is the same, ceil(ceil(n / a) / b) = ceil(n / ab), so what may be left of `n` are
its divisors, or its rounded quotients, about 2 sqrt(n) of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tilewright.schema.constraints import Cutting


class Take(NamedTuple):
    """`first` to `last` trips, each of which leaves `left`."""

    first: int
    last: int
    left: int


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


@cache
def quotients(number: int) -> tuple[int, ...]:
    """All different number / f, rounded up, ascending.

    >>> quotients(12)
    (1, 2, 3, 4, 6, 12)
    >>> quotients(7)
    (1, 2, 3, 4, 7)
    """
    return tuple(sorted(take.left for take in _rounded(number)))


def lefts(size: int, cutting: Cutting) -> tuple[int, ...]:
    """What may be left of a dimension, ascending from 1 to its size."""
    return divisors(size) if cutting == "perfect" else quotients(size)


def takes(left: int, cutting: Cutting) -> Iterator[Take]:
    """All that may be taken of what is left; in no two of them the same is left."""
    return _exact(left) if cutting == "perfect" else _rounded(left)


def _exact(left: int) -> Iterator[Take]:
    return (Take(each, each, left // each) for each in divisors(left))


def _rounded(left: int) -> Iterator[Take]:
    """
    >>> [tuple(take) for take in _rounded(7)]
    [(1, 1, 7), (2, 2, 4), (3, 3, 3), (4, 6, 2), (7, 7, 1)]
    """
    first = 1
    while first <= left:
        after = -(-left // first)
        last = left if after == 1 else (left - 1) // (after - 1)
        yield Take(first, last, after)
        first = last + 1
