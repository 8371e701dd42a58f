"""Tiles that do not divide: `timeloop` counts what is executed, where it does so of tiles that divide.

`PYTHONPATH=tests python -m support.executed 100000` tries as many.
"""

import itertools
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.executed import both, compared, unequal
from support.profiles import scaled
from support.ragged import Case, drawn, ragged
from support.traits import Walk, bounds, used
from tilewright.mapspace.batch import MappingBatch
from tilewright.schema.architecture import Architecture, Compute, Memory
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

pytestmark = pytest.mark.exhaustive

DATA = Path(__file__).parents[2] / "data"


@given(ragged(plain=True))
def test_all_is_as_executed_where_tiles_are_equal_or_disjoint(case: Case) -> None:
    assert list(unequal(case)) == []


@given(ragged())
def test_memories_deliver_each_distinct_word_of_an_operand(case: Case) -> None:
    """Lemma 10 of docs/optimal_proof.md, unless two dimensions of a window are unrolled."""
    problem, _, mapping = case
    _, found = both(case)
    points = np.array(list(itertools.product(*map(range, problem.sizes))))
    unrolled = {loop.dimension for loop in mapping.loops() if loop.spatial}
    for tensor in problem.tensors:
        if tensor.is_output or any(len(unrolled & set(rank.terms)) > 1 for rank in tensor.projection):
            continue
        ranks = [[rank.terms.get(name, 0) for name in problem.dimension_names] for rank in tensor.projection]
        words = points @ np.array(ranks, dtype=np.int64).reshape(-1, len(problem.sizes)).T
        for level in found.levels:
            row = level.tensors.get(tensor.name)
            if row is not None and row.reads:
                assert (row.reads + 0.5) * row.instances >= len(np.unique(words, axis=0)), (tensor.name, level.name)


@given(ragged(), st.booleans())
def test_every_difference_has_traits_and_stays_within_their_bounds(case: Case, links: bool) -> None:
    assert compared(case, links).faults == ()


@pytest.mark.parametrize("seed", [1, 6, 36, 488])
def test_more_than_the_bounds_is_seen(seed: int) -> None:
    case = drawn(Random(f"{seed} False"), plain=False)
    assert case is not None
    _, found = both(case, links=seed % 2 > 0)
    walk = Walk(case)
    for difference, _, share in compared(case, seed % 2 > 0).differences:
        assert share <= 1.0
        allowed = bounds(walk, found, difference)
        for sign, side in ((-1, 0), (1, 1)):
            words = (
                math.ceil(sum(allowed[cause.code][side] for cause in difference.causes if cause.code in allowed)) + 2
            )
            beyond = difference.model_copy(update={"counted": difference.executed + sign * words})
            assert used(walk, found, beyond)[1] > 1.0


ONCE_FOUND = {
    778: "two loops over a dimension that is alone in its coordinate",
    1002291: "two loops over a dimension that is alone in its coordinate",
    53593: "less than half a word passed on by the average neighbour",
    215: "short last tiles that have holes where whole ones have none",
    194: "partial sums of an idle sub-cluster",
    488: "partial sums of an idle sub-cluster",
    7007621: "boxes with holes of an idle sub-cluster, of which nothing leaves",
    7000788: "an idle sub-cluster and its neighbour, a step further, have partial sums of the same words",
    20003403: "an idle sub-cluster and its neighbour, a step further, have equal tiles",
    7009923: "tiles with holes, disjoint from the neighbours' and not from those of the next but one",
    7003973: "words passed on to a level that bypasses the tensor and then asks for fewer",
    7002891: "the same of an operand",
    7013987: "equal tiles, of which some are short and so move seldom",
    7018954: "a tile that seems to stay, and is larger than the short one before",
}


@pytest.mark.parametrize("seed", ONCE_FOUND)
def test_what_random_mappings_once_found(seed: int) -> None:
    case = drawn(Random(f"{seed} False"), plain=False)
    assert case is not None and compared(case, seed % 2 > 0).faults == (), ONCE_FOUND[seed]


def with_widths(architecture: Architecture, bits: dict[str, int]) -> Architecture:
    """Return a copy whose memories have words of 16 bits and values of these bits."""
    document = architecture.model_dump()
    for cluster in document["clusters"]:
        for memory in cluster["memories"]:
            memory.update(word_bits=16, bits_per_value=bits)
    return Architecture.model_validate(document)


@given(ragged(), st.booleans(), st.sampled_from([None, 4, 12, 16]))
def test_batch_equals_scalar(case: Case, links: bool, bits: int | None) -> None:
    problem, architecture, mapping = case
    if bits is not None:
        architecture = with_widths(architecture, {problem.tensor_names[-1]: bits})
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture)
    report = evaluator.explain(mapping)
    costs = evaluator.evaluate_batch(MappingBatch.pack(problem, [mapping, mapping]))
    assert costs.valid.all() and report.contradiction() is None and report.energy_pj is not None
    np.testing.assert_allclose(costs.energy_pj, report.energy_pj, rtol=1e-12)
    assert (costs.cycles == report.cycles).all()


def test_half_a_word_is_rounded_alike_in_cycles_and_limits() -> None:
    """Two of three values go to one unit and one to another, in two passes with their sums: 6.5 words on average."""
    problem = tw.Problem.from_yaml(
        "{name: halves, dimensions: {B: 3, G: 2}, tensors: [{name: T0, role: input, projection: [B]}, "
        "{name: T1, role: weight, projection: []}, {name: T2, role: output, projection: []}]}"
    )
    architecture = tw.Architecture.from_yaml(
        "{name: halves, clusters: [{name: C0, memories: [{name: M0, read_energy_pj: 1, write_energy_pj: 1}], "
        "fanout: {size: 2, multicast: false, reduction: false}}, {name: C1, memories: [{name: M1, read_energy_pj: 1, "
        "write_energy_pj: 1, read_bandwidth_words_per_cycle: 0.5}], fanout: {size: 2, multicast: false, reduction: false}}], "
        "compute: {energy_per_operation_pj: 1}}"
    )
    apart, outer = "unicast: [T0, T1, T2]", "temporal_order: [G, B], temporal_tile_sizes: {B: 2, G: 1}"
    mapping = tw.Mapping.from_yaml(
        f"{{entries: [{{target: C0, keep: [T0, T1, T2], temporal_tile_sizes: {{B: 3, G: 2}}, {apart}}}, "
        f"{{target: C0, {outer}, spatial_tile_sizes: {{B: 2, G: 1}}, {apart}}}, "
        f"{{target: C1, keep: [T0, T2], {outer}, {apart}}}, "
        f"{{target: C1, {outer}, spatial_tile_sizes: {{B: 1, G: 1}}, {apart}}}]}}"
    )
    report = TimeloopModel(TimeloopOptions()).bind(problem, architecture).explain(mapping)
    assert (report.cycles, report.contradiction()) == (14, None)


@pytest.mark.parametrize("case", json.loads((DATA / "ragged_port_cycles.json").read_text()))
def test_cycles_of_ports_are_those_of_the_report(case: dict[str, Any]) -> None:
    """In two cases a port is slower than the operations only by rounding; in one a word consists of several slices."""
    problem, mapping = tw.Problem.model_validate(case["problem"]), tw.Mapping.model_validate(case["mapping"])
    architecture = tw.Architecture.model_validate(case["architecture"])
    evaluator = TimeloopModel(TimeloopOptions()).bind(problem, architecture)
    report = evaluator.explain(mapping)
    assert (report.cycles, report.contradiction()) == (case["cycles"], None)
    assert evaluator.evaluate_batch(MappingBatch.pack(problem, [mapping])).cycles == [case["cycles"]]


@pytest.mark.parametrize("seed", [811, 893, 913, 1263, 1327])
def test_no_bound_trusts_in_averages(seed: int) -> None:
    """If neighbours forward words, words of different tiles may seem to arrive less than once."""
    for plain in (False, True):
        case = drawn(Random(f"{seed} {plain}"), plain=plain)
        assert case is not None
        no_bound_is_above_the_cost(case, links=True)


@given(ragged(), st.booleans())
def test_no_bound_is_above_the_cost(case: Case, links: bool) -> None:
    no_bound_is_above_the_cost(case, links)


@scaled(0.25)
@given(ragged(), st.booleans())
def test_no_count_that_bounds_take_for_sure_is_above_that_of_the_mapping(case: Case, links: bool) -> None:
    """Each action of each memory has energy alone: what the others leave out hides nothing."""
    problem, architecture, mapping = case
    for memory in architecture.memories:
        for action in ACTIONS:
            no_bound_is_above_the_cost((problem, costing(architecture, memory.name, action), mapping), links)


def test_half_a_word_is_told_as_executed() -> None:
    """An average of 12.5 words, which floating point has a little less of."""
    case = drawn(Random("8026659 True"), plain=True)
    assert case is not None and list(unequal(case)) == []


@pytest.mark.parametrize("seed", [54, 98])
def test_average_instances_move_parts_of_words(seed: int) -> None:
    """Where an instance of outputs adds up 6.5 words, a bound once took 7."""
    case = drawn(Random(f"{seed} True"), plain=True)
    assert case is not None
    problem, architecture, mapping = case
    no_bound_is_above_the_cost((problem, costing(architecture, "M4", "update_energy_pj"), mapping), links=False)


ACTIONS = "read_energy_pj", "write_energy_pj", "update_energy_pj"


def costing(architecture: Architecture, name: str, action: str) -> Architecture:
    """Return the architecture with energy for only one action of one memory."""

    def memory(each: Memory) -> Memory:
        nothing = dict.fromkeys((*ACTIONS, "leakage_pj_per_cycle"), 0.0)
        return each.model_copy(update=nothing | ({action: 1.0} if each.name == name else {}))

    clusters = tuple(
        cluster.model_copy(update={"memories": tuple(map(memory, cluster.memories))})
        for cluster in architecture.clusters
    )
    return architecture.model_copy(update={"clusters": clusters, "compute": Compute(energy_per_operation_pj=0.0)})


def no_bound_is_above_the_cost(case: Case, links: bool) -> None:
    problem, architecture, mapping = case
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).dense(problem, architecture)
    batch = MappingBatch.pack(problem, [mapping])
    costs = evaluator.evaluate_batch(batch)
    for entries in range(1, len(batch.skeleton) + 1):
        bounds = evaluator.bound(batch, entries)
        assert (
            bounds.valid.all() and (bounds.energy_pj <= costs.energy_pj).all() and (bounds.cycles <= costs.cycles).all()
        )


@pytest.mark.parametrize("arch", ["eyeriss", "simba"])
def test_trips_of_a_ragged_space_cost_what_their_tile_sizes_do(arch: str) -> None:
    space = tw.space("quickflow_convs/VIII", arch, factors="ragged")
    drawn = space.sample(np.random.default_rng(5), 2000)
    for links in (True, False):
        evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).dense(space.problem, space.architecture)
        costs, tiles = evaluator.evaluate_candidates(drawn), evaluator.evaluate_batch(drawn.batch())
        valid = np.flatnonzero(costs.valid)
        assert len(valid) and tiles.valid[valid].all()
        np.testing.assert_array_equal(costs.energy_pj[valid], tiles.energy_pj[valid])
        np.testing.assert_array_equal(costs.cycles[valid], tiles.cycles[valid])
        report = evaluator.explain(drawn[int(valid[0])])
        assert report.energy_pj == pytest.approx(costs.energy_pj[valid[0]], rel=1e-12)
        assert report.cycles == costs.cycles[valid[0]]
