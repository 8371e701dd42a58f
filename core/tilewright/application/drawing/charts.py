"""Charts of numbers: bars, sweeps, rooflines and the convergence of searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.application.drawing.axes import (
    bounded,
    cut,
    label,
    legend_above,
    legend_columns,
    log_ticks,
    plain,
    rounded,
)
from tilewright.application.drawing.drawing import (
    COLOURS,
    FONT_SIZE,
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

    bounded(title, sums)
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
                marks[f"bar-{row}-{number}"] = f"{rows[row]}, {name}: {rounded(value, 6)} {unit}{share}"
        for row, parts in enumerate(values):
            ends: Sequence[float | None] = [sums[row]] if stacked else parts
            for number, end in enumerate(ends):
                if end is not None:
                    at = row if stacked else row - 0.4 + bar * (number + 0.5)
                    axes.annotate(
                        rounded(end), (end, at), (3, 0), textcoords="offset points", va="center", size=text_size(7)
                    )
        axes.set_yticks(range(len(rows)), [cut(name) for name in rows])
        axes.tick_params("y", length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.15 * max(sums if stacked else (length or 0.0 for row in values for length in row)) or 1.0)
        axes.set_xlabel(printable(unit))
        plain(axes.xaxis)
        axes.grid(axis="x")
        if any(series):
            legend_above(axes, series, handles)
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

    bounded(title, numbers)
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
                    marks[f"bar-{at}-{number}"] = f"{groups[at]}, {name}: {rounded(value)} {unit}"
        if line is not None:
            axes.axhline(line, color=PALE, linewidth=1, linestyle="--", zorder=1)
        if min(number for number in numbers if number > 0) * 30 < highest:
            axes.set_yscale("log")
            log_ticks(axes)
        else:
            axes.set_ylim(0, 1.08 * highest or 1.0)
            plain(axes.yaxis)
        _group_names(axes, groups)
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_ylabel(printable(unit))
        axes.grid(axis="y")
        if len(series) > 1 or any(series):
            axes.legend(
                handles=[Patch(facecolor=colour_of(name, n), hatch="//" if n >= len(COLOURS) else None, label=cut(name))
                         for n, name in enumerate(series)],
                loc="lower left", bbox_to_anchor=(0, 1), ncols=legend_columns(series), fontsize=text_size(8),
                handlelength=1, borderaxespad=0.2,
            )  # fmt: skip
    description = f"{len(groups)} groups of {len(series)} bars, {unit}; the highest has {rounded(highest)}."
    return Drawing(figure, title, description, marks)


def _group_names(axes: Axes, groups: Sequence[str]) -> None:
    """Write the names below groups of bars, slanted if they have no room."""
    chosen = look()
    inner = WIDE if chosen is None or chosen.inner is None else chosen.inner
    names = [cut(name) for name in groups]
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
    bounded(title, numbers)
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
                          label=cut(label), gid=gid)  # fmt: skip
                told = ", ".join(f"{values[at]}: {rounded(value)}" for at, value in known)
                marks[gid] = f"{label}, {told}" if label else told
            most = max((value for line in lines.values() for value in line if value is not None), default=1.0)
            axes.set_ylim(0, 1.08 * most or 1.0)
            plain(axes.yaxis)
            axes.set_xticks(range(len(values)), [cut(value) for value in values], rotation=45, ha="right",
                            rotation_mode="anchor")  # fmt: skip
            axes.set_xlabel(printable(x))
            axes.set_ylabel(printable(name))
            axes.grid()
            if column == 0 and any(lines):
                axes.legend(fontsize=text_size(8), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
                            ncols=legend_columns(list(lines)), handlelength=1.2)  # fmt: skip
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
    bounded(title, [*xs, *ys, units, rate or 0.0])
    knee = units / rate if rate else None
    low, high = 0.5 * min([*xs, knee or xs[0]]), 2 * max([*xs, knee or xs[0]])
    with styled():
        figure, axes = blank(WIDE, 3.2)
        roof = [(low, units), (high, units)] if rate is None or knee is None else [(low, low * rate), (knee, units), (high, units)]  # fmt: skip
        axes.plot(*zip(*roof, strict=True), color=PALE, linewidth=1.5, zorder=1)
        axes.annotate(
            f"{rounded(units, 12)} compute units", (low, units), (4, 3), textcoords="offset points", size=text_size(8)
        )
        if rate is not None:
            axes.annotate(
                f"{rounded(rate, 6)} words per cycle",
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
        log_ticks(axes)
        axes.grid()
        label(axes, list(zip(xs, ys, strict=True)), [point.name for point in points], roof, all_of_them=True)
    fastest = max(points, key=lambda point: point.speed)
    description = (
        f"{len(points)} layers below a roof of {rounded(units, 12)} MACs per cycle"
        + (f" and {rounded(rate, 6)} words per cycle" if rate else "")
        + f"; {fastest.name} is the fastest, with {rounded(fastest.speed)} MACs per cycle."
    )
    marks = {
        f"marks/{at}": f"{point.name}: {rounded(point.speed)} MACs per cycle, {rounded(point.intensity)} per word"
        for at, point in enumerate(points)
    }
    return Drawing(figure, title, description, marks)


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
    bounded(title, [value for history in histories.values() for step in history for value in step])
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
            axes.plot(xs, ys, style, drawstyle="steps-post", color=colour, label=cut(name), gid=gid, linewidth=1.3)
            axes.plot(xs[:-1], ys[:-1], ".", color=colour, markersize=4)
            marks[gid] = f"{name}: {rounded(history[-1][1] / step)} {unit} after {history[-1][0]:,} mappings"
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
            plain(axes.yaxis)
        log_ticks(axes)
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
