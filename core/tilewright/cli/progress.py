"""The progress bar of `map`: layer, best so far, mappings per second, time left."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tilewright.cli.common import figure
from tilewright.mapper import Budget
from tilewright.search import Progress as SearchProgress
from tilewright.workload import DistinctProblem, Workload


@contextmanager
def watching(workload: Workload, budget: Budget) -> Iterator[Callable[[DistinctProblem, SearchProgress], None] | None]:
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
    problems = [distinct.problem for distinct in workload.distinct()]
    number = {problem.name: index for index, problem in enumerate(problems)}
    evaluated = [0] * len(problems)
    started = time.monotonic()
    with bar:
        task = bar.add_task("starting", total=float(len(problems)), best="-", rate="-")

        def watch(distinct: DistinctProblem, progress: SearchProgress) -> None:
            index = number[distinct.problem.name]
            evaluated[index] = progress.evaluated
            bar.update(
                task,
                description=f"{distinct.problem.name} ({index + 1}/{len(problems)})",
                completed=index + _share(progress, budget),
                best="-" if math.isinf(progress.best) else figure(progress.best),
                rate=figure(round(sum(evaluated) / max(1e-9, time.monotonic() - started))),
            )

        yield watch


def _share(progress: SearchProgress, budget: Budget) -> float:
    """How much of a layer's budget is spent."""
    shares = [0.0]
    if budget.evaluations:
        shares.append(progress.evaluated / budget.evaluations)
    if budget.seconds:
        shares.append(progress.elapsed_seconds / budget.seconds)
    return min(1.0, max(shares))
