"""`exhaustive`: the judge of other mappers on spaces small enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.errors import SpaceTooLargeError
from tilewright.plugin.mapper import Proposals, Run, Task


@dataclass(frozen=True)
class ExhaustiveMapper:
    """Prices every different mapping of the space, and then has proved its best."""

    limit: int
    batch: int

    def search(self, task: Task, run: Run) -> Proposals:
        """Raises SpaceTooLargeError, before anything is priced, when the space exceeds the limit or the budget."""
        left = run.remaining_evaluations
        most = self.limit if left is None else min(self.limit, left)
        size, known = task.space.factorizations, "at least "  # counted at once; all mappings can take seconds
        if size <= most:
            size, known = task.space.size, ""
        if size > most:
            what = "the limit of the mapper" if most == self.limit else "the evaluations allowed"
            raise SpaceTooLargeError(
                f"{task.problem.name} on {task.architecture.name} has {known}{size} mappings; {what} is {most}",
                hint="add constraints, choose another mapper, or raise --evaluations and --mapper-option limit=N",
            )
        best = np.inf
        for batch in task.space.enumerate(self.batch):
            costs = yield batch
            best = min(best, float(costs.of(task.objective)[costs.valid].min(initial=np.inf)))
        if np.isfinite(best):
            run.prove(best)
