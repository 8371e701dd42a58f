"""Exploring: every point is a row, the front is Pareto-optimal, and known results are not searched again."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import CallError, InputError
from tilewright.plugin import BatchEvaluator, Costs, MapperSpec, Proposals, Run, Task, installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.schema.objective import EDP

pytestmark = pytest.mark.process

FORMULA = "nk,km->nm; n=8 k=8 m=8"
SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "small",
    "architecture": {
        "clusters": [
            {
                "name": "outside",
                "memories": [{"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100, "area_um2": 0}],
            },
            {"name": "chip", "memories": [{"name": "GLB", "read_energy_pj": 2, "write_energy_pj": 2}]},
        ],
        "compute": {"energy_per_operation_pj": 1, "area_um2": 10},
    },
    "choices": {"words": [1, 16, 64], "units": [1, 4]},
    "set": {"GLB.capacity_words": "words", "GLB.area_um2": "100 * words", "chip.fanout.size": "units"},
    "limits": ["words * units <= 64"],
}


@pytest.fixture
def report(tmp_path: Path) -> tw.ExplorationReport:
    return tw.explore(FORMULA, SPACE, evaluations=60, cache=tmp_path / "cache", progress=False)


def test_every_point_is_a_row_with_figures_or_the_reason(report: tw.ExplorationReport) -> None:
    rows = report.rows()

    assert [row["point"] for row in rows] == list(range(6)) and report.record.asked == 6
    assert "words * units <= 64" in rows[5]["reason"] and rows[5]["edp"] is None
    assert all(row["edp"] == row["energy_pj"] * row["cycles"] for row in rows if row["reason"] is None)


def test_the_front_is_what_no_other_beats(report: tw.ExplorationReport) -> None:
    def costs(each: Any) -> tuple[float, float, float]:
        return each.energy_pj, each.cycles, each.area_um2

    found, front = report.found, report.front
    assert found[0].of(EDP) == min(each.of(EDP) for each in found) and found[0] in front
    for each in found:
        beaten = any(
            costs(o) != costs(each) and all(a <= b for a, b in zip(costs(o), costs(each), strict=True)) for o in found
        )
        assert beaten != (each in front)


def test_a_point_is_what_map_finds_there(report: tw.ExplorationReport) -> None:
    best = report.found[0]
    machine = tw.architecture_space(SPACE).point(best.index).architecture
    assert machine is not None
    alone = tw.map(FORMULA, arch=machine, evaluations=60, cache=False, progress=False)

    assert (alone.energy_pj, alone.cycles) == (best.energy_pj, best.cycles)


def test_what_was_searched_comes_from_the_cache(report: tw.ExplorationReport, tmp_path: Path) -> None:
    again = tw.explore(FORMULA, SPACE, evaluations=60, cache=tmp_path / "cache", resume=True, progress=False)

    assert again.rows() == report.rows()
    assert all(each.cached for each in again.found) and not any(each.cached for each in report.found)


def test_points_are_drawn_once_each_by_the_seed(tmp_path: Path) -> None:
    drawn = [
        [row["point"] for row in tw.explore(FORMULA, SPACE, points=4, seed=seed, evaluations=20, cache=tmp_path).rows()]
        for seed in (3, 3)
    ]

    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 4


def test_rows_are_written_as_csv(report: tw.ExplorationReport, tmp_path: Path) -> None:
    with open(report.save(tmp_path / "points.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert [int(row["point"]) for row in rows] == list(range(6)) and "on_front" in rows[0]
    assert "on the front" in str(report) and report.data()["size"] == 6


class Crashing:
    def search(self, task: Task, run: Run) -> Proposals:
        raise ZeroDivisionError(f"{task.problem.name} is too much")


def test_plugins_that_fail_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = installed()
    monkeypatch.setattr(registry, "registrations", list(registry.registrations))
    registry.add(MapperSpec(name="crashing", summary="", factory=lambda options: Crashing()), "tilewright")
    found = tw.explore(FORMULA, SPACE, mapper="crashing", bounds=False, cache=tmp_path / "cache", progress=False)

    told, hint = found.messages()
    assert re.fullmatch(
        r"error: \w+ on point 0: mapper 'crashing' .*ZeroDivisionError: \w+ is too much.* \(and of 4 others\)", told
    )
    assert "--retry" in hint and str(found).endswith(hint) and not found.found


def test_words_are_checked() -> None:
    with pytest.raises(CallError, match=r"explore\(\) has no parameter 'folder'"):
        tw.explore(FORMULA, SPACE, folder="x")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="seed must be a number of at least 0, not -1"):
        tw.explore(FORMULA, SPACE, points=2, seed=-1)
    with pytest.raises(InputError, match="none of 6 points of small that were tried is a valid architecture"):
        tw.explore(FORMULA, SPACE | {"limits": ["words < 0"]})


def test_several_networks_count_as_often_as_they_are_executed(tmp_path: Path) -> None:
    other = "nk,km->nm; n=8 k=8 m=4"
    words: dict[str, Any] = {"cache": tmp_path, "bounds": False, "progress": False}
    one, two = (tw.explore(each, SPACE, **words) for each in (FORMULA, other))
    both = tw.explore([named(tmp_path, "one", FORMULA), named(tmp_path, "two", other)], SPACE, weights=[3, 1], **words)

    assert both.record.workload == "3 x one + two" and all(point.cached for point in both.found)
    for together, first, second in zip(both.points, one.points, two.points, strict=True):
        assert together.cycles == 3 * first.cycles + second.cycles
        assert together.energy_pj == pytest.approx(3 * first.energy_pj + second.energy_pj)


def named(folder: Path, name: str, formula: str) -> Path:
    """A file with a network that is called so."""
    network = tw.load(formula, kind="workload")
    file = folder / f"{name}.yaml"
    file.write_text(network.model_copy(update={"name": name}).to_yaml(), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("networks", "weights", "message"),
    [
        ([FORMULA], [2], "weights are for several networks"),
        (["alexnet", "resnet50"], [1], "there are 1 weights for 2 networks"),
        (["alexnet", "resnet50"], [1, 0], "weights"),
        (["alexnet", "alexnet"], None, "two networks have one name: alexnet, alexnet"),
    ],
)
def test_weights_are_one_for_each_network(networks: list[str], weights: list[int] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tw.explore(networks, SPACE, weights=weights, cache=False)


def test_where_nobody_names_a_mapper_it_is_that_of_map() -> None:
    report = tw.explore(FORMULA, SPACE, cache=False, progress=False)

    for point in report.found:
        ((_, found),) = point.layers
        assert found.lower_bound == pytest.approx(point.of(EDP))


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tilewright.application.api.progress.SECONDS", 0.0)
    tw.explore(FORMULA, SPACE, cache=False, progress=True)

    told = capsys.readouterr().err
    assert re.search(r"\d+ s, \d of 6 points done; einsum", told)
    assert re.search(r"\b[1-4] of 6 points done; einsum, best ", told)  # the first points before all of their group


class Charged:
    """A third party's cost model: the bounds of `timeloop` are above a tenth of its energy."""

    def bind(self, problem: Any, architecture: Any) -> Any:
        return ChargedEvaluator(installed().make(CostModelSpec, "timeloop").bind(problem, architecture))


class ChargedEvaluator(BatchEvaluator):
    def __init__(self, evaluator: Any) -> None:
        self.evaluator, self.problem = evaluator, evaluator.problem

    def evaluate_batch(self, batch: Any) -> Costs:
        costs = self.evaluator.evaluate_batch(batch)
        return Costs(costs.valid, costs.energy_pj / 10, costs.cycles)

    def explain(self, mapping: Any) -> Report:
        report, costs = self.evaluator.explain(mapping), self.evaluate(mapping)
        energy, cycles = float(costs.energy_pj[0]), int(costs.cycles[0])
        plain = Report(model="charged", problem=report.problem, macs=report.macs, valid=True)
        return plain.model_copy(update={"energy_pj": energy, "cycles": cycles, "edp": energy * cycles})

    def relaxation(self, skeleton: Any, keeps: Any = None) -> Any:
        return self.evaluator.relaxation(skeleton, keeps)


def test_refuted_bounds_leave_out_no_further_point(caplog: pytest.LogCaptureFixture) -> None:
    words: dict[str, Any] = {"mapper": "random", "evaluations": 200, "cache": False, "progress": False}
    report = tw.explore(FORMULA, SPACE, model=Charged(), **words)
    assert "cost model 'Charged' failed: its relaxation says that einsum takes at least" in caplog.text
    assert {point.outcome for point in report.points} == {"searched", "refused"}
    assert all(row["claimed_by"] is None for row in report.layer_rows())


def test_of_equal_points_the_one_with_the_smallest_memories_is_on_the_front(tmp_path: Path) -> None:
    sweep = {"GlobalBuffer.capacity_words": [65536, 8192, 16384]}
    how: dict[str, Any] = {"evaluations": 200, "progress": False, "store": tmp_path / "s.sqlite"}
    report = tw.explore("nk,km->nm; n=2 k=2 m=2", arch="eyeriss", vary=sweep, **how)
    assert len({point.costs for point in report.found}) == 1
    for again in (report, tw.explored(tmp_path / "s.sqlite")):
        assert [point.values["GlobalBuffer.capacity_words"] for point in again.front] == [8192]
        assert [row["on_front"] for row in again.rows()] == [False, True, False]
        assert "2 cost the same as one on the front" in str(again)
