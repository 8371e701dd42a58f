"""`optimal` finds what `exhaustive` finds, and its bounds are never above that."""

import copy
import itertools
import math
from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright
from support.profiles import scaled
from tilewright import library
from tilewright.application.run.search import search
from tilewright.compiled import for_kernel, interpreted
from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import CandidateEvaluator, Evaluator, Relaxable
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting, KeepRule, SpatialRule, TemporalRule, Variant
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator
from tilewright.testing.strategies import architectures, problems
from tilewright_mappers.optimal import staged_search
from tilewright_mappers.optimal.kernel.state import FIRST_TENSOR, OVERLAP, PER_TENSOR, TILE_EQUIVALENTS, max_spared
from tilewright_mappers.optimal.kernel.structures import StateRows
from tilewright_mappers.optimal.kernel.subclusters import max_equal_tiles
from tilewright_mappers.optimal.problem_arrays import union_values
from tilewright_mappers.optimal.search_instance import SearchInstance
from tilewright_mappers.optimal.staged_search import CompleteMappings, StagedSearch

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 30

MOST = 4000
"""Mappings of the largest space that is enumerated."""
WAYS = 20_000
"""Orders of loops that are tried of one mapping, at most."""
CLOSE = 1e-8
OBJECTIVES: tuple[Objective, ...] = (EDP, ED2P, ENERGY, CYCLES)


def timeloop(space: MapSpace, links: bool = True) -> Evaluator:
    model = installed().make(CostModelSpec, "timeloop", {"link_transfers": links})
    return model.bind(space.problem, space.architecture)


def run(
    name: str, space: MapSpace, evaluator: Evaluator, objective: Objective, cap: float = math.inf, **options: int
) -> Result:
    task = Task(space, objective, cap)
    return search(installed().make(MapperSpec, name, options), task, evaluator, Budget())


def check(space: MapSpace, evaluator: Evaluator, objective: Objective, cap: float = math.inf, **options: int) -> Result:
    """Compare the answer with the enumeration's; proofs and bounds must be correct."""
    result = run("optimal", space, evaluator, objective, cap, **options)
    truth = run("exhaustive", space, evaluator, objective, cap)
    assert result.error is None, result.error
    if truth.best is None:
        assert result.best is None
        return result
    assert result.lower_bound is not None and result.gap is not None
    assert result.lower_bound <= truth.value <= result.value * (1 + CLOSE)
    if result.gap < CLOSE:
        assert result.value == pytest.approx(truth.value, rel=CLOSE)
    return result


pairs = problems(max_dimensions=6, max_macs=300), architectures(roomy=False, widths=True), st.booleans()


@scaled(0.5)
@given(*pairs, st.sampled_from(OBJECTIVES))
def test_what_is_proved_is_what_enumeration_finds(
    problem: Problem, architecture: Architecture, links: bool, objective: Objective
) -> None:
    space = MapSpace.of(problem, architecture, rules=None)
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    check(space, timeloop(space, links), objective)


FACTORS: tuple[Cutting, ...] = ("perfect", "ragged")


@st.composite
def ruled(draw: st.DrawFn, factors: Cutting = "perfect") -> MapSpace:
    """Draw a space with rules for its temporal loops and its unrollings."""
    problem, architecture = draw(pairs[0]), draw(pairs[1])
    names = problem.dimension_names
    blocks = [entry.inside for entry in MapSpace.of(problem, architecture, None).skeleton.entries[1:] if entry.inside]
    fanouts = [cluster.name for cluster in architecture.clusters if cluster.fanout.size > 1]
    some = st.lists(st.sampled_from(names), unique=True).map(tuple)

    def ordered(memory: str) -> TemporalRule:
        loops, (first, last) = draw(some), sorted(draw(st.integers(0, 3)) for _ in range(2))
        rule = TemporalRule(memory=memory, only=draw(st.none() | some), order=loops[first:last])
        return rule.model_copy(update={"outermost": loops[:first], "innermost": loops[last:]})

    temporal = tuple(
        ordered(memory)
        for memory in draw(st.lists(st.sampled_from(blocks), unique=True, max_size=2))
    ) if blocks else ()  # fmt: skip
    spatial = tuple(
        SpatialRule(cluster=name, only=draw(st.none() | some), min_utilization=draw(st.sampled_from([0.0, 0.5, 1.0])))
        for name in draw(st.lists(st.sampled_from(fanouts), unique=True, max_size=2))
    ) if fanouts else ()  # fmt: skip
    return MapSpace.of(problem, architecture, Variant(temporal=temporal, spatial=spatial), factors=factors)


@pytest.mark.parametrize("factors", FACTORS)
@scaled(0.3)
@given(st.data(), st.booleans(), st.sampled_from(OBJECTIVES))
def test_rules_are_kept_and_nothing_they_allow_is_missed(
    factors: Cutting, data: st.DataObject, links: bool, objective: Objective
) -> None:
    space = data.draw(ruled(factors))
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    check(space, timeloop(space, links), objective)


@st.composite
def bypassing(draw: st.DrawFn, factors: Cutting = "perfect") -> MapSpace:
    """A space in which memories do without some tensors, or may."""
    problem, architecture = draw(pairs[0]), draw(pairs[1])
    names = st.lists(st.sampled_from([tensor.name for tensor in problem.tensors]), unique=True, min_size=1).map(tuple)
    inner = [memory.name for memory in architecture.memories[1:]]
    chosen = draw(st.lists(st.sampled_from(inner), unique=True, min_size=1)) if inner else []
    rules = [
        KeepRule(memory=name, free=draw(names)) if draw(st.booleans()) else KeepRule(memory=name, bypass=draw(names))
        for name in chosen
    ]
    return MapSpace.of(problem, architecture, Variant(keep=tuple(rules)), factors=factors)


@pytest.mark.parametrize("factors", FACTORS)
@scaled(0.5)
@given(st.data(), st.booleans(), st.sampled_from(OBJECTIVES))
def test_what_is_proved_where_memories_may_bypass_tensors_is_what_enumeration_finds(
    factors: Cutting, data: st.DataObject, links: bool, objective: Objective
) -> None:
    space = data.draw(bypassing(factors))
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    check(space, timeloop(space, links), objective)


@pytest.mark.parametrize("factors", FACTORS)
@scaled(0.3)
@given(st.booleans(), st.data())
def test_what_is_proved_of_mappings_that_take_so_many_cycles_is_what_enumeration_finds(
    factors: Cutting, links: bool, data: st.DataObject
) -> None:
    space = data.draw(bypassing(factors) | ruled(factors))
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    evaluator = timeloop(space, links)
    costs = evaluator.evaluate_batch(Candidates.join(list(space.enumerate())).batch())
    assume(costs.valid.any())
    cap = data.draw(st.sampled_from(np.unique(costs.cycles[costs.valid]).tolist()))
    result = check(space, evaluator, ENERGY, cap)
    least = costs.energy_pj[costs.valid & (costs.cycles <= cap)].min()
    assert result.lower_bound is not None and result.lower_bound <= least <= result.value * (1 + CLOSE)
    assert check(space, evaluator, ENERGY, cap=0.0).best is None


@pytest.mark.parametrize("factors", FACTORS)
@scaled(2)
@given(st.data(), st.booleans(), st.sampled_from(OBJECTIVES))
def test_the_staged_search_alone_proves_what_enumeration_finds(
    factors: Cutting, data: st.DataObject, links: bool, objective: Objective
) -> None:
    """Warm starts find the optimum of many small spaces.

    Without them no bound exceeds its mapping's cost, and the complete mappings contain an optimum,
    even if the cutoff is hardly above it.
    """
    space = data.draw(bypassing(factors) | ruled(factors))
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    evaluator = timeloop(space, links)
    truth = run("exhaustive", space, evaluator, objective)
    assert isinstance(evaluator, Relaxable) and isinstance(evaluator, CandidateEvaluator)
    relaxation = evaluator.relaxation(space.skeleton)
    assume(truth.best is not None and relaxation is not None)
    assert relaxation is not None
    least = truth.value * (1 + CLOSE)
    plain = SearchInstance(space, relaxation, objective)
    margin, relaxed = plain.with_rounding_margin(least), plain.with_relaxed_dominance()
    passes = [(plain, math.inf), (plain, least), (margin, least)]
    for instance, cutoff in passes + [(relaxed, math.inf), (relaxed, least)] * plain.may_relax:
        complete = StagedSearch(instance, cutoff, 10**6, lambda: False).run()
        costs = evaluator.evaluate_candidates(complete.candidates).of(objective)
        assert (complete.bounds <= costs * (1 + CLOSE)).all()
        promised = min(
            costs[~complete.undercounted].min(initial=math.inf),
            complete.bounds[complete.may_dominate | complete.relaxed].min(initial=math.inf),
        )
        for i in np.flatnonzero(complete.undercounted & ~complete.relaxed & (complete.bounds <= least)):
            if promised > least:
                ways = space.reordered(complete.candidates.take(slice(i, i + 1)), WAYS)
                promised = min(promised, evaluator.evaluate_candidates(ways).of(objective).min())
        assert promised <= least


@scaled(0.5)
@given(problems(max_dimensions=6, max_macs=300), st.booleans(), st.integers(0, 2**32), st.sampled_from(OBJECTIVES))
def test_the_order_of_the_innermost_loops_changes_no_cost(
    problem: Problem, links: bool, seed: int, objective: Objective
) -> None:
    """That is so if the memory around them keeps all tensors, and no loop inside them is unrolled."""
    space = tilewright.space(problem, arch="sunstone_conventional", constraints="none")
    evaluator = timeloop(space, links)
    assert isinstance(evaluator, CandidateEvaluator)
    assume(not _instance(space, evaluator, objective).innermost_order_matters)
    some = space.sample(np.random.default_rng(seed), 20)
    for i in range(len(some)):
        ways = space.reordered(some.take(slice(i, i + 1)), WAYS, slice(-1, None))
        costs = evaluator.evaluate_candidates(ways).of(objective)
        assert (costs == costs[0]).all()
        assert (ways.orders[:, :-1] == some.orders[i, :-1]).all()


@pytest.mark.parametrize("memory", ["InRegister", "WRegister", "OutRegister"])
def test_a_memory_of_a_cluster_that_several_entries_keep_in_leaks_once(memory: str) -> None:
    """Eyeriss' row-stationary elements keep each tensor at an entry of its own."""
    eyeriss = tilewright.load("eyeriss", "architecture").replace({f"{memory}.leakage_pj_per_cycle": 3.0})
    formula = "O[k,p,q] += I[c,p+r,q+s] * W[k,c,r,s]; k=8 c=6 p=6 q=6 r=3 s=3"
    space = tilewright.space(formula, arch=eyeriss, constraints="row_stationary")
    evaluator = timeloop(space)
    complete, costs = _no_bound_is_above(_instance(space, evaluator, ENERGY), evaluator, ENERGY, 64)
    rounded = 168 * 3.0  # cycles are, to the next whole one, in which all of them leak
    assert (costs - complete.bounds)[~complete.undercounted].max() <= rounded and not complete.undercounted.all()


@scaled(0.2)
@given(*pairs, st.integers(1, 20))
def test_a_narrow_search_leaves_a_gap_and_its_bound_is_true(
    problem: Problem, architecture: Architecture, links: bool, width: int
) -> None:
    space = MapSpace.of(problem, architecture, rules=None)
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    check(space, timeloop(space, links), EDP, width=width, orders=1)


SMALL = [sample.space for sample in SAMPLES if 1 < sample.space.size <= 20_000]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("number", range(len(SMALL)))
def test_spaces_of_the_corpus_are_proved(number: int, objective: Objective) -> None:
    """Windows, two operands, constraints."""
    space = SMALL[number]
    result = check(space, timeloop(space, links=False), objective)
    assert result.best is None or (result.gap is not None and result.gap < CLOSE)


@pytest.mark.parametrize(
    ("layer", "architecture", "constraints"),
    [("XII", "tpu_v1", None), ("XIII", "eyeriss", None), ("XVI", "eyeriss", None), ("IV", "tpu_v1", "none")],
    ids=(
        "cycles are those of words written",
        "strides and dilations",
        "outputs are windows",
        "a fanout is shared once",
    ),
)
def test_convolutions_of_the_library_are_proved(layer: str, architecture: str, constraints: str | None) -> None:
    """The bounds are close: these were left open by bounds that were merely true."""
    space = tilewright.space(f"quickflow_convs/{layer}", arch=architecture, constraints=constraints)
    result = run("optimal", space, timeloop(space), EDP)
    assert result.gap is not None and result.gap < CLOSE


LAYERS = (
    "O[n,k,p,q] += I[n,c,p+r,q+s] * W[k,c,r,s]; n=2 k=16 c=8 p=14 q=7 r=3 s=2",
    "O[k,p,q] += I[c,3*p+2*r,2*q+3*s] * W[k,c,r,s]; k=32 c=12 p=14 q=14 r=3 s=3",
    "O[k,p+r,q+s] += I[c,p,q] * W[k,c,r,s]; k=16 c=32 p=7 q=14 r=4 s=3",
    "O[m,n] += I[m,k] * W[k,n]; m=64 n=48 k=96",
)
SHRUNK: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("eyeriss", "GlobalBuffer", {}),
    ("simba", "GlobalBuffer", {}),
    ("tpu_v1", "UnifiedBuffer", {}),
    ("tpu_v1", "Accumulator", {}),
    ("tpu_v1", "Accumulator", {"Accumulator.holds": ("input",), "UnifiedBuffer.holds": ("output",)}),
)


@scaled(0.03)
@given(
    st.sampled_from(LAYERS),
    st.sampled_from(SHRUNK),
    st.integers(3, 14),
    st.booleans(),
    st.sampled_from(OBJECTIVES),
    st.randoms(),
)
def test_no_bound_is_above_the_cost_of_a_mapping_of_a_large_space(
    layer: str,
    machine: tuple[str, str, dict[str, object]],
    room: int,
    links: bool,
    objective: Objective,
    random: Random,
) -> None:
    """The tables of outer traffic are those of the whole space; the search takes the trips of one mapping.

    A small memory makes these bounds matter.
    """
    name, memory, changes = machine
    arch = tilewright.load(name, "architecture").replace({f"{memory}.capacity_words": 1 << room, **changes})
    space = tilewright.space(layer, arch=arch, constraints="none")
    evaluator = timeloop(space, links)
    instance = _instance(space, evaluator, objective).without_dominance()
    drawn = space.sample(np.random.default_rng(random.randrange(1 << 32)), 100)
    mappings = Candidates.join([drawn.take(drawn.fits()).take(slice(0, 2)), _good(instance, random)])
    assert instance.outer_traffic.tables and len(mappings)
    for trips in mappings.trips:
        _allow_only(instance, trips)
        _no_bound_is_above(instance, evaluator, objective, 200)


def test_first_tiles_of_sweeps_are_delivered_where_an_outer_loop_moves_all_tiles_apart() -> None:
    """Steps of s are forwarded along q. The loop over c that follows ends this, whether k is outside it or inside."""
    memories = [
        {"name": "Outer", "technology": "dram", "read_energy_pj": 64, "write_energy_pj": 64},
        {"name": "Inner", "capacity_words": 32, "read_energy_pj": 1, "write_energy_pj": 1},
    ]
    clusters: list[dict[str, object]] = [{"name": f"C{m}", "memories": [memory]} for m, memory in enumerate(memories)]
    clusters[0]["fanout"] = {"size": 4, "axis": "X"}
    arch = {"name": "row", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.4}}
    space = tilewright.space("O[k,q] += I[c,q+s] * W[k,c,s]; k=4 c=6 q=4 s=3", arch=arch, constraints="none")
    evaluator = timeloop(space)
    complete, costs = _no_bound_is_above(
        _instance(space, evaluator, ENERGY).without_dominance(), evaluator, ENERGY, 10**5
    )
    trips = complete.candidates.trips
    some = (trips[:, 1, 2] == 4) & (trips[:, 0, 1] == 6) & (trips[:, 0, 3] == 3)
    assert some.sum() == 10 and complete.undercounted[some].sum() == 5
    assert (complete.bounds >= 0.98 * costs)[some].all()


def _instance(space: MapSpace, evaluator: Evaluator, objective: Objective) -> SearchInstance:
    assert isinstance(evaluator, Relaxable)
    relaxation = evaluator.relaxation(space.skeleton)
    assert relaxation is not None
    return SearchInstance(space, relaxation, objective)


def _no_bound_is_above(
    instance: SearchInstance, evaluator: Evaluator, objective: Objective, width: int
) -> tuple[CompleteMappings, Floats]:
    """Return the complete mappings of a search, and their costs."""
    assert isinstance(evaluator, CandidateEvaluator)
    complete = StagedSearch(instance, math.inf, width, lambda: False).run()
    costs = evaluator.evaluate_candidates(complete.candidates).of(objective)
    assert len(costs) and (complete.bounds <= costs * (1 + CLOSE)).all()
    return complete, costs


def _allow_only(instance: SearchInstance, trips: Ints) -> None:
    """Allow the search only these trips, [slot, dimension]."""
    instance.trips = for_kernel(instance.problem.trip == trips[:, :, None])
    instance.iterable_tiles = instance._iterable_tiles()


def _good(instance: SearchInstance, random: Random) -> Candidates:
    """Return some mappings of a narrow search without the tables."""
    plain = copy.copy(instance)
    plain.outer_traffic = copy.copy(instance.outer_traffic)
    plain.outer_traffic.tables = {}
    plain.outer_context = cache(plain._outer_context)
    found = StagedSearch(plain, 1e300, 40, lambda: False).run().candidates
    return found.take(np.array(random.sample(range(len(found)), min(4, len(found))), np.int64))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "formula",
    ["O[c,q] += I[q+s] * W[c,s]; c=3 q=5 s=2", "O[p,q] += I[p+r,q+s] * W[r,s]; p=2 q=3 r=2 s=2"],
    ids=("by a loop that does not move the tensor", "by two that undo each other along another window"),
)
def test_neighbours_pass_on_words_where_a_sweep_begins_anew(formula: str, objective: Objective) -> None:
    changes = {"Accumulator.holds": ("input",), "UnifiedBuffer.holds": ("output",)}
    arch = tilewright.load("tpu_v1", "architecture").replace(changes)
    space = tilewright.space(formula, arch=arch, constraints="none")
    evaluator = timeloop(space)
    _no_bound_is_above(_instance(space, evaluator, objective).without_dominance(), evaluator, objective, 10**6)


def test_who_is_whose_neighbour_is_known_once_the_whole_fanout_is_unrolled() -> None:
    """Sub-clusters are numbered without gaps: channels in a partly used row change the neighbours along columns."""
    formula = "O[n,k,p,q] += I[n,c,p+r,q+3*s] * W[k,c,r,s]; n=2 k=1 c=2 p=6 q=3 r=2 s=2"
    space = tilewright.space(formula, arch="eyeriss", constraints="none")
    evaluator = timeloop(space)
    instance = _instance(space, evaluator, ENERGY).without_dominance()
    across, down = space.spatial_slots[:2]
    trips = np.ones((len(space.slots), len(space.problem.sizes)), np.int64)
    for slot, loops in ((1, {"n": 2, "p": 2}), (across, {"c": 2, "p": 3}), (down, {"r": 2, "s": 2}), (4, {"q": 3})):
        for name, count in loops.items():
            trips[slot, space.problem.dimension_names.index(name)] = count
    _allow_only(instance, trips)
    _no_bound_is_above(instance, evaluator, ENERGY, 200)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_holes_in_tiles_come_from_further_out_only_where_a_memory_surely_keeps_these(objective: Objective) -> None:
    architecture = Architecture.from_yaml("""
name: two
clusters:
- name: Outside
  memories: [{name: DRAM, technology: dram, read_energy_pj: 64, write_energy_pj: 0.25, read_bandwidth_words_per_cycle: 0.5}]
- name: PE
  memories: [{name: L1, capacity_words: 8, read_energy_pj: 64, write_energy_pj: 0.25}]
compute: {energy_per_operation_pj: 0.5}
""")
    problem = tilewright.space("O[a] += I[2*b] * W[a]; a=1 b=3", arch="eyeriss").problem
    rules = Variant(keep=(KeepRule(memory="L1", free=("I",)),))
    check(space := MapSpace.of(problem, architecture, rules), evaluator := timeloop(space), objective)
    _no_bound_is_above(_instance(space, evaluator, objective).without_dominance(), evaluator, objective, 10**6)


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from((1, 2, 3, 4, 6, 8))), min_size=1, max_size=3))
def test_what_tiles_of_a_coordinate_cover(terms: list[tuple[int, int]]) -> None:
    """Holes inside of a tile are covered, others are not."""
    sizes = [size for _, size in terms]
    tiles = itertools.product(*(divisors(size) for size in reversed(sizes)))
    for tile, covered in zip(tiles, union_values(tuple(terms), False), strict=True):
        side = 1 + sum(c * (n - 1) for (c, _), n in zip(terms, reversed(tile), strict=True))
        starts = itertools.product(
            *(range(0, c * size, c * n) for (c, size), n in zip(terms, reversed(tile), strict=True))
        )
        assert covered == len({sum(start) + at for start in starts for at in range(side)})


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(2, 6)), min_size=2, max_size=3))
def test_no_more_sub_clusters_have_equal_tiles_than_is_bounded(steps: list[tuple[int, int, int]]) -> None:
    """Of each dimension of a window: coefficient, size of a sub-cluster's tile, sub-clusters."""
    names = "abc"[: len(steps)]
    window = " + ".join(f"{c}*{d}" for d, (c, _, _) in zip(names, steps, strict=True))
    sizes = " ".join(f"{d}={tile * count}" for d, (_, tile, count) in zip(names, steps, strict=True))
    space = tilewright.space(f"O[{','.join(names)}] += I[{window}]; {sizes}", arch="eyeriss")
    evaluator = timeloop(space)
    instance = _instance(space, evaluator, ENERGY)
    staged = StagedSearch(instance, math.inf, 1, lambda: False)
    states = StateRows(np.zeros((1, instance.layout.numbers)), np.zeros((1, instance.layout.integers), np.int64))
    first = instance.layout.tile
    states.integers[0, first : first + instance.dims] = [tile * count for _, tile, count in steps]
    staged.scratch.along[:] = staged.scratch.within[:] = [count for _, _, count in steps]
    t = [tensor.name for tensor in space.problem.tensors].index("I")
    r = int(instance.problem.window_index[t, 0])
    most = interpreted(max_equal_tiles)(staged.context, states, 0, t, r)
    places = itertools.product(*(range(0, c * tile * count, c * tile) for c, tile, count in steps))
    assert max(Counter(map(sum, places)).values()) <= most


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 3), st.sampled_from([1, 2, 4, 6, 12])), min_size=1, max_size=2
    ),
    st.lists(st.tuples(st.integers(0, 1), st.integers(2, 3)), min_size=1, max_size=3),
)
def test_no_outer_loop_spares_a_sliding_tensor_more_than_is_bounded(
    terms: list[tuple[int, int, int]], inner: list[tuple[int, int]]
) -> None:
    """Of each dimension of a window: coefficient, size of a tile, its tiles; then the inner loops along the window."""
    steps = [(terms[number % len(terms)][0], number % len(terms), trips) for number, trips in inner]
    tile = [side for _, side, _ in terms]
    shifts: list[int] = []
    for c, d, trips in steps:
        shifts.append(c * tile[d])
        tile[d] *= trips
    left = tuple(count for _, _, count in terms)
    assume(max(left) > 1)
    names = "ab"[: len(terms)]
    window = " + ".join(f"{c}*{d}" for d, (c, _, _) in zip(names, terms, strict=True)) + " + s"
    sizes = " ".join(f"{d}={side * count}" for d, side, count in zip(names, tile, left, strict=True))
    space = tilewright.space(f"O[{','.join(names)}] += I[{window}] * W[s]; {sizes} s=2", arch="eyeriss")
    instance = _instance(space, timeloop(space), ENERGY)
    layout, t = instance.layout, [tensor.name for tensor in space.problem.tensors].index("I")
    staged = StagedSearch(instance, math.inf, 1, lambda: False)
    states = StateRows(np.zeros((1, layout.numbers)), np.zeros((1, layout.integers), np.int64))
    order = [space.problem.dimension_names.index(d) for d in (*names, "s")]
    states.integers[0, [layout.tile + d for d in order]] = [*tile, 2]
    states.integers[0, layout.window + t] = instance.problem.window_index[t, order[0]]
    states.integers[0, layout.first_shift + t], states.integers[0, layout.total_shift + t] = shifts[0], sum(shifts)
    states.numbers[0, FIRST_TENSOR + PER_TENSOR * t + OVERLAP] = 0.5
    states.numbers[0, FIRST_TENSOR + PER_TENSOR * t + TILE_EQUIVALENTS] = 2.0
    most = interpreted(max_spared)(staged.context, states, 0, t)

    def spared(tile: list[int], left: tuple[int, ...], total: int, sweeps: int) -> float:
        """Tiles per sweep that any further loops and unrollings spare at most."""
        result = 0.0
        for d, (c, _, _) in enumerate(terms):
            for trips in divisors(left[d])[1:]:
                after = [side * trips if e == d else side for e, side in enumerate(tile)]
                rest = tuple(count // trips if e == d else count for e, count in enumerate(left))
                move = c * tile[d] - total
                here = (1.0 if move == 0 else 0.5 if move == shifts[0] else 0.0) * (trips - 1) / (trips * sweeps)
                outside = spared(after, rest, total + c * tile[d], sweeps * trips)
                result = max(result, here + outside, spared(after, rest, total, sweeps))
        return result

    assert spared(tile, left, sum(shifts), 1) <= 2.0 * most * (1 + CLOSE)


def test_a_fanout_that_is_searched_in_parts_proves_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass prunes states above its aim, which is a truncated bound, too."""
    formula = "O[k,p,q] += I[c,p+r,q+s] * W[k,c,r,s]; k=16 c=4 p=16 q=16 r=3 s=3"
    space = tilewright.space(formula, arch="sunstone_conventional", constraints="none")
    evaluator = timeloop(space)
    instance = _instance(space, evaluator, EDP)
    _, costs = _no_bound_is_above(instance, evaluator, EDP, 2000)
    monkeypatch.setattr(staged_search, "INSIDE_SHARE", 1)
    least = float(costs.min())
    plain = StagedSearch(instance, least, 1600, lambda: False)
    parts = StagedSearch(instance, least, 1600, lambda: False, aims=(0.99 * least,))
    late = StagedSearch(instance, least, 1600, lambda: False, aims=(least, 0.99 * least), soon=lambda: True)
    assert isinstance(evaluator, CandidateEvaluator)
    for each in (plain, parts, late):
        complete = each.run()
        assert (complete.bounds <= evaluator.evaluate_candidates(complete.candidates).edp * (1 + CLOSE)).all()
    assert plain.truncation_bound < parts.truncation_bound == late.truncation_bound == 0.99 * least


def test_a_model_without_a_relaxation_is_refused_in_one_sentence() -> None:
    space = SMALL[0]
    model = installed().make(CostModelSpec, "oracle").bind(space.problem, space.architecture)
    result = run("optimal", space, model, EDP)
    assert isinstance(result.error, NotConformableError)
    assert "offers no relaxation" in str(result.error) and "quickflow" in str(result.error)


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_another_model_s_relaxation_will_do(number: int) -> None:
    """A weak relaxation still gives a correct answer, regardless of the gap."""
    space = SMALL[number]
    check(space, PlainEvaluator(space.problem, space.architecture), ENERGY, orders=200)


def test_it_tells_what_it_has_pruned() -> None:
    space = SMALL[-1]
    figures = run("optimal", space, timeloop(space), EDP).figures
    assert figures.keys() >= {"states", "pruned_by_bound", "pruned_by_dominance", "widest"}
    assert all(np.isfinite(value) for value in figures.values())


def test_a_limit_of_memory_leaves_a_gap_and_is_named() -> None:
    problem = library.workload("quickflow_convs/V").layers[0].problem
    space = tilewright.space(problem, arch="eyeriss", constraints="none")
    result = run("optimal", space, timeloop(space), EDP, memory=2)
    whole = run("optimal", space, timeloop(space), EDP)
    assert result.figures["memory_mib"] <= result.figures["memory_limit_mib"] == 2
    assert "gap_by_memory" in result.figures
    assert result.lower_bound is not None and result.lower_bound <= whole.value <= result.value
    assert result.gap is not None and result.gap > 0.001
    assert whole.proved == "yes" and "memory_limit_mib" not in whole.figures and whole.figures["memory_mib"] > 2


def test_a_pass_that_can_prove_no_more_ends() -> None:
    space = tilewright.space("quickflow_convs/V", arch="eyeriss")
    instance = _instance(space, timeloop(space), EDP)
    first = StagedSearch(instance, 1e300, 50, lambda: False)
    assert len(first.run().bounds)
    again = StagedSearch(instance, 1e300, 50, lambda: False, known=first.truncation_bound)
    assert not len(again.run().bounds)
    assert again.truncation_bound <= first.truncation_bound


def test_compulsory_words_of_a_middle_memory_bound_the_cycles() -> None:
    """L2 writes every input and every output, at 32 words per cycle."""
    problem = tilewright.load("O[n,g,p,q] += I[n,g,p+r,q+s] * W[g,r,s]; n=2 g=32 p=4 q=4 r=3 s=3", "problem")
    space = tilewright.space(problem, arch="sunstone_simba", constraints="none")
    result = run("optimal", space, timeloop(space), CYCLES, width=64)
    assert result.lower_bound is not None and result.lower_bound <= result.value
    assert result.lower_bound == pytest.approx((2 * 32 * 6 * 6 + 2 * 32 * 4 * 4) / 32, rel=0.02)
