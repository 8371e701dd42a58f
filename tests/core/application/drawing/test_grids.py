"""Grids of units: as many cells as units, those in use in colour; edges of mappings with what crosses them."""

from typing import Any

import pytest
from matplotlib.patches import PathPatch

import tilewright as tw
from tilewright.application.drawing.drawing import COLOURS, PALE
from tilewright.application.drawing.grids import Grid, Painter


def cells(grid: Grid) -> dict[str, int]:
    """Drawn compute units by colour."""
    painter = Painter(grid, (1.0, 1.0))
    painter.cluster(0, (0.0, 0.0, 1.0, 1.0), True)
    depth = 3 * len(grid.clusters)
    return {fill.colour: len(places) for fill, places in painter.rectangles.items() if fill.depth == depth}


@pytest.mark.parametrize(
    ("array", "shown"), [("4x3", 12), ("10x10", 100), ("16x2", 9 * 2), ("256x256", 9 * 9), ("5", 5), ("1", 1)]
)
def test_a_cell_is_a_unit_and_long_axes_are_cut(array: str, shown: int) -> None:
    grid = Grid(tw.new_architecture("m", array=array))

    assert cells(grid) == {COLOURS[3]: shown}
    assert grid.caption == f"{grid.architecture.compute_instances:,} MAC" and 0.9 <= grid.height <= 3.6


def test_idle_units_are_pale() -> None:
    machine = tw.new_architecture("m", array="4x3")
    grid = Grid(machine, {"Buffer": 3, "Column": 2})

    assert cells(grid) == {COLOURS[3]: 6, PALE: 6} and grid.caption == "6 of 12 MAC in use"
    assert cells(Grid(tw.load("eyeriss", "architecture"), {"GlobalBuffer": 14, "Column": 4})) == {
        COLOURS[3]: 9 * 4,
        PALE: 9 * 5,
    }


def test_nested_memories_are_inside_their_clusters() -> None:
    painter = Painter(Grid(tw.load("simba", "architecture")), (1.0, 1.0))
    painter.cluster(0, (0.0, 0.0, 3.0, 3.0), True)
    outlines = {fill.depth // 3: places for fill, places in painter.rectangles.items() if fill.outlined}

    assert {depth: len(places) for depth, places in outlines.items()} == {0: 1, 1: 9, 2: 36, 3: 144}
    for inner, outer in ((1, 0), (2, 1), (3, 2)):
        for x, y, wide, high in outlines[inner]:
            assert any(
                left <= x and top <= y and x + wide <= left + width + 1e-9 and y + high <= top + tall + 1e-9
                for left, top, width, tall in outlines[outer]
            )


def test_a_mapping_with_its_report_has_the_traffic_on_its_edges() -> None:
    machine = tw.new_architecture("m", array="4x4", buffer="8 KiB")
    words: dict[str, Any] = {"mapper": "quickflow", "evaluations": 60, "progress": False, "cache": False}
    (layer,) = tw.map("nk,km->nm; n=3 k=2 m=2", machine, **words).layers
    assert layer.mapping is not None and layer.report is not None
    plain, full = tw.draw(layer.mapping).svg(), tw.draw(layer.mapping, report=layer.report).svg()
    outer = layer.report.levels[0].tensors
    (weights,) = (name for name in outer if layer.problem.tensor(name).role == "weight")

    assert f"{weights} {outer[weights].reads} down" in full and " down" not in plain
    assert "% of the energy" in full and "of the energy" not in plain
    busy = round(layer.report.busy_units or 0)
    assert (
        f"{busy} of 16 MAC in use" in plain
        and len([p for p in tw.draw(machine).figure.axes[0].patches if isinstance(p, PathPatch)]) > 3
    )
