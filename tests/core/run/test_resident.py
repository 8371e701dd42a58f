"""Networks whose results stay on chip: counts are those of executed groups, and no other choice costs less."""

import itertools
import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.groups import figures
from support.products import products
from support.profiles import scaled
from tilewright.api.keywords import settings_of
from tilewright.api.plan import Plan
from tilewright.api.settings import MapSettings
from tilewright.run.evaluation import build_model, evaluate_group
from tilewright.run.network import LayerSearch, MappedLayer, map_searches
from tilewright.run.resident import ResidentNetwork, group_of

TIMELOOP, ORACLE = build_model("timeloop"), build_model("oracle")
LINKLESS = build_model("timeloop", {"link_transfers": False})


def random_network(random: Random, visits: int = 1) -> tw.Workload:
    """Return products one after another, with the rows of one of several visits; a later one may read an earlier result."""
    sizes = [random.choice([1, 2, 4]) for _ in range(random.choice([3, 4, 5]))]
    makers = []
    for number in range(1, len(sizes) - 1):
        able = [at for at in range(number) if sizes[at + 1] == sizes[number]]
        makers.append(random.choice(able) if random.random() < 0.4 else number - 1)
    return tw.Workload.model_validate(products(random.choice([2, 4, 6]) // visits, sizes, makers))


def random_architecture(random: Random) -> tw.Architecture:
    def memory(name: str, **more: Any) -> dict[str, Any]:
        energies = {"read_energy_pj": random.choice([1, 2, 8]), "write_energy_pj": random.choice([1, 2, 8])}
        ports = {f"{each}_bandwidth_words_per_cycle": random.choice([None, 0.5, 1, 2]) for each in ("read", "write")}
        return {"name": name} | energies | ports | more

    fanout = random.choice([1, 2, 4])
    leakage = random.choice([0.0, 0.5]) if fanout == 1 else 0.0
    clusters: list[dict[str, Any]] = [
        {"name": "DRAM", "memories": [memory("DRAM", read_energy_pj=random.choice([4, 100]), write_energy_pj=50)]},
        {
            "name": "Buffer",
            "memories": [memory("Buffer", capacity_words=random.choice([8, 12, 20, 40]), leakage_pj_per_cycle=leakage)],
            "fanout": {"size": fanout},
        },
        {"name": "Reg", "memories": [memory("Reg", capacity_words=random.choice([3, 4, 8]))]},
    ]
    return tw.Architecture.model_validate(
        {"name": "small", "clusters": clusters[: random.choice([2, 3, 3])], "compute": {"energy_per_operation_pj": 0.5}}
    )


def prepared(workload: tw.Workload, arch: tw.Architecture, objective: str) -> ResidentNetwork:
    settings = {name: each.default for name, each in settings_of(MapSettings).items()}
    plan, configuration = Plan.of_one(workload, arch, settings | {"objective": objective, "cache": False})  # type: ignore[arg-type]

    def search(asked: Sequence[LayerSearch]) -> Iterator[MappedLayer]:
        return map_searches(asked)

    return ResidentNetwork(plan.workload, configuration, search)


@pytest.mark.exhaustive
@scaled(1)
@given(st.integers(0, 2**32), st.sampled_from(["energy", "cycles"]))
def test_no_other_choice_of_residents_costs_less_and_groups_cost_the_same(seed: int, objective: str) -> None:
    random = Random(seed)
    network = prepared(random_network(random), random_architecture(random), objective)
    plain, least = network.gain()
    if not math.isfinite(plain):
        return
    random = Random(seed)
    tiled = prepared(random_network(random, visits=2), random_architecture(random), objective)
    assert 2 * tiled.gain()[1] >= least * (1 - 1e-9)  # all layers on one half of the rows, then on the other
    placed = network.place()
    assert placed.bound <= placed.value * (1 + 1e-9) and placed.value <= plain * (1 + 1e-9)
    for count in range(len(network.may_stay) + 1):
        for chosen in itertools.combinations(range(len(network.may_stay)), count):
            lives = [
                frozenset(at for at in chosen if network.may_stay[at].first <= number <= network.may_stay[at].last)
                for number in range(len(network.workload.layers))
            ]
            cases = [network.case(number, live) for number, live in enumerate(lives)]
            network.ask(cases)
            value = sum(network.costs[case].value for case in cases)
            assert placed.bound <= value * (1 + 1e-9) and least <= value * (1 + 1e-9)
            assert placed.value <= value * (1 + 1e-9) or placed.bound < placed.value * (1 - 1e-9)
    group = group_of(network, placed)
    if not placed.residents:
        return
    assert group is not None
    counted, executed = evaluate_group(TIMELOOP, group), evaluate_group(ORACLE, group)
    assert counted.valid and executed.valid, (counted.reasons, executed.reasons)
    assert counted.energy_pj == pytest.approx(placed.energy_pj, rel=1e-9)
    assert counted.cycles == pytest.approx(placed.cycles, abs=len(placed.costs))  # each layer alone rounds up
    assert figures(evaluate_group(LINKLESS, group)) == figures(executed)  # execution does not forward words
    if group.architecture.compute_instances == 1:
        assert (executed.energy_pj, executed.cycles) == pytest.approx((placed.energy_pj, placed.cycles), rel=1e-9)
