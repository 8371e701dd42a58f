"""`exhaustive` finds and proves the optimum; `random` draws what the seed says and never beats it."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profiles import scaled
from tilewright.application.run.search import search
from tilewright.errors import InputError, NoValidMappingError, SpaceTooLargeError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Budget, Mapper, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.constraints import SpatialRule, TripRange, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 10

SMALL = [sample for sample in SAMPLES if 1 < sample.space.size <= 20_000]
OBJECTIVES: tuple[Objective, ...] = (EDP, ED2P, ENERGY, CYCLES)


def mapper(name: str, **options: int) -> Mapper:
    return installed().make(MapperSpec, name, options)


def run(name: str, space: MapSpace, objective: Objective, budget: Budget, seed: int = 0, **options: int) -> Result:
    evaluator = PlainEvaluator(space.problem, space.architecture)
    return search(mapper(name, **options), Task(space, objective), evaluator, budget, seed=seed)


@cache
def optimum(number: int) -> Result:
    return run("exhaustive", SMALL[number].space, EDP, Budget())


def test_the_corpus_has_spaces_to_search() -> None:
    assert len(SMALL) >= 2


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("number", range(len(SMALL)))
def test_exhaustive_proves_the_optimum(number: int, objective: Objective) -> None:
    """The best is the minimum cost of all mappings, evaluated individually, and the gap is zero."""
    space = SMALL[number].space
    evaluator = PlainEvaluator(space.problem, space.architecture)
    result = run("exhaustive", space, objective, Budget(), batch=333)

    costs = [evaluator.evaluate(mapping).of(objective)[0] for batch in space.enumerate() for mapping in batch]
    assert (result.stop, result.evaluated) == ("finished", space.size)
    assert result.valid == sum(math.isfinite(cost) for cost in costs)
    if result.best is None:
        assert result.lower_bound is None and result.gap is None
    else:
        assert result.value == result.lower_bound == min(costs)
        assert result.gap == 0
        assert evaluator.evaluate(result.best).of(objective)[0] == result.value


@scaled(0.2)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from(range(len(SMALL))))
def test_random_is_the_seed_and_never_beats_the_optimum(seed: int, batch: int, number: int) -> None:
    space = SMALL[number].space
    first, again = (run("random", space, EDP, Budget(evaluations=300), seed, batch=batch) for _ in range(2))
    assert (first.stop, first.evaluated) == ("evaluations", 300)
    assert (first.best, first.value, first.valid) == (again.best, again.value, again.valid)
    assert first.lower_bound is None
    assert first.value >= optimum(number).value


def test_random_finds_the_optimum_of_a_small_space_in_the_end() -> None:
    number = min(range(len(SMALL)), key=lambda number: SMALL[number].space.size)
    space = SMALL[number].space
    assert run("random", space, EDP, Budget(evaluations=200 * space.size)).value == optimum(number).value


@pytest.mark.parametrize(
    ("limit", "evaluations", "what"),
    [(-1, None, "the limit of the mapper"), (0, -1, "the evaluations allowed"), (-1, 0, "the limit of the mapper")],
)
def test_exhaustive_refuses_what_it_cannot_finish(limit: int, evaluations: int | None, what: str) -> None:
    """Both bounds are given relative to the size of the space; one mapping too few is enough."""
    space = SMALL[0].space
    budget = Budget(evaluations=None if evaluations is None else space.size + evaluations)
    result = run("exhaustive", space, EDP, budget, limit=space.size + limit)

    assert (result.stop, result.evaluated) == ("failed", 0)
    assert isinstance(result.error, SpaceTooLargeError)
    assert f"has {space.size} mappings; {what} is {space.size - 1}" in str(result.error)


def test_exhaustive_takes_a_space_as_large_as_its_limit() -> None:
    space = SMALL[0].space
    assert run("exhaustive", space, EDP, Budget(), limit=space.size).stop == "finished"


def test_exhaustive_stopped_early_proves_nothing() -> None:
    space = max((sample.space for sample in SMALL), key=lambda space: space.size)
    result = run("exhaustive", space, EDP, Budget(patience=1), batch=10)
    assert result.stop == "patience" and result.evaluated < space.size
    assert result.lower_bound is None and result.gap is None


def test_an_empty_space_is_told_by_random_and_finished_by_exhaustive() -> None:
    sample = SMALL[0]
    unrolled = next(entry.target for entry in sample.space.skeleton.entries if entry.unrolls)
    wish = FrozenDict({sample.problem.dimension_names[0]: TripRange(min=997, max=997)})
    space = MapSpace.of(
        sample.problem, sample.architecture, Variant(spatial=(SpatialRule(cluster=unrolled, factors=wish),))
    )
    told = run("random", space, EDP, Budget(evaluations=10))
    assert told.stop == "failed" and isinstance(told.error, NoValidMappingError)
    assert "is empty" in str(told.error)
    done = run("exhaustive", space, EDP, Budget())
    assert (done.stop, done.evaluated, done.best) == ("finished", 0, None)


@pytest.mark.parametrize(("name", "option"), [("random", "batch"), ("exhaustive", "limit"), ("exhaustive", "batch")])
def test_options_are_positive(name: str, option: str) -> None:
    with pytest.raises(InputError, match=option):
        mapper(name, **{option: 0})


def test_a_search_leaves_the_mapper_as_it_was() -> None:
    space = SMALL[0].space
    for name in ("random", "exhaustive"):
        one = mapper(name)
        before = dict(vars(one))
        evaluator = PlainEvaluator(space.problem, space.architecture)
        search(one, Task(space), evaluator, Budget(evaluations=space.size, seconds=np.inf))
        assert vars(one) == before
