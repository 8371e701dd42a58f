"""Families of machines: the bound of the best machine holds on each member, and shared results are within the gap."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.application.exploration.families import FIRST_GAP, Side, best_of, bound_from, families, is_as_good
from tilewright.application.exploration.records import ExploredPoint, FoundLayer, LayerRecord, behind, machine_key
from tilewright.application.run.network import map_problem
from tilewright.application.run.search import search
from tilewright.plugin import Budget, CostModel, installed
from tilewright.plugin.mapper import Task
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import Objective
from tilewright.testing.reference import PlainModel

PRODUCT = "nk,km->nm; n=4 k=6 m=4"
WINDOWS = "O[k,p] += I[c,p+r] * W[k,c,r]; p=6 k=2 c=2 r=3"
SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "registers",
    "architecture": {
        "clusters": [
            {"name": "outside", "memories": [{"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100}]},
            {"name": "chip", "memories": [{"name": "GLB", "capacity_words": 32, "read_energy_pj": 4, "write_energy_pj": 5}], "fanout": {"size": 2}},
            {"name": "unit", "memories": [{"name": "Registers", "block_words": 2, "leakage_pj_per_cycle": 0.01}]},
        ],
        "compute": {"energy_per_operation_pj": 1},
    },
    "choices": {"words": [4, 8, 16], "rate": [0.5, 4, 8]},
    "set": {
        "Registers.capacity_words": "words",
        "Registers.read_energy_pj": "0.1 * words",
        "Registers.write_energy_pj": "0.15 * words",
        "DRAM.read_bandwidth_words_per_cycle": "rate",
    },
}  # fmt: skip


def machines() -> list[Architecture]:
    return [point.architecture for point in tw.architecture_space(SPACE).points() if point.architecture is not None]


def least(problem: str, machine: Architecture, objective: Objective) -> float:
    """The lowest cost of all mappings, by enumeration."""
    space = tw.space(problem, machine, constraints="none")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, machine)
    return search(installed().make(MapperSpec, "exhaustive"), Task(space, objective), evaluator, Budget()).value


def test_the_best_of_a_family_has_the_largest_size_the_lowest_prices_and_the_highest_bandwidths() -> None:
    best = best_of(machines())
    dram, _, registers = best.memories

    assert (registers.capacity_words, registers.read_energy_pj, dram.read_bandwidth_words_per_cycle) == (16, 0.4, 8)
    assert best.memories[1].capacity_words == 32 and best.memories[1].read_energy_pj == 4


def test_a_store_with_the_best_of_a_family_serves_a_machine_like_it(tmp_path: Path) -> None:
    """Equal hardware has one row, under the name that was first: the best machine of a family is a valid architecture."""
    best = best_of(machines())
    assert best.name == "best_of_9_like_registers_0" and Architecture.model_validate(best.model_dump()) == best
    words: dict[str, Any] = {
        "mapper": "optimal",
        "gap": 0.05,
        "bounds": False,
        "store": tmp_path / "s",
        "progress": False,
    }
    tw.explore(PRODUCT, SPACE, **words)
    vary = {"DRAM.read_bandwidth_words_per_cycle": [8.0, 2.0]}
    assert len(tw.explore(PRODUCT, arch=best.model_copy(update={"name": "mine"}), vary=vary, **words).points) == 2


def test_a_best_machine_that_is_a_member_is_that_member() -> None:
    same_size = [machine for machine in machines() if machine.memories[2].capacity_words == 8]

    assert best_of(same_size) == same_size[2]


def test_families_differ_in_one_memory_and_in_bandwidths_only() -> None:
    some = machines()
    other = Architecture.model_validate(some[0].model_dump() | {"clock_ghz": 2.0, "name": "faster"})
    found = families([*some, other])

    assert set(found) == {machine_key(machine) for machine in some}
    assert len({family.key for family in found.values()}) == 1
    sizes = [machine.memories[2].capacity_words for machine in found[machine_key(some[0])].members.values()]  # fmt: skip
    assert sizes == [4] * 3 + [8] * 3 + [16] * 3
    family = found[machine_key(some[0])]
    assert family.first_like(machine_key(some[3])) == machine_key(some[5])  # of the higher bandwidth


def test_a_machine_is_as_good_as_another_if_no_size_price_or_bandwidth_is_worse() -> None:
    slow, fast, _, large = machines()[:4]

    assert is_as_good(fast, slow) and not is_as_good(slow, fast)
    assert not is_as_good(large, slow)  # larger, and dearer
    assert all(is_as_good(best_of(machines()), machine) for machine in machines())


@pytest.mark.parametrize("named", ["energy", "edp", "e2dp", "cycles"])
@pytest.mark.parametrize("problem", [PRODUCT, WINDOWS])
def test_the_bound_of_a_family_holds_on_each_member(problem: str, named: str) -> None:
    """Every mapping of both machines is enumerated."""
    objective, model = Objective.named(named), installed().make(CostModelSpec, "timeloop")
    best = best_of(machines())
    known = least(problem, best, objective)
    there = tw.space(problem, best, constraints="none")
    for machine in machines():
        space = tw.space(problem, machine, constraints="none")
        sides = Side.of(there, model.bind(there.problem, best)), Side.of(space, model.bind(space.problem, machine))
        low = bound_from(known, *sides, objective)
        assert low is not None
        assert known * (1 - 1e-8) <= low <= least(problem, machine, objective)


def test_other_spaces_and_models_without_linear_costs_give_no_bound() -> None:
    one, other = machines()[::8]
    linear, unknown = installed().make(CostModelSpec, "timeloop"), PlainModel()

    def bounded(problem: str, model: CostModel) -> bool:
        space, there = tw.space(problem, one, constraints="none"), tw.space(PRODUCT, other, constraints="none")
        sides = Side.of(there, model.bind(there.problem, other)), Side.of(space, model.bind(space.problem, one))
        return bound_from(1.0, *sides, Objective.named("edp")) is not None

    assert bounded(PRODUCT, linear)
    assert not bounded("nk,km->nm; n=4 k=6 m=8", linear) and not bounded(PRODUCT, unknown)


@pytest.mark.process
def test_an_exploration_with_a_gap_shares_searches_and_proves_its_front(tmp_path: Path) -> None:
    store, both = tmp_path / "store.sqlite", [PRODUCT, WINDOWS]
    exact = tw.explore(both, SPACE, bounds=False, mapper="optimal", cache=False, progress=False)
    shared = tw.explore(both, SPACE, bounds=False, mapper="optimal", gap=0.05, store=store, progress=False)
    again = tw.explore(both, SPACE, bounds=False, mapper="optimal", gap=0.05, store=store, progress=False)
    edp = shared.record.objective

    assert shared.rows() == again.rows() and all(point.cached for point in again.found)
    assert [row["gap"] for row in tw.explored(store).rows()] == [point.gap(edp) for point in shared.points]
    for one, other in zip(exact.points, shared.points, strict=True):
        for (_, best), (_, layer) in zip(one.layers, other.layers, strict=True):
            assert layer.lower_bound is not None
            assert layer.lower_bound * (1 - 1e-9) <= best.value(edp) <= layer.value(edp) * (1 + 1e-9)
    for point in shared.front:
        mean, low = point.mean(edp)
        assert mean <= low * 1.05 * (1 + 1e-7)
    assert shared.behind is not None and shared.behind <= FIRST_GAP * (1 + 1e-7)
    for point in exact.found:  # areas are unknown, so the front is one for all
        assert min(one.mean(edp)[0] for one in shared.front) <= point.mean(edp)[0] * (1 + shared.behind)
    names = {row["shared_from"] for row in shared.layer_rows()}
    assert None in names and names & {machine.name for machine in (*machines(), best_of(machines()))}
    assert "mappings were found on other machines" in str(shared) and "proved on the front: " in str(shared)


def test_the_mean_of_layers_is_at_most_the_objective_of_totals() -> None:
    layers = [(LayerRecord(problem=str(count), name="", count=count, macs=1), FoundLayer(energy_pj=energy, cycles=cycles, lower_bound=energy * cycles / 2)) for count, energy, cycles in ((1, 2.0, 8), (3, 8.0, 2))]  # fmt: skip
    point = ExploredPoint(0, {}, "searched", layers=tuple(layers))
    edp, energy = Objective.named("edp"), Objective.named("energy")

    assert point.mean(edp) == pytest.approx((16.0**2, 16.0**2 / 2)) and point.mean(edp)[0] <= point.edp == 26.0 * 14
    assert point.mean(energy)[0] == pytest.approx(point.energy_pj)
    assert behind([point], [point], edp) == pytest.approx([2.0])
    assert behind([point], [replace(point, area_um2=1.0)], edp) == [math.inf]  # that one is larger


def test_an_undecided_machine_names_the_fewest_layers_whose_bounds_may_decide_it() -> None:
    edp = Objective.named("edp")

    def layer(name: str, count: int, root: float, low: float) -> tuple[LayerRecord, FoundLayer]:
        found = FoundLayer(energy_pj=root, cycles=int(root), lower_bound=low**2)
        return LayerRecord(problem=name, name=name, count=count, macs=1), found

    # the mean is (4 * 5 + 10 + 20)^2 = 50^2, its bound (4 * 4 + 7 + 20)^2 = 43^2; the rises are 4 and 3
    layers = layer("often", 4, 5, 4), layer("once", 1, 10, 7), layer("proved", 1, 20, 20)
    point = ExploredPoint(0, {}, "searched", layers=layers)

    def undecided(aim: float, *done: str) -> list[str]:
        return point.undecided(aim**2, 0.01, edp, done)

    assert point.mean(edp) == pytest.approx((50.0**2, 43.0**2))
    assert undecided(43 - 1e-9) == []
    assert undecided(46) == undecided(47 - 1e-9) == ["often"]
    assert undecided(48) == undecided(60) == ["often", "once"]
    assert undecided(46, "often") == ["once"] and undecided(46, "often", "once") == []
    assert point.wide(0.01, edp) == ["often", "once"] and point.wide(0.6, edp, {"often"}) == ["once"]


def test_a_search_returns_its_start_where_nothing_is_better() -> None:
    layer = tw.map(PRODUCT, "eyeriss", mapper="optimal", cache=False, progress=False)
    distinct, way = layer.workload.distinct()[0], layer.configuration
    best = layer.layers[0].result
    assert best is not None and best.best is not None
    again = map_problem(distinct, way, start=best.best).result

    assert again is not None and (again.best, again.value) == (best.best, best.value) and again.proved == "yes"
