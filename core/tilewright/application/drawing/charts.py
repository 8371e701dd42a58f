"""Charts of numbers: bars, sweeps, rooflines, Pareto fronts and the convergence of searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from tilewright.application.drawing.drawing import (
    COLOURS,
    FONT_SIZE,
    INK,
    PALE,
    WIDE,
    Drawing,
    blank,
    colour_of,
    look,
    redrawn,
    styled,
    text_size,
)
from tilewright.errors import InputError, printable
from tilewright.formats import common_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_NAME = 32
"""Maximum number of characters of a name in a chart; tables show it in full."""
PANELS = 3
"""Maximum number of panels in a row."""


@redrawn
def bars(
    title: str,
    rows: Sequence[str],
    series: Sequence[str],
    values: Sequence[Sequence[float | None]],
    unit: str,
    *,
    stacked: bool = True,
) -> Drawing:
    """Return horizontal bars: a row each, of parts that add up, or with a bar for each series.

    Args:
        rows: Names of the rows, the first at the top.
        series: Names of the parts or bars, shown in the legend.
        values: Number of each row and series; None: no bar.
        unit: Unit of all numbers.

    Raises:
        InputError: There is no number.
    """
    sums = [math.fsum(length or 0.0 for length in row) for row in values]
    if not any(length is not None for row in values for length in row):
        raise InputError(f"{title}: there is nothing to draw", hint="a mapping with figures is needed")
    from matplotlib.patches import Patch

    _bounded(title, sums)
    marks, bar = {}, 0.75 if stacked else 0.8 / len(series)
    with styled():
        figure, axes = blank(
            WIDE, 0.22 * len(rows) * (1 if stacked else max(1.0, 0.6 * len(series))) + 0.3, keeps_height=True
        )
        handles = []
        for number, name in enumerate(series):
            lefts = [math.fsum(length or 0.0 for length in bars[:number]) if stacked else 0.0 for bars in values]
            places = [row if stacked else row - 0.4 + bar * (number + 0.5) for row in range(len(rows))]
            colour, hatch = colour_of(name, number), "//" if number >= len(COLOURS) else None
            lengths = [bars[number] or 0.0 for bars in values]
            drawn = axes.barh(places, lengths, bar, lefts, color=colour, hatch=hatch)
            handles.append(Patch(facecolor=colour, hatch=hatch, label=printable(name)))
            for row, (patch, value) in enumerate(zip(drawn, lengths, strict=True)):
                patch.set_gid(f"bar-{row}-{number}")
                patch.set_visible(value > 0)
                share = f", {100 * value / sums[row]:.3g} %" if stacked and len(series) > 1 and value else ""
                marks[f"bar-{row}-{number}"] = f"{rows[row]}, {name}: {_rounded(value, 6)} {unit}{share}"
        for row, parts in enumerate(values):
            ends: Sequence[float | None] = [sums[row]] if stacked else parts
            for number, end in enumerate(ends):
                if end is not None:
                    at = row if stacked else row - 0.4 + bar * (number + 0.5)
                    axes.annotate(
                        _rounded(end), (end, at), (3, 0), textcoords="offset points", va="center", size=text_size(7)
                    )
        axes.set_yticks(range(len(rows)), [_cut(name) for name in rows])
        axes.tick_params("y", length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.15 * max(sums if stacked else (length or 0.0 for row in values for length in row)) or 1.0)
        axes.set_xlabel(printable(unit))
        _plain(axes.xaxis)
        axes.grid(axis="x")
        if any(series):
            axes.legend(
                handles=handles,
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=_legend_columns(series),
                fontsize=text_size(8),
                handlelength=1,
            )
    most = max(range(len(rows)), key=sums.__getitem__)
    description = f"{len(rows)} rows of bars in {unit}; the longest is {rows[most]}. The table has all numbers."
    return Drawing(figure, title, description, marks)


@redrawn
def grouped(
    title: str,
    groups: Sequence[str],
    series: Sequence[str],
    values: Sequence[Sequence[float | None]],
    unit: str,
    line: float | None = None,
) -> Drawing:
    """Return groups of vertical bars, with a bar for each series.

    Args:
        groups: Names of the groups, the first at the left.
        series: Names of the bars, which select the colours.
        values: Number of each group and series; None: no bar.
        unit: Label of the vertical axis.
        line: Where a horizontal line marks a value of reference.

    Raises:
        InputError: There is no number.
    """
    numbers = [number for group in values for number in group if number is not None]
    if not numbers:
        raise InputError(f"{title}: there is nothing to draw", hint="a mapping with figures is needed")
    from matplotlib.patches import Patch

    _bounded(title, numbers)
    marks, wide = {}, 0.8 / len(series)
    highest = max(numbers)
    with styled():
        figure, axes = blank(WIDE, 2.6)
        for number, name in enumerate(series):
            colour, hatch = colour_of(name, number), "//" if number >= len(COLOURS) else None
            places = [at - 0.4 + wide * (number + 0.5) for at in range(len(groups))]
            drawn = axes.bar(places, [group[number] or 0.0 for group in values], 0.9 * wide, color=colour, hatch=hatch)
            for at, (patch, group) in enumerate(zip(drawn, values, strict=True)):
                value = group[number]
                patch.set_gid(f"bar-{at}-{number}")
                patch.set_visible(value is not None)
                if value is not None:
                    marks[f"bar-{at}-{number}"] = f"{groups[at]}, {name}: {_rounded(value)} {unit}"
        if line is not None:
            axes.axhline(line, color=PALE, linewidth=1, linestyle="--", zorder=1)
        if min(number for number in numbers if number > 0) * 30 < highest:
            axes.set_yscale("log")
            _log_ticks(axes)
        else:
            axes.set_ylim(0, 1.08 * highest or 1.0)
            _plain(axes.yaxis)
        _group_names(axes, groups)
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_ylabel(printable(unit))
        axes.grid(axis="y")
        if len(series) > 1 or any(series):
            axes.legend(
                handles=[Patch(facecolor=colour_of(name, n), hatch="//" if n >= len(COLOURS) else None, label=_cut(name))
                         for n, name in enumerate(series)],
                loc="lower left", bbox_to_anchor=(0, 1), ncols=_legend_columns(series), fontsize=text_size(8),
                handlelength=1, borderaxespad=0.2,
            )  # fmt: skip
    description = f"{len(groups)} groups of {len(series)} bars, {unit}; the highest has {_rounded(highest)}."
    return Drawing(figure, title, description, marks)


def _group_names(axes: Axes, groups: Sequence[str]) -> None:
    """Write the names below groups of bars, slanted if they have no room."""
    chosen = look()
    inner = WIDE if chosen is None or chosen.inner is None else chosen.inner
    names = [_cut(name) for name in groups]
    room = 72 * inner / len(groups) / (0.62 * text_size(FONT_SIZE))
    slanted = max(map(len, names)) > room
    axes.set_xticks(range(len(names)), names, rotation=45 if slanted else 0, ha="right" if slanted else "center",
                    rotation_mode="anchor" if slanted else "default")  # fmt: skip
    axes.tick_params("x", length=0)


@redrawn
def sweep(
    title: str, x: str, values: Sequence[str], panels: Sequence[tuple[str, Mapping[str, Sequence[float | None]]]]
) -> Drawing:
    """Return a panel for each figure, with a line for each series over the values of a choice.

    Args:
        x: Name of the choice.
        values: Its values as text, from left to right.
        panels: (name of the figure with its unit, numbers by series and value; None: no result).

    Raises:
        InputError: There is no number.
    """
    numbers = [number for _, lines in panels for line in lines.values() for number in line if number is not None]
    if not numbers:
        raise InputError(f"{title}: there is nothing to draw", hint="no point has figures")
    _bounded(title, numbers)
    marks = {}
    with styled():
        figure, whole = blank(WIDE if len(panels) > 1 else 3.6, 2.6)
        whole.remove()
        places = figure.add_gridspec(1, len(panels), wspace=0.6)
        for column, (name, lines) in enumerate(panels):
            axes = figure.add_subplot(places[0, column])
            for number, (label, line) in enumerate(lines.items()):
                known = [(at, value) for at, value in enumerate(line) if value is not None]
                gid = f"line-{column}-{number}"
                axes.plot([at for at, _ in known], [value for _, value in known], "o-", color=colour_of(label, number), markersize=3.5, linewidth=1.3,
                          label=_cut(label), gid=gid)  # fmt: skip
                told = ", ".join(f"{values[at]}: {_rounded(value)}" for at, value in known)
                marks[gid] = f"{label}, {told}" if label else told
            most = max((value for line in lines.values() for value in line if value is not None), default=1.0)
            axes.set_ylim(0, 1.08 * most or 1.0)
            _plain(axes.yaxis)
            axes.set_xticks(range(len(values)), [_cut(value) for value in values], rotation=45, ha="right",
                            rotation_mode="anchor")  # fmt: skip
            axes.set_xlabel(printable(x))
            axes.set_ylabel(printable(name))
            axes.grid()
            if column == 0 and any(lines):
                axes.legend(fontsize=text_size(8), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
                            ncols=_legend_columns(list(lines)), handlelength=1.2)  # fmt: skip
    description = f"{', '.join(name for name, _ in panels)} for {len(values)} values of {x}."
    return Drawing(figure, title, description, marks)


@dataclass(frozen=True)
class RooflinePoint:
    """Layer in a roofline: operations per word of the outermost memory, and operations per cycle."""

    name: str
    intensity: float
    speed: float


@redrawn
def roofline(title: str, points: Sequence[RooflinePoint], units: float, rate: float | None) -> Drawing:
    """Return a roofline in logarithmic scales.

    Args:
        units: Operations per cycle of all compute units.
        rate: Words per cycle of the outermost memory's busiest port; None: unlimited.

    Raises:
        InputError: There is no point.
    """
    if not points:
        raise InputError(f"{title}: there is nothing to draw", hint="the cost model reports no words of ports")
    xs, ys = [point.intensity for point in points], [point.speed for point in points]
    _bounded(title, [*xs, *ys, units, rate or 0.0])
    knee = units / rate if rate else None
    low, high = 0.5 * min([*xs, knee or xs[0]]), 2 * max([*xs, knee or xs[0]])
    with styled():
        figure, axes = blank(WIDE, 3.2)
        roof = [(low, units), (high, units)] if rate is None or knee is None else [(low, low * rate), (knee, units), (high, units)]  # fmt: skip
        axes.plot(*zip(*roof, strict=True), color=PALE, linewidth=1.5, zorder=1)
        axes.annotate(
            f"{_rounded(units, 12)} compute units", (low, units), (4, 3), textcoords="offset points", size=text_size(8)
        )
        if rate is not None:
            axes.annotate(
                f"{_rounded(rate, 6)} words per cycle",
                (low, low * rate),
                (4, -2),
                textcoords="offset points",
                size=text_size(8),
                va="top",
            )
        axes.scatter(xs, ys, s=26, color=COLOURS[0], linewidths=0, gid="marks", zorder=3)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(0.5 * min([*ys, *(y for _, y in roof)]), 2 * units)
        axes.set_xlabel("MACs per word of the outermost memory")
        axes.set_ylabel("MACs per cycle")
        _log_ticks(axes)
        axes.grid()
        _label(axes, [(x, y) for x, y in zip(xs, ys, strict=True)], [point.name for point in points])
    fastest = max(points, key=lambda point: point.speed)
    description = (
        f"{len(points)} layers below a roof of {_rounded(units, 12)} MACs per cycle"
        + (f" and {_rounded(rate, 6)} words per cycle" if rate else "")
        + f"; {fastest.name} is the fastest, with {_rounded(fastest.speed)} MACs per cycle."
    )
    marks = {
        f"marks/{at}": f"{point.name}: {_rounded(point.speed)} MACs per cycle, {_rounded(point.intensity)} per word"
        for at, point in enumerate(points)
    }
    return Drawing(figure, title, description, marks)


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
            for scale, axis, values in (
                (axes.set_xscale, axes.xaxis, [x for x, _ in panel.points]),
                (axes.set_yscale, axes.yaxis, [y for _, y in panel.points]),
            ):
                if min(values) > 0 and max(values) > 30 * min(values):
                    scale("log")
                else:
                    _plain(axis, 3 if columns > 1 and axis is axes.xaxis else 5)
            if axes.get_xscale() == "log" or axes.get_yscale() == "log":
                _log_ticks(axes)
            axes.margins(0.08)
            xs, ys = zip(*panel.front, strict=True)
            right, top = axes.get_xlim()[1], axes.get_ylim()[1]  # the line ends at the edges: a front may be one point
            axes.autoscale(False)
            ends = list(zip([xs[0], *xs, right], [top, *ys, ys[-1]], strict=True))
            corners = [(after[0], before[1]) for before, after in pairwise(ends)]
            line = [point for pair in zip(ends, corners, strict=False) for point in pair] + ends[-1:]
            axes.step(*zip(*ends, strict=True), where="post", color=COLOURS[1], linewidth=1.2, zorder=2)
            axes.set_xlabel(printable(panel.x))
            axes.set_ylabel(printable(panel.y))
            axes.set_title(_cut(panel.title))
            axes.grid()
            if panel.names:
                _label(axes, panel.points, panel.names, line)
    counts = ", ".join(f"{len(front.points):,} points of {front.x} and {front.y}" for front in panels[:PANELS])
    return Drawing(figure, title, f"{counts}; coloured: {told}. Lines connect points that no other one beats in both.")


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
    _bounded(title, [value for panel in filled for point in panel.points for value in point])
    return filled


def _grid(panels: Sequence[object]) -> tuple[int, int]:
    """Return the columns and the lines of panels."""
    columns = min(PANELS, len(panels))
    return columns, -(-len(panels) // columns)


@redrawn
def scatter(title: str, panels: Sequence[ScatterPanel]) -> Drawing:
    """Return panels of points in logarithmic scales, each with the line of equal numbers.

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
            _log_ticks(axes)
            axes.set_xlabel(_cut(panel.x))
            axes.set_ylabel(_cut(panel.y))
            axes.grid()
    counts = ", ".join(f"{len(panel.points):,} mappings under {panel.x} and {panel.y}" for panel in panels[:PANELS])
    return Drawing(figure, title, f"{counts}; on the line both give the same multiple of the median.")


@redrawn
def convergence(
    title: str,
    searches: Mapping[str, Sequence[tuple[int, float]]],
    unit: str,
    bound: float | None = None,
    claimed_by: str | None = None,
) -> Drawing:
    """Return the best value of searches over the number of evaluated mappings.

    Args:
        searches: (evaluations, value) of each improvement, by name. Values of several searches are
            drawn as multiples of the last one.
        unit: Unit of the values of a single search.
        bound: A lower bound of a single search, proved or claimed by a plugin.

    Raises:
        InputError: No search has an improvement.
    """
    histories = {name: history for name, history in searches.items() if history}
    if not histories:
        raise InputError(f"{title}: no improvements are recorded", hint="--no-cache searches again and records them")
    _bounded(title, [value for history in histories.values() for step in history for value in step])
    one, marks = len(histories) == 1, {}
    step, unit = (
        common_unit([value for history in histories.values() for _, value in history], unit) if one else (1.0, unit)
    )
    with styled():
        figure, axes = blank(WIDE, 3.2)
        last = max(steps[-1][0] for steps in histories.values())
        for number, (name, history) in enumerate(histories.items()):
            scale = step if one else history[-1][1] or 1.0
            xs, ys = [*(at for at, _ in history), last], [value / scale for _, value in (*history, history[-1])]
            style = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
            colour, gid = colour_of(name, number), f"line-{number}"
            axes.plot(xs, ys, style, drawstyle="steps-post", color=colour, label=_cut(name), gid=gid, linewidth=1.3)
            axes.plot(xs[:-1], ys[:-1], ".", color=colour, markersize=4)
            marks[gid] = f"{name}: {_rounded(history[-1][1] / step)} {unit} after {history[-1][0]:,} mappings"
        if one and bound:
            axes.axhline(bound / step, color=PALE, linestyle="--", linewidth=1)
            axes.annotate(
                f"lower bound, claimed by {claimed_by}" if claimed_by else "proved lower bound",
                (1, bound / step),
                (2, 3),
                textcoords="offset points",
                size=text_size(8),
            )
        axes.set_xscale("log")
        highest, lowest = axes.get_ylim()[1], axes.dataLim.ymin
        if lowest > 0 and highest > 30 * lowest:
            axes.set_yscale("log")
        else:
            _plain(axes.yaxis)
        _log_ticks(axes)
        axes.set_xlabel("mappings evaluated")
        axes.set_ylabel(unit if one else "times the last value")
        axes.grid()
        if not one:
            axes.legend(
                fontsize=text_size(7), ncols=1 + len(histories) // 16, loc="upper left", bbox_to_anchor=(1.0, 1.0)
            )
    ends = "; ".join(
        f"{name or 'it'} ends after {steps[-1][0]:,} mappings" for name, steps in list(histories.items())[:5]
    )
    return Drawing(figure, title, f"The best value over the number of evaluated mappings: {ends}.", marks)


def _bounded(title: str, numbers: Sequence[float]) -> None:
    """Raise InputError for numbers that no result has, and that a chart cannot show."""
    if not all(abs(number) < 1e100 for number in numbers):
        raise InputError(f"{title}: a number is infinite or too large", hint="check that the files are undamaged")


def _legend_columns(names: Sequence[str]) -> int:
    """Return the number of columns of a legend above a chart: all in one line if they fit."""
    chosen, longest = look(), min(MAX_NAME, max(map(len, names)))
    inner = WIDE if chosen is None or chosen.inner is None else chosen.inner
    letters = int(95 * inner / WIDE * FONT_SIZE / (FONT_SIZE if chosen is None else chosen.font_size))
    return len(names) if sum(map(len, names)) + 5 * len(names) <= letters else max(1, letters // (longest + 5))


def _cut(name: str) -> str:
    """Return a name without its middle if it is long."""
    name = printable(name)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME // 2]}\u2026{name[1 - MAX_NAME // 2 :]}"


def _rounded(value: float, digits: int = 4) -> str:
    """Return a number with thousands separators: to some digits, or whole where it has more digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{float(f'{value:.{digits}g}'):,.12g}"


def _tick(value: float, largest: float | None = None) -> str:
    """Return the label of a tick; if the largest of the axis has ten millions, with a suffix: 5 M, 1.5 G."""
    size = abs(value if largest is None else largest)
    power = int(math.log10(size) // 3) if size >= 1e7 else 0
    return f"{value / 1000**power:.6g} {'kMGTPEZY'[power - 1]}" if value and 0 < power <= 8 else _rounded(value, 6)


def _plain(axis: object, most: int = 5) -> None:
    """Write the ticks of an axis as numbers with thousands separators and without a common factor."""
    from matplotlib.axis import Axis
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    assert isinstance(axis, Axis)
    axis.set_major_locator(MaxNLocator(most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, max(map(abs, axis.get_view_interval())))))


def _log_ticks(axes: Axes) -> None:
    """Write the ticks of logarithmic axes as numbers: 1, 10, 100; and 2, 5, 20 where there is room for them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    for axis, (low, high), scale in (
        (axes.xaxis, axes.get_xlim(), axes.get_xscale()),
        (axes.yaxis, axes.get_ylim(), axes.get_yscale()),
    ):
        if scale == "log":
            decades = math.log10(high / low) if low > 0 else 9
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
            axis.set_minor_locator(NullLocator())
            axis.set_minor_formatter(NullFormatter())


def _label(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    line: Sequence[tuple[float, float]] = (),
) -> None:
    """Write names beside points, each at the first place that covers no other name, no point and no part of a line.

    Each part of the line is horizontal or vertical.

    A name without such a place is omitted; pages show it under the pointer.
    """
    spots, corners = ([tuple(map(float, axes.transData.transform(spot))) for spot in some] for some in (points, line))
    dots = axes.figure.get_dpi() / 72
    taken = [(x - 3 * dots, y - 3 * dots, x + 3 * dots, y + 3 * dots) for x, y in spots]
    taken += [(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairwise(corners)]
    box = axes.get_window_extent()
    for (x, y), point, name in zip(spots, points, names, strict=True):
        if not name:
            continue
        text = _cut(name)
        wide, high = 4.2 * len(text) * dots, 8 * dots
        for dx, dy, side in ((5, -2, 0.0), (-5, -2, -1.0), (0, 5, -0.5), (0, -12, -0.5), (5, 5, 0.0), (5, -11, 0.0), (-5, 5, -1.0), (-5, -11, -1.0)):  # fmt: skip
            left, bottom = x + dx * dots + side * wide, y + dy * dots
            place = (left, bottom, left + wide, bottom + high)
            inside = box.x0 <= place[0] and place[2] <= box.x1 and box.y0 <= place[1] and place[3] <= box.y1
            if inside and not any(_overlap(place, other) for other in taken):
                ha = {0.0: "left", -1.0: "right", -0.5: "center"}[side]
                axes.annotate(text, point, (dx, dy), textcoords="offset points", ha=ha, size=text_size(7), color=INK)
                taken.append(place)
                break


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
