"""Rivals: false bounds are refuted without the search, and true ones are not."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

import tilewright as tw
from support.fused_arrays import Pair
from support.fused_graphs import random_graph
from support.fused_networks import random_net
from support.fused_padded import PaddedPair
from support.group_searches import search_group
from support.products import products
from support.profiles import first
from tilewright.application.api import network_fusion
from tilewright.application.api.certificates import checks as checks_of
from tilewright.application.api.network_fusion import fused_network
from tilewright.application.run.artifacts.checks import Check
from tilewright.application.run.artifacts.layers import versions_of
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.group_search import build_group_mapper
from tilewright.application.run.rivals import Rivals
from tilewright.application.run.rivals.groups import GroupRivals
from tilewright.application.run.rivals.networks import NetworkRivals
from tilewright.application.run.tiled_network import TiledSearch
from tilewright.schema.mapped.certificate import FUSION_PROOFS, Certificate, GroupClaim, NetworkClaim
from tilewright.schema.objective import ENERGY

DATA = Path(__file__).parents[3] / "data" / "certificates"
TIMELOOP, ORACLE = build_model("timeloop"), build_model("oracle")
LEAST = {"full": 8880, "wide": 3680, "tight": 4917}
"""The least energy in pJ of all choices of results, which these certificates deny."""


def before_the_search(certificate: Certificate[Any], limit: int = 600, seed: int = 0) -> dict[str, Check]:
    """Return the checks up to the rivals."""
    found = dict[str, Check]()
    for check in checks_of(certificate, 100, limit, seed):
        found[check.name] = check
        if check.name == "rivals":
            break
    return found


def rivals_of(it: Certificate[NetworkClaim], samples: int, limit: int) -> Rivals:
    network = fused_network(it.claim.workload, it.claim.architecture, it.objective, dict(it.claim.settings))
    return NetworkRivals(network, it.claim.mappings, it.claim.residents, samples, limit, seed=0).best()


@pytest.mark.parametrize("name", first(1, *LEAST))
def test_a_false_certificate_of_a_network_is_refuted(name: str) -> None:
    """A search that took results for too large made them; contents, figures and gap are right."""
    it: Certificate[Any] = Certificate.from_file(DATA / f"false_{name}.yaml").model_copy(
        update={"proof_version": FUSION_PROOFS}
    )
    found = before_the_search(it)
    assert {each.name for each in found.values() if each.passed is not True} == {"rivals"}
    assert found["rivals"].passed is False and f"costs {LEAST[name]}, which is below" in found["rivals"].message
    other = rivals_of(it, 100, 0)
    assert other.group is not None and not other.every
    for model in (TIMELOOP, ORACLE):
        assert evaluate_group(model, other.group).energy_pj == pytest.approx(other.value, rel=1e-9)


@pytest.mark.exhaustive
def test_all_rivals_of_a_small_network_are_tried() -> None:
    it: Certificate[Any] = Certificate.from_file(DATA / "false_wide.yaml")
    found = rivals_of(it, 1, 600)
    assert found.every and (found.tried, found.value) == (576, 3680)
    true = it.model_copy(update={"bound": 3680.0, "value": 3680.0})
    assert before_the_search(true)["rivals"].passed is True


@pytest.mark.parametrize(
    ("name", "least", "group"),
    [pytest.param("sums", 3098, True, marks=pytest.mark.exhaustive), ("widths", 1588, False)],
)
def test_a_false_certificate_without_a_group_mapping_of_all_rivals_is_refuted(
    name: str, least: float, group: bool
) -> None:
    """The optimum without fusion is claimed to be the optimum of all. The best rival keeps a sum, or mixes widths."""
    it: Certificate[Any] = Certificate.from_file(DATA / f"false_{name}.yaml")
    found = before_the_search(it, limit=1100)
    assert {each.name for each in found.values() if each.passed is False} == {"rivals"}
    assert f"best of all {982 if group else 562} legal ones costs {least}, which is below" in found["rivals"].message
    assert (found["group"].passed, found["execution"].passed) == ((True, True) if group else (None, None))
    assert group or "different widths" in found["group"].message


@pytest.mark.parametrize(
    ("name", "seed", "least"),
    first(1, ("halo", 1, 6175.0), ("array", 2, 372.5), ("padding", 1, 920.0)),
)
def test_a_false_certificate_of_a_group_is_refuted(name: str, seed: int, least: float) -> None:
    """The optimum without fusion is claimed to be the optimum of all."""
    it: Certificate[Any] = Certificate.from_file(DATA / f"false_{name}.yaml")
    proofs = build_group_mapper().spec.proof_version
    it = it.model_copy(update={"versions": versions_of(it.claim.model), "proof_version": proofs}).sealed()
    found = before_the_search(it, limit=0, seed=seed)
    assert {each.name for each in found.values() if each.passed is not True} == {"rivals"}
    cost = re.search(r"costs ([\d.]+), which is below the bound", found["rivals"].message)
    assert found["rivals"].passed is False and cost is not None and least <= float(cost[1]) < it.bound


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3))
def test_no_rival_costs_less_than_the_optimum_of_a_group(seed: int) -> None:
    array = build_model("timeloop", {"link_transfers": False})
    for one, model in ((Pair(seed), array), (PaddedPair(seed), TIMELOOP), (random_graph(seed, True, True), TIMELOOP)):
        group, objective = one.group(), one.objective
        value = evaluate_group(model, search_group(group, objective).group).of(objective)
        assert value is not None
        assert GroupRivals(group, objective, model, samples=60, limit=0, seed=seed).best().value >= value * (1 - 1e-9)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [*range(6), 1013])
def test_no_rival_costs_less_than_the_bound_of_a_network(seed: int) -> None:
    """Some of them have sums, some values of several widths; rules of 1013 keep what has no room at home."""
    net = random_net(seed)
    capacity = net.capacities(False, Random(seed))[-1]
    it = tw.fuse_network(
        net.workload(),
        net.machine(capacity),
        objective=net.objective,
        constraints=net.rules() or "none",
        cache=False,
        progress=False,
    ).certificate
    assert it is not None
    assert rivals_of(it, 100, 200).value >= it.bound * (1 - 1e-9)


@pytest.mark.parametrize(
    ("seed", "unfused", "least"), [(20, 99, 78), pytest.param(5, 5724, 3360, marks=pytest.mark.exhaustive)]
)
def test_a_false_bound_of_a_group_is_refuted_and_the_optimum_is_not(seed: int, unfused: float, least: float) -> None:
    """The optimum without fusion is claimed to be the optimum of all."""
    graph = random_graph(seed)
    group = graph.group()
    result = GroupRivals(group, graph.objective, TIMELOOP, samples=200, limit=50, seed=0).best()
    assert result.group is not None and least * (1 - 1e-9) <= result.value < unfused
    value = evaluate_group(ORACLE, result.group).of(graph.objective)
    assert value == pytest.approx(result.value, rel=1e-9)
    claim = GroupClaim(unfused=unfused, group=result.group, model=TIMELOOP.record)
    for bound, passed in ((unfused, False), (least, True)):
        claimed = Certificate(
            objective=graph.objective, value=bound, bound=bound, gap=0.0, proof_version=2, claim=claim
        )
        assert before_the_search(claimed, limit=0)["rivals"].passed is passed


def test_all_trees_of_a_tiny_group_are_tried() -> None:
    group = tw.GroupMapping.model_validate(
        {
            "name": "tiny",
            "layers": [
                {"name": name, "dimensions": {"m": 2}, "tensors": [
                    {"name": "X", "role": "input", "projection": ["m"]},
                    {"name": "Y", "role": "output", "projection": ["m"]},
                ]}
                for name in ("one", "two")
            ],
            "edges": [{"tensor": "B", "layers": {"one": "Y", "two": "X"}}],
            "tree": {
                "entries": [{"target": "DRAM", "keep": ["one.X", "B", "two.Y"]}],
                "branches": [
                    {"layer": name, "entries": [{"target": "Buffer", "temporal_tile_sizes": {"m": 1}}]}
                    for name in ("one", "two")
                ],
            },
            "architecture": {
                "name": "two",
                "clusters": [
                    {"name": "DRAM", "memories": [{"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100}]},
                    {"name": "Buffer", "memories": [{"name": "Buffer", "capacity_words": 1, "read_energy_pj": 1, "write_energy_pj": 1}]},
                ],
                "compute": {"energy_per_operation_pj": 0.5},
            },
        }
    )  # fmt: skip
    result = GroupRivals(group, ENERGY, TIMELOOP, samples=1, limit=1000, seed=0).best()
    assert result.every and result.value == 2 * 0.5 * 2 + 2 * 100 + 2 * (1 + 1) + 2 * 100  # B passes by in the buffer


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_all_rivals_of_a_network_costs_what_the_search_proves(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole results: networks whose layers share loops have no certificate."""
    monkeypatch.setattr(
        network_fusion, "tiled_runs", lambda network, placed, *others: TiledSearch((), (), placed.bound, ())
    )
    random = Random(seed)
    energies = {"read_energy_pj": random.choice([1, 2]), "write_energy_pj": 1}
    widths = random.choice([{}, {"word_bits": 16, "bits_per_value": {"input": 8, "output": 8}}])
    memories = [
        {"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 50} | widths,
        {"name": "Buffer", "capacity_words": random.choice([2, 3, 4, 5, 6, 8, 10])} | energies | widths,
    ]
    arch = {
        "name": "two",
        "clusters": [{"name": memory["name"], "memories": [memory]} for memory in memories],
        "compute": {"energy_per_operation_pj": 0.5},
    }
    workload = products(random.choice([1, 2, 3, 4]), [random.choice([1, 2, 3]) for _ in range(3)])
    it = tw.fuse_network(workload, arch, objective="energy", cache=False, progress=False).certificate
    assert it is not None
    found = rivals_of(it, 1, 2000)
    assert found.every and found.value == pytest.approx(it.value, rel=1e-9)
