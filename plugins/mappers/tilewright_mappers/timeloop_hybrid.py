"""`timeloop_hybrid`: random factors, then the orders of their loops one after another, as Timeloop's hybrid search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright_mappers.timeloop_random import StopRules


@dataclass(frozen=True)
class TimeloopHybridMapper:
    """Draws factors and visits at most `permutations` orders of their loops, in lexical order, before it draws anew."""

    timeout: int
    victory: int
    permutations: int
    batch: int

    def search(self, task: Task, run: Run) -> Proposals:
        rules = StopRules(self.timeout, self.victory)
        while not rules.met:
            drawn = task.space.sample(run.rng, max(1, rules.size(self.batch) // self.permutations))
            costs = yield task.space.reordered(drawn, self.permutations)
            rules.see(np.where(costs.valid, costs.of(task.objective), np.inf))
