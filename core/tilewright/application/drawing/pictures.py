"""Pictures of a chain of boxes, outermost first, with lines of text next to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.application.drawing.drawing import COLOURS, FONT_SIZE, INK, PALE, Drawing, look, redrawn, sheet, styled
from tilewright.application.drawing.grids import WIDTH, Grid, draw_grid
from tilewright.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH, LETTERS = 0.075, 0.165, 8.5
"""Width of a character and height of a line in inches, and size of the text in points."""


@dataclass(frozen=True)
class Line:
    """Line of text in a box.

    Attributes:
        strong: Whether it matters most, as stationary tensors do.
        dashed: Whether it is about something absent, as bypassed tensors are.
    """

    text: str
    strong: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Box:
    """Box with a title, lines of text, and a bar that is filled to a fraction (None: no bar)."""

    title: str
    lines: Sequence[Line] = ()
    filled: float | None = None
    colour: str = COLOURS[0]

    @property
    def size(self) -> tuple[float, float]:
        """Width in characters, height in lines."""
        texts = [self.title, *(line.text for line in self.lines)]
        return max(map(len, texts)) + 2.0, len(texts) + (0.5 if self.filled is None else 0.95)


@dataclass(frozen=True)
class Row:
    """Line of text at the left, or boxes in a row, to which a line leads from the end of a blank text.

    `link` is the text at the line down to the next boxes.
    """

    text: str = ""
    boxes: Sequence[Box] = ()
    link: str = ""
    spatial: bool = False


@redrawn
def picture(rows: Sequence[Row], title: str, description: str, grid: Grid | None = None) -> Drawing:
    """Return rows from top to bottom: texts at the left, boxes at the right, connected downwards, and a grid next to them."""
    left = max((len(row.text) for row in rows), default=0)
    left = left + 3 if left else 1
    right = max(
        max((sum(box.size[0] + 2 for box in row.boxes) for row in rows if row.boxes), default=0.0),
        max((len(row.link) + 4 for row in rows), default=0),
    )
    heights = [max((box.size[1] for box in row.boxes), default=0.0) + 0.7 if row.boxes else 1.0 for row in rows]
    heights = [high + (1.3 if row.link else 0.0) for high, row in zip(heights, rows, strict=True)]
    beside = 0.0 if grid is None else WIDTH / WIDE + 3
    wide, tall = left + right + beside, max(sum(heights), 0.0 if grid is None else grid.height / HIGH + 2)
    scale = _scale(wide * WIDE)
    with styled(LETTERS * scale):
        figure, axes = sheet(scale * wide * WIDE, scale * tall * HIGH)
        axes.set_xlim(0, wide)
        axes.set_ylim(tall, 0)
        axes.set_axis_off()
        if grid is not None:
            draw_grid(axes, grid, left + right + 2, 1.6, (1 / WIDE, 1 / HIGH))
            _write(axes, left + right + 2, 0.8, grid.caption, fontweight="bold")
        top, before = 0.0, None
        for row, high in zip(rows, heights, strict=True):
            if row.text and row.boxes:
                start = [len(row.text) + 0.5, left - 0.4]
                axes.plot(start, [top + 0.95] * 2, color=PALE, linestyle=":", linewidth=1)
            elif row.text:
                colour, weight = (COLOURS[5], "bold") if row.spatial else (INK, "normal")
                shown = row.text.lstrip()  # SVG drops leading blanks
                _write(axes, 0.5 + len(row.text) - len(shown), top + 0.5, shown, color=colour, fontweight=weight)
            if row.boxes:
                middle = left + 3.0
                if before is not None:
                    axes.plot([middle, middle], [before, top + 0.2], color=PALE, linewidth=1.2)
                at = float(left)
                deep = max(box.size[1] for box in row.boxes)
                for box in row.boxes:
                    _draw(axes, box, at, top + 0.2, deep)
                    at += box.size[0] + 2
                before = top + 0.2 + deep
            if row.link:
                _write(axes, left + 4.2, top + high - 0.75, row.link, color=COLOURS[5])
            top += high
    return Drawing(figure, title, description)


def _scale(wide: float) -> float:
    """Return the factor from the size on screens: letters and boxes grow alike."""
    chosen = look()
    if chosen is None:
        return 1.0
    return chosen.font_size / FONT_SIZE if chosen.width is None or chosen.inner is None else chosen.inner / wide


def _draw(axes: Axes, box: Box, x: float, y: float, tall: float) -> None:
    from matplotlib.patches import Rectangle

    wide = box.size[0]
    axes.add_patch(Rectangle((x, y), wide, tall, facecolor=box.colour, alpha=0.12, linewidth=0))
    axes.add_patch(Rectangle((x, y), wide, tall, fill=False, edgecolor=box.colour, linewidth=1.2))
    if box.filled is not None:
        axes.add_patch(Rectangle((x + 1, y + 1.45), wide - 2, 0.28, facecolor=PALE, alpha=0.4, linewidth=0))
        axes.add_patch(
            Rectangle((x + 1, y + 1.45), (wide - 2) * min(1.0, box.filled), 0.28, facecolor=box.colour, linewidth=0)
        )
    _write(axes, x + 1, y + 0.75, box.title, fontweight="bold")
    first = y + (1.75 if box.filled is None else 2.3)
    for number, line in enumerate(box.lines):
        how = (
            {"color": COLOURS[2], "fontweight": "bold"}
            if line.strong
            else {"alpha": 0.65, "style": "italic"}
            if line.dashed
            else {}
        )
        _write(axes, x + 1, first + number, line.text, **how)


def _write(axes: Axes, x: float, y: float, text: str, **how: Any) -> None:
    axes.text(x, y, printable(text), family="monospace", va="center", **how)
