"""Progress on stderr, for terminals and notebooks a bar, elsewhere a line every few seconds: who is at what, the best so far,
how much is left."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from tilewright.errors import InputError, printable
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress
from tilewright.run.network import Watch
from tilewright.run.sweep import SweepPoint
from tilewright.schema.report import UNITS, Objective
from tilewright.schema.workload import DistinctProblem, Workload
from tilewright.tables import quantity

SECONDS = 5.0
"""Between two lines."""


def is_shown(progress: bool | None) -> bool:
    """None: in a terminal, and in a notebook that has ipywidgets. Raises InputError."""
    if progress not in (True, False, None):
        raise InputError(f"progress is True, False or None, not {progress!r}")
    return _has_bars() if progress is None else bool(progress)


def _has_bars() -> bool:
    notebook = "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or notebook


class Display(Protocol):
    """Where progress is seen."""

    def show(self, done: float, what: str, note: str = "") -> None:
        """So much of the total is done, `what` is under way."""
        ...


class Lines:
    """A line every few seconds, for files and pipes; a run that is done before that says nothing."""

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
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    name = TextColumn("{task.description}", markup=False)  # names may hold brackets
    texts = name, BarColumn(bar_width=20), TextColumn("{task.fields[note]}", markup=False)
    columns = (*texts, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=float(total), note="")

        class Bar:
            def show(self, done: float, what: str, note: str = "") -> None:
                bar.update(task, description=printable(what), completed=done, note=printable(note))

        yield Bar()


class MappingProgress:
    """What is known of all layers of a run; several may be searched at once."""

    def __init__(self, workload: Workload, budget: Budget, objective: Objective, display: Display) -> None:
        problems = [distinct.problem for distinct in workload.distinct()]
        self.number = {problem.name: index for index, problem in enumerate(problems)}
        self.shares = [0.0] * len(problems)
        self.evaluated = [0] * len(problems)
        self.budget, self.objective, self.display = budget, objective, display
        self.started = time.monotonic()

    def watch(self, distinct: DistinctProblem, progress: Progress) -> None:
        """One layer got on."""
        index = self.number[distinct.problem.name]
        if self.shares[index] < 1:  # another process may tell late
            self.shares[index] = _share(progress, self.budget)
            self.evaluated[index] = progress.evaluated
            self._show(f"{distinct.problem.name} ({index + 1}/{len(self.shares)})", _best(progress, self.objective))

    def done(self, distinct: DistinctProblem) -> None:
        """One layer is finished."""
        self.shares[self.number[distinct.problem.name]] = 1.0
        self._show(f"{distinct.problem.name} done", "")

    def _show(self, what: str, best: str) -> None:
        rate = f"{sum(self.evaluated) / max(1e-9, time.monotonic() - self.started):,.0f} mappings/s"
        self.display.show(sum(self.shares), what, ", ".join(part for part in (best, rate) if part))


class SweepProgress:
    """How many searches of a sweep are done."""

    def __init__(
        self, workload: Workload, points: Sequence[SweepPoint], objective: Objective, display: Display
    ) -> None:
        self.names = [distinct.problem.name for distinct in workload.distinct()]
        self.points, self.objective, self.display = points, objective, display

    def watch(self, point: SweepPoint) -> Watch:
        """What is told of the searches of one point."""
        begun = self.points.index(point) * len(self.names)

        def tell(distinct: DistinctProblem, progress: Progress) -> None:
            what = f"{point.mapper} by {point.model}: {distinct.problem.name}"
            done = begun + self.names.index(distinct.problem.name)
            self.display.show(done, what, _best(progress, self.objective))

        return tell


class ExplorationProgress:
    """How many points of an exploration are judged, and the best so far."""

    def __init__(self, objective: Objective, display: Display) -> None:
        self.objective, self.display = objective, display

    def watch(self, done: float, what: str, best: float | None) -> None:
        """So many points are done, `what` is under way."""
        self.display.show(done, what, "" if best is None else f"best {quantity(best, UNITS[self.objective])}")


@contextmanager
def mapping_progress(
    workload: Workload, budget: Budget, objective: Objective, progress: bool | None
) -> Iterator[MappingProgress | None]:
    """While layers are mapped; None where nothing is shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(len(workload.distinct()), "layers") as display:
        yield MappingProgress(workload, budget, objective, display)


@contextmanager
def sweep_progress(
    workload: Workload, points: Sequence[SweepPoint], objective: Objective, progress: bool | None
) -> Iterator[SweepProgress | None]:
    """While mappers are compared; None where nothing is shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(len(workload.distinct()) * len(points), "searches") as display:
        yield SweepProgress(workload, points, objective, display)


@contextmanager
def exploration_progress(
    points: int, objective: Objective, progress: bool | None
) -> Iterator[ExplorationProgress | None]:
    """While machines are explored; None where nothing is shown."""
    if not is_shown(progress):
        yield None
        return
    with _display(points, "points") as display:
        yield ExplorationProgress(objective, display)


def _best(progress: Progress, objective: Objective) -> str:
    return f"best {quantity(progress.best, UNITS[objective])}"


def _share(progress: Progress, budget: Budget) -> float:
    """How much of a layer's budget is spent."""
    shares = [0.0]
    if budget.evaluations:
        shares.append(progress.evaluated / budget.evaluations)
    if budget.seconds:
        shares.append(progress.elapsed_seconds / budget.seconds)
    return min(0.999, max(shares))
