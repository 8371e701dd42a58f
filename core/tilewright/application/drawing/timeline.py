"""Time lines: what each unit does, cycle by cycle (Gantt chart)."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.application.drawing.axes import bounded, cut, plain
from tilewright.application.drawing.drawing import WIDE, Drawing, blank, colour_of, redrawn, styled
from tilewright.errors import InputError, printable

Work = tuple[str, str, float, float, str]
"""(unit, name, start, end, further text)."""


@redrawn
def timeline(title: str, work: Sequence[Work], unit: str) -> Drawing:
    """Return a row of bars for each unit. A bar is the work of one layer.

    Args:
        work: Bars in any order.
        unit: Unit of starts and ends.

    Raises:
        InputError: There is no bar.
    """
    if not work:
        raise InputError(f"{title}: there is nothing to draw", hint="a network with vector units is needed")
    rows = list(dict.fromkeys(row for row, *_ in work))
    end = max(bar[3] for bar in work)
    bounded(title, [end])
    marks: dict[str, str] = {}
    with styled():
        figure, axes = blank(WIDE, 0.35 * len(rows) + 0.3, keeps_height=True)
        for number, (row, name, start, stop, more) in enumerate(work):
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
    told = f"{len(rows)} units, {len(work)} layers, {end:,.6g} {unit}"
    return Drawing(figure, title, told, marks)
