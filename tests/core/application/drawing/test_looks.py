"""Drawings for papers: PDF, a width, a size of text, colours by name."""

import re
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.charts import points, rectangles
from support.command import command
from support.profiles import first
from tilewright.application.api.plots import ComparisonPlots, ExplorationPlots, FrontPlots, fronts_of
from tilewright.application.drawing.charts import RooflinePoint, bars, grouped, roofline, sweep
from tilewright.application.drawing.drawing import Drawing, Look
from tilewright.errors import InputError


def chart() -> Drawing:
    return grouped("EDP", ["a", "b"], ["optimal", "random"], [[1.0, 2.0], [3.0, None]], "EDP", 1.0)


def colours(drawing: Drawing) -> set[Any]:
    return {patch.get_facecolor() for patch in rectangles(drawing).values()}


@pytest.mark.parametrize(("width", "font_size"), first(1, (2.5, 6.0), (3.5, 10.0)))
def test_a_pdf_is_as_wide_as_asked(width: float, font_size: float, tmp_path: Path) -> None:
    drawings = [
        chart(),
        bars("energy", ["a layer with a name"], ["DRAM"], [[3.0]], "pJ"),
        sweep("s", "GLB", ["1", "2"], [("pJ", {"": [3.0, 4.0]})]),
        tw.draw(tw.load("eyeriss", "architecture")),
    ]
    for drawing in drawings:
        data = drawing.save(tmp_path / "x.pdf", width=width, font_size=font_size).read_bytes()
        (box,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", data)
        assert float(box[0]) / 72 == pytest.approx(width, abs=0.01)
        assert b"CreationDate" not in data and b"matplotlib" not in data.lower()
    assert drawings[0].save(tmp_path / "y.pdf").read_bytes() == chart().save(tmp_path / "z.pdf").read_bytes()


def test_text_has_its_size_and_a_mapper_its_colour() -> None:
    small = chart()._styled_as(Look(font_size=6, colours={"optimal": "#000000"}))
    axes = small.figure.axes[0]
    black, other = (0.0, 0.0, 0.0, 1.0), colours(chart()) - {(0.0, 0.0, 0.0, 1.0)}

    assert {label.get_fontsize() for label in axes.get_xticklabels()} == {6.0} and axes.yaxis.label.get_fontsize() == 6
    assert black in colours(small) and len(colours(small) & other) == 1  # the other mapper keeps its own
    assert rectangles(small)["bar-0-0"].get_height() == 1 and small.marks == chart().marks


@pytest.mark.parametrize(
    ("look", "told"),
    [
        ({"width": 0.1}, "width is 0.1; expected 1 to 40 inches"),
        ({"font_size": 100}, "font_size is 100; expected 3 to 40 points"),
        ({"colours": {"optimal": "no colour"}}, "the colour of optimal is 'no colour'"),
        ({"width": 1, "font_size": 40}, "a width of 1 inches has no room beside the names"),
    ],
)
def test_a_look_without_room_is_refused(look: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        bars("t", ["a name"], ["s"], [[1.0]], "pJ").save(tmp_path / "x.pdf", **look)


def price(energy: float, cycles: int) -> list[dict[str, Any]]:
    return [{"model": "m", "energy_pj": energy, "cycles": cycles}]


def test_a_comparison_has_a_colour_for_each_mapper() -> None:
    rows = [
        {"layer": layer, "mapper": mapper, "guide": "m", "prices": price(energy, 10)}
        for layer, mapper, energy in (("a", "x", 2.0), ("a", "y", 6.0), ("b", "x", 4.0), ("b", "y", 3.0))
    ]
    plots = ComparisonPlots({"objective": "edp", "models": ["m"], "rows": rows})
    drawn = {name: patch.get_height() for name, patch in rectangles(plots.objective()).items()}

    assert [drawn[f"bar-{layer}-{mapper}"] for layer in range(3) for mapper in range(2)] == pytest.approx(
        [1, 3, 4 / 3, 1, (4 / 3) ** 0.5, 3**0.5]
    )
    assert plots.energy().marks["bar-1-0"] == "b, x: 4 pJ" and plots.latency().marks["bar-0-1"] == "a, y: 10 cycles"


def test_a_sweep_has_a_line_for_each_value_of_the_second_field() -> None:
    rows = [
        {"G.capacity": size, "rows": n, "energy_pj": None if n == 4 and size == "2 KiB" else 10.0 * n, "cycles": 100 // n, "area_um2": None, "point": 0}
        for size in ("1 KiB", "2 KiB") for n in (2, 4)
    ]  # fmt: skip
    plots = ExplorationPlots(rows, ("G.capacity", "rows"))
    (energy, cycles) = plots.sweep().figure.axes

    assert plots.kinds == ("pareto", "sweep") and ExplorationPlots(rows, ("rows",)).kinds == ("sweep", "pareto")
    assert [[y for _, y in points(line)] for line in energy.lines] == [[20, 20], [40]]
    assert [[y for _, y in points(line)] for line in cycles.lines] == [[50, 50], [25, 25]]
    assert [text.get_text() for text in energy.get_xticklabels()] == ["1 KiB", "2 KiB"]
    with pytest.raises(InputError, match="a sweep has one or two varied fields, not 3"):
        ExplorationPlots(rows, ("a", "b", "c")).sweep()


def test_the_command_takes_the_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = command(monkeypatch, capsys)
    made = run("plot", "eyeriss", "-o", tmp_path / "x.pdf", "--width", 4, "--font-size", 8, "--colour", "a=#ff0000")
    wrong = run("plot", "eyeriss", "-o", tmp_path / "y.pdf", "--colour", "optimal")

    assert made.code == 0 and (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    assert wrong.code == 2 and "--colour takes NAME=COLOUR" in wrong.err


def test_the_fronts_of_several_runs_have_a_colour_each() -> None:
    def run(energy: float) -> FrontPlots:
        points = [{"cycles": cycles, "energy_pj": energy / cycles} for cycles in (1, 2)]
        return FrontPlots({"layers": [{"name": name, "points": points} for name in ("a", "b")]})

    rows: list[dict[str, Any]] = [
        {"energy_pj": 2.0, "cycles": 3, "area_um2": None},
        {"energy_pj": None, "cycles": None, "area_um2": None},
    ]
    explored = ExplorationPlots(rows)
    drawing = fronts_of({"x": run(8.0), "y": run(4.0)})
    (first, second) = drawing.figure.axes

    assert [axes.get_title(loc="left") for axes in (first, second)] == ["a", "b"]
    assert [points(line)[1:-1] for line in first.lines] == [[(1, 8), (2, 4)], [(1, 4), (2, 2)]]
    assert len(fronts_of({"x": explored, "y": explored}).figure.axes) == 1  # no area is known
    with pytest.raises(InputError, match="these runs have other charts"):
        fronts_of({"x": explored, "y": run(1.0)})


def test_every_point_of_a_roofline_has_its_name() -> None:
    layers = [RooflinePoint(f"layer{at}", 50 + at % 3, 30 - at % 2) for at in range(40)]
    for drawing in (
        roofline("roofline", layers, 32, 2.0),
        roofline("roofline", layers, 32, None)._styled_as(Look(width=3.5)),
    ):
        (axes,) = drawing.figure.axes
        assert {text.get_text() for text in axes.texts} >= {layer.name for layer in layers}


@pytest.mark.exhaustive
def test_the_command_draws_the_fronts_of_several_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = command(monkeypatch, capsys)
    words: dict[str, Any] = {"arch": "eyeriss", "mapper": "random", "evaluations": 40, "progress": False}
    for name in ("a", "b"):
        tw.explore(
            "nk,km->nm; n=8 k=8 m=8", vary={"DRAM.bandwidth": [2, 4]}, store=tmp_path / f"{name}.sqlite", **words
        )
    drawn = run("plot", tmp_path / "a.sqlite", tmp_path / "b.sqlite", "-o", tmp_path / "x.svg")
    wrong = run("plot", tmp_path / "a.sqlite", tmp_path, "-o", tmp_path / "y.svg")

    assert drawn.code == 0 and "Pareto fronts of a, b" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert wrong.code == 2 and "has no front.json" in wrong.err
