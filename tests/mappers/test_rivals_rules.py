"""The rules of single rivals: when they stop, what they try, what they leave out."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profiles import scaled
from support.recorded.searches import RecordedRun, factorflow, sunstone
from tilewright.errors import NotConformableError, NoValidMappingError
from tilewright.mapspace.batch import Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, reuse_orders, used, with_orders
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Budget, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.run.search import search
from tilewright.schema.constraints import KeepRule, SpatialRule, TemporalRule, TripRange, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.testing.corpus import SAMPLES, cramped
from tilewright.testing.reference import PlainEvaluator
from tilewright_mappers.loma import allocate, distinct_orders, merged
from tilewright_mappers.marvel import least_traffic, words_moved
from tilewright_mappers.timeloop_random import SMALLEST, StopRules

FLAT, ARRAY, CONV = (SAMPLES[number].space for number in (1, 2, 3))


def run(name: str, space: MapSpace, budget: Budget = Budget(), **options: object) -> Result:  # noqa: B008
    evaluator = PlainEvaluator(space.problem, space.architecture)
    return search(installed().make(MapperSpec, name, options), Task(space), evaluator, budget, seed=1)


def placement(space: MapSpace) -> Placement:
    return Placement.of(space, np.random.default_rng(0))


# -- Timeloop's stop rules ---------------------------------------------------------------------------------------


@given(
    st.lists(st.one_of(st.just(math.inf), st.integers(1, 30).map(float)), max_size=60),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_the_stop_rules_count_as_if_mappings_came_one_by_one(
    prices: list[float], sizes: list[int], timeout: int, victory: int
) -> None:
    rules = StopRules(timeout, victory)
    invalid = suboptimal = 0
    best = math.inf
    rest, seen = list(prices), 0
    for size in itertools.cycle(sizes):
        if not rest:
            break
        rules.see(np.array(rest[:size]))
        for price in rest[:size]:
            if math.isinf(price):
                invalid += 1
            else:
                invalid, suboptimal = 0, 0 if price < best else suboptimal + 1
                best = min(best, price)
        rest, seen = rest[size:], seen + size
        assert (rules.invalid, rules.suboptimal, rules.best) == (invalid, suboptimal, best)
        left = [limit - count for limit, count in ((timeout, invalid), (victory, suboptimal)) if limit]
        assert rules.earliest == min(left, default=math.inf)
        assert rules.met == (rules.earliest <= 0)


def test_the_random_search_ends_by_its_rules() -> None:
    """By the victory condition where all is valid, by the timeout where nothing is, by nothing if both are off."""
    assert run("timeloop_random", FLAT, victory=40).stop == "finished"
    everything = cramped(SAMPLES[1]).space
    lost = run("timeloop_random", everything, timeout=100)
    assert (lost.stop, lost.best) == ("finished", None) and 100 <= lost.evaluated < 100 + SMALLEST
    assert run("timeloop_random", FLAT, Budget(5000), timeout=0, victory=0).stop == "evaluations"
    assert run("timeloop_hybrid", FLAT, victory=40).stop == "finished"


def test_reordered_lists_the_first_orders_of_every_mapping() -> None:
    """All different, all of the space, the factors unchanged; and all orders there are if as many are asked for."""
    batch = ARRAY.sample(np.random.default_rng(2), 40)
    some = ARRAY.reordered(batch, 5)
    found = Counter(row.tobytes() for row in some.trips)
    assert max(found.values()) <= 5 * max(Counter(row.tobytes() for row in batch.trips).values())
    assert all(ARRAY.contains(mapping) for mapping in some)

    one = batch.take(slice(0, 1))
    every = ARRAY.reordered(one, 10**6)
    non_unit = (one.trips > 1)[0, list(ARRAY.temporal_slots)].sum(axis=1)
    assert len(every) == math.prod(math.factorial(int(k)) for k in non_unit)
    assert len({mapping.model_dump_json() for mapping in every}) == len(every)
    assert (every.trips == one.trips).all() and (every.keeps == one.keeps).all()


# -- constructive placement ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [FLAT, ARRAY], ids=str)
def test_placement_inwards_finds_every_tiling_that_fits(space: MapSpace) -> None:
    """Slot by slot from the inside it reaches exactly the factors of all mappings of the space that fit."""
    moves = placement(space)
    moves.most = 10**6
    rows = moves.unroll(moves.start)
    for slot in reversed(space.temporal_slots[1:]):
        rows = moves.into(slot, rows)
    wanted = set()
    for batch in space.enumerate():
        wanted |= {row.tobytes() for row in batch.take(batch.fits()).trips}
        if len(wanted) > 10**5:
            break
    assert not moves.thinned
    assert {row.tobytes() for row in rows.trips} == wanted and len(rows) == len(wanted)


def test_placement_obeys_rules() -> None:
    rules = Variant(
        temporal=(TemporalRule(memory="Buffer", only=("M", "K"), factors=FrozenDict({"K": TripRange(max=1)})),),
        spatial=(SpatialRule(cluster="Buffer", only=("N",), min_utilization=0.5),),
    )
    space = MapSpace.of(ARRAY.problem, ARRAY.architecture, rules)
    moves = placement(space)
    rows = moves.unroll(moves.start)
    for slot in reversed(space.temporal_slots[1:]):
        rows = moves.into(slot, rows)
    assert len(rows) > 10 and all(space.contains(mapping) for mapping in rows)


def test_orders_are_combined_once() -> None:
    """Every row with all combinations of orders that differ in non-unit loops."""
    rows = Candidates(ARRAY, ARRAY.sample(np.random.default_rng(1), 30).trips)
    orders = reuse_orders(ARRAY.problem)
    made = with_orders(rows, [orders] * len(ARRAY.temporal_slots))
    assert all(ARRAY.contains(mapping) for mapping in made)
    for row in rows.trips:
        mine = made.orders[(made.trips == row).all(axis=(1, 2))]
        wanted = [
            {tuple(d for d in each if row[slot, d] > 1) for each in orders.tolist()} for slot in ARRAY.temporal_slots
        ]
        copies = int((rows.trips == row).all(axis=(1, 2)).sum())
        assert len(mine) == copies * math.prod(map(len, wanted))


def test_what_cannot_fit_is_said() -> None:
    with pytest.raises(NoValidMappingError, match="no mapping to start from"):
        Placement.each(cramped(SAMPLES[1]).space, np.random.default_rng(0))
    assert isinstance(run("local", cramped(SAMPLES[1]).space).error, NoValidMappingError)


def test_every_choice_of_what_is_kept_is_tried() -> None:
    rules = Variant(keep=(KeepRule(memory="Buffer", free=("input", "weight")),))
    space = MapSpace.of(ARRAY.problem, ARRAY.architecture, rules)
    assert len(Placement.each(space, np.random.default_rng(0))) == 4
    assert run("local", space).evaluated == 4


@given(st.integers(0, 2**32))
def test_neighbours_by_powers_are_several_single_moves(seed: int) -> None:
    """They contain the single moves, and differ from their origin in one dimension of two slots."""
    batch = ARRAY.sample(np.random.default_rng(seed), 3)
    single, _ = ARRAY.neighbours(batch)
    several, origin = ARRAY.neighbours(batch, powers=True)
    assert {row.tobytes() for row in single.trips} <= {row.tobytes() for row in several.trips}
    changed = several.trips != batch.trips[origin]
    assert (changed.sum(axis=(1, 2)) == 2).all() and (changed.any(axis=1).sum(axis=1) == 1).all()
    assert all(ARRAY.contains(mapping) for mapping in several)


# -- LOMA --------------------------------------------------------------------------------------------------------


def test_loop_prime_factors_are_merged_down_to_the_limit() -> None:
    """The two of one dimension with the least product first; one per dimension stays."""
    factors = [(0, 2), (0, 2), (0, 3), (1, 5), (1, 7)]
    assert merged(factors, 4) == [(0, 3), (0, 4), (1, 5), (1, 7)]
    assert merged(factors, 3) == [(0, 12), (1, 5), (1, 7)]
    assert merged(factors, 1) == [(0, 12), (1, 35)]
    assert merged(factors, 9) == sorted(factors)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([2, 3])), max_size=6))
def test_orders_of_factors_are_all_and_different(factors: list[tuple[int, int]]) -> None:
    orders = list(distinct_orders(factors))
    wanted = math.factorial(len(factors)) // math.prod(math.factorial(n) for n in Counter(factors).values())
    assert len(orders) == len(set(orders)) == wanted


@scaled(0.3)
@given(st.integers(0, 2**32))
def test_loops_fill_memories_from_the_inside(seed: int) -> None:
    """What is allocated fits, and no memory could have taken the next loop as well."""
    rng = np.random.default_rng(seed)
    moves = placement(FLAT)
    factors = [(0, 2), (0, 2), (1, 2), (1, 3), (2, 3)]  # of M = 4, N = 6, K = 3
    loops: Ints = np.array([[factors[i] for i in rng.permutation(len(factors))]], dtype=np.int64)
    made = allocate(moves, moves.start, loops)
    assert made.fits().all() and FLAT.contains(made[0])
    trips = made.trips[0].copy()
    inner = trips[1]
    taken = 0
    running = np.ones(3, dtype=np.int64)
    while (running != inner).any():
        running[loops[0, taken, 0]] *= loops[0, taken, 1]
        taken += 1
    if taken < len(factors):
        dim, factor = loops[0, taken]
        trips[1, dim] *= factor
        trips[0, dim] //= factor
        assert not Candidates(FLAT, trips[None]).fits()[0]


def test_loma_ends_when_it_has_seen_all_orders() -> None:
    found = run("loma", FLAT)  # M = 2 x 2, N = 2 x 3, K = 3
    assert (found.stop, found.evaluated, found.valid) == ("finished", 60, 60)
    assert run("loma", FLAT, limit=3).evaluated == 6


# -- thresholds, decoupling, unrolling ---------------------------------------------------------------------------


def test_dmazerunner_proposes_only_what_reaches_its_thresholds() -> None:
    mapper = installed().make(MapperSpec, "dmazerunner", {"array": 0.75, "inner": 0.5, "outer": 0.25})
    proposals = mapper.search(Task(ARRAY), Run(np.random.default_rng(0), Budget()))
    output = ARRAY.problem.output.dimensions
    moves, seen = placement(ARRAY), 0
    for batch in proposals:
        assert isinstance(batch, Candidates)
        trips = batch.trips
        seen += len(trips)
        assert (used(batch) >= 0.75 * 8).all()
        shares = [moves.fill(batch, slot) for slot in reversed(ARRAY.temporal_slots[1:])]
        assert (shares[0] >= 0.5).all() and (shares[1] >= 0.25).all()
        reduced = [d for d, name in enumerate(ARRAY.problem.dimensions) if name not in output]
        assert (trips[:, [i for i, slot in enumerate(ARRAY.slots) if slot.spatial]][..., reduced] == 1).all()
    assert seen > 0


def test_dmazerunner_refuses_rather_than_relaxes() -> None:
    found = run("dmazerunner", ARRAY, array=1.0, inner=1.0, outer=1.0)
    assert isinstance(found.error, NotConformableError) and "uses 100% of the array" in str(found.error)


@scaled(0.4)
@given(st.integers(0, 2**32), st.sampled_from([FLAT.problem, CONV.problem]))
def test_words_moved_are_those_of_a_walk_over_the_loops(seed: int, problem: Problem) -> None:
    """Tiles visited one by one: a tensor's tile is fetched whenever it is another one than before."""
    rng = np.random.default_rng(seed)
    dims = len(problem.sizes)
    trips = np.array([int(rng.choice([d for d in range(1, size + 1) if size % d == 0])) for size in problem.sizes])
    order = rng.permutation(dims).astype(np.int8)
    tiles = np.array(problem.sizes) // trips
    words = 0.0
    for tensor in problem.tensors:
        mine = [d for d, name in enumerate(problem.dimensions) if name in tensor.dimensions]
        fetched, before = 0, None
        for visit in itertools.product(*(range(int(trips[d])) for d in order)):
            here = tuple(visit[list(order).index(d)] for d in mine)
            fetched += here != before
            before = here
        size = problem.tile_words(tensor, dict(zip(problem.dimensions, tiles.tolist(), strict=True)))
        words += 2 * fetched * size - problem.tensor_words(tensor) if tensor.is_output else fetched * size
    assert words_moved(problem, tiles[None], trips[None], order)[0] == pytest.approx(words)


def test_marvel_fixes_the_tile_that_moves_least() -> None:
    """All its proposals share the loops outside of the chip, and no tile above the threshold moves fewer words."""
    moves = placement(CONV)
    start, order = least_traffic(moves, 0.5)
    mapper = installed().make(MapperSpec, "marvel", {"memory": 0.5})
    outer = CONV.temporal_slots[0]
    for batch in itertools.islice(mapper.search(Task(CONV), Run(np.random.default_rng(0), Budget())), 20):
        assert isinstance(batch, Candidates)
        assert (batch.trips[:, outer] == start.trips[0, outer]).all()

    sizes = np.array(CONV.problem.sizes)

    def words(rows: Candidates, by: Positions) -> float:
        return float(words_moved(CONV.problem, sizes // rows.trips[:, outer], rows.trips[:, outer], by).min())

    rows = moves.into(CONV.temporal_slots[1], moves.start)
    rows = rows.take(moves.fill(rows, CONV.temporal_slots[1]) >= 0.5)
    assert words(start, order) == min(words(rows, each.astype(np.int8)) for each in reuse_orders(CONV.problem))


def test_interstellar_unrolls_channels() -> None:
    mapper = installed().make(MapperSpec, "interstellar")
    names = CONV.problem.dimension_names
    for batch in itertools.islice(mapper.search(Task(CONV), Run(np.random.default_rng(0), Budget())), 20):
        assert isinstance(batch, Candidates)
        trips = batch.trips[:, CONV.spatial_slots].prod(axis=1)
        assert {name for name, on in zip(names, (trips > 1).any(axis=0), strict=True) if on} == {"K", "C"}


# -- FactorFlow --------------------------------------------------------------------------------------------------

RUNS = [each for each in factorflow() if each.fits]


@pytest.mark.parametrize("recorded", RUNS[::6], ids=str)
def test_factorflow_does_as_well_as_the_original(recorded: RecordedRun) -> None:
    """No worse than the mapping that FactorFlow found, both evaluated by the same model."""
    space = recorded.space
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    theirs = recorded.mapping
    assert space.contains(theirs[0])
    price = float(evaluator.evaluate_batch(theirs).edp[0])
    assert price == pytest.approx(recorded.edp_pj_cycles, rel=0.15)  # their model leaves a little out
    found = search(installed().make(MapperSpec, "factorflow"), Task(space), evaluator, Budget())
    assert found.stop == "finished" and found.value <= price * (1 + 1e-9)


def test_mappings_that_do_not_fit_are_known() -> None:
    """FactorFlow's check of capacities leaves strides out; ours does not."""
    for recorded in factorflow():
        assert recorded.candidates.fits()[0] == recorded.fits, str(recorded)


@pytest.mark.parametrize("recorded", sunstone(), ids=str)
def test_sunstones_recorded_mappings_are_of_the_space(recorded: RecordedRun) -> None:
    """Its model has no bandwidth of L1, by which the kernels are bound here."""
    space = recorded.space
    assert space.contains(recorded.mapping[0]) and recorded.candidates.fits()[0]
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    price = float(evaluator.evaluate_batch(recorded.mapping).edp[0])
    assert 0.95 < price / recorded.edp_pj_cycles < (1.0001 if recorded.workload == "sunstone_layers" else 1.7)
