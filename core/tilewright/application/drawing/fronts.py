"""Charts in panels of two quantities: Pareto fronts of one run and of several, and pairs of cost models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from tilewright.application.drawing.axes import bounded, cut, label, legend_columns, log_ticks, plain
from tilewright.application.drawing.drawing import (
    COLOURS,
    PALE,
    WIDE,
    Drawing,
    blank,
    colour_of,
    redrawn,
    styled,
    text_size,
)
from tilewright.errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = 3
"""Maximum number of panels in a row."""


@dataclass(frozen=True)
class Panel:
    """Points in two quantities that are both to be small, and their front.

    Attributes:
        names: Label of each point; empty texts are not drawn.
        chosen: Whether each point is drawn as one of the best.
    """

    title: str
    x: str
    y: str
    points: Sequence[tuple[float, float]]
    chosen: Sequence[bool]
    names: Sequence[str] = ()

    @property
    def front(self) -> list[tuple[float, float]]:
        """Points that no other one beats in these two quantities, from left to right."""
        steps: list[tuple[float, float]] = []
        for x, y in sorted(set(self.points)):
            if not steps or y < steps[-1][1]:
                steps.append((x, y))
        return steps


@redrawn
def pareto(title: str, panels: Sequence[Panel], told: str) -> Drawing:
    """Return panels of points, each with a line along its front.

    Args:
        told: What the coloured points are, for the description.

    Raises:
        InputError: There is no point.
    """
    panels = _filled(title, panels, "no point has figures")
    columns, lines = _grid(panels)
    wide = WIDE if columns == 1 else 3.4 * columns
    with styled():
        figure, whole = blank(wide, (3.4 if columns == 1 else 2.9) * lines)
        whole.remove()
        places = figure.add_gridspec(lines, columns, wspace=0.38, hspace=0.5)
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(places[number // columns, number % columns])
            for chosen in (False, True):
                which = [at for at, mark in enumerate(panel.chosen) if mark == chosen]
                if which:
                    axes.scatter(
                        [panel.points[at][0] for at in which], [panel.points[at][1] for at in which], s=26 if chosen else 13,
                        color=COLOURS[1] if chosen else COLOURS[0], linewidths=0,
                        gid=f"marks-{number}-{'chosen' if chosen else 'others'}", zorder=3,
                    )  # fmt: skip
            _finish(axes, panel, columns)
            line = _front_line(axes, panel.front, COLOURS[1])
            if panel.names:
                label(axes, panel.points, panel.names, line)
    counts = ", ".join(f"{len(front.points):,} points of {front.x} and {front.y}" for front in panels[:PANELS])
    return Drawing(figure, title, f"{counts}; coloured: {told}. Lines connect points that no other one beats in both.")


def _finish(axes: Axes, panel: Panel, columns: int) -> None:
    """Choose the scales of a panel by its points, write its texts, and keep the limits."""
    for scale, axis, values in (
        (axes.set_xscale, axes.xaxis, [x for x, _ in panel.points]),
        (axes.set_yscale, axes.yaxis, [y for _, y in panel.points]),
    ):
        if min(values) > 0 and max(values) > 30 * min(values):
            scale("log")
        else:
            plain(axis, 3 if columns > 1 and axis is axes.xaxis else 5)
    if axes.get_xscale() == "log" or axes.get_yscale() == "log":
        log_ticks(axes)
    axes.margins(0.08)
    axes.autoscale_view()
    axes.autoscale(False)
    axes.set_xlabel(printable(panel.x))
    axes.set_ylabel(printable(panel.y))
    axes.set_title(cut(panel.title))
    axes.grid()


def _front_line(axes: Axes, front: Sequence[tuple[float, float]], colour: str) -> list[tuple[float, float]]:
    """Draw the line of a front, which ends at the edges because a front may be one point; return its corners."""
    xs, ys = zip(*front, strict=True)
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    ends = list(zip([xs[0], *xs, right], [top, *ys, ys[-1]], strict=True))
    corners = [(after[0], before[1]) for before, after in pairwise(ends)]
    axes.step(*zip(*ends, strict=True), where="post", color=colour, linewidth=1.2, zorder=2)
    return [point for pair in zip(ends, corners, strict=False) for point in pair] + ends[-1:]


@redrawn
def fronts(title: str, runs: Sequence[str], panels: Sequence[tuple[Panel, Sequence[int]]]) -> Drawing:
    """Return panels with the fronts of several runs, a colour for each.

    Args:
        runs: Names of the runs.
        panels: Points of all runs, and the run of each point as a place in `runs`.

    Raises:
        InputError: There is no point.
    """
    known = [(panel, owners) for panel, owners in panels if panel.points]
    columns, lines = _grid(_filled(title, [panel for panel, _ in known], "no run has a point with figures"))
    with styled():
        figure, whole = blank(WIDE if columns == 1 else 3.4 * columns, (3.4 if columns == 1 else 2.9) * lines)
        whole.remove()
        places = figure.add_gridspec(lines, columns, wspace=0.38, hspace=0.5)
        for number, (panel, owners) in enumerate(known):
            axes = figure.add_subplot(places[number // columns, number % columns])
            groups = [
                [point for point, owner in zip(panel.points, owners, strict=True) if owner == run]
                for run in range(len(runs))
            ]
            for run, points in enumerate(groups):
                axes.scatter([x for x, _ in points], [y for _, y in points], s=16, color=colour_of(runs[run], run), linewidths=0,
                             label=cut(runs[run]), gid=f"marks-{number}-{run}", zorder=3)  # fmt: skip
            _finish(axes, panel, columns)
            for run, points in enumerate(groups):
                if points:
                    _front_line(axes, replace(panel, points=points).front, colour_of(runs[run], run))
            if number == 0:
                axes.legend(fontsize=text_size(8), loc="lower left", bbox_to_anchor=(0, 1.06 if panel.title else 1.0),
                            borderaxespad=0.2, ncols=legend_columns(runs), handlelength=1)  # fmt: skip
    counts = ", ".join(f"{len(panel.points):,} points of {panel.x} and {panel.y}" for panel, _ in known[:PANELS])
    return Drawing(
        figure,
        title,
        f"{counts} of {', '.join(runs)}; lines connect points that no other one of the run beats in both.",
    )


@dataclass(frozen=True)
class ScatterPanel:
    """Positive numbers of the same things in two quantities."""

    x: str
    y: str
    points: Sequence[tuple[float, float]]


AnyPanel = TypeVar("AnyPanel", Panel, ScatterPanel)


def _filled(title: str, panels: Sequence[AnyPanel], hint: str) -> list[AnyPanel]:
    """Return the panels with points; raise InputError if there is none, or numbers are out of range."""
    filled = [panel for panel in panels if panel.points]
    if not filled:
        raise InputError(f"{title}: there is nothing to draw", hint=hint)
    bounded(title, [value for panel in filled for point in panel.points for value in point])
    return filled


def _grid(panels: Sequence[object]) -> tuple[int, int]:
    """Return the columns and the lines of panels."""
    columns = min(PANELS, len(panels))
    return columns, -(-len(panels) // columns)


@redrawn
def scatter(
    title: str, panels: Sequence[ScatterPanel], line: str = "on the line both give the same multiple of the median"
) -> Drawing:
    """Return panels of points in logarithmic scales, each with the line of equal numbers.

    Args:
        line: meaning of the line.

    Raises:
        InputError: There is no point.
    """
    panels = _filled(title, panels, "no mapping has figures under two models")
    columns, lines = _grid(panels)
    with styled():
        figure, whole = blank(3.6 if columns == 1 else 2.9 * columns, (3.6 if columns == 1 else 2.7) * lines)
        whole.remove()
        places = figure.add_gridspec(lines, columns, wspace=0.38, hspace=0.42)
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(places[number // columns, number % columns])
            values = [value for point in panel.points for value in point]
            ends = min(values) / 1.3, 1.3 * max(values)
            axes.plot(ends, ends, color=PALE, linewidth=1, zorder=1)
            axes.scatter(
                [x for x, _ in panel.points],
                [y for _, y in panel.points],
                s=5,
                color=COLOURS[0],
                alpha=0.5,
                linewidths=0,
                gid=f"marks-{number}",
                zorder=3,
            )
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(ends)
            axes.set_ylim(ends)
            log_ticks(axes)
            axes.set_xlabel(cut(panel.x))
            axes.set_ylabel(cut(panel.y))
            axes.grid()
    counts = ", ".join(f"{len(panel.points):,} mappings under {panel.x} and {panel.y}" for panel in panels[:PANELS])
    return Drawing(figure, title, f"{counts}; {line}.")
