"""Mapper `random`: the baseline for other mappers."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import RandomOptions


@dataclass(frozen=True)
class Random:
    """Mapper that draws factors, orders and optional storage uniformly until the budget is spent."""

    options: RandomOptions

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, self.options.batch)
