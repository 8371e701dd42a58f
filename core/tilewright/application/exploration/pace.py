"""How long an exploration will take, told once, after its first minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_SECONDS = 60.0
"""Time of searches until the rest is estimated."""
LONG_SECONDS = 600.0
"""Shortest rest that is worth a message."""


@dataclass
class Pace:
    """The rate of searches.

    Args:
        points: points to try.
        layers: searches of each point.
        clock: seconds; they start with the first call of `told`.
    """

    points: int
    layers: int
    clock: Callable[[], float] = time.monotonic
    _begun: float | None = field(init=False, default=None)
    _is_told: bool = field(init=False, default=False)

    def told(self, done: float, searched: int, hint: str) -> str | None:
        """Return a message on the rest, if it is long and the first minute is over; later None.

        Args:
            done: finished points, with those left out and those of earlier runs.
            searched: finished searches of this run.
            hint: how to shorten it.
        """
        now = self.clock()
        if self._begun is None:
            self._begun = now
        elapsed = now - self._begun
        if self._is_told or elapsed < FIRST_SECONDS or not searched:
            return None
        self._is_told = True
        left = (self.points - done) * self.layers * elapsed / searched
        if left < LONG_SECONDS:
            return None
        said = f"{left / 3600:.1f} hours" if left >= 5400 else f"{left / 60:.0f} minutes"
        return f"{searched} searches in {elapsed:.0f} s: the other points take about {said} if none is left out; {hint}"
