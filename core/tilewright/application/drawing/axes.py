"""Parts of charts: ticks, legends, names of points and bounded numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tilewright.application.drawing.drawing import FONT_SIZE, INK, PALE, WIDE, look, text_size
from tilewright.errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MAX_NAME = 32
"""Maximum number of characters of a name in a chart; tables show it in full."""


def bounded(title: str, numbers: Sequence[float]) -> None:
    """Raise InputError for numbers that no result has, and that a chart cannot show."""
    if not all(abs(number) < 1e100 for number in numbers):
        raise InputError(f"{title}: a number is infinite or too large", hint="check that the files are undamaged")


def legend_columns(names: Sequence[str]) -> int:
    """Return the number of columns of a legend above a chart: all in one line if they fit."""
    chosen, longest = look(), min(MAX_NAME, max(map(len, names)))
    inner = WIDE if chosen is None or chosen.inner is None else chosen.inner
    letters = int(95 * inner / WIDE * FONT_SIZE / (FONT_SIZE if chosen is None else chosen.font_size))
    return len(names) if sum(map(len, names)) + 5 * len(names) <= letters else max(1, letters // (longest + 5))


def legend_above(axes: Axes, names: Sequence[str], handles: Sequence[Artist]) -> None:
    """Put a legend of these marks above a chart."""
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=legend_columns(names),
        fontsize=text_size(8),
        handlelength=1,
    )


def cut(name: str) -> str:
    """Return a name without its middle if it is long."""
    name = printable(name)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME // 2]}\u2026{name[1 - MAX_NAME // 2 :]}"


def rounded(value: float, digits: int = 4) -> str:
    """Return a number with thousands separators: to some digits, or whole where it has more digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{float(f'{value:.{digits}g}'):,.12g}"


def _tick(value: float, largest: float | None = None) -> str:
    """Return the label of a tick; if the largest of the axis has ten millions, with a suffix: 5 M, 1.5 G."""
    size = abs(value if largest is None else largest)
    power = int(math.log10(size) // 3) if size >= 1e7 else 0
    return f"{value / 1000**power:.6g} {'kMGTPEZY'[power - 1]}" if value and 0 < power <= 8 else rounded(value, 6)


def plain(axis: object, most: int = 5) -> None:
    """Write the ticks of an axis as numbers with thousands separators and without a common factor."""
    from matplotlib.axis import Axis
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    assert isinstance(axis, Axis)
    axis.set_major_locator(MaxNLocator(most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, max(map(abs, axis.get_view_interval())))))


def log_ticks(axes: Axes) -> None:
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


BESIDE = (
    (5, -2, 0.0),
    (-5, -2, -1.0),
    (0, 5, -0.5),
    (0, -12, -0.5),
    (5, 5, 0.0),
    (5, -11, 0.0),
    (-5, 5, -1.0),
    (-5, -11, -1.0),
)
"""Places of a name at its point: offset in points, and the part of its width to the left of that."""
FAR = tuple(
    (distance * math.cos(math.pi * turn / 8), distance * math.sin(math.pi * turn / 8) - 4, -0.5)
    for distance in (20, 30, 42, 56, 72, 92, 116, 144)
    for turn in range(16)
)
"""Places of a name that a thin line connects with its point."""


def label(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    line: Sequence[tuple[float, float]] = (),
    *,
    all_of_them: bool = False,
) -> None:
    """Write names beside points, each at the first place that covers no other name, no point and no part of a line.

    A name without such a place is omitted; pages show it under the pointer. With `all_of_them`, a thin line leads to a place
    farther away, or in a list at the right.
    """
    spots, corners = ([tuple(map(float, axes.transData.transform(spot))) for spot in some] for some in (points, line))
    dots, letters = axes.figure.get_dpi() / 72, text_size(7) / 7
    taken = [(x - 3 * dots, y - 3 * dots, x + 3 * dots, y + 3 * dots) for x, y in spots]
    for (a, b), (c, d) in pairwise(corners):
        parts = 1 if a == c or b == d else 40  # small boxes along a slope
        steps = [(a + (c - a) * at / parts, b + (d - b) * at / parts) for at in range(parts + 1)]
        taken += [(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairwise(steps)]
    taken += [text.get_window_extent().extents for text in axes.texts]
    box = axes.get_window_extent()
    left_over = []
    for at, ((x, y), name) in enumerate(zip(spots, names, strict=True)):
        if not name:
            continue
        text = cut(name)
        wide, high = 4.7 * letters * len(text) * dots, 8 * letters * dots
        for dx, dy, side in BESIDE + (FAR if all_of_them else ()):
            left, bottom = x + dx * dots + side * wide, y + dy * dots
            place = (left, bottom, left + wide, bottom + high)
            inside = box.x0 <= place[0] and place[2] <= box.x1 and box.y0 <= place[1] and place[3] <= box.y1
            if inside and not any(_overlap(place, other) for other in taken):
                _name(axes, text, points[at], (dx, dy), side, math.hypot(dx, dy) > 15)
                taken.append(place)
                break
        else:
            left_over.append((at, text))
    for number, (at, text) in enumerate(left_over if all_of_them else ()):
        x, y = spots[at]
        down = box.y1 - (9 * letters * number + 8) * dots
        _name(axes, text, points[at], ((box.x1 + 6 * dots - x) / dots, (down - y) / dots), 0.0, True)


def _name(
    axes: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], side: float, led: bool
) -> None:
    """Write a name at an offset from its point, with a line to it if `led`."""
    ha = {0.0: "left", -1.0: "right", -0.5: "center"}[side]
    leader = {"arrowstyle": "-", "color": PALE, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2} if led else None
    axes.annotate(
        text, point, offset, textcoords="offset points", ha=ha, size=text_size(7), color=INK, arrowprops=leader
    )


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
