"""Sizes of dimensions that few tiles divide."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from tilewright.schema.problem import Problem

MIN_LARGE_PRIME, MAX_COFACTOR = 17, 4
"""Limits of `has_few_divisors`: units and buffers rarely take 17 or more of a dimension at once."""


@cache
def has_few_divisors(number: int) -> bool:
    """Return whether a prime of at least 17 times at most 4 makes the number, so that few tiles divide it.

    >>> [has_few_divisors(n) for n in (197, 394, 13, 224, 1733, 11008)]
    [True, True, False, False, True, False]
    """
    rest = next((number // d for d in range(MAX_COFACTOR, 0, -1) if number % d == 0), number)
    return rest >= MIN_LARGE_PRIME and all(rest % divisor for divisor in range(2, math.isqrt(rest) + 1))


def sizes_with_few_divisors(problems: Iterable[Problem]) -> dict[int, str]:
    """Return size -> the first dimension with it, such as `m of einsum`."""
    sizes: dict[int, str] = {}
    for problem in problems:
        for name, size in problem.dimensions.items():
            if has_few_divisors(size):
                sizes.setdefault(size, f"{name} of {problem.name}")
    return sizes
