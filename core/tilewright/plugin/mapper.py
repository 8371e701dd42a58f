"""Interface of mappers: generators that propose mappings and receive their costs, without the cost model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from tilewright.errors import NotConformableError, NoValidMappingError
from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Bounder, Costs, Relaxable
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import EDP, Objective
from tilewright.schema.problem import Problem

Proposals = Generator[Candidates | MappingBatch | Sequence[Mapping], Costs, None]
"""Generator that yields mappings and receives their costs."""


@dataclass(frozen=True)
class Task:
    """Map space and objective of a search. Mappings with more than `most_cycles` cycles are invalid.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Task
        >>> task = Task(tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss"))
        >>> task.objective.name, task.problem.macs
        ('edp', 24)
    """

    space: MapSpace
    objective: Objective = EDP
    most_cycles: float = math.inf

    @property
    def problem(self) -> Problem:
        return self.space.problem

    @property
    def architecture(self) -> Architecture:
        return self.space.architecture


@dataclass(frozen=True)
class Budget:
    """Budget of a search; None: no limit. `patience` counts evaluations without a better mapping.

    Example:
        >>> import tilewright as tw
        >>> tw.Budget(evaluations=100).seconds is None
        True
    """

    evaluations: int | None = None
    seconds: float | None = None
    patience: int | None = None


@dataclass
class Run:
    """State of a search that its mapper may use.

    Attributes:
        rng: Only source of randomness.
        bounder, relaxable: Bounds and relaxation of the cost model, if it offers them.
        starters: Declared warm-start mappers that have not searched yet (`started`).
        known: Objective of a mapping from elsewhere. Mappings that cost more need no proof.
        start: Objective of a known mapping of this space, likely near the best; `known` is no higher.
        remaining_seconds, remaining_evaluations: The rest of the budget, for example for a solver.
        exhausted: Check for long steps; it is cheap.

    Example:
        >>> import numpy as np
        >>> from tilewright.plugin import Budget, Run
        >>> run = Run(np.random.default_rng(0), Budget(evaluations=10))
        >>> run.prove(3.0)
        >>> run.lower_bound, run.remaining_evaluations, run.exhausted
        (3.0, 10, False)
    """

    rng: np.random.Generator
    budget: Budget
    clock: Callable[[], float] = time.monotonic
    bounder: Bounder | None = None
    relaxable: Relaxable | None = None
    starters: tuple[Mapper, ...] = ()
    known: float = math.inf
    start: float = math.inf
    started: float = field(init=False)
    evaluated: int = 0
    lower_bound: float | None = None
    short_of_time: bool = False
    """Set by a mapper that stops before the deadline for lack of time."""
    curtailed: bool = False
    """Set if the mapper found that its evaluations were used up."""
    figures: dict[str, float] = field(default_factory=dict)
    """Further figures of the mapper, such as a solver's bound; the names are its own."""

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def elapsed_seconds(self) -> float:
        return self.clock() - self.started

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the deadline; inf without one."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.elapsed_seconds

    @property
    def remaining_evaluations(self) -> int | None:
        """Evaluations until the limit; None without one."""
        return None if self.budget.evaluations is None else self.budget.evaluations - self.evaluated

    @property
    def exhausted(self) -> bool:
        """Whether time or evaluations are used up."""
        left = self.remaining_evaluations
        self.curtailed = self.curtailed or (left is not None and left <= 0)
        return self.curtailed or self.remaining_seconds <= 0

    def prove(self, lower_bound: float) -> None:
        """Record a lower bound on the objective of all mappings in the space.

        Raises:
            ValueError: The bound is NaN.
        """
        if math.isnan(lower_bound):
            raise ValueError("nan is no lower bound")
        self.lower_bound = max(lower_bound, self.lower_bound or 0.0)


@runtime_checkable
class Mapper(Protocol):
    """Product of a mapper's factory. It contains options only; a search does not change it.

    Example:
        >>> from tilewright.plugin import Mapper, MapperSpec, installed
        >>> isinstance(installed().make(MapperSpec, "random"), Mapper)
        True
    """

    def search(self, task: Task, run: Run) -> Proposals:
        """Propose mappings until done, or until the generator is closed.

        The clock of the search starts when this method has returned the generator. It may therefore compile kernels
        first. To compile them in parallel, another process may call it and close the generator at once.
        """
        ...


@runtime_checkable
class FigureReporter(Protocol):
    """A mapper that describes the best mapping of each search.

    Example:
        >>> from tilewright.plugin import FigureReporter
        >>> class Mine:
        ...     def figures(self, task, best):
        ...         return {"restarts": 3.0}
        >>> isinstance(Mine(), FigureReporter)
        True
    """

    def figures(self, task: Task, best: Mapping) -> dict[str, float]:
        """Return figures of a mapping of `task.space`; they join `Run.figures`."""
        ...


def started(task: Task, run: Run) -> Generator[Candidates | MappingBatch | Sequence[Mapping], Costs, float]:
    """Search with the next declared warm-start mapper, by `yield from` in a mapper.

    Each mapper in `MapperSpec.starts_with` searches once per run.

    Returns:
        The lowest cost found; inf if there is none, or no such mapper is left.

    Example:
        >>> from tilewright.plugin import started
        >>> class Mine:
        ...     def search(self, task, run):
        ...         best = yield from started(task, run)
        >>> callable(Mine().search)
        True
    """
    best = math.inf
    if not run.starters:
        return best
    starter, *rest = run.starters
    run.starters = tuple(rest)
    # without a start, the caller's own search begins
    with (
        suppress(StopIteration, NotConformableError, NoValidMappingError),
        closing(starter.search(task, run)) as proposals,
    ):
        proposed = next(proposals)
        while True:
            costs = yield proposed
            best = min(best, float(costs.of(task.objective)[costs.valid].min(initial=math.inf)))
            proposed = proposals.send(costs)
    return best


CHUNK = 8192
"""Candidates that `objectives` proposes at once; a few hundredths of a second."""


def objectives(candidates: Candidates, task: Task, run: Run) -> Generator[Candidates, Costs, Floats]:
    """Propose all candidates and return their objectives, [n], by `yield from` in a mapper.

    Invalid mappings, and mappings beyond the budget, have inf.

    Example:
        >>> from tilewright.plugin import objectives
        >>> class Mine:
        ...     def search(self, task, run):
        ...         values = yield from objectives(task.space.sample(run.rng, 8), task, run)
        >>> callable(Mine().search)
        True
    """
    values = np.full(len(candidates), np.inf)
    for start in range(0, len(candidates), CHUNK):
        if run.exhausted:
            break
        part = slice(start, start + CHUNK)
        costs = yield candidates.take(part)
        values[part][: len(costs)] = np.where(costs.valid, costs.of(task.objective), np.inf)
    return values
