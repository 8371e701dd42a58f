"""Charts of results, in Python and from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.charts import rectangles
from support.command import Command, command
from tilewright.application.api.plots import NetworkPlots
from tilewright.errors import InputError, UnknownNameError

FORMULA = "nk,km->nm; n=8 k=8 m=8"
QUICK: dict[str, Any] = {"evaluations": 60, "cache": False, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of `map`, `map --pareto` and `compare`, and a store of `explore`."""
    path = tmp_path_factory.mktemp("plots")
    tw.map(FORMULA, "eyeriss", mapper="random", folder=path / "map", **QUICK)
    tw.front(FORMULA, "eyeriss", points=2, mapper="random", folder=path / "front", **QUICK)
    tw.compare(FORMULA, "eyeriss", mappers=["random", "gamma"], folder=path / "compare", **QUICK)
    space = {"kind": "space", "name": "s", "base": "eyeriss", "choices": {"GlobalBuffer.capacity_words": [64, 4096]}}
    tw.explore(FORMULA, space, evaluations=40, store=path / "s.sqlite", progress=False)
    return path


def test_charts_show_the_figures_of_the_report() -> None:
    report = tw.map(FORMULA, "eyeriss", mapper="random", **QUICK)
    (layer,) = report.layers
    assert layer.report is not None and layer.result is not None
    energies, latency = report.plot.energy(), report.plot.latency()
    step, unit = report.plot.energy_unit

    assert sum(each.get_width() for each in rectangles(energies).values()) * step == pytest.approx(layer.energy_pj)
    assert energies.figure.axes[0].get_xlabel() == unit
    assert sum(rectangle.get_width() for rectangle in rectangles(latency).values()) == layer.cycles
    assert report.plot.roofline().marks.keys() == {"marks/0"}
    assert layer.result.history[-1][1] == layer.result.value
    assert tw.draw(layer.result).marks["line-0"].endswith(f"after {layer.result.history[-1][0]:,} mappings")
    assert tw.evaluate(layer).plot.energy().marks.keys() >= {"bar-0-0"}


def test_each_improvement_is_better_and_later() -> None:
    (layer,) = tw.map(
        "nk,km->nm; n=64 k=64 m=64", "eyeriss", mapper="random", evaluations=2000, cache=False, progress=False
    ).layers
    assert layer.result is not None
    history = layer.result.history
    numbers, values = zip(*history, strict=True)

    assert (
        len(history) > 1 and list(numbers) == sorted(set(numbers)) and list(values) == sorted(set(values), reverse=True)
    )
    assert 1 <= numbers[0] and numbers[-1] <= layer.result.evaluated


def test_a_cached_result_has_its_history(tmp_path: Path) -> None:
    words: dict[str, Any] = {"mapper": "random", "evaluations": 60, "cache": tmp_path, "progress": False}
    first, second = (tw.map(FORMULA, "eyeriss", **words).layers[0] for _ in range(2))

    assert second.cached and first.result is not None and second.result is not None
    assert first.result.history == second.result.history != ()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        *(("map", kind) for kind in ("energy", "latency", "roofline", "convergence")),
        ("front", "pareto"),
        *(("compare", kind) for kind in ("energy", "latency")),
        ("s.sqlite", "pareto"),
        *(("map/001_einsum.yaml", kind) for kind in ("mapping", "architecture", "energy", "latency", "roofline")),
    ],
)
def test_the_command_draws_every_kind(
    source: str,
    kind: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "x.svg"
    ran = command(monkeypatch, capsys)("plot", folder / source, "--kind", kind, "-o", file)

    assert ran.code == 0 and ran.err == f"written to {file}\n" and "<svg" in file.read_text(encoding="utf-8")


def test_a_name_of_the_library_is_an_architecture(tmp_path: Path) -> None:
    text = tw.plot("simba", tmp_path / "x.svg").read_text(encoding="utf-8")

    assert "PEWeightBuffer" in text and text == tw.draw(tw.load("simba", "architecture")).svg()


def test_what_cannot_be_drawn_is_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    ran = run("plot", folder / "map", "--kind", "pareto")

    assert (
        ran.code == 2 and "no chart of kind pareto" in ran.err and "energy, latency, roofline, convergence" in ran.err
    )
    with pytest.raises(InputError, match="kind must be one of"):
        tw.plot("eyeriss", tmp_path / "x.svg", kind="nrgy")
    with pytest.raises(UnknownNameError, match="eyris"):
        tw.plot("eyris", tmp_path / "x.svg")
    with pytest.raises(InputError, match="has none of summary.json"):
        tw.plot(tmp_path, tmp_path / "x.svg")
    for text, told in (("{", "is damaged"), ("[]", "was not written by"), ('{"layers": [{}]}', "was not written by")):
        (tmp_path / "summary.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=told):
            tw.plot(tmp_path, tmp_path / "x.svg")


def test_commands_print_the_page_to_open(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    mapped = run("map", FORMULA, "--arch", "eyeriss", "--mapper", "random", "--evaluations", 60, "-o", tmp_path / "run")
    reported = run("report", folder / "map", tmp_path / "run", "-o", tmp_path / "two.html")
    space = {"kind": "space", "name": "s", "base": "eyeriss", "choices": {"GlobalBuffer.capacity_words": [64]}}
    (tmp_path / "s.yaml").write_text(json.dumps(space), encoding="utf-8")
    explored = run(
        "explore", FORMULA, "--space", tmp_path / "s.yaml", "--evaluations", 40, "--store", tmp_path / "s.sqlite"
    )

    assert f"open {tmp_path / 'run' / 'report.html'}" in mapped.err and (tmp_path / "run" / "report.html").is_file()
    assert reported.err == f"open {tmp_path / 'two.html'}\n" and (tmp_path / "two.html").is_file()
    assert f"tilewright report {tmp_path / 's.sqlite'}" in explored.err


def test_numbered_operators_are_named_with_their_weights() -> None:
    layer: dict[str, Any] = {
        "name": "n4",
        "count": 2,
        "origins": {"n4": {"node": "n4", "weights": "fire2/squeeze1x1_w_0"}},
        "best": {"valid": True},
    }
    other = layer | {"name": "fc", "count": 1, "origins": {}}
    assert NetworkPlots({"layers": [layer, other]})._names == ["n4 fire2/squeeze1x1_w_0 x2", "fc"]
