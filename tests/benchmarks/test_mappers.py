"""The benchmark of the mappers continues where it stopped, and reports its results so far."""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT
from tilewright.mapspace.space import MapSpace
from tilewright.testing.corpus import SAMPLES

pytestmark = pytest.mark.exhaustive

SCRIPT = ROOT / "benchmarks/mappers.py"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, on two small spaces."""
    spec = importlib.util.spec_from_file_location("benchmark_of_mappers", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)

    def small(quick: bool) -> Iterator[tuple[str, str, str, MapSpace]]:
        for number in (1, 3):
            yield "corpus", SAMPLES[number].problem.name, SAMPLES[number].architecture.name, SAMPLES[number].space

    monkeypatch.setattr(module, "spaces", small)
    return module


def test_it_searches_once_and_goes_on_after_an_end(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = benchmark.run(tmp_path, ["local", "loma"], "timeloop", 1, 5.0, True)
    assert [(row.layer, row.mapper) for row in rows] == [
        ("gemm", "local"), ("gemm", "loma"), ("conv", "local"), ("conv", "loma")
    ]  # fmt: skip
    assert all(row.valid and row.steps[-1][1] == pytest.approx(row.edp) for row in rows)
    assert benchmark.load(tmp_path / "mappers.csv") == rows

    text = (tmp_path / "mappers.csv").read_text()
    lines = text.splitlines()
    (tmp_path / "mappers.csv").write_text("\n".join([*lines[:-1], lines[-1][:20]]))  # as if it was cut off
    capsys.readouterr()
    again = benchmark.run(tmp_path, ["local", "loma"], "timeloop", 1, 5.0, True)
    assert again[:3] == rows[:3] and (again[3].mapper, again[3].edp) == ("loma", rows[3].edp)
    assert len(capsys.readouterr().out.splitlines()) == 1  # one search


def test_the_summary_compares_with_the_best_known(benchmark: ModuleType, tmp_path: Path) -> None:
    rows = benchmark.run(tmp_path, ["local", "loma", "gamma"], "timeloop", 1, 5.0, True)
    summaries = benchmark.summarise(rows)
    assert {summary.mapper for summary in summaries} == {"local", "loma", "gamma"}
    assert all(summary.spaces == summary.found == 2 and 1 <= summary.ratio <= summary.worst for summary in summaries)
    assert sum(summary.best for summary in summaries) >= 2
    text = benchmark.table(summaries) + benchmark.side_by_side(rows)
    assert "corpus/gemm/flat" in text and text.count("1.000") >= 2


def test_the_summary_tells_how_far_from_the_optimum(benchmark: ModuleType, tmp_path: Path) -> None:
    """One space has a proved optimum, the other a bound that no mapping reaches."""
    rows = benchmark.run(tmp_path, ["local", "loma"], "timeloop", 1, 5.0, True)
    least = benchmark.best_known(rows)
    (first, _, second, _) = rows
    bounds = {first.space: least[first.space], second.space: 0.9 * least[second.space]}
    rows = [replace(row, lower_bound=bounds[row.space] if row.mapper == "loma" else 0.0) for row in rows]
    assert benchmark.optima(rows) == {first.space: least[first.space]}
    for each in benchmark.summarise(rows):
        (row,) = [row for row in rows if row.mapper == each.mapper and row.space == first.space]
        assert (each.proved, each.optimal) == (1, int(row.edp == least[first.space]))
        assert each.distance == each.farthest == pytest.approx(row.edp / least[first.space])
    assert "| 1 | 1 | 1.000 | 1.00 |" in benchmark.table(benchmark.summarise(rows))


def test_plots_are_drawn(benchmark: ModuleType, tmp_path: Path) -> None:
    rows = benchmark.run(tmp_path, ["local", "loma"], "timeloop", 1, 5.0, True)
    benchmark.report(rows, tmp_path)
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "edp_ratio.svg",
        "time_to_solution.svg",
        "convergence.svg",
    }
    assert "| loma |" in (tmp_path / "summary.md").read_text()


def test_every_space_of_the_full_and_of_the_quick_run_exists() -> None:
    spec = importlib.util.spec_from_file_location("benchmark_of_mappers_spaces", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    full = [names for *names, space in module.spaces(quick=False) if len(space.slots)]
    quick = [names for *names, _ in module.spaces(quick=True)]
    assert len(quick) == 4 * 7
    assert len(full) == 4 * (20 + 6 + 5 + 9 + 4)
