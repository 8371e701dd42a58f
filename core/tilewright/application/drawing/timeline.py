"""Time lines: what each unit does, cycle by cycle (Gantt chart), and which results a memory holds during each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilewright.application.drawing.axes import bounded, cut, legend_above, plain
from tilewright.application.drawing.drawing import WIDE, Drawing, blank, colour_of, redrawn, styled
from tilewright.errors import InputError, printable

MAX_BARS = 1000
"""More bars are drawn together where the gaps between them are too narrow to be seen."""


class Work(NamedTuple):
    """Work of a layer on a unit."""

    unit: str
    name: str
    start: float
    end: float
    more: str = ""


def _together(work: Sequence[Work], gap: float) -> list[Work]:
    """Return the bars with neighbours on one unit as one bar, where they are less than `gap` apart."""
    joined, last = list[Work](), dict[str, int]()
    for bar in sorted(work, key=lambda bar: bar.start):
        place = last.get(bar.unit)
        if place is not None and bar.start - joined[place].end < gap:
            first, _, _ = joined[place].name.partition(" to ")
            joined[place] = joined[place]._replace(name=f"{first} to {bar.name}", end=bar.end, more="")
        else:
            last[bar.unit] = len(joined)
            joined.append(bar)
    return joined


@redrawn
def timeline(title: str, work: Sequence[Work], unit: str) -> Drawing:
    """Return a row of bars for each unit and each port. A bar is the work of one layer, or its words.

    Names of units have no space; those of ports have one.

    Args:
        work: Bars in any order.
        unit: Unit of starts and ends.

    Raises:
        InputError: There is no bar.
    """
    if not work:
        raise InputError(f"{title}: there is nothing to draw", hint="a network with vector units is needed")
    rows, end = list(dict.fromkeys(bar.unit for bar in work)), max(bar.end for bar in work)
    drawn = work if len(work) <= MAX_BARS else _together(work, end / MAX_BARS)
    bounded(title, [end])
    marks: dict[str, str] = {}
    with styled():
        figure, axes = blank(WIDE, 0.35 * len(rows) + 0.3, keeps_height=True)
        for number, (row, name, start, stop, more) in enumerate(drawn):
            (patch,) = axes.barh([rows.index(row)], [stop - start], 0.7, [start], color=colour_of(row, rows.index(row)))
            patch.set_edgecolor("white")
            patch.set_linewidth(0.3)
            patch.set_gid(f"work-{number}")
            marks[f"work-{number}"] = f"{row}, {name}: {start:,.6g} to {stop:,.6g} {unit}{more}"
        axes.set_yticks(range(len(rows)), [cut(name) for name in rows])
        axes.tick_params("y", length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.02 * end or 1.0)
        axes.set_xlabel(printable(unit))
        plain(axes.xaxis)
        axes.grid(axis="x")
    units = [row for row in rows if " " not in row]
    layers = [bar for bar in work if bar.unit in units]
    told = f"{len(units)} units, {len(layers)} layers, {end:,.6g} {unit}"
    return Drawing(figure, title, told, marks)


class Life(NamedTuple):
    """Layers during which a result lives, by position, and how: such as whole in a memory, or in tiles."""

    result: str
    kind: str
    first: int
    last: int
    more: str = ""


@redrawn
def lives(title: str, results: Sequence[Life], layers: Sequence[str]) -> Drawing:
    """Return a bar for each result, from the layer that makes it to the last one that reads it.

    Args:
        layers: Names of the layers, in order of execution.

    Raises:
        InputError: There is no result.
    """
    if not results:
        raise InputError(f"{title}: there is nothing to draw", hint="a network whose results stay on chip is needed")
    from matplotlib.patches import Patch

    kinds, marks = list(dict.fromkeys(life.kind for life in results)), dict[str, str]()
    with styled():
        figure, axes = blank(WIDE, 0.2 * len(results) + 0.3, keeps_height=True)
        for number, (result, kind, first, last, more) in enumerate(results):
            colour = colour_of(kind, kinds.index(kind))
            (patch,) = axes.barh([number], [last + 1 - first], 0.75, [first + 0.5], color=colour)
            patch.set_gid(f"life-{number}")
            marks[f"life-{number}"] = f"{result}, {kind}: {layers[first]} to {layers[last]}{more}"
        axes.set_yticks(range(len(results)), [cut(life.result) for life in results])
        axes.tick_params("y", length=0)
        axes.set_ylim(len(results) - 0.4, -0.6)
        axes.set_xlim(0.5, len(layers) + 0.5)
        axes.set_xlabel("layer")
        plain(axes.xaxis)
        axes.grid(axis="x")
        legend_above(axes, kinds, [Patch(facecolor=colour_of(kind, at), label=kind) for at, kind in enumerate(kinds)])
    told = f"{len(results)} results over {len(layers)} layers. The table has all numbers."
    return Drawing(figure, title, told, marks)
