"""`random`: what any other mapper should beat."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import RandomOptions


@dataclass(frozen=True)
class Random:
    """Draws factorisations, orders and free keeps uniformly, and never ends by itself."""

    options: RandomOptions

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, self.options.batch)
