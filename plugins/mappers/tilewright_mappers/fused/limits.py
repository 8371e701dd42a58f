"""Limits of the search of fused groups: the time, and the tiles of a dimension that are tried."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from tilewright.mapspace.factoring.cuts import divisors

ALONE = 3
"""Layers of the longest intervals that are solved first, as if they were groups of their own."""

FEW = 5
"""Layers that are solved together at once if there is no time limit."""

SLICE = 0.04
"""Share of the time limit that each interval gets for its bound. As a group of its own it gets twice as much."""

SHARES = (0.0, 0.03, 0.06, 0.125, 0.25, 0.5, 1.0)
"""Bounds that are tried, as shares of the distance from the least cost to that without fusion."""

NUMBERS = 2**25
"""Tile sizes that are listed at once: those of all nests of a layer, or partial ones."""


class OutOfTime(Exception):
    """The search has used its time, or its memory."""


class Limits:
    """Limits that all parts of one search share.

    `ends`: time on the monotonic clock. `few`: sizes of a dimension's tiles that are tried; None: all that divide.
    """

    def __init__(self, few: int | None = None, ends: float = math.inf) -> None:
        self.ends, self.few = ends, few

    def now(self) -> float:
        """Return the time in seconds."""
        return time.monotonic()

    def check(self) -> None:
        """Raise OutOfTime if the time has ended."""
        if self.now() > self.ends:
            raise OutOfTime

    def check_room(self, numbers: int) -> None:
        """Raise OutOfTime if this many numbers are not listed at once."""
        if numbers > NUMBERS:
            raise OutOfTime

    def divisors(self, size: int, most: float = math.inf) -> list[int]:
        """Return the divisors of a size up to a largest one; with `few`, evenly spread ones with the last and the first."""
        able = [divisor for divisor in divisors(size) if divisor <= most]
        return able if self.few is None else _spread(able, self.few)

    def factors(self, size: int, most: float) -> list[int]:
        """Return the divisors of a size that may be unrolled; if `few` is 1, nothing is."""
        return [1] if self.few == 1 else self.divisors(size, most)


def _spread(able: Sequence[int], count: int) -> list[int]:
    if len(able) <= count:
        return list(able)
    if count == 1:
        return [able[-1]]
    return [able[round(at * (len(able) - 1) / (count - 1))] for at in range(count)]
