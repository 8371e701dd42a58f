"""Mapper: a generator that proposes mappings and is told their costs; it never sees the cost model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Bounder, Costs, Relaxable
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Objective

Proposals = Generator[Candidates | MappingBatch | Sequence[Mapping], Costs, None]
"""Yields mappings, is sent their costs."""


@dataclass(frozen=True)
class Task:
    """What to map, where, and what to make small. `most_cycles`: mappings that take more are not valid."""

    space: MapSpace
    objective: Objective = "edp"
    most_cycles: float = math.inf

    @property
    def problem(self) -> Problem:
        return self.space.problem

    @property
    def architecture(self) -> Architecture:
        return self.space.architecture


@dataclass(frozen=True)
class Budget:
    """When a search has to stop; None: never for that reason. `patience`: evaluations without a better mapping."""

    evaluations: int | None = None
    seconds: float | None = None
    patience: int | None = None


@dataclass
class Run:
    """What a mapper may know of the search it is part of.

    `rng` is the only source of chance. `remaining_seconds` and `remaining_evaluations` may be handed to a solver;
    `exhausted` is cheap to ask inside long steps. `bounder` and `relaxable` are there if the cost model offers bounds, and a
    relaxation; `starters` are those that the mapper starts with and that have not searched yet (`started`).
    """

    rng: np.random.Generator
    budget: Budget
    clock: Callable[[], float] = time.monotonic
    bounder: Bounder | None = None
    relaxable: Relaxable | None = None
    starters: tuple[Mapper, ...] = ()
    started: float = field(init=False)
    evaluated: int = 0
    lower_bound: float | None = None
    short_of_time: bool = False
    """Set by a mapper that would have done more with more time, but stops before the deadline."""
    curtailed: bool = False
    """A mapper that asked was told that its evaluations have run out."""
    figures: dict[str, float] = field(default_factory=dict)
    """What a mapper has to tell of its search besides, such as a solver's bound; the names are its own."""

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def elapsed_seconds(self) -> float:
        return self.clock() - self.started

    @property
    def remaining_seconds(self) -> float:
        """inf without a deadline."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.elapsed_seconds

    @property
    def remaining_evaluations(self) -> int | None:
        """None without a limit."""
        return None if self.budget.evaluations is None else self.budget.evaluations - self.evaluated

    @property
    def exhausted(self) -> bool:
        """Time or evaluations have run out."""
        left = self.remaining_evaluations
        self.curtailed = self.curtailed or (left is not None and left <= 0)
        return self.curtailed or self.remaining_seconds <= 0

    def prove(self, lower_bound: float) -> None:
        """Record that no mapping of the space costs less than this (in the task's objective). Raises ValueError: NaN."""
        if math.isnan(lower_bound):
            raise ValueError("nan is no lower bound")
        self.lower_bound = max(lower_bound, self.lower_bound or 0.0)


@runtime_checkable
class Mapper(Protocol):
    """What a plugin's factory returns. It holds options only: a search leaves it as it was."""

    def search(self, task: Task, run: Run) -> Proposals:
        """Propose mappings until done, or until the generator is closed.

        The search's time begins when the generator has been returned: what is compiled at first use may be compiled before.
        It may be so in another process, too, where the generator is closed before it begins.
        """
        ...


def started(task: Task, run: Run) -> Generator[Candidates | MappingBatch | Sequence[Mapping], Costs, float]:
    """For `yield from` in a mapper: the search of the next of the mappers that it declares to start with
    (`MapperSpec.starts_with`), each once a run.

    Returns:
        The lowest cost that this finds; inf if it finds nothing, if it cannot search this space, or if no such mapper is left.
    """
    best = math.inf
    if not run.starters:
        return best
    starter, *rest = run.starters
    run.starters = tuple(rest)
    # a space in which it finds no mapping to start from is one for the caller's own search
    with suppress(StopIteration, NotConformableError), closing(starter.search(task, run)) as proposals:
        proposed = next(proposals)
        while True:
            costs = yield proposed
            best = min(best, float(costs.of(task.objective)[costs.valid].min(initial=math.inf)))
            proposed = proposals.send(costs)
    return best


CHUNK = 8192
"""Candidates that `objectives` proposes at once: a few hundredths of a second."""


def objectives(candidates: Candidates, task: Task, run: Run) -> Generator[Candidates, Costs, Floats]:
    """For `yield from` in a mapper: proposes all, and returns the figure to make small of each, [n].

    It is inf where a mapping is invalid, and where the budget was spent before it was evaluated.
    """
    values = np.full(len(candidates), np.inf)
    for start in range(0, len(candidates), CHUNK):
        if run.exhausted:
            break
        part = slice(start, start + CHUNK)
        costs = yield candidates.take(part)
        values[part][: len(costs)] = np.where(costs.valid, costs.of(task.objective), np.inf)
    return values
