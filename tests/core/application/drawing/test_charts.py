"""Charts: their marks are the numbers, files are equal, and user settings of matplotlib change nothing."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.charts import lines, points, rectangles
from tilewright.application.drawing.charts import RooflinePoint, bars, convergence, roofline
from tilewright.application.drawing.drawing import Drawing
from tilewright.application.drawing.fronts import Panel, pareto
from tilewright.errors import InputError, OutputError

VALUES: list[list[float | None]] = [[1.0, 2.0], [3.0, None]]


def stacked() -> Drawing:
    return bars("energy", ["a", "b"], ["DRAM", "GLB"], VALUES, "pJ")


def test_bars_are_as_long_as_their_values() -> None:
    drawing = stacked()
    drawn = {name: (each.get_x(), each.get_width()) for name, each in rectangles(drawing).items()}

    assert drawn == {"bar-0-0": (0, 1), "bar-0-1": (1, 2), "bar-1-0": (0, 3), "bar-1-1": (3, 0)}
    assert drawing.marks["bar-0-1"] == "a, GLB: 2 pJ, 66.7 %"
    assert "<title>b, DRAM: 3 pJ, 100 %</title>" in drawing.svg() and "b, GLB" not in drawing.svg()


def test_bars_side_by_side_begin_at_zero() -> None:
    drawing = bars("energy", ["a", "b"], ["A", "B"], VALUES, "pJ", stacked=False)
    (axes,) = drawing.figure.axes

    assert all(rectangle.get_x() == 0 for rectangle in rectangles(drawing).values())
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]  # none for the one that is missing


def test_the_roof_has_a_sharp_knee_above_all_points() -> None:
    layers = [RooflinePoint("a", 4.0, 8.0), RooflinePoint("b", 100.0, 30.0)]
    drawing = roofline("roofline", layers, 32, 2.0)
    (axes,) = drawing.figure.axes
    roof = points(lines(drawing)[0])

    assert roof[0][1] == 2 * roof[0][0] and roof[1:] == [(16.0, 32.0), (roof[2][0], 32.0)]
    assert {text.get_text() for text in axes.texts} >= {"a", "b", "32 compute units", "2 words per cycle"}
    assert "<title>a: 8 MACs per cycle, 4 per word</title>" in drawing.svg()


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=20))
def test_a_front_has_every_point_that_no_other_one_beats(places: list[tuple[int, int]]) -> None:
    panel = Panel("", "x", "y", places, [False] * len(places))
    beaten = {one for one in places for other in places if other != one and other[0] <= one[0] and other[1] <= one[1]}

    assert set(panel.front) == set(places) - beaten


def test_the_line_of_a_front_descends_in_steps() -> None:
    panel = Panel("", "x", "y", [(1, 9), (2, 4), (5, 5), (7, 1)], [True, True, False, True], ["p", "q", "", "r"])
    drawing = pareto("front", [panel], "best")

    (axes,), (line,) = drawing.figure.axes, lines(drawing)

    assert points(line)[1:-1] == [(1, 9), (2, 4), (7, 1)] and line.get_drawstyle() == "steps-post"
    assert points(line)[0] == (1, axes.get_ylim()[1]) and points(line)[-1] == (axes.get_xlim()[1], 1)  # to the edges
    assert sorted(text.get_text() for text in drawing.figure.axes[0].texts) == ["p", "q", "r"]
    box = next(text for text in axes.texts if text.get_text() == "q").get_window_extent()
    corner = axes.transData.transform([(2, 4), (7, 4)])
    assert not (box.y0 < corner[0][1] < box.y1 and box.x0 < corner[1][0] and corner[0][0] < box.x1)  # off the line


def test_a_search_is_drawn_to_its_last_value() -> None:
    drawing = convergence("search", {"": [(1, 9e6), (10, 4e6), (100, 2e6)]}, "pJ", 1e6)
    several = convergence("search", {"a": [(1, 9.0), (10, 3.0)], "b": [(2, 4.0)], "none": []}, "pJ")

    assert points(lines(drawing)[0]) == [(1, 9), (10, 4), (100, 2), (100, 2)]
    assert drawing.figure.axes[0].get_ylabel() == "uJ" and [y for _, y in points(lines(drawing)[2])] == [1, 1]
    assert [points(line)[0] for line in lines(several)[::2]] == [(1, 3), (2, 1)]  # times the last value


def test_nothing_to_draw_is_told() -> None:
    draws: list[Callable[[], Drawing]] = [
        lambda: bars("t", ["a"], ["s"], [[None]], "pJ"),
        lambda: roofline("t", [], 1, None),
        lambda: pareto("t", [Panel("", "x", "y", [], [])], "best"),
        lambda: convergence("t", {"a": []}, "pJ"),
    ]
    for draw in draws:
        with pytest.raises(InputError, match=r"t: (there is nothing to draw|no improvements)"):
            draw()


def test_numbers_of_damaged_files_are_refused() -> None:
    with pytest.raises(InputError, match="infinite or too large"):
        bars("t", ["a"], ["s"], [[1e200]], "pJ")


def test_equal_drawings_are_equal_files_whatever_the_user_has_set(tmp_path: Path) -> None:
    first = stacked().save(tmp_path / "a.svg").read_bytes()
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "text.usetex": False, "axes.grid": True}):
        second = stacked().save(tmp_path / "b.svg").read_bytes()
        assert matplotlib.rcParams["font.size"] == 30
    png = stacked().save(tmp_path / "a.png").read_bytes()

    assert first == second and b"Matplotlib" not in first and b"<dc:date>" not in first
    assert png.startswith(b"\x89PNG") and b"Software" not in png
    assert stacked()._repr_svg_().encode() == first


def test_a_file_is_svg_or_png_in_a_folder_that_exists(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither .svg nor .png"):
        stacked().save(tmp_path / "a.gif")
    with pytest.raises(OutputError):
        stacked().save(tmp_path / "none" / "a.svg")


@pytest.mark.parametrize("name", ["<b>&", "$x^{2$", "_hidden", "\x1b[31m", "\u65e5\u672c", "a" * 200])
def test_any_name_is_drawn_as_text(name: str) -> None:
    drawing = bars(name, [name, "b"], [name, "c"], [[1.0, 2.0], [2.0, 1.0]], name)
    root = ElementTree.fromstring(drawing.svg())
    texts = "".join(root.itertext())

    assert len([each for each in root.iter() if each.tag.endswith("}b")]) == 0
    assert ("\\x1b" in texts) if "\x1b" in name else name in texts


def test_an_inline_drawing_has_the_colour_of_the_page_and_identifiers_of_its_own() -> None:
    one, other = stacked().inline("one"), stacked().inline("other")
    ids = [set(re.findall(r'\bid="([^"]+)"', each)) for each in (one, other)]

    assert "currentColor" in one and "#1b1f24" not in one and not ids[0] & ids[1]
    assert all(each.startswith("one-") for each in ids[0]) and 'role="img"' in one
    assert "<desc" in one and math.isclose(float(re.findall(r'width="([\d.]+)pt"', one)[0]), 460, rel_tol=0.1)
