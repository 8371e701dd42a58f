"""The array form of `timeloop` gives the figures of the scalar form, mapping by mapping."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.profiles import scaled
from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture, Network
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel


@st.composite
def priced(draw: st.DrawFn, roomy: bool = True) -> tuple[Problem, Architecture, list[Mapping]]:
    """A problem, an architecture and a few mappings over one skeleton."""
    problem = draw(problems())
    architecture = draw(architectures(roomy=roomy, widths=True, unlinked=True))
    found = draw(st.lists(mappings(problem, architecture), min_size=1, max_size=4))
    return problem, architecture, [m for m in found if Skeleton.of(m) == Skeleton.of(found[0])]


@scaled(2.5)
@given(case=priced(), options=st.builds(TimeloopOptions))
def test_batch_equals_scalar(case: tuple[Problem, Architecture, list[Mapping]], options: TimeloopOptions) -> None:
    problem, architecture, found = case
    evaluator = TimeloopModel(options).bind(problem, architecture)
    costs = evaluator.evaluate_batch(MappingBatch.pack(problem, found))
    for index, mapping in enumerate(found):
        report = evaluator.explain(mapping)
        assert report.valid == costs.valid[index], report.reasons
        assert report.cycles == costs.cycles[index] or not report.valid
        if report.energy_pj is not None:
            np.testing.assert_allclose(costs.energy_pj[index], report.energy_pj, rtol=1e-12)


@given(case=priced(), costs=st.lists(st.sampled_from([0.0, 0.25, 3.0]), min_size=12, max_size=12), links=st.booleans())
def test_batch_equals_scalar_where_wires_cost_energy(
    case: tuple[Problem, Architecture, list[Mapping]], costs: list[float], links: bool
) -> None:
    problem, architecture, found = case
    clusters = []
    for index, cluster in enumerate(architecture.clusters):
        hop, router, ingress = (costs[(3 * index + each) % len(costs)] for each in range(3))
        network = Network(energy_per_hop_pj=hop, energy_per_router_pj=router, energy_per_ingress_pj=ingress)
        fanout = cluster.fanout.model_copy(update={"network": network})
        clusters.append(cluster.model_copy(update={"fanout": fanout}))
    wired = architecture.model_copy(update={"clusters": tuple(clusters)})
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, wired)
    prices = evaluator.evaluate_batch(MappingBatch.pack(problem, found))
    for index, mapping in enumerate(found):
        report = evaluator.explain(mapping)
        assert report.valid == prices.valid[index]
        if report.energy_pj is not None:
            np.testing.assert_allclose(prices.energy_pj[index], report.energy_pj, rtol=1e-12)


def test_mappings_of_one_batch_have_wires_of_their_own() -> None:
    """Mappings with few deliveries are next to others with many."""
    space = tw.space("quickflow_convs/VIII", "eyeriss")
    names = [cluster.name for cluster in space.architecture.clusters]
    wired = space.architecture.replace({f"{name}.fanout.network.energy_per_hop_pj": 0.5 for name in names})
    evaluator = TimeloopModel(TimeloopOptions()).bind(space.problem, wired)
    drawn = space.sample(np.random.default_rng(3), 48)
    costs = evaluator.evaluate_candidates(drawn)
    assert costs.valid.sum() > 4
    for mapping, valid, energy in zip(drawn, costs.valid.tolist(), costs.energy_pj.tolist(), strict=True):
        assert not valid or evaluator.explain(mapping).energy_pj == pytest.approx(energy, rel=1e-12)


@given(case=priced(roomy=False))
def test_batch_and_scalar_agree_on_validity(case: tuple[Problem, Architecture, list[Mapping]]) -> None:
    problem, architecture, found = case
    evaluator = TimeloopModel(TimeloopOptions()).bind(problem, architecture)
    costs = evaluator.evaluate_batch(MappingBatch.pack(problem, found))
    assert [evaluator.explain(mapping).valid for mapping in found] == costs.valid.tolist()
    assert np.isinf(costs.energy_pj[~costs.valid]).all() and np.isinf(costs.cycles[~costs.valid]).all()


@given(case=priced(), random=st.randoms(use_true_random=False))
def test_a_permuted_batch_has_permuted_prices(
    case: tuple[Problem, Architecture, list[Mapping]], random: st.DataObject
) -> None:
    problem, architecture, found = case
    evaluator = TimeloopModel(TimeloopOptions()).bind(problem, architecture)
    batch = MappingBatch.pack(problem, found)
    order = np.array(random.sample(range(len(found)), len(found)))  # type: ignore[attr-defined]
    plain, mixed = evaluator.evaluate_batch(batch), evaluator.evaluate_batch(batch.take(order))
    np.testing.assert_array_equal(mixed.energy_pj, plain.energy_pj[order])
    np.testing.assert_array_equal(mixed.cycles, plain.cycles[order])


TINY = Architecture.from_yaml(
    """
    name: tiny
    clusters: [{name: D, memories: [{name: D, read_energy_pj: 1, write_energy_pj: 1}]}]
    compute: {energy_per_operation_pj: 1}
    """
)


def product(size: int) -> Problem:
    problem = tw.load(f"nk,km->nm; n={size} k={size} m={size}")
    assert isinstance(problem, Problem)
    return problem


def test_refuses_problems_whose_counts_would_not_be_exact() -> None:
    with pytest.raises(NotConformableError, match=r"2\*\*53"):
        TimeloopModel(TimeloopOptions()).bind(product(2**20), TINY)


@pytest.mark.parametrize("size", [2**13 - 1, 2**13, 2**17])
def test_large_counts_are_exact(size: int) -> None:
    problem = product(size)
    order = problem.dimension_names
    outer, inner = (
        Entry(target="D", temporal_tile_sizes=tile, temporal_order=order, spatial_tile_sizes=tile, keep=keep)
        for tile, keep in (
            (FrozenDict(dict.fromkeys(order, size)), problem.tensor_names),
            (FrozenDict(dict.fromkeys(order, 1)), None),
        )
    )
    mapping = Mapping(entries=(outer, inner))
    report = TimeloopModel(TimeloopOptions()).bind(problem, TINY).explain(mapping)
    counts = report.levels[0].tensors
    assert [counts[tensor.name].reads for tensor in problem.operands] == [size**3] * 2
    assert counts[problem.output.name].updates == size**3


def test_more_units_than_there_is_memory_for_are_refused() -> None:
    space = tw.space("quickflow_convs/VIII", "eyeriss")
    wide = space.architecture.replace({"Column.fanout.size": 2**18})
    with pytest.raises(NotConformableError, match="compute units; expected at most 1,048,576"):
        TimeloopModel(TimeloopOptions()).bind(space.problem, wide)


def test_more_memories_than_a_mapping_can_explain_are_refused() -> None:
    """Before a search, whose mappings could not be explained."""
    space = tw.space("nk,km->nm; n=4 k=4 m=4", "eyeriss")
    dram = {"technology": "dram", "read_energy_pj": 1, "write_energy_pj": 1}
    clusters = [{"name": f"C{n}", "memories": [{"name": f"M{n}"} | dram]} for n in range(100)]
    deep = Architecture.model_validate(
        {"name": "deep", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}}
    )
    TimeloopModel(TimeloopOptions()).bind(space.problem, deep)
    dimensions = {f"d{n}": 1 for n in range(6)}
    tensors = [
        {"name": "A", "role": "input", "projection": list(dimensions)},
        {"name": "Z", "role": "output", "projection": []},
    ]
    wide = Problem.model_validate({"name": "wide", "dimensions": dimensions, "tensors": tensors})
    with pytest.raises(NotConformableError, match="memories times dimensions are 600; expected at most 500"):
        TimeloopModel(TimeloopOptions()).bind(wide, deep)


def test_more_loops_than_there_is_memory_for_are_refused() -> None:
    space = tw.space("nk,km->nm; n=4 k=4 m=4", "eyeriss")
    problem, whole, one = space.problem, {"n": 4, "k": 4, "m": 4}, {"n": 1, "k": 1, "m": 1}
    within = [{"target": "DRAM", "keep": []} for _ in range(2000)]
    innermost = {"target": "PE", "temporal_tile_sizes": one, "temporal_order": list(one)}
    entries = [{"target": "DRAM", "keep": problem.tensor_names, "temporal_tile_sizes": whole}, *within]
    mapping = Mapping.model_validate({"entries": [*entries, innermost]})
    with pytest.raises(NotConformableError, match="cached numbers; expected at most 16,777,216"):
        TimeloopModel(TimeloopOptions()).bind(problem, space.architecture).explain(mapping)


def test_one_evaluator_serves_several_threads() -> None:
    space = tw.space("quickflow_convs/VIII", "eyeriss")
    evaluator = TimeloopModel(TimeloopOptions()).dense(space.problem, space.architecture)
    drawn = [space.sample(np.random.default_rng(seed), 2000) for seed in range(4)]
    alone = [evaluator.evaluate_candidates(each).energy_pj for each in drawn]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda each: evaluator.evaluate_candidates(each).energy_pj, 5 * drawn))
    for index, found in enumerate(together):
        np.testing.assert_array_equal(found, alone[index % len(drawn)])


def test_an_evaluator_keeps_few_kernels_and_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uneven spaces have many skeletons, each with a kernel of up to 50 MB. A report has a kernel of its own."""
    monkeypatch.setattr("tilewright_costmodels.timeloop.model.MAX_KERNELS", 1)
    space = tw.space("nk,km->nm; n=4 k=4 m=4", "eyeriss")
    evaluator = TimeloopModel(TimeloopOptions()).dense(space.problem, space.architecture)
    drawn = space.sample(np.random.default_rng(1), 20)
    costs = evaluator.evaluate_candidates(drawn)
    for index in np.flatnonzero(costs.valid):
        report = evaluator.explain(drawn[int(index)])
        again = evaluator.evaluate_candidates(drawn.take(slice(index, index + 1)))
        assert (report.cycles, again.cycles[0]) == (costs.cycles[index],) * 2
        assert len(evaluator._kernels) == 1
