"""`timeloop_hybrid`: random factors, then all orders of their loops in sequence, as Timeloop's hybrid search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import TimeloopHybridOptions
from tilewright_mappers.timeloop_random import StopRules


@dataclass(frozen=True)
class TimeloopHybrid:
    """Draws factors and visits at most `permutations` orders of their loops, in lexical order, before it draws again.

    Factors that do not fit are one invalid mapping: no order of their loops changes that.
    """

    options: TimeloopHybridOptions

    def search(self, task: Task, run: Run) -> Proposals:
        options = self.options
        rules = StopRules(options.timeout, options.victory)
        while not rules.met:
            drawn = task.space.sample(run.rng, max(1, rules.size(options.batch) // options.permutations))
            costs = yield task.space.reordered(drawn, np.where(drawn.fits(), options.permutations, 1))
            rules.see(np.where(costs.valid, costs.of(task.objective), np.inf))
