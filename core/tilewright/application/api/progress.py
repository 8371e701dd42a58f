"""Progress on stderr: a bar in terminals and notebooks, elsewhere a line every few seconds.

It shows the current layer, mapper and model, the best result so far, and the remaining work.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from tilewright.application.run.network import Watch
from tilewright.application.run.sweep import SweepPoint
from tilewright.compiled import functions_compiled
from tilewright.errors import printable
from tilewright.formats import quantity
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress
from tilewright.schema.objective import Objective
from tilewright.schema.workload import DistinctProblem, Workload

SECONDS = 5.0
"""Seconds between two lines."""


def is_shown(progress: bool | None) -> bool:
    """Return whether to show progress.

    None means: in a terminal, or in a notebook with ipywidgets.
    """
    return _has_bars() if progress is None else progress


def _has_bars() -> bool:
    notebook = "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or notebook


class Display(Protocol):
    """Output for progress."""

    def show(self, done: float, what: str, note: str = "") -> None:
        """Show that `done` of the total is finished, and that `what` is in progress."""
        ...


class Lines:
    """Progress as a line every few seconds, for files and pipes. A shorter run prints nothing."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.started = self.said = time.monotonic()

    def show(self, done: float, what: str, note: str = "") -> None:
        now = time.monotonic()
        if now - self.said >= SECONDS:
            self.said = now
            so_far = f"{now - self.started:.0f} s, {int(done)} of {self.total} {self.what} done"
            print(
                printable(f"{so_far}; {', '.join(part for part in (what, note) if part)}"), file=sys.stderr, flush=True
            )


@contextmanager
def _display(total: int, what: str) -> Iterator[Display]:
    if not _has_bars():
        yield Lines(total, what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Note(ProgressColumn):
        """The best result, or until the first result the number of functions that were compiled."""

        def render(self, task: Task) -> Text:
            compiled = 0 if task.completed else functions_compiled()
            return Text(task.fields["note"] or (f"{compiled} functions compiled" if compiled else ""))

    class Left(ProgressColumn):
        """The time that is left, if it is known."""

        def render(self, task: Task) -> Text:
            left = task.time_remaining
            return Text("elapsed" if left is None else f"elapsed, {timedelta(seconds=int(left))} left")

    name = TextColumn("{task.description}", markup=False)  # names may contain brackets
    columns = name, BarColumn(bar_width=20), Note(), TimeElapsedColumn(), Left()
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=float(total), note="")

        class Bar:
            def show(self, done: float, what: str, note: str = "") -> None:
                bar.update(task, description=printable(what), completed=done, note=printable(note))

        yield Bar()


@contextmanager
def fitting_progress(fits: int, progress: bool | None) -> Iterator[Display | None]:
    """Show the fits of a calibration; None if progress is not shown."""
    with counted_progress(fits, "fits", progress) as display:
        yield display


@contextmanager
def counted_progress(total: int, what: str, progress: bool | None) -> Iterator[Display | None]:
    """Show how many of some steps are done, such as fits; None if progress is not shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(total, what) as display:
        yield display


@contextmanager
def sampling_progress(workload: Workload, samples: int, progress: bool | None) -> Iterator[Callable[[str, int], None]]:
    """Show progress while sampled mappings are evaluated; the yielded function takes a layer and its evaluated mappings."""
    if not is_shown(progress):
        yield lambda layer, done: None
        return
    names = [distinct.problem.name for distinct in workload.distinct()]
    with _display(len(names), "layers") as display:
        yield lambda layer, done: display.show(names.index(layer) + done / samples, layer, f"{done:,} mappings")


class MappingProgress:
    """Progress of all layers of a run. Several may be searched at once."""

    def __init__(self, workload: Workload, budget: Budget, objective: Objective, display: Display) -> None:
        problems = [distinct.problem for distinct in workload.distinct()]
        self.number = {problem.name: index for index, problem in enumerate(problems)}
        self.shares = [0.0] * len(problems)
        self.evaluated = [0] * len(problems)
        self.budget, self.objective, self.display = budget, objective, display
        self.started: float | None = None
        """When the first search began: after compiling, which would spoil the rate."""

    def watch(self, distinct: DistinctProblem, progress: Progress) -> None:
        """Record progress of one layer."""
        if self.started is None:
            self.started = time.monotonic() - progress.elapsed_seconds
        index = self.number[distinct.problem.name]
        if self.shares[index] < 1:  # reports of other processes may arrive late
            self.shares[index] = _share(progress, self.budget)
            self.evaluated[index] = progress.evaluated
            self._show(f"{distinct.problem.name} ({index + 1}/{len(self.shares)})", _best(progress, self.objective))

    def done(self, distinct: DistinctProblem) -> None:
        """Record that one layer is finished."""
        self.shares[self.number[distinct.problem.name]] = 1.0
        self._show(f"{distinct.problem.name} done", "")

    def _show(self, what: str, best: str) -> None:
        count = sum(self.evaluated)
        seconds = 0.0 if self.started is None else time.monotonic() - self.started
        rate = f"{count / max(1e-9, seconds):,.0f} mappings/s" if count else ""
        self.display.show(sum(self.shares), what, ", ".join(part for part in (best, rate) if part))


class SweepProgress:
    """Number of finished searches of a sweep."""

    def __init__(
        self, workload: Workload, points: Sequence[SweepPoint], objective: Objective, display: Display
    ) -> None:
        self.names = [distinct.problem.name for distinct in workload.distinct()]
        self.points, self.objective, self.display = points, objective, display

    def watch(self, point: SweepPoint) -> Watch:
        """Return an observer for the searches of one point."""
        begun = self.points.index(point) * len(self.names)

        def tell(distinct: DistinctProblem, progress: Progress) -> None:
            what = f"{point.mapper} by {point.model}: {distinct.problem.name}"
            done = begun + self.names.index(distinct.problem.name)
            self.display.show(done, what, _best(progress, self.objective))

        return tell


class ExplorationProgress:
    """Number of finished points of an exploration, and the best so far."""

    def __init__(self, objective: Objective, display: Display) -> None:
        self.objective, self.display = objective, display

    def watch(self, done: float, what: str, best: float | None) -> None:
        """Record that `done` points are finished and that `what` is in progress."""
        self.display.show(done, what, "" if best is None else f"best {quantity(best, self.objective.unit)}")


@contextmanager
def mapping_progress(
    workload: Workload, budget: Budget, objective: Objective, progress: bool | None
) -> Iterator[MappingProgress | None]:
    """Show progress while layers are mapped; yield None if nothing is shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(len(workload.distinct()), "layers") as display:
        yield MappingProgress(workload, budget, objective, display)


@contextmanager
def sweep_progress(
    workload: Workload, points: Sequence[SweepPoint], objective: Objective, progress: bool | None
) -> Iterator[SweepProgress | None]:
    """Show progress while mappers are compared; yield None if nothing is shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(len(workload.distinct()) * len(points), "searches") as display:
        yield SweepProgress(workload, points, objective, display)


@contextmanager
def exploration_progress(
    points: int, objective: Objective, progress: bool | None
) -> Iterator[ExplorationProgress | None]:
    """Show progress while architectures are explored; yield None if nothing is shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(points, "points") as display:
        yield ExplorationProgress(objective, display)


def _best(progress: Progress, objective: Objective) -> str:
    return f"best {quantity(progress.best, objective.unit)}"


def _share(progress: Progress, budget: Budget) -> float:
    """Return the used fraction of a layer's budget."""
    shares = [0.0]
    if budget.evaluations:
        shares.append(progress.evaluated / budget.evaluations)
    if budget.seconds:
        shares.append(progress.elapsed_seconds / budget.seconds)
    return min(0.999, max(shares))
