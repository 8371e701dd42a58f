"""A proof of `optimal` compared with the enumeration of the same task."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal
from unittest import mock

import numpy as np

import tilewright
from support.proofs.drawing import Inputs, storage_orders
from support.proofs.enumeration import Enumeration, TooLargeError
from tilewright.application.run.search import search
from tilewright.application.run.union import search_union
from tilewright.errors import NoValidMappingError, TilewrightError
from tilewright.mapspace.arrangements import arrangements
from tilewright.mapspace.batch import Floats, Ints
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import ENERGY, Objective
from tilewright_mappers.optimal import mapper, staged_search
from tilewright_mappers.optimal.kernel.structures import FanoutLevel
from tilewright_mappers.optimal.search_instance import SearchInstance
from tilewright_mappers.optimal.staged_search import StagedSearch
from tilewright_mappers.optimal.state_tables import States

ROUNDING = 1e-9
"""Relative difference of two equal costs."""
PROVED = 1e-8
"""Relative gap below which an optimum counts as proved."""

Status = Literal["proved", "gap left", "no valid mapping", "no mapping", "too large", "refused"]


@dataclass(frozen=True)
class Verdict:
    """One task's outcome. `wrong`: every statement that the enumeration contradicts; `cost`: the least cost of all mappings."""

    status: Status
    wrong: tuple[str, ...] = ()
    cost: float = math.inf
    mappings: int = 0
    best: dict[str, Any] | None = None


def check(
    inputs: Inputs, limit: int, *, capped: bool = False, relaxed: bool = False, parts: bool = False, **options: int
) -> Verdict:
    """Compare the proof of a task with its enumeration: as users run it, and without the heuristic starts.

    Args:
        inputs: the task.
        limit: more mappings than this are not enumerated.
        capped: limit the cycles to those of a drawn mapping, and minimise energy.
        relaxed: undercounted states dominate in every pass.
        parts: one fanout is searched in parts.
        options: of the mapper.
    """
    try:
        every = Enumeration(inputs, 4 * limit)
    except TooLargeError:
        return Verdict("too large")
    if every.size > limit:
        return Verdict("too large")
    try:
        space = tilewright.space(inputs.problem, arch=inputs.architecture, constraints=inputs.constraints)
        model = installed().make(CostModelSpec, "timeloop", inputs.model_options)
        evaluator = model.bind(space.problem, space.architecture)
    except TilewrightError:
        return Verdict("refused")
    wrong = [] if space.size == every.size else [f"the map space has {space.size} mappings, not {every.size}"]
    if every.size == 0:
        return Verdict("no mapping", tuple(wrong))
    task, best = Task(space, Objective.named(inputs.objective)), None
    if capped:
        task = Task(space, ENERGY, _some_cycles(every, evaluator, inputs.seed))
    least = math.inf
    dense = model.bind(space.problem, dense_hardware(space.architecture))
    for batch in every.batches():
        # a map space limits tiles by their words without zeros
        costs = np.where(dense.evaluate_batch(batch).valid, _costs(evaluator, batch, task), np.inf)
        if costs.min() < least:
            least, best = float(costs.min()), batch[int(costs.argmin())].to_data()
    with (
        relaxed_dominance() if relaxed else contextlib.nullcontext(),
        fanout_in_parts(inputs.seed) if parts else contextlib.nullcontext(),
    ):
        proved, contradictions = check_against(least, task, evaluator, inputs.seed, **options)
    status: Status = "no valid mapping" if best is None else "proved" if proved else "gap left"
    return Verdict(status, (*wrong, *contradictions), least, every.size, best)


def check_each(inputs: Inputs, width: int) -> Verdict:
    """Compare the bound of each complete mapping with its cost. No state dominates another one.

    Args:
        inputs: the task.
        width: states kept per stage; beyond it those of the lowest bounds are.
    """
    try:
        space = tilewright.space(inputs.problem, arch=inputs.architecture, constraints=inputs.constraints)
        model = installed().make(CostModelSpec, "timeloop", inputs.model_options)
        evaluator: Any = model.bind(space.problem, space.architecture)
        objective = Objective.named(inputs.objective)
        instance = SearchInstance(space, evaluator.relaxation(space.skeleton, space.keeps), objective)
    except TilewrightError:
        return Verdict("refused")
    complete = StagedSearch(instance.without_dominance(), sys.float_info.max, width, lambda: False).run()
    if not len(complete.bounds):
        return Verdict("no mapping")
    costs = evaluator.evaluate_candidates(complete.candidates).of(objective)
    wrong = np.flatnonzero(complete.bounds > costs * (1 + ROUNDING))
    said = tuple(f"bound {complete.bounds[i]} of a mapping that costs {costs[i]}" for i in wrong[:5])
    return Verdict("proved", said, float(costs.min()), len(costs))


def dense_hardware(architecture: Architecture) -> Architecture:
    """Return the architecture without its sparse parts."""
    compute = architecture.compute.model_copy(update={"sparse": None})
    memories = architecture.with_memories(lambda memory: memory.model_copy(update={"sparse": None}))
    return memories.model_copy(update={"compute": compute})


def check_uneven(inputs: Inputs, limit: int) -> Verdict:
    """Compare the proof of an uneven space with the enumerations of all orders of storage entries.

    Args:
        inputs: the task; its storage rules are replaced.
        limit: more mappings in all orders than this are not enumerated.
    """
    (rules,) = inputs.constraints["variants"]
    orders = [
        storage_orders(inputs.problem, cluster, rules)
        for cluster in inputs.architecture["clusters"][1:]
        if "memories" in cluster
    ]
    combinations = list(itertools.product(*(order for order in orders if order)))
    if len(combinations) > 40:
        return Verdict("too large")
    every: list[Enumeration] = []
    try:
        for chosen in combinations:
            variant = rules | {"storage": chosen}
            every.append(Enumeration(replace(inputs, constraints=inputs.constraints | {"variants": [variant]}), limit))
            if sum(enumeration.size for enumeration in every) > limit:
                return Verdict("too large")
        if not any(enumeration.size for enumeration in every):
            return Verdict("no mapping")
        plain = inputs.constraints | {"variants": [{name: rule for name, rule in rules.items() if name != "storage"}]}
        space = tilewright.space(inputs.problem, arch=inputs.architecture, constraints=plain)
        evaluator = (
            installed().make(CostModelSpec, "timeloop", inputs.model_options).bind(space.problem, space.architecture)
        )
        tasks = [Task(part, Objective.named(inputs.objective)) for part in arrangements(space)]
    except TooLargeError:
        return Verdict("too large")
    except TilewrightError:
        return Verdict("refused")
    batches = (batch for enumeration in every for batch in enumeration.batches())
    least = min(
        (float(_costs(evaluator, batch, tasks[0]).min(initial=math.inf)) for batch in batches), default=math.inf
    )
    result = search_union(installed().make(MapperSpec, "optimal"), tasks, evaluator, Budget(), seed=inputs.seed)
    proved = result.gap is not None and result.gap < PROVED
    status: Status = "no valid mapping" if math.isinf(least) else "proved" if proved else "gap left"
    return Verdict(status, tuple(_contradictions(result, least)), least, sum(enumeration.size for enumeration in every))


def check_against(
    least: float, task: Task, evaluator: Evaluator, seed: int, **options: int
) -> tuple[bool, tuple[str, ...]]:
    """Return whether `optimal` proves an optimum, and every statement that contradicts the least cost of all mappings.

    It searches twice: as users run it, and without the heuristic starts, which find the optimum of many small tasks.
    """
    proved, wrong = False, []
    for starts in (True, False):
        with contextlib.nullcontext() if starts else without_starts():
            result = search(installed().make(MapperSpec, "optimal", options), task, evaluator, Budget(), seed=seed)
        may_miss = not starts and "width" in options
        contradictions = _contradictions(result, least, may_miss)
        wrong += [f"{'as run' if starts else 'without starts'}: {contradiction}" for contradiction in contradictions]
        proved |= result.gap is not None and result.gap < PROVED
    return proved, tuple(wrong)


def _contradictions(result: Result, least: float, may_miss: bool = False) -> Iterator[str]:
    """Yield what a result states and the least cost contradicts.

    Args:
        may_miss: the search may find nothing, because a small width drops states and no start mapping replaces them.
    """
    if result.error is not None and not (isinstance(result.error, NoValidMappingError) and math.isinf(least)):
        yield f"it failed: {result.error}"
    elif result.best is None and math.isfinite(least) and not may_miss:
        yield f"it found nothing, a mapping costs {least}"
    elif result.value < least * (1 - ROUNDING):
        yield f"it found {result.value}, no enumerated mapping costs less than {least}"
    if result.lower_bound is not None and result.lower_bound > least * (1 + ROUNDING):
        yield f"it proved {result.lower_bound}, a mapping costs {least}"
    if result.gap is not None and result.gap < PROVED and result.value > least * (1 + PROVED):
        yield f"it proved {result.value} optimal, a mapping costs {least}"


def _costs(evaluator: Evaluator, batch: Any, task: Task) -> Floats:
    costs = evaluator.evaluate_batch(batch).within(task.most_cycles)
    return np.asarray(np.where(costs.valid, costs.of(task.objective), np.inf))


def _some_cycles(every: Enumeration, evaluator: Evaluator, seed: int) -> float:
    """Cycles of some valid mapping; inf where there is none."""
    for batch in every.batches():
        costs = evaluator.evaluate_batch(batch)
        cycles = np.unique(costs.cycles[costs.valid])
        if len(cycles):
            return float(cycles[seed % len(cycles)])
    return math.inf


@contextlib.contextmanager
def without_starts(known: float = math.inf) -> Iterator[None]:
    """Leave `optimal` its staged search alone: no descent from drawn mappings, no other mapper to start with.

    Args:
        known: a cost above that of the best mapping, below which the search looks.
    """

    def descend(rows: Any, best: float, task: Any, run: Any) -> Generator[Any, Any, float]:
        yield from ()
        return min(best, known)

    def started(task: Any, run: Any) -> Generator[Any, Any, float]:
        yield from ()
        run.starters = ()
        return math.inf

    with mock.patch.object(mapper, "_descend", descend), mock.patch.object(mapper, "started", started):
        yield


@contextlib.contextmanager
def relaxed_dominance() -> Iterator[None]:
    """Let undercounted states dominate in every pass of `optimal`, not only after a truncation."""

    def instance_of(*arguments: Any) -> SearchInstance:
        instance = SearchInstance(*arguments)
        return instance.with_relaxed_dominance() if instance.may_relax else instance

    with mock.patch.object(mapper, "SearchInstance", instance_of):
        yield


@contextlib.contextmanager
def fanout_in_parts(drawn: int) -> Iterator[None]:
    """Search one fanout in parts in every pass, not only where its states do not fit.

    Args:
        drawn: any number; it chooses one of the fanouts that unroll a dimension.
    """
    start, unroll = StagedSearch.__init__, StagedSearch._unroll
    close, in_parts = StagedSearch._close_forwarding, StagedSearch._in_parts
    truncated = math.inf

    def chosen(search: StagedSearch) -> tuple[int, int | None]:
        """Return the number of the fanout, and that of the next one inside it."""
        instance = search.instance
        numbers = [n for n, (_, spatial) in enumerate(instance.levels) if spatial]
        unrolled = [n for n in numbers if instance.open_trips[instance.levels[n][1]].any()] or numbers
        number = unrolled[drawn % len(unrolled)]
        return number, next((n for n in numbers if n > number), None)

    def start_with_aim(search: StagedSearch, *arguments: Any) -> None:
        nonlocal truncated
        start(search, *arguments)
        truncated = math.inf
        search.aims = [] if chosen(search)[1] is not None else [math.inf]

    def unroll_nothing(
        search: StagedSearch, states: States, number: int, level: FanoutLevel, *, windows_first: bool = True
    ) -> States:
        here, inside = chosen(search)
        if number == here and search.aims:
            search.truncation_bound = -math.inf
            return states
        states = unroll(search, states, number, level, windows_first=windows_first)
        if number == inside:
            search.aims = [math.inf]
        return states

    def close_untruncated(search: StagedSearch, states: States) -> States:
        nonlocal truncated
        states = close(search, states)
        if search.aims:  # the chosen fanout is next; states truncated so far are no reason to prune others
            truncated, search.truncation_bound = search.truncation_bound, math.inf
        return states

    def with_truncated(search: StagedSearch, *arguments: Any) -> tuple[Floats, Ints, Ints]:
        parts = in_parts(search, *arguments)
        search.truncation_bound = min(search.truncation_bound, truncated)
        return parts

    with (
        mock.patch.object(staged_search, "INSIDE_SHARE", 0),
        mock.patch.object(StagedSearch, "__init__", start_with_aim),
        mock.patch.object(StagedSearch, "_unroll", unroll_nothing),
        mock.patch.object(StagedSearch, "_close_forwarding", close_untruncated),
        mock.patch.object(StagedSearch, "_in_parts", with_truncated),
    ):
        yield
