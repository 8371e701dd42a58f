"""`quickflow`: which orders differ, that one shot finds the best of them, and what the rounds of the beam search leave."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.problems import products
from support.profiles import scaled
from support.recorded.searches import factorflow, sunstone
from tilewright import library
from tilewright.application.run.search import search
from tilewright.errors import InputError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem, Rank
from tilewright.testing.corpus import SAMPLES, Sample
from tilewright.testing.strategies import problems
from tilewright_mappers.quickflow.orders import Indexing, OneShot, equi_reuse_orders

few = scaled(0.4)
POINTWISE = {
    "name": "c1024k256p14", "operation": "conv2d",
    "dimensions": {"N": 1, "K": 256, "C": 1024, "P": 14, "Q": 14, "R": 1, "S": 1},
    "tensors": [
        {"name": "I", "role": "input", "projection": ["N", "C", "P + R", "Q + S"]},
        {"name": "W", "role": "weight", "projection": ["K", "C", "R", "S"]},
        {"name": "O", "role": "output", "projection": ["N", "K", "P", "Q"]},
    ],
}  # fmt: skip
ENERGIES = {"word_bits": 8, "read_energy_pj": 1, "write_energy_pj": 1}
NVDLA = {
    "name": "nvdla2048",
    "clusters": [
        {"name": "DRAM", "memories": [{"name": "DRAM", "shared_bandwidth_words_per_cycle": 10, **ENERGIES}]},
        {"name": "Core", "memories": [{"name": "CBUF", "capacity_words": 524288, "holds": ["input", "weight"], **ENERGIES}], "fanout": {"size": 128}},
        {"name": "Cell", "memories": [{"name": "Acc", "holds": ["output"], **ENERGIES}], "fanout": {"size": 16, "axis": "Y"}},
        {"name": "MAC", "memories": [{"name": "WReg", "holds": ["weight"], "capacity_words": 1, **ENERGIES}]},
    ],
    "compute": {"energy_per_operation_pj": 0.2, "word_bits": 8},
}  # fmt: skip
"""2,048 units, and a memory that is slow for them: without tiles on chip, a layer takes 5 times the cycles."""
CONVOLUTIONS = [layer.problem for layer in library.workload("quickflow_convs").layers]


def evaluator_of(space: MapSpace) -> Evaluator:
    return installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)


def run(space: MapSpace, budget: Budget | None = None, **options: object) -> Result:
    return search(
        installed().make(MapperSpec, "quickflow", options), Task(space), evaluator_of(space), budget or Budget()
    )


def classes(problem: Problem) -> list[tuple[object, ...]]:
    """Return the reuse of all tensors for each order of the non-unit loops, by enumeration."""
    indexing = Indexing.of(problem)
    non_unit = [size > 1 for size in problem.sizes]
    dims = [dim for dim, on in enumerate(non_unit) if on]
    tensors = range(len(problem.tensors))
    return [
        tuple(indexing.reuse(order, tensor, non_unit) for tensor in tensors) for order in itertools.permutations(dims)
    ]


@pytest.mark.parametrize("problem", CONVOLUTIONS, ids=lambda problem: problem.name)
def test_few_of_all_orders_differ_for_a_convolution(problem: Problem) -> None:
    """At most 26 of the 720 of six dimensions (QuickFlow, section IV-B)."""
    orders = equi_reuse_orders(problem)
    assert sum(size > 1 for size in problem.sizes) > 6 or len(orders) <= 26
    assert len(orders) == len(set(classes(problem)))


@few
@given(problems(max_dimensions=5, max_macs=2000))
def test_one_order_of_each_class(problem: Problem) -> None:
    orders = equi_reuse_orders(problem)
    indexing, non_unit = Indexing.of(problem), [size > 1 for size in problem.sizes]
    tensors = range(len(problem.tensors))
    found = [tuple(indexing.reuse(order, tensor, non_unit) for tensor in tensors) for order in orders.tolist()]
    assert len(set(found)) == len(found)
    assert set(found) == set(classes(problem))
    assert all(sorted(order) == list(range(len(problem.sizes))) for order in orders.tolist())


def contraction(dims: int) -> Problem:
    names = [f"d{number}" for number in range(dims)]
    third = dims // 3
    tensors = names[: 2 * third], names[third:], names[:third] + names[2 * third :]
    return Problem.model_validate(
        {
            "name": "contraction",
            "dimensions": dict.fromkeys(names, 2),
            "tensors": [
                {"name": name, "role": role, "projection": projection}
                for name, role, projection in zip("ABZ", ("input", "weight", "output"), tensors, strict=True)
            ],
        }
    )


@pytest.mark.parametrize("mapper", ["quickflow", "optimal"])
def test_contractions_of_many_dimensions_are_mapped(mapper: str) -> None:
    """They have 24,000 equi-reuse classes, and 13! orders of one tensor's dimensions."""
    problem = contraction(40)
    assert len(equi_reuse_orders(problem)) == 3
    assert tw.map(problem, "eyeriss", mapper=mapper, evaluations=2000, cache=False).complete


BOARD = """
name: board
clusters:
- {name: Far, memories: [{name: Far, technology: dram, read_energy_pj: 50, write_energy_pj: 60}]}
- {name: Near, memories: [{name: Near, capacity_words: 64, read_energy_pj: 1, write_energy_pj: 2}], fanout: {size: 4}}
compute: {energy_per_operation_pj: 0.5}
"""


@few
@given(problem=products(), sums=st.booleans(), seed=st.integers(0, 2**20))
def test_one_shot_is_the_best_of_all_orders_between_two_memories(problem: Problem, sums: bool, seed: int) -> None:
    """In energy; without windows, of which models count otherwise what slides.

    With sums but for the partial sums that are not there the first time, of which it does not know.
    """
    if not sums:
        whole = problem.output.model_copy(update={"projection": tuple(map(Rank.model_validate, problem.dimensions))})
        problem = problem.model_copy(update={"tensors": (*problem.operands, whole)})
    space = MapSpace.of(problem, Architecture.from_yaml(BOARD), rules=None)
    row = space.sample(np.random.default_rng(seed), 1)
    orders = OneShot(space)
    one = evaluator_of(space).evaluate_batch(replace(row, order=orders.order(row)).batch())
    every = orders.every(row.trips[0], 10**6)
    each = replace(row.take(np.zeros(len(every), dtype=np.int64)), order=every)
    least = evaluator_of(space).evaluate_batch(each.batch()).energy_pj.min()
    first_time = problem.tensor_words(problem.output) * (50 + 2) if sums else 0
    assert least * (1 - 1e-9) <= one.energy_pj[0] <= least * (1 + 1e-9) + first_time


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_no_single_move_improves_what_it_ends_with(sample: Sample) -> None:
    """A hop of the last round tries every one of them."""
    space = sample.space
    result = run(space, search_objective="plain")
    assert result.stop == "finished" and result.best is not None
    moved, _ = space.neighbours(result.best)
    moved = replace(moved, order=OneShot(space).order(moved))
    costs = evaluator_of(space).evaluate_batch(moved.batch())
    valid = costs.valid & moved.fits()
    assert np.where(valid, costs.edp, math.inf).min(initial=math.inf) >= result.value * (1 - 1e-9)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_both_objectives_are_no_worse_than_each(sample: Sample) -> None:
    values = {each: run(sample.space, search_objective=each).value for each in ("plain", "over_utilization")}
    assert run(sample.space).value <= values["over_utilization"] * (1 + 1e-9)
    assert all(math.isfinite(value) for value in values.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [("search_objective", "utilization"), ("hops", (0, 1, 1)), ("repeats", -1), ("width", 0), ("starts", 0)],
)
def test_what_is_no_number_of_moves_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        installed().make(MapperSpec, "quickflow", {name: value})


def test_it_is_as_good_as_the_recorded_and_needs_no_seed() -> None:
    """The two smallest of FactorFlow's and Sunstone's recorded spaces; benchmarks/mappers.py has them all."""
    for each in (*factorflow(), *sunstone()):
        if (each.layer, each.architecture) not in (("MB6", "eyeriss"), ("mmc_attention", "sunstone_conventional")):
            continue
        theirs = evaluator_of(each.space).evaluate_batch(each.mapping)
        result = run(each.space)
        assert theirs.valid[0] and result.value <= theirs.edp[0] * (1 + 1e-9)
        assert run(each.space).best == result.best


def test_it_draws_where_nothing_may_stand_outside() -> None:
    """MAESTRO takes no filter cut outside of L1, so nothing with all factors outside."""
    layer = "O[k,p,q] += I[c,p+r,q+s] * W[k,c,r,s]; k=16 c=8 p=14 q=14 r=3 s=3"
    found, drawn = (
        tw.map(layer, "union_edge", mapper=name, model="maestro", cache=False) for name in ("quickflow", "random")
    )
    assert found.edp is not None and drawn.edp is not None and found.edp <= 1.1 * drawn.edp


@pytest.mark.parametrize(("evaluations", "times"), [(300, 1.5), (1000, 1.1), (3000, 1.0)])
def test_a_small_budget_is_shared_by_the_rounds(evaluations: int, times: float) -> None:
    """Without shares, the unrolling takes 3,000 mappings, and all tiles stay in the outermost memory: 5 times the cycles."""
    problem = Problem.model_validate(POINTWISE)
    words: dict[str, Any] = {"mapper": "quickflow", "objective": "cycles", "cache": False, "progress": False}
    whole = tw.map(problem, Architecture.model_validate(NVDLA), **words).layers[0]
    assert whole.result is not None and whole.result.stop == "finished"
    cut = tw.map(problem, Architecture.model_validate(NVDLA), evaluations=evaluations, **words).layers[0]
    assert cut.result is not None and cut.result.evaluated == evaluations and cut.result.stop == "evaluations"
    assert whole.cycles and cut.cycles and cut.cycles <= times * whole.cycles
    ample = tw.map(
        problem, Architecture.model_validate(NVDLA), evaluations=10 * whole.result.evaluated, **words
    ).layers[0]
    assert ample.result is not None and ample.result.best == whole.result.best
    assert (ample.result.evaluated, ample.result.stop) == (whole.result.evaluated, "finished")


def test_a_search_whose_rounds_were_cut_uses_all_of_its_budget() -> None:
    """So that it says that its budget ended it."""
    words: dict[str, Any] = {"mapper": "quickflow", "cache": False, "progress": False}
    whole = tw.map("nk,km->nm; n=16 k=32 m=64", "eyeriss", **words).layers[0].result
    assert whole is not None
    for count in range(20, whole.evaluated, whole.evaluated // 7):
        result = tw.map("nk,km->nm; n=16 k=32 m=64", "eyeriss", evaluations=count, **words).layers[0].result
        assert result is not None and (result.evaluated, result.stop) == (count, "evaluations")
