"""`timeloop_random`: Timeloop's random search with its two stop rules, and those rules for `timeloop_hybrid`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import TimeloopRandomOptions

SMALLEST = 16
"""No batch is smaller, so that the rules may be met up to so many mappings late."""


class StopRules:
    """Timeloop's account of one search thread.

    It ends after `timeout` consecutive invalid mappings, or after `victory` valid ones in a row, with any number of
    invalid ones between them, of which none is the best so far. 0 switches a rule off.
    """

    def __init__(self, timeout: int, victory: int) -> None:
        self.timeout, self.victory = timeout, victory
        self.invalid = self.suboptimal = 0
        self.best = np.inf

    @property
    def earliest(self) -> float:
        """After how many more mappings a rule can be met at the earliest; inf if never."""
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
        """Take the costs of mappings in the order in which they were tried; inf where invalid."""
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
        """How many mappings to try at once, so that no rule is met far inside of the batch."""
        return int(max(SMALLEST, min(most, self.earliest)))


@dataclass(frozen=True)
class TimeloopRandom:
    """Uniform random mappings until a stop rule is met."""

    options: TimeloopRandomOptions

    def search(self, task: Task, run: Run) -> Proposals:
        rules = StopRules(self.options.timeout, self.options.victory)
        while not rules.met:
            costs = yield task.space.sample(run.rng, rules.size(self.options.batch))
            rules.see(np.where(costs.valid, costs.of(task.objective), np.inf))
