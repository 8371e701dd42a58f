"""How long an exploration will take, told once, after the first minute of its searches."""

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
        shares: whether only the first searches of families of machines are counted.
        clock: seconds; they start with the last call of `told` before a search is finished.
    """

    shares: bool = False
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False, default=0.0)
    _is_told: bool = field(init=False, default=False)

    def told(self, searched: int, left: Callable[[], float], hint: str) -> str | None:
        """Return a message on the rest, if it is long and the first minute is over; later None.

        Args:
            searched: finished searches of this run.
            left: returns how many are left.
            hint: how to shorten it.
        """
        now = self.clock()
        if not searched:
            self._begun = now
        elapsed = now - self._begun
        if self._is_told or elapsed < FIRST_SECONDS:
            return None
        self._is_told = True
        seconds = left() * elapsed / searched
        if seconds < LONG_SECONDS:
            return None
        said = f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"
        if self.shares:
            return (
                f"{searched} first searches of families in {elapsed:.0f} s: the others take about {said} if none is left out, "
                f"and searches of single machines follow; {hint}"
            )
        return f"{searched} searches in {elapsed:.0f} s: the other points take about {said} if none is left out; {hint}"
