"""A mapper that begins with another one's search: the host runs that, and says what it found."""

import importlib.metadata
import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tilewright.application.api.plan import Plan
from tilewright.application.run.search import search
from tilewright.errors import NotConformableError, PluginError, Reason
from tilewright.plugin import Budget, MapperSpec, Proposals, Run, Task, started
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.hosted import packages_of
from tilewright.plugin.guard.mappers import GuardedMapper, guarded_mapper
from tilewright.plugin.registry import GROUP, Registry, discover
from tilewright.plugin.result import Result
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator

SAMPLE = SAMPLES[1]
EVALUATOR = PlainEvaluator(SAMPLE.problem, SAMPLE.architecture)


@dataclass(frozen=True)
class Scripted:
    """A mapper that is one function."""

    body: Callable[[Task, Run], Proposals]

    def search(self, task: Task, run: Run) -> Proposals:
        return self.body(task, run)


def drawing(task: Task, run: Run) -> Proposals:
    for _ in range(3):
        yield task.space.sample(run.rng, 10)


def asking(told: list[float]) -> Scripted:
    """Asks twice, and proposes nothing of its own."""

    def body(task: Task, run: Run) -> Proposals:
        told.append((yield from started(task, run)))
        told.append((yield from started(task, run)))

    return Scripted(body)


def run(mapper: GuardedMapper | Scripted, evaluations: int | None = None) -> Result:
    return search(mapper, Task(SAMPLE.space), EVALUATOR, Budget(evaluations))


def test_the_start_is_searched_once_and_its_best_is_told() -> None:
    told: list[float] = []
    result = run(guarded_mapper(asking(told)).starting_with(Scripted(drawing)))
    alone = run(Scripted(drawing))
    assert (result.evaluated, result.value, result.best) == (30, alone.value, alone.best)
    assert told == [alone.value, math.inf]


def test_each_start_has_its_turn() -> None:
    def later(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 7)

    told: list[float] = []
    result = run(guarded_mapper(asking(told)).starting_with(Scripted(drawing), Scripted(later)))
    assert result.evaluated == 37 and all(map(math.isfinite, told)) and min(told) == result.value


def test_without_a_start_nothing_is_found() -> None:
    told: list[float] = []
    result = run(asking(told))
    assert told == [math.inf, math.inf] and result.evaluated == 0 and result.best is None


def test_whoever_fails_is_named() -> None:
    def failing(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 10)
        raise ZeroDivisionError("oh")

    start = GuardedMapper(Scripted(failing), Owner("mapper", "first"))
    result = run(guarded_mapper(asking([])).starting_with(start))
    assert result.stop == "failed" and result.best is not None
    line = f' at {__file__}:{failing.__code__.co_firstlineno + 2}: raise ZeroDivisionError("oh")'
    assert str(result.error) == f"mapper 'first' failed: search raised ZeroDivisionError: oh{line}"


def test_a_start_that_cannot_search_the_space_finds_nothing() -> None:
    def refusing(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 10)
        raise NotConformableError("mapper first", [Reason(code="start", where="", message="no mapping to start from")])

    told: list[float] = []
    result = run(guarded_mapper(asking(told)).starting_with(Scripted(refusing)))
    assert result.error is None and result.stop == "finished" and result.best is not None
    assert told == [result.value, math.inf]


def test_a_budget_ends_both() -> None:
    closed = []

    def careful(task: Task, run: Run) -> Proposals:
        try:
            yield from drawing(task, run)
        finally:
            closed.append("start")

    result = run(guarded_mapper(asking([])).starting_with(Scripted(careful)), evaluations=10)
    assert (result.stop, result.evaluated, closed) == ("evaluations", 10, ["start"])


def registered(*starts_with: str) -> Registry:
    """A third party's prover beside the built-in plugins."""
    registry = discover(importlib.metadata.distribution("tilewright").entry_points.select(group=GROUP))
    prover = MapperSpec(
        name="prover", summary="Asks its start.", factory=lambda options: asking([]), starts_with=starts_with
    )
    registry.add(prover, "third-party")
    return registry


def test_a_third_party_names_its_start() -> None:
    result = run(guarded_mapper(registered("quickflow").make(MapperSpec, "prover")))
    assert result.best is not None and result.evaluated > 100
    with pytest.raises(PluginError, match="mapper 'prover'.* starts with 'nobody': no mapper is called 'nobody'"):
        registered("nobody").make(MapperSpec, "prover")


def test_what_a_search_starts_with_is_part_of_what_it_runs() -> None:
    """So that results kept in the cache and in stores are forgotten when its code changes."""
    _, configuration = Plan.of_one("nk,km->nm; n=4 k=4 m=4", "eyeriss", {"mapper": "optimal", "model": "timeloop"})
    assert packages_of(configuration.mapper) == ("tilewright_mappers",) * 3  # optimal, quickflow, sunstone
    assert configuration.packages == {"tilewright_mappers", "tilewright_costmodels"}
    third_party = packages_of(registered("quickflow").make(MapperSpec, "prover"))
    assert len(third_party) == 2 and third_party[1] == "tilewright_mappers"
