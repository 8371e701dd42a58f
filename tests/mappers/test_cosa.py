"""`cosa`: its program counts as the cost model does, its solutions fit, and beat CoSA's own schedules."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from support.problems import products
from support.profiles import scaled
from support.recorded.cosa import CosaLayer, layers
from tilewright.application.run.search import search
from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.legality import words_needed
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture, Fanout
from tilewright.schema.objective import CYCLES, ENERGY
from tilewright.schema.problem import Problem
from tilewright.testing.corpus import SAMPLES, Sample
from tilewright.testing.strategies import architectures
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.mapper import MARGIN_SECONDS, Cosa, constructed
from tilewright_mappers.cosa.measures import MappingMeasures, Terms, held, steps
from tilewright_mappers.cosa.objectives import Shares, inside, least_energy_pj, weighted
from tilewright_mappers.cosa.program import Linear, Program, SolverLimits
from tilewright_mappers.cosa.tiling import Tiling, tangent
from tilewright_mappers.cosa.traffic import Traffic

few = scaled(0.2)
LIMITS = SolverLimits(seconds=math.inf, nodes=1000, gap=0.01)
SMALL = [layer for layer in layers() if layer.name.endswith(("input.5", "input.128", "3356", "Linear-68"))]


def evaluator_of(space: MapSpace) -> Evaluator:
    return installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)


def run(space: MapSpace, budget: Budget | None = None, **options: object) -> Result:
    return search(installed().make(MapperSpec, "cosa", options), Task(space), evaluator_of(space), budget or Budget())


def solved(space: MapSpace) -> tuple[Traffic, Shares, Floats] | None:
    """The program of least energy, and its best solution, if its tiles fit."""
    keep = Placement.each(space, np.random.default_rng(0))[0].start.keeps[0]
    tiling = Tiling(space, keep)
    traffic = Traffic(tiling)
    shares, program = Shares(traffic, traffic.moves()), tiling.program.copy()
    points = program.solve(shares.of(ENERGY, program, least_energy_pj(space)), LIMITS).points[-1:]
    if not len(points) or not tiling.sound(tiling.read(points))[0]:
        return None
    return traffic, shares, points[0]


def mapping(traffic: Traffic, point: Floats) -> MappingBatch:
    return traffic.read(point[None]).batch()


@few
@given(products(), architectures(roomy=False, widths=True))
def test_energy_is_that_of_the_model_where_there_are_no_windows(problem: Problem, architecture: Architecture) -> None:
    """Words, orders and what they save, to the last word; blocks are counted as if they were always full.

    Not counted are leakage, and what compute units pass on below the innermost memory.
    """
    plain = {"block_words": 1, "word_bits": 4, "leakage_pj_per_cycle": 0.0}  # of which all widths are multiples
    innermost = max(number for number, cluster in enumerate(architecture.clusters) if cluster.memories)
    clusters = [
        cluster.model_copy(
            update={"memories": tuple(memory.model_copy(update=plain) for memory in cluster.memories)}
            | ({"fanout": Fanout()} if number >= innermost else {})
        )
        for number, cluster in enumerate(architecture.clusters)
    ]
    space = MapSpace.of(problem, architecture.model_copy(update={"clusters": tuple(clusters)}), rules=None)
    result = solved(space)
    if result is None:
        reject()
    traffic, shares, point = result
    energy = float(evaluator_of(space).evaluate_batch(mapping(traffic, point)).energy_pj[0])
    assert shares.energy_pj(point) == pytest.approx(max(1.0, energy))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_tiles_are_as_large_as_the_program_says(sample: Sample) -> None:
    space = sample.space
    result = solved(space)
    assert result is not None
    traffic, _, point = result
    tiling, batch = traffic.tiling, mapping(traffic, point)
    bounded = [memory for memory in space.architecture.memories if memory.usable_words is not None]
    for memory in bounded:
        words = sum(math.exp(tiling.words(*place).at(point)) for place in held(space, tiling.keep, memory.name))
        needed = float(words_needed(space.architecture, batch, memory)[0])
        assert words == pytest.approx(needed) if tiling.exact else words >= needed * (1 - 1e-9)
    assert bounded
    trips = tiling.read(point[None]).trips[0]
    assert math.exp(steps(traffic).at(point)) == pytest.approx(trips[list(space.temporal_slots)].prod())


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=2), st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_a_tangent_touches_the_sum_and_is_never_above_it(here: list[float], there: list[float]) -> None:
    plane = tangent([Linear({0: 1.0}), Linear({1: 1.0})], here)
    assert plane.at(np.array(here)) == pytest.approx(math.log(sum(map(math.exp, here))))
    assert plane.at(np.array(there)) <= math.log(sum(map(math.exp, there))) + 1e-9


def test_the_published_sum_has_the_published_weights() -> None:
    """10 x compute + traffic - 0.1 x utilization, of one matrix product in one memory: worked out by hand."""
    problem = Problem.model_validate(
        {
            "name": "gemm",
            "dimensions": {"M": 2, "K": 1, "N": 4},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["M", "K"]},
                {"name": "B", "role": "weight", "projection": ["K", "N"]},
                {"name": "C", "role": "output", "projection": ["M", "N"]},
            ],
        }
    )
    costs = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    memories = [{"name": "DRAM", **costs}], [{"name": "Buffer", "capacity_words": 14, **costs}]
    architecture = Architecture.model_validate(
        {
            "name": "two",
            "clusters": [{"name": f"C{index}", "memories": memory} for index, memory in enumerate(memories)],
            "compute": {"energy_per_operation_pj": 1.0},
        }
    )
    space = MapSpace.of(problem, architecture, rules=None)
    tiling = Tiling(space, next(keep for keep in space.keeps if keep[:2].all()))
    traffic = Traffic(tiling)
    objective = weighted(traffic, CosaOptions(objective_form="published", inner_preference=0), tiling.program)
    best = tiling.program.solve(objective, LIMITS)
    value = objective.at(best.points[-1])
    assert best.bound <= value + 1e-6
    # all loops inside the buffer, which then holds 2 + 4 + 8 words, each moved once
    moved = filled = math.log(2) + math.log(4) + math.log(8)
    assert value == pytest.approx(10 * math.log(8) + moved - 0.1 * filled)


WEIGHTED = CosaOptions.model_validate(
    {"objective_form": "published", "utilization_weight": 2, "compute_weight": 3, "inner_preference": 0}
    | {"traffic_of": {"W": 5}, "utilization_of": {"input": 7}}
)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_the_breakdown_of_a_mapping_is_that_of_the_program(sample: Sample) -> None:
    """For every solution of a program that counts all windows exactly, term by term."""
    result = solved(sample.space)
    assert result is not None
    traffic, _, _ = result
    program = traffic.program
    options = WEIGHTED.model_copy(update={"traffic_of": {}, "utilization_of": {}})
    objective = weighted(traffic, options, program)
    terms = Terms.of(traffic, options)
    points = program.solve(objective, LIMITS).points
    for point in points if traffic.tiling.exact else ():
        own = Terms.of(MappingMeasures.of(sample.space, mapping(traffic, point)[0]), options)
        assert own.compute == pytest.approx(terms.compute.at(point), abs=1e-6)
        assert own.total <= objective.at(point) + 1e-6  # a program's variable may be above what it stands for
    assert len(points)
    if traffic.tiling.exact:
        assert own.total == pytest.approx(objective.at(points[-1]), abs=1e-4)


def test_weights_and_factors_of_tensors_are_in_the_figures() -> None:
    plain, heavy = (run(SMALL[0].space, **{**options, "nodes": 1}).figures for options in ({}, WEIGHTED.model_dump()))
    assert plain["total"] == pytest.approx(plain["compute"] + plain["traffic"] - plain["utilization"])
    for figures in (plain, heavy):
        for name in ("utilization", "traffic"):
            assert figures[name] == pytest.approx(sum(figures[f"{name}[{t}]"] for t in "WIO"))
    best, task = run(SMALL[0].space, nodes=1).best, Task(SMALL[0].space)
    assert best is not None
    own, other = (Cosa(options).figures(task, best) for options in (WEIGHTED, CosaOptions()))
    assert own["traffic[W]"] == pytest.approx(5 * other["traffic[W]"])
    assert own["utilization[I]"] == pytest.approx(20 * 7 * other["utilization[I]"])
    assert own["compute"] == pytest.approx(0.3 * other["compute"])
    assert set(own) == set(other)


def test_a_weight_of_an_unknown_tensor_is_refused() -> None:
    result = run(SMALL[0].space, traffic_of={"X": 2.0})
    assert (
        result.stop == "failed"
        and "X: is no tensor of" in str(result.error)
        and "expected W, I, O" in str(result.error)
    )


def test_the_balanced_form_lowers_the_difference_of_traffic_and_compute() -> None:
    """With weights for which the published form leaves a difference."""
    space = SMALL[0].space
    published, balanced = (run(space, objective_form=form, compute_weight=3.0) for form in ("published", "balanced"))
    assert balanced.stop == "finished"
    assert balanced.figures["total"] == pytest.approx(abs(balanced.figures["traffic"] - balanced.figures["compute"]))
    assert balanced.figures["program"] >= balanced.figures["program_bound"] - 1e-6
    assert published.stop == "finished"


@pytest.mark.parametrize("layer", SMALL, ids=lambda layer: layer.name)
def test_no_worse_than_the_authors_schedule(layer: CosaLayer) -> None:
    """The others take longer: benchmarks/cosa.py has them all."""
    space = layer.space
    authors = evaluator_of(space).evaluate_batch(layer.mapping("head", space))
    result = run(space)
    assert result.stop == "finished" and result.best is not None
    assert authors.valid[0] and result.value <= float(authors.edp[0]) * (1 + 1e-9)
    assert result.figures["program_bound"] <= result.figures["program"] + 1e-6


def test_the_published_form_needs_the_preference_of_the_authors_code() -> None:
    """Without it, what solves the paper's sum is worse than the authors' schedule, whose sum is above the proved bound."""
    (layer,) = [each for each in SMALL if each.name.endswith("input.5")]
    space, authors = layer.space, layer.mapping("head", layer.space)
    edp = float(evaluator_of(space).evaluate_batch(authors).edp[0])
    pure, preferring = (run(space, objective_form="published", inner_preference=each) for each in (0.0, 0.04))
    assert pure.stop == preferring.stop == "finished"
    assert preferring.value < 0.8 * edp < 1.1 * edp < pure.value
    sum_of_authors = Cosa(CosaOptions()).figures(Task(space), authors[0])["total"]
    assert pure.figures["program_bound"] < sum_of_authors


def test_a_first_solution_does_not_hide_better_ones() -> None:
    """HiGHS 1.16.0 takes the first solution of this program for the best one: its objective lacks a constant."""
    space = SMALL[0].space
    placement = Placement.each(space, np.random.default_rng(0))[0]
    tiling = Tiling(space, placement.start.keeps[0])
    objective = weighted(Traffic(tiling), CosaOptions(objective_form="published", inner_preference=0), tiling.program)
    rows = constructed(placement)
    plain = tiling.program.solve(objective, LIMITS)
    for index in range(min(len(rows), 8)):
        solved = tiling.program.solve(objective, LIMITS, tiling.values(rows.take(slice(index, index + 1))))
        assert objective.at(solved.points[-1]) == pytest.approx(objective.at(plain.points[-1]), abs=LIMITS.gap)
        assert solved.bound == pytest.approx(plain.bound, abs=2 * LIMITS.gap)


def test_a_preference_counts_the_levels_outside_a_factor() -> None:
    """Simba has four levels inside the array's fanout: a factor in the registers counts 0.8, one in the input buffer 0.92."""
    space = SMALL[0].space
    tiling = Tiling(space, Placement.each(space, np.random.default_rng(0))[0].start.keeps[0])
    traffic = Traffic(tiling)
    factors = {}
    for index, slot in enumerate(space.slots):
        dim = space.problem.dimension_names.index("K")  # it indexes two tensors
        if (index, dim) in tiling.exponents:
            (_, exponent), *_ = tiling.exponents[index, dim]
            (variable,) = exponent.terms
            factors[index] = 1 - 0.04 * inside(traffic).terms.get(variable, 0.0) / (2 * math.log(2))
            assert (factors[index] == 1) == (slot.entry <= 2)
    assert [round(each, 2) for each in dict.fromkeys(factors.values())] == [1, 0.92, 0.88, 0.84, 0.8]


def test_a_deadline_is_handed_to_the_solver() -> None:
    """A program that the solver would take long for: a deadline that is over at once, and one amid it."""
    space = layers()[0].space
    for seconds in (0.01, 1.0):
        result = run(space, Budget(seconds=seconds), nodes=10**9, gap=0.0)
        assert result.stop == "deadline" and result.best is not None


def test_a_program_can_be_added_to_and_its_copy_stays() -> None:
    program = Program()
    first, second = program.variable(0, 5), program.variable(0, 5)
    copy = program.copy()
    program.require(first + second, lower=3.5)
    assert program.solve(first + second, LIMITS).bound == pytest.approx(4)
    assert copy.solve(first + second, LIMITS).bound == pytest.approx(0)


def test_a_deadline_leaves_a_mapping_that_uses_the_array() -> None:
    """DeepBench's first layer of DeepSpeech, for whose programs there is no time at all: 896 of 1,024 units work."""
    layer = CosaLayer("DeepSpeech", {"N": 1, "K": 32, "C": 1, "P": 700, "Q": 161, "R": 5, "S": 20}, (2, 2), {})
    mapper = installed().make(MapperSpec, "cosa", {})
    task, budget = Task(layer.space, CYCLES), Budget(seconds=MARGIN_SECONDS)
    result = search(mapper, task, evaluator_of(layer.space), budget, clock=lambda: 0.0)
    assert result.stop == "deadline" and result.value <= 563_500


NARROWED = [
    space
    for sample in SAMPLES
    for whole in [sample.space]
    for space in (
        replace(whole, tile_copies=2),
        replace(whole, max_unrolled_loops=1),
        replace(whole, outputs_span_windows=True),
    )
    if Placement.of(space, np.random.default_rng(0)).start.fits()[0]
]


@pytest.mark.parametrize("space", NARROWED, ids=lambda space: f"{space.problem.name} on {space.architecture.name}")
def test_solutions_keep_to_what_a_narrowed_space_has_room_for(space: MapSpace) -> None:
    result = solved(space)
    assert result is not None and result[0].tiling.read(result[2][None]).fits()[0]
