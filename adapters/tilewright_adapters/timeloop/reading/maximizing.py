"""Factors for `maximize_dims`: the largest that fit, as Timeloop's v4 front end finds them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

from tilewright.mapspace.counting import prime_powers

MAX_PRODUCTS = 100_000
"""Largest number of products of divisors that are compared."""


def maximal(sizes: Mapping[str, int], names: Sequence[str], capacity: int) -> dict[str, int] | None:
    """Return the factor of each named dimension such that their product is the largest up to the capacity.

    The search takes one prime factor after another. Of equal products, it prefers the dimensions that are listed first.
    A size above the capacity may also be cut into equal parts with a smaller last one, if that keeps more units busy.

    Args:
        sizes: the iterations of each dimension without a factor yet.
        names: the dimensions.
        capacity: largest product.

    Returns:
        The factors; None if there are more than `MAX_PRODUCTS` products to compare.
    """
    powers = [power for name in names for _, power in prime_powers(sizes[name])]
    if math.prod(power + 1 for power in powers) > MAX_PRODUCTS:
        return None

    @cache
    def allocated(sizes: tuple[int, ...], capacity: int) -> tuple[tuple[int, ...], float]:
        """Return the factor of each size, and how many units these use on average."""
        best, most = (1,) * len(sizes), 1.0
        for place, size in enumerate(sizes if capacity > 1 else ()):
            if size > capacity:
                steps = math.ceil(size / capacity)
                part = math.ceil(size / steps)
                used = (part * (steps - 1) + size % part) / steps
                if used > most:
                    best, most = (*(1,) * place, part, *(1,) * (len(sizes) - place - 1)), used
            # the front end iterates over a set, whose order decides between equal products
            for prime in {prime for prime, _ in prime_powers(size)}:
                if 1 < prime <= capacity:
                    rest = (*sizes[:place], size // prime, *sizes[place + 1 :])
                    inner, count = allocated(rest, capacity // prime)
                    if prime * count > most:
                        best, most = (*inner[:place], inner[place] * prime, *inner[place + 1 :]), prime * count
        return best, most

    trips, _ = allocated(tuple(sizes[name] for name in names), capacity)
    return dict(zip(names, trips, strict=True))
