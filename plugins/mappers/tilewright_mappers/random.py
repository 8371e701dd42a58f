"""`random`: what any other mapper should beat."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plugin.mapper import Proposals, Run, Task


@dataclass(frozen=True)
class RandomMapper:
    """Draws factorisations, orders and free keeps uniformly, `batch` at a time, and never ends by itself."""

    batch: int

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, self.batch)
