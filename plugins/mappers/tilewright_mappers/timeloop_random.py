"""Mapper `timeloop_random`: Timeloop's random search, and its two stop rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import TimeloopRandomOptions

SMALLEST = 16
"""Minimum batch size; the search may exceed a stop rule by this many mappings."""


class StopRules:
    """Counts of Timeloop's stop rules for one search thread.

    The search ends after `timeout` consecutive invalid mappings. It also ends after `victory` valid
    ones without an improvement; invalid mappings in between do not count. 0 switches a rule off.
    """

    def __init__(self, timeout: int, victory: int) -> None:
        self.timeout, self.victory = timeout, victory
        self.invalid = self.suboptimal = 0
        self.best = np.inf

    @property
    def earliest(self) -> float:
        """Minimum number of further mappings until a rule is met; inf if never."""
        left = [np.inf]
        if self.timeout:
            left.append(self.timeout - self.invalid)
        if self.victory:
            left.append(self.victory - self.suboptimal)
        return float(min(left))

    @property
    def met(self) -> bool:
        return self.earliest <= 0

    def see(self, values: Floats) -> None:
        """Record costs in the order of evaluation; inf for invalid mappings."""
        valid = np.flatnonzero(np.isfinite(values))
        if not len(valid):
            self.invalid += len(values)
            return
        self.invalid = len(values) - 1 - int(valid[-1])
        before = np.minimum.accumulate(np.append(self.best, values[valid]))
        better = np.flatnonzero(values[valid] < before[:-1])
        self.suboptimal = len(valid) - 1 - int(better[-1]) if len(better) else self.suboptimal + len(valid)
        self.best = float(before[-1])

    def size(self, most: int) -> int:
        """Return a batch size that does not exceed a stop rule by far."""
        return int(max(SMALLEST, min(most, self.earliest)))


@dataclass(frozen=True)
class TimeloopRandom:
    """Mapper that draws uniform random mappings until a stop rule is met."""

    options: TimeloopRandomOptions

    def search(self, task: Task, run: Run) -> Proposals:
        rules = StopRules(self.options.timeout, self.options.victory)
        while not rules.met:
            costs = yield task.space.sample(run.rng, rules.size(self.options.batch))
            rules.see(np.where(costs.valid, costs.of(task.objective), np.inf))
