"""Mapper `exhaustive`: enumerate small spaces; the reference for other mappers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.errors import SpaceTooLargeError
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import ExhaustiveOptions


@dataclass(frozen=True)
class Exhaustive:
    """Mapper that evaluates every distinct mapping, and so proves the best one."""

    options: ExhaustiveOptions

    def search(self, task: Task, run: Run) -> Proposals:
        """Enumerate the task's map space.

        Raises:
            SpaceTooLargeError: the space exceeds the limit or the budget. Nothing is evaluated then.
        """
        left, limit = run.remaining_evaluations, self.options.limit
        most = limit if left is None else min(limit, left)
        # a lower bound that is fast to compute; counting all mappings can take seconds
        size, known = task.space.factorizations, "at least "
        if size <= most:
            size, known = task.space.size, ""
        if size > most:
            what = "the limit of the mapper" if most == limit else "the evaluations allowed"
            raise SpaceTooLargeError(
                f"{task.problem.name} on {task.architecture.name} has {known}{size} mappings; {what} is {most}",
                hint="add constraints, choose another mapper, or raise --evaluations and --mapper-option limit=N",
            )
        best = np.inf
        for part in task.space.enumerate(self.options.batch):
            costs = yield part
            best = min(best, float(costs.of(task.objective)[costs.valid].min(initial=np.inf)))
        if np.isfinite(best):
            run.prove(best)
