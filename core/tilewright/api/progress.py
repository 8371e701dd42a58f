"""Progress bars on stderr, for terminals and notebooks: who is at what, the best so far, how much is left."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tilewright.errors import InputError
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress
from tilewright.run.network import Watch
from tilewright.run.sweep import SweepPoint
from tilewright.schema.workload import DistinctProblem, Workload
from tilewright.tables import figure

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


def is_shown(progress: bool | None) -> bool:
    """None: in a terminal, and in a notebook that has ipywidgets. Raises InputError."""
    if progress not in (True, False, None):
        raise InputError(f"progress is True, False or None, not {progress!r}")
    if progress is not None:
        return bool(progress)
    notebook = "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or notebook


class MappingBar:
    """What is known of all layers of a run; several may be searched at once."""

    def __init__(self, workload: Workload, budget: Budget, bar: RichProgress) -> None:
        problems = [distinct.problem for distinct in workload.distinct()]
        self.number = {problem.name: index for index, problem in enumerate(problems)}
        self.shares = [0.0] * len(problems)
        self.evaluated = [0] * len(problems)
        self.budget, self.bar = budget, bar
        self.task = bar.add_task("starting", total=float(len(problems)), best="-", rate="-")
        self.started = time.monotonic()

    def watch(self, distinct: DistinctProblem, progress: Progress) -> None:
        """One layer got on."""
        index = self.number[distinct.problem.name]
        if self.shares[index] < 1:  # another process may tell late
            self.shares[index] = _share(progress, self.budget)
            self.evaluated[index] = progress.evaluated
            self._show(f"{distinct.problem.name} ({index + 1}/{len(self.shares)})", figure(progress.best))

    def done(self, distinct: DistinctProblem) -> None:
        """One layer is finished."""
        self.shares[self.number[distinct.problem.name]] = 1.0
        self._show(f"{distinct.problem.name} done", "-")

    def _show(self, text: str, best: str) -> None:
        rate = figure(round(sum(self.evaluated) / max(1e-9, time.monotonic() - self.started)))
        self.bar.update(self.task, description=text, completed=sum(self.shares), best=best, rate=rate)


class SweepBar:
    """How many searches of a sweep are done."""

    def __init__(self, workload: Workload, points: Sequence[SweepPoint], bar: RichProgress) -> None:
        self.names = [distinct.problem.name for distinct in workload.distinct()]
        self.points, self.bar = points, bar
        self.task = bar.add_task("starting", total=len(self.names) * len(points))

    def watch(self, point: SweepPoint) -> Watch:
        """What is told of the searches of one point."""
        begun = self.points.index(point) * len(self.names)

        def tell(distinct: DistinctProblem, progress: Progress) -> None:
            text = f"{point.mapper} by {point.model}: {distinct.problem.name}, best {figure(progress.best)}"
            self.bar.update(self.task, description=text, completed=begun + self.names.index(distinct.problem.name))

        return tell


@contextmanager
def mapping_bar(workload: Workload, budget: Budget, progress: bool | None) -> Iterator[MappingBar | None]:
    """A bar while layers are mapped; None where none is shown."""
    if not is_shown(progress):
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("best {task.fields[best]}"), TextColumn("{task.fields[rate]}/s"), TimeRemainingColumn())
    with _bar(BarColumn(), *columns) as bar:
        yield MappingBar(workload, budget, bar)


@contextmanager
def sweep_bar(workload: Workload, points: Sequence[SweepPoint], progress: bool | None) -> Iterator[SweepBar | None]:
    """A bar while mappers are compared; None where none is shown."""
    if not is_shown(progress):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn

    with _bar(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as bar:
        yield SweepBar(workload, points, bar)


def _bar(*columns: object) -> RichProgress:
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    console = Console(stderr=True)
    transient = console.is_terminal  # elsewhere the last state is all that is seen
    return Progress(TextColumn("{task.description}"), *columns, console=console, transient=transient)  # type: ignore[arg-type]


def _share(progress: Progress, budget: Budget) -> float:
    """How much of a layer's budget is spent."""
    shares = [0.0]
    if budget.evaluations:
        shares.append(progress.evaluated / budget.evaluations)
    if budget.seconds:
        shares.append(progress.elapsed_seconds / budget.seconds)
    return min(0.999, max(shares))
