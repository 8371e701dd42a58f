"""Strategies: what they leave out is no loss, and is told."""

import statistics
import sys
from typing import Any

import pytest

import tilewright as tw
from tilewright.application.exploration.records import front
from tilewright.errors import InputError, PluginError, UnknownPluginError
from tilewright.schema.objective import EDP

pytestmark = pytest.mark.exhaustive

FORMULA = "nk,km->nm; n=8 k=4 m=4"
UNITS: dict[str, Any] = {
    "kind": "space",
    "name": "units",
    "architecture": {
        "clusters": [
            {"name": "outside", "memories": [{"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100, "area_um2": 0}]},
            {
                "name": "chip",
                "memories": [{"name": "GLB", "capacity_words": 64, "read_energy_pj": 2, "write_energy_pj": 2, "area_um2": 0}],
            },
        ],
        "compute": {"energy_per_operation_pj": 1, "area_um2": 10},
    },
    "choices": {"compute.energy_per_operation_pj": [1, 9, 99], "units": [1, 2, 4, 8]},
    "set": {"chip.fanout.size": "units", "compute.area_um2": "10 / units"},
}  # fmt: skip
SIZES: dict[str, Any] = {
    "kind": "space",
    "name": "sizes",
    "architecture": {
        "clusters": [
            {"name": "outside", "memories": [{"name": "DRAM", "read_energy_pj": 50, "write_energy_pj": 50}]},
            {
                "name": "chip",
                "memories": [
                    {"name": "A", "holds": ["input"], "read_energy_pj": 0, "write_energy_pj": 0},
                    {"name": "B", "holds": ["weight"], "read_energy_pj": 0, "write_energy_pj": 0},
                    {"name": "C", "holds": ["output"], "read_energy_pj": 0, "write_energy_pj": 0},
                ],
            },
        ],
        "compute": {"energy_per_operation_pj": 1},
    },
    "choices": {"a": [1, 4, 16, 128], "b": [1, 4, 128], "c": [1, 64]},
    "set": {
        f"{name}.{field}": text
        for name in "ABC"
        for field, text in (
            ("capacity_words", name.lower()),
            ("read_energy_pj", f"0.05 * {name.lower()}"),
            ("write_energy_pj", f"0.05 * {name.lower()}"),
        )
    },
    "limits": ["a + b + c <= 160"],
}


def explored(space: Any, **words: Any) -> tw.ExplorationReport:
    return tw.explore(FORMULA, space, mapper="exhaustive", cache=False, progress=False, **words)


@pytest.mark.parametrize("objective", ["edp", "ed2p", "energy", "cycles"])
def test_bounds_leave_out_what_is_on_no_front(objective: str) -> None:
    whole, report = explored(UNITS, bounds=False, objective=objective), explored(UNITS, objective=objective)
    bounded = {point.index for point in report.points if point.outcome == "bounded"}

    assert not any(point.outcome == "bounded" for point in whole.points)
    assert {each.index for each in report.front} == {each.index for each in whole.front}
    assert not bounded & {each.index for each in front(whole.points)}
    assert len(report.points) == 12 and len(report.found) + len(bounded) == 12


def test_what_a_bound_leaves_out_is_counted() -> None:
    many = UNITS | {"choices": UNITS["choices"] | {"units": [1, 2, 4, 8, 16, 32, 64]}}
    report = explored(many)
    bounded = [point for point in report.points if point.outcome == "bounded"]

    assert bounded and all("is better" in str(each.told) for each in bounded)
    assert any(count == len(bounded) and why.startswith("bound") for why, count in report.without())
    assert str(report).count("is better") == len(bounded)  # a table of few points has the reasons


def test_sizes_that_no_tile_needs_are_not_searched() -> None:
    grid, report = explored(SIZES, bounds=False), explored(SIZES, strategy="sunstone_arch")
    needless = [point for point in report.points if point.outcome == "bounded"]

    assert report.found[0].of(EDP) == pytest.approx(grid.found[0].of(EDP), rel=1e-12)
    assert any("no tile needs its sizes" in str(each.told) for each in needless)
    assert len(report.found) < len(grid.found) and len(report.points) == len(grid.points)
    evaluated = [sum(layer.evaluated for point in each.found for _, layer in point.layers) for each in (report, grid)]
    assert evaluated[0] < evaluated[1] / 4  # each mapping once, on the smallest machine that holds it


def test_machines_of_several_layers_have_the_sum_of_their_mappings() -> None:
    layers = [FORMULA, "nk,km->nm; n=4 k=16 m=2"]
    words: dict[str, Any] = dict(mapper="exhaustive", cache=False, progress=False)
    grid = tw.explore(layers, SIZES, bounds=False, **words)
    report = tw.explore(layers, SIZES, strategy="sunstone_arch", **words)
    assert all(len(point.layers) == 2 for point in report.found)
    assert 1 - 1e-12 <= report.found[0].of(EDP) / grid.found[0].of(EDP) < 1.01


def test_a_mapper_that_knows_one_machine_searches_each_alone() -> None:
    words: dict[str, Any] = dict(mapper="loma", cache=False, progress=False)
    grid = {point.index: point for point in tw.explore(FORMULA, SIZES, bounds=False, **words).found}
    report = tw.explore(FORMULA, SIZES, strategy="sunstone_arch", **words)
    assert report.found and all(point.costs == grid[point.index].costs for point in report.found)


def test_machines_that_differ_outside_are_searched_in_groups() -> None:
    """Two prices of an operation: each size belongs to one group of each price, and the lower one is best."""
    space = SIZES | {"choices": SIZES["choices"] | {"compute.energy_per_operation_pj": [9, 1]}}
    report = explored(space, strategy="sunstone_arch")
    assert len(report.points) == 2 * len(explored(SIZES, strategy="sunstone_arch").points)
    assert report.found[0].values["compute.energy_per_operation_pj"] == 1


def test_strategies_say_what_they_cannot() -> None:
    with pytest.raises(UnknownPluginError, match="no strategy is called 'sunstone'; did you mean 'sunstone_arch'"):
        explored(UNITS, strategy="sunstone")
    bare = UNITS | {"architecture": {"clusters": [UNITS["architecture"]["clusters"][0] | {"fanout": {"size": 2}}],
                                     "compute": UNITS["architecture"]["compute"]},
                    "choices": {"outside.fanout.size": [1, 2]}, "set": {}}  # fmt: skip
    with pytest.raises(InputError, match="has no inner memory for"):
        explored(bare, strategy="sunstone_arch")


@pytest.mark.parametrize("sampler", ["nsga2", "tpe"])
def test_samplers_choose_the_same_points_by_the_seed_and_each_once(sampler: str) -> None:
    first, again, other, every = (
        explored(SIZES, strategy=sampler, points=points, seed=seed).rows()
        for points, seed in ((18, 1), (18, 1), (18, 2), (100, 1))
    )

    chosen = [row["point"] for row in first]
    assert first == again and len(set(chosen)) == 18 and chosen != [row["point"] for row in other]
    assert sorted(every, key=lambda row: row["point"]) == explored(SIZES, bounds=False).rows()


def test_samplers_learn_from_what_was_found() -> None:
    """Points of less energy per operation are better: of those that are tried half are among the best quarter."""
    space = {
        **UNITS,
        "choices": {"compute.energy_per_operation_pj": {"first": 1, "last": 300, "plus": 1}, "units": [1, 2, 4]},
    }
    rows = explored(space, strategy="tpe", points=60).rows()

    assert statistics.median(row["compute.energy_per_operation_pj"] for row in rows) < 75


def test_a_sampler_is_told_how_many_points() -> None:
    with pytest.raises(InputError, match="strategy tpe needs a number of points"):
        explored(SIZES, strategy="tpe")


def test_optuna_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PluginError, match="strategy 'nsga2' of tilewright .* needs optuna, which is not installed"):
        explored(SIZES, strategy="nsga2", points=3)
