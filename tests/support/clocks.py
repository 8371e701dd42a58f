"""Clocks for searches with a time limit: each look takes one second, and one look may be interrupted."""

import math
from dataclasses import dataclass

from support.interrupts import press


@dataclass
class Clock:
    """A clock that goes on by one with each look, and may interrupt."""

    interrupt: float = math.inf
    now: int = 0

    def monotonic(self) -> float:
        self.now += 1
        if self.now == self.interrupt:
            raise KeyboardInterrupt
        return self.now


class Pressed(Clock):
    """A clock at which the user presses Ctrl-C."""

    def monotonic(self) -> float:
        self.now += 1
        if self.now == self.interrupt:
            press()
        return self.now
