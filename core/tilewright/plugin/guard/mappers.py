"""Guard of mappers."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any

from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.guard.calls import Owner, calling, described, fault, owner_of
from tilewright.plugin.guard.figures import may_bound
from tilewright.plugin.guard.hosted import Hosted
from tilewright.plugin.mapper import FigureReporter, Mapper, Run, Task
from tilewright.schema.mapping import Mapping

EMPTY = 1000
"""Consecutive empty batches after which a mapper has failed."""


class GuardedMapper:
    """A mapper whose proposals are checked. `starters` are its warm-start mappers."""

    def __init__(self, plugin: Mapper, owner: Owner, starters: tuple[Mapper, ...] = ()) -> None:
        self.plugin, self.owner, self.starters = plugin, owner, starters

    def starting_with(self, *starters: Mapper) -> GuardedMapper:
        """Return the mapper with other warm-start mappers, or without any."""
        return GuardedMapper(self.plugin, self.owner, starters)

    def search(self, task: Task, run: Run) -> GuardedProposals:
        with calling(self.owner, "search"):
            proposals: Any = self.plugin.search(task, run)
        if not isinstance(proposals, Generator):
            raise fault(self.owner, f"search returned {described(proposals)}, a generator is expected")
        return GuardedProposals(proposals, self.owner, task)

    def lower_bound(self, run: Run, best: float) -> float | None:
        """Return the lower bound that the mapper left in its run.

        Raises:
            PluginError: It is not a number, or above the cost of the best mapping.
        """
        bound: Any = run.lower_bound
        if bound is not None and not _is_number(bound):
            raise fault(self.owner, f"it proved {described(bound)} as a lower bound, a number is expected")
        if bound is not None and not may_bound(bound, best):
            raise fault(self.owner, f"it proved that nothing costs less than {bound:g}, and found what costs {best:g}")
        return None if bound is None else float(bound)

    def run_figures(self, task: Task, run: Run, mapping: Mapping | None) -> dict[str, float]:
        """Return the figures that the mapper left in its run, with those of the best mapping.

        Raises:
            PluginError: They are not numbers.
        """
        figures: object = run.figures
        if not isinstance(figures, dict):
            raise fault(self.owner, f"it tells {described(figures)} as figures, names with numbers are expected")
        reporter = self.plugin
        if mapping is not None and isinstance(reporter, FigureReporter) and callable(reporter.figures):
            with calling(self.owner, "figures"):
                told: object = reporter.figures(task, mapping)
            if not isinstance(told, dict):
                raise fault(self.owner, f"figures returned {described(told)}, names with numbers are expected")
            figures = figures | told
        for name, value in figures.items():
            if not isinstance(name, str) or not _is_number(value) or not math.isfinite(value):
                raise fault(self.owner, f"the figure {str(name)[:40]!r} that it tells is no finite number")
        return {name: float(value) for name, value in figures.items()}


class GuardedProposals(Generator[Candidates | MappingBatch, Costs, None]):
    """Proposals of a mapper, as arrays."""

    def __init__(self, plugin: Generator[Any, Any, Any], owner: Owner, task: Task) -> None:
        self.plugin, self.owner, self.task = plugin, owner, task
        self.empty = 0

    def send(self, costs: Costs | None) -> Candidates | MappingBatch:
        with calling(self.owner, "search"):
            try:
                proposed = self.plugin.send(costs)
            except StopIteration:
                proposed = None
                ended = True
            else:
                ended = False
        if ended:
            raise StopIteration
        return self._checked(proposed)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> Candidates | MappingBatch:
        raise NotImplementedError("nothing is thrown into a mapper")

    def close(self) -> None:
        with calling(self.owner, "closing the search"):
            self.plugin.close()

    def _checked(self, proposed: object) -> Candidates | MappingBatch:
        with calling(self.owner, "what it proposed"):
            batch = self._arrays(proposed)
            problem = batch.problem if isinstance(batch, MappingBatch) else batch.space.problem
            if problem is not self.task.problem and problem != self.task.problem:
                raise fault(self.owner, f"it proposed mappings of {problem.name}, not of {self.task.problem.name}")
            self.empty = 0 if len(batch) else self.empty + 1
        if self.empty >= EMPTY:
            raise fault(self.owner, f"it proposed nothing {EMPTY:,} times in a row")
        return batch

    def _arrays(self, proposed: object) -> Candidates | MappingBatch:
        if isinstance(proposed, Candidates | MappingBatch):
            return proposed
        if isinstance(proposed, Sequence) and all(isinstance(item, Mapping) for item in proposed):
            return MappingBatch.pack(self.task.problem, proposed)
        raise fault(
            self.owner,
            f"it proposed {described(proposed)}; Candidates, a MappingBatch or a list of Mapping are expected",
        )


def _is_number(value: object) -> bool:
    """Return whether a value is a real number other than NaN."""
    if isinstance(value, bool):
        return False
    try:
        return not isinstance(value, complex | str | bytes) and not math.isnan(float(value))  # type: ignore[arg-type]
    except Exception:  # a third party's number may raise anything
        return False


def guarded_mapper(mapper: Mapper) -> GuardedMapper:
    """Return a mapper behind a guard; a guarded or hosted one is returned unchanged."""
    if isinstance(mapper, GuardedMapper | Hosted):
        return mapper
    return GuardedMapper(mapper, owner_of("mapper", mapper))
