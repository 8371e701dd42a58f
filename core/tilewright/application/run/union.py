"""Search of an uneven space: its map spaces are searched one after the other, as one search."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from tilewright.application.run.search import search
from tilewright.interrupts import stop_requested
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Mapper, Task
from tilewright.plugin.result import Progress, Result, Stop, Watcher


def search_union(
    mapper: Mapper,
    tasks: Sequence[Task],
    evaluator: Evaluator,
    budget: Budget,
    *,
    seed: int = 0,
    on_progress: Watcher | None = None,
    start: float = math.inf,
) -> Result:
    """Search the map spaces of several tasks in their order, and return the best mapping of all.

    Each search gets an equal share of the time and the evaluations that are left, and the objective of the best mapping
    so far. The lower bound is the lowest of the searches; without all of them there is none.

    Args:
        start: Objective of a known mapping, in the first space; only better ones are recorded.
    """
    if len(tasks) == 1:
        return search(mapper, tasks[0], evaluator, budget, seed=seed, on_progress=on_progress, start=start)
    results: list[Result] = []
    for number, task in enumerate(tasks):
        before = _Joined(results)
        share = before.share(budget, len(tasks) - number)
        if share is None:
            break
        watcher = None if on_progress is None else before.watcher(on_progress, budget)
        results.append(
            search(mapper, task, evaluator, share, seed=seed, on_progress=watcher, known=min(start, before.value))
        )
        if stop_requested() or results[-1].stop in ("cancelled", "failed"):
            break
    return _Joined(results).result(len(tasks))


class _Joined:
    """Results of the searches so far."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = tuple(results)
        self.value = min((result.value for result in results), default=math.inf)
        self.evaluated = sum(result.evaluated for result in results)
        self.valid = sum(result.valid for result in results)
        self.wall_seconds = math.fsum(result.wall_seconds for result in results)

    def share(self, budget: Budget, searches: int) -> Budget | None:
        """Return the budget of the next of some searches; None if nothing is left."""
        seconds = None if budget.seconds is None else budget.seconds - self.wall_seconds
        evaluations = None if budget.evaluations is None else budget.evaluations - self.evaluated
        if (seconds is not None and seconds <= 0) or evaluations == 0:
            return None
        return dataclasses.replace(
            budget,
            seconds=None if seconds is None else seconds / searches,
            evaluations=None if evaluations is None else max(1, evaluations // searches),
        )

    def watcher(self, on_progress: Watcher, budget: Budget) -> Watcher:
        """Return a watcher of the next search that reports the progress of all."""

        def watch(progress: Progress) -> None:
            evaluated, valid = self.evaluated + progress.evaluated, self.valid + progress.valid
            seconds = self.wall_seconds + progress.elapsed_seconds
            on_progress(Progress(evaluated, valid, min(self.value, progress.best), seconds, budget))

        return watch

    def result(self, searches: int) -> Result:
        """Return the result of all of `searches` searches; those that did not run proved nothing."""
        best = min(self.results, key=lambda result: result.value)
        bounds = [result.lower_bound for result in self.results]
        least = min(self.results, key=lambda result: result.lower_bound or 0.0)  # its figures say why a gap is left
        proved = len(bounds) == searches and None not in bounds
        stop: Stop = next((result.stop for result in reversed(self.results) if result.stop != "finished"), "finished")
        history, evaluated = [], 0
        for result in self.results:
            history += [(evaluated + count, value) for count, value in result.history]
            evaluated += result.evaluated
        return dataclasses.replace(
            best,
            evaluated=self.evaluated,
            valid=self.valid,
            rejected=sum(result.rejected for result in self.results),
            stop=stop,
            cpu_seconds=math.fsum(result.cpu_seconds for result in self.results),
            wall_seconds=self.wall_seconds,
            lower_bound=min([self.value, *(bound for bound in bounds if bound is not None)]) if proved else None,
            claimed_by=next((result.claimed_by for result in self.results if result.claimed_by), None),
            figures=least.figures | best.figures | {"spaces": float(len(bounds))},
            error=next((result.error for result in self.results if result.error is not None), None),
            history=tuple(history),
        )
