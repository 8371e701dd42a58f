"""The progress bar of `map`: layer, best so far, mappings per second, time left."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tilewright.cli.common import figure
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress as SearchProgress
from tilewright.schema.workload import DistinctProblem, Workload


class Bar:
    """What is known of all layers; several may be searched at once."""

    def __init__(self, workload: Workload, budget: Budget, bar: Progress) -> None:
        problems = [distinct.problem for distinct in workload.distinct()]
        self.number = {problem.name: index for index, problem in enumerate(problems)}
        self.shares = [0.0] * len(problems)
        self.evaluated = [0] * len(problems)
        self.budget, self.bar = budget, bar
        self.task = bar.add_task("starting", total=float(len(problems)), best="-", rate="-")
        self.started = time.monotonic()

    def watch(self, distinct: DistinctProblem, progress: SearchProgress) -> None:
        """One layer got on."""
        index = self.number[distinct.problem.name]
        if self.shares[index] < 1:  # another process may tell late
            self.shares[index] = _share(progress, self.budget)
            self.evaluated[index] = progress.evaluated
            best = "-" if math.isinf(progress.best) else figure(progress.best)
            self._show(f"{distinct.problem.name} ({index + 1}/{len(self.shares)})", best)

    def done(self, distinct: DistinctProblem) -> None:
        """One layer is finished."""
        self.shares[self.number[distinct.problem.name]] = 1.0
        self._show(f"{distinct.problem.name} done", "-")

    def _show(self, text: str, best: str) -> None:
        rate = figure(round(sum(self.evaluated) / max(1e-9, time.monotonic() - self.started)))
        self.bar.update(self.task, description=text, completed=sum(self.shares), best=best, rate=rate)


@contextmanager
def watching(workload: Workload, budget: Budget) -> Iterator[Bar | None]:
    """A bar on stderr while mapping; nothing when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("best {task.fields[best]}"),
        TextColumn("{task.fields[rate]}/s"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        yield Bar(workload, budget, bar)


def _share(progress: SearchProgress, budget: Budget) -> float:
    """How much of a layer's budget is spent."""
    shares = [0.0]
    if budget.evaluations:
        shares.append(progress.evaluated / budget.evaluations)
    if budget.seconds:
        shares.append(progress.elapsed_seconds / budget.seconds)
    return min(0.999, max(shares))
