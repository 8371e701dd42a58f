"""Uneven spaces: arrangements of storage entries, their exact size, and proofs over all of them."""

from __future__ import annotations

import math

import pytest

import tilewright as tw
from support.profiles import first
from support.proofs.checking import check_uneven
from support.proofs.drawing import draw
from tilewright.errors import InputError, NotConformableError
from tilewright.mapspace.arrangements import arrangements, count_uneven
from tilewright.mapspace.space import MapSpace
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapping import Mapping

GEMM = "nk,km->nm; n=2 k=2 m=2"
ORDERED = {
    "kind": "constraints",
    "name": "output_outside",
    "variants": [
        {
            "storage": [
                {
                    "cluster": "GlobalBuffer",
                    "entries": [
                        {"memory": "GlobalBuffer", "tensors": ["output"]},
                        {"memory": "GlobalBuffer", "tensors": ["input"]},
                    ],
                }
            ]
        }
    ],
}


def nest(mapping: Mapping) -> tuple[object, ...]:
    """Return loops and storage from the outside in; entries of a cluster without loops between are one."""
    found: list[tuple[str, frozenset[object]] | tuple[str, str, int]] = []
    for index, entry in enumerate(mapping.entries):
        loops = [loop for loop in mapping.loops() if loop.entry == index]
        found += [("step", loop.dimension, loop.trips) for loop in loops if not loop.spatial]
        if entry.keep is not None:
            kept = frozenset(entry.keep)
            if found and found[-1][0] == entry.target:
                kept |= found.pop()[1]  # type: ignore[operator]
            found.append((entry.target, kept))
        found += [(f"unroll over {entry.target}", loop.dimension, loop.trips) for loop in loops if loop.spatial]
    return tuple(found)


@pytest.mark.parametrize(("arch", "count"), first(2, ("gemmini", 2), ("simba", 4), ("eyeriss", 12)))
def test_an_uneven_space_is_counted_exactly(arch: str, count: int) -> None:
    even = tw.space(GEMM, arch, constraints="none")
    spaces = arrangements(even)
    assert len(spaces) == count
    nests = {nest(mapping) for space in spaces for part in space.enumerate() for mapping in part}
    assert len(nests) == count_uneven(even) > even.size


def test_arrangements_contain_only_mappings_of_their_own_order() -> None:
    first, second = arrangements(tw.space(GEMM, "gemmini", constraints="none"))
    mapping = next(iter(first.enumerate()))[0]
    assert first.contains(mapping)
    (reason,) = {each.code for each in second.contains(mapping).reasons}
    assert reason == "keeps"


def test_a_storage_rule_fixes_the_order() -> None:
    space = tw.space(GEMM, "eyeriss", constraints=ORDERED)
    held = [entry.tensors for entry in space.skeleton.entries if entry.target == "GlobalBuffer" and entry.holds]
    assert held == [("output",), ("input",)]
    assert len(arrangements(space)) == 6  # the orders of the registers
    assert Constraints.model_validate(Constraints.model_validate(ORDERED).model_dump()) == Constraints.model_validate(
        ORDERED
    )
    layer = tw.map(GEMM, "eyeriss", constraints=ORDERED).layers[0]
    assert layer.result is not None and layer.result.proved == "yes"


@pytest.mark.parametrize(
    ("cluster", "tensors", "message"),
    [
        ("GlobalBuffer", ["input"], "0 entries for .* \\(output\\) in memory GlobalBuffer, expected one"),
        ("GlobalBuffer", ["input", "output", "A", "B"], None),
        ("DRAM", ["input"], "unknown inner cluster 'DRAM'"),
        ("PE", ["input"], "unknown memory of PE 'GlobalBuffer'"),
    ],
)
def test_a_wrong_storage_rule_is_an_input_error(cluster: str, tensors: list[str], message: str | None) -> None:
    entries = [{"memory": "GlobalBuffer", "tensors": tensors}]
    rules = {"kind": "constraints", "name": "c", "variants": [{"storage": [{"cluster": cluster, "entries": entries}]}]}
    if message is None:
        assert tw.space(GEMM, "eyeriss", constraints=rules).size
        return
    with pytest.raises(InputError, match=message):
        tw.space(GEMM, "eyeriss", constraints=rules)


def test_too_many_arrangements_are_refused() -> None:
    problem = "ab,bc,cd,de,ef,fg->ag; a=2 b=2 c=2 d=2 e=2 f=2 g=2"
    with pytest.raises(InputError, match="orders of storage entries"):
        arrangements(tw.space(problem, "sunstone_edge_unified", constraints="none"))


def test_a_rule_between_the_entries_is_not_counted() -> None:
    rules = {"kind": "constraints", "name": "c", "variants": [{"temporal": [{"memory": "InRegister", "only": ["n"]}]}]}
    with pytest.raises(InputError, match="not counted under a rule for the loops inside memory InRegister"):
        count_uneven(tw.space(GEMM, "eyeriss", constraints=rules))


def test_models_of_even_mappings_are_refused_by_name() -> None:
    report = tw.map("nk,km->nm; n=4 k=4 m=4", "union_edge", mapper="timeloop_random", model="maestro", uneven=True)
    (layer,) = report.layers
    assert isinstance(layer.error, NotConformableError) and layer.error.reasons[0].code == "uneven"


@pytest.mark.parametrize("mapper", ["optimal", "timeloop_random", "sunstone"])
def test_an_uneven_search_is_never_worse_than_the_even_one_with_a_proof(mapper: str) -> None:
    problem = "nk,km->nm; n=12 k=18 m=8"
    most = None if mapper == "optimal" else 2_000
    even = tw.map(problem, "gemmini", constraints="none", cache=False).layers[0].result
    uneven = tw.map(problem, "gemmini", constraints="none", mapper=mapper, uneven=True, evaluations=most, cache=False)
    result = uneven.layers[0].result
    assert even is not None and result is not None and result.best is not None
    assert result.figures["spaces"] == 3  # the even space, and two arrangements
    assert math.isclose(result.value, uneven.layers[0].edp or 0)
    if mapper == "optimal":
        assert result.value <= even.value and result.proved == "yes"
    assert most is None or result.evaluated <= most
    values = [value for _, value in result.history]
    assert values == sorted(values, reverse=True) and values[-1] == result.value


def test_fewer_evaluations_than_arrangements_are_spent_one_by_one() -> None:
    layer = tw.map(GEMM, "eyeriss", mapper="timeloop_random", uneven=True, evaluations=3, cache=False).layers[0]
    assert layer.result is not None and (layer.result.evaluated, layer.result.stop) == (3, "evaluations")


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(701273, id="tensors that a rule bypasses"),
        pytest.param(701993, id="a rule for loops of a memory that keeps nothing"),
    ],
)
def test_spaces_that_were_once_wrong_equal_the_enumerations(seed: int) -> None:
    verdict = check_uneven(draw(seed), 100_000)
    assert (verdict.status, verdict.wrong) == ("proved", ())


def test_words_pass_the_network_of_a_cluster_once() -> None:
    problem, arch = tw.load(GEMM, "problem"), tw.load("gemmini", "architecture")
    name = arch.clusters[1].name
    wired = arch.replace(
        {f"{name}.fanout.network.energy_per_router_pj": 3.0, f"{name}.fanout.network.energy_per_ingress_pj": 1.0}
    )
    even = tw.map(problem, wired, constraints="none", cache=False).layers[0].mapping
    assert even is not None
    data = even.to_data()
    at = next(index for index, entry in enumerate(data["entries"]) if entry["target"] == name)
    data["entries"][at:at] = [{"target": name, "keep": []}]
    reports = [tw.evaluate(each, problem, wired).reports[0] for each in (even, Mapping.model_validate(data))]
    assert reports[0].energy_pj == reports[1].energy_pj
    assert sum(network.energy_pj for network in reports[1].networks if network.name == name) > 0


@pytest.mark.exhaustive
def test_proofs_over_all_arrangements_equal_the_enumerations() -> None:
    verdicts = [check_uneven(draw(seed), 3_000) for seed in range(150)]
    assert not [verdict.wrong for verdict in verdicts if verdict.wrong]
    assert sum(verdict.status == "proved" for verdict in verdicts) >= 10


def test_every_arrangement_is_a_map_space() -> None:
    assert all(isinstance(space, MapSpace) for space in arrangements(tw.space(GEMM, "simba")))
