"""`front`, and `map --pareto`: the mappings of least energy in as few cycles."""

import csv
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from support.certificates import with_parts
from support.command import Command, command
from support.profiles import scaled
from tilewright.application.api.front.budgeted import bound_within, chosen_within
from tilewright.application.api.front.points import Front, FrontPoint
from tilewright.errors import InputError
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.workload import DistinctProblem, Layer, Workload
from tilewright.testing.strategies import architectures, problems

pytestmark = pytest.mark.exhaustive

MOST = 4000
"""Mappings of the largest space that is enumerated."""
GEMM = "nk,km->nm; n=16 k=16 m=16"


def enumerated(space: MapSpace) -> list[tuple[float, float]]:
    """Return (cycles, energy) of all Pareto-optimal mappings, fewest cycles first."""
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    costs = evaluator.evaluate_batch(Candidates.join(list(space.enumerate())).batch())
    found: list[tuple[float, float]] = []
    for at in np.lexsort((costs.energy_pj, costs.cycles)):
        if costs.valid[at] and (not found or costs.energy_pj[at] < found[-1][1] * (1 - 1e-9)):
            found.append((float(costs.cycles[at]), float(costs.energy_pj[at])))
    return found


@scaled(0.3)
@given(problems(max_dimensions=5, max_macs=300), architectures(roomy=False, widths=True), st.integers(2, 4))
def test_what_is_proved_is_the_front_of_all_mappings(
    problem: tw.Problem, architecture: tw.Architecture, few: int
) -> None:
    space = MapSpace.of(problem, architecture, None)
    assume(0 < space.factorizations <= MOST and space.size <= MOST)
    truth = enumerated(space)
    for points in (1000, few):
        (front,) = tw.front(
            problem, architecture, points=points, constraints="none", mapper="optimal", cache=False, progress=False
        ).fronts
        for point in front.points:
            least = min(energy for cycles, energy in truth if cycles <= point.most_cycles)
            assert point.gap is not None and point.energy_pj * (1 - point.gap) <= least * (1 + 1e-8)
            assert point.proved != "yes" or point.energy_pj == pytest.approx(least, rel=1e-8)
        found = {point.cycles: point.energy_pj for point in front.points}
        if all(point.proved == "yes" for point in front.points):
            assert found == {cycles: pytest.approx(energy, rel=1e-8) for cycles, energy in truth if cycles in found}
            assert front.whole == (len(found) == len(truth))
        assert bool(found) == bool(truth)


def test_the_command_writes_what_the_function_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    ran = run("map", GEMM, "--arch", "eyeriss", "--pareto", 4, "--no-cache", "-o", tmp_path, "--json")
    report = tw.front(GEMM, "eyeriss", points=4, cache=False)
    front = report["einsum"]
    assert front.whole and len(front.points) > 1 and ran.code == 0
    assert ran.data == json.loads((tmp_path / "front.json").read_text())
    saved = report.save(tmp_path / "saved")
    assert {path.name for path in saved.iterdir()} == {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert (saved / "front.csv").read_text() == (tmp_path / "front.csv").read_text()
    (layer,) = ran.data["layers"]
    with (tmp_path / "front.csv").open() as file:
        rows = list(csv.DictReader(file))
    for point, told, row in zip(front.points, layer["points"], rows, strict=True):
        evaluated = tw.evaluate(mapping=tmp_path / told["mapping_file"]).reports[0]
        assert told["cycles"] == point.cycles == int(row["cycles"]) == evaluated.cycles
        assert told["energy_pj"] == point.energy_pj == float(row["energy_pj"]) == evaluated.energy_pj
        assert told["gap"] == point.gap and point.proved == "yes"
        checked = tw.verify_certificate(tmp_path / told["certificate_file"], samples=2000)
        assert checked.right, checked
        assert isinstance(checked.certificate, tw.Certificate)
        assert checked.certificate.claim.space.most_cycles == told["most_cycles"]
    assert layer["points"][-1]["most_cycles"] is None
    text = run("map", GEMM, "--arch", "eyeriss", "--pareto", 4).out
    assert "least up to" in text and text.count("einsum ") == 1 + len(front.points)


def test_a_certificate_of_fewer_cycles_than_its_mapping_takes_is_wrong(tmp_path: Path) -> None:
    tw.front(GEMM, "eyeriss", points=2, cache=False, folder=tmp_path)
    first: tw.Certificate[Any] = tw.Certificate.from_yaml(
        (tmp_path / "001_einsum.front01.certificate.yaml").read_text()
    )
    figures = first.claim.incumbent.figures
    assert figures is not None and first.claim.space.most_cycles is not None
    assert "none of at most" in str(first) and first.claim.space.most_cycles >= figures.cycles
    fewer = first.claim.space.model_copy(update={"most_cycles": figures.cycles - 1})
    found = tw.verify_certificate(with_parts(first, space=fewer), samples=1000)
    assert not found.right and "the proof is of at most" in str(found)


@scaled(1)
@given(st.integers(0, 10**6))
def test_a_budget_is_met_with_the_least_energy_up_to_the_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fronts = []
    for _ in range(rng.integers(1, 4)):
        cycles = np.unique(rng.integers(1, 30, rng.integers(1, 5)))
        energies = np.sort(rng.integers(1, 50, len(cycles)))[::-1].astype(float)
        limits = [*(cycles[1:] - 1), np.inf]
        points = tuple(FrontPoint(None, e, int(c), m, e) for e, c, m in zip(energies, cycles, limits, strict=True))  # type: ignore[arg-type]
        distinct = DistinctProblem(tw.load(GEMM, "problem"), ("a",), int(rng.integers(1, 4)))
        result = SimpleNamespace(lower_bound=float(cycles[0]))
        fronts.append(Front(distinct, points, True, SimpleNamespace(result=result)))  # type: ignore[arg-type]
    fewest = sum(front.points[0].cycles * front.distinct.count for front in fronts)
    budget = fewest + int(rng.integers(0, 60))
    choices = [front.points for front in fronts for _ in range(front.distinct.count)]
    fitting = [each for each in itertools.product(*choices) if sum(point.cycles for point in each) <= budget]
    least = min(sum(point.energy_pj for point in each) for each in fitting)
    uses = chosen_within(fronts, budget)
    assert [sum(count for _, count in use) for use in uses] == [front.distinct.count for front in fronts]
    assert sum(point.cycles * count for use in uses for point, count in use) <= budget
    found = sum(point.energy_pj * count for use in uses for point, count in use)
    assert bound_within(fronts, budget) <= least * (1 + 1e-9) and least <= found
    everything = sum(front.points[-1].cycles * front.distinct.count for front in fronts)
    if budget >= everything:
        assert found == least == pytest.approx(bound_within(fronts, budget))
    with pytest.raises(InputError, match="at least"):
        chosen_within(fronts, fewest - 1)


def test_the_budget_of_a_command_is_that_of_the_function(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    report = tw.front(GEMM, "eyeriss", points=4)
    fewest, most = report["einsum"].points[0], report["einsum"].points[-1]
    data = run("map", GEMM, "--arch", "eyeriss", "--pareto", 4, "--budget-cycles", fewest.cycles, "--json").data
    assert data == report.within(fewest.cycles).data() and data["energy_pj"] == fewest.energy_pj and data["gap"] < 1e-8
    assert report.within(1e9).energy_pj == most.energy_pj and "proved: yes" in str(report.within(1e9))
    assert "at least" in run("map", GEMM, "--arch", "eyeriss", "--pareto", 4, "--budget-cycles", 1).err
    for wrong in (np.nan, "many"):
        with pytest.raises(InputError, match="most_cycles must be a number"):
            report.within(wrong)  # type: ignore[arg-type]
    assert "give both" in run("map", GEMM, "--arch", "eyeriss", "--budget-cycles", 1).err


def test_points_come_from_the_cache(tmp_path: Path) -> None:
    first = tw.front(GEMM, "eyeriss", cache=tmp_path)
    again = tw.front(GEMM, "eyeriss", cache=tmp_path)
    assert all(point.layer.cached for point in again["einsum"].points)
    assert [row | {"gap": 0} for row in again.rows()] == [row | {"gap": 0} for row in first.rows()]


def test_layers_are_searched_in_processes_and_come_in_order(tmp_path: Path) -> None:
    sizes = {"long": 64, "short": 8, "middle": 16}
    problems = {
        name: tw.load(f"nk,km->nm; n={size} k=16 m=16", "problem").model_copy(update={"name": name})
        for name, size in sizes.items()
    }
    work = Workload(name="three", layers=tuple(Layer(problem=problem) for problem in problems.values()))
    alone, together = (
        tw.front(work, "eyeriss", points=3, cache=False, jobs=jobs, folder=tmp_path / str(jobs)) for jobs in (1, 2)
    )
    assert [front.distinct.problem.name for front in together.fronts] == list(sizes)
    assert together.rows() == alone.rows() and together.complete
    assert (tmp_path / "1" / "front.csv").read_text() == (tmp_path / "2" / "front.csv").read_text()


def test_a_front_that_is_told_in_part_says_so() -> None:
    report = tw.front(GEMM, "eyeriss", points=2, cache=False)
    assert not report["einsum"].whole and "the front may have further points for einsum" in str(report)


def test_where_nothing_can_be_proved_another_mapper_searches_and_is_told() -> None:
    report = tw.front(GEMM, "union_edge", points=2, model="maestro", cache=False)
    assert report["einsum"].points and {point.proved for point in report["einsum"].points} == {"no"}
    assert "mapped by quickflow, since optimal can prove nothing there: einsum" in report.messages()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--objective", "energy"], "a front always covers energy and cycles"),
        (["--graph"], "--pareto excludes"),
        (["--algorithms", "native"], "--pareto excludes"),
    ],
)
def test_what_a_front_does_not_have_is_refused(
    words: list[object], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = command(monkeypatch, capsys)("map", GEMM, "--arch", "eyeriss", "--pareto", 4, *words)
    assert ran.code != 0 and said in ran.err
