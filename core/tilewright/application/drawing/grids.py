"""Grids of an architecture's units: clusters inside clusters, with their memories, and the units in use.

A buffer with 16 x 16 elements is a block with a strip for the buffer. Inside are cells with a strip for the registers.
Long axes show the first SHOWN sub-clusters and the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.application.drawing.drawing import COLOURS, INK, PALE
from tilewright.errors import printable
from tilewright.schema.architecture import Architecture, Cluster

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, MAX_HEIGHT, MIN_HEIGHT = 2.9, 3.6, 0.9
"""Width of a grid, and its largest and least height, in inches."""
SHOWN = 8
"""Sub-clusters along an axis that are drawn before the last one."""
GAP, STRIP = 0.6, 0.7
"""Room for the dots in place of the others, and for the strip of a memory, in sub-clusters."""


@dataclass(frozen=True)
class Grid:
    """Units of an architecture.

    Attributes:
        used: Sub-clusters in use, by cluster; all of a cluster that is missing.
    """

    architecture: Architecture
    used: Mapping[str, int] = field(default_factory=dict)

    @property
    def caption(self) -> str:
        """Number of units, and of those in use if some are idle."""
        total, busy = self.architecture.compute_instances, self.units_in_use
        name = self.architecture.compute.name
        return f"{total:,} {name}" if busy == total else f"{busy:,} of {total:,} {name} in use"

    @property
    def units_in_use(self) -> int:
        count = 1
        for cluster in self.architecture.clusters:
            count *= min(cluster.fanout.size, self.used.get(cluster.name, cluster.fanout.size))
        return count

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """Clusters from the first one with several sub-clusters; the last one alone if there is none."""
        every = self.architecture.clusters
        first = next((at for at, cluster in enumerate(every) if cluster.fanout.size > 1), len(every) - 1)
        return every[first:]

    @property
    def height(self) -> float:
        """Height in inches at which cells are about square, with room for the strips of memories."""
        rows = columns = 1.0
        for cluster in reversed(self.clusters):
            if cluster.fanout.axis == "Y":
                rows *= _span(cluster.fanout.size)
            else:
                columns *= _span(cluster.fanout.size)
            rows += STRIP * len(cluster.memories)
        return min(MAX_HEIGHT, max(MIN_HEIGHT, WIDTH * rows / columns))


Place = tuple[float, float, float, float]
"""Left, top, width and height."""


@dataclass(frozen=True)
class Fill:
    """Look of rectangles that are drawn as one shape."""

    depth: int
    colour: str
    alpha: float
    outlined: bool = False


class Painter:
    """Rectangles of a grid by their look, and the texts above them. A shape for each look keeps files small."""

    def __init__(self, grid: Grid, unit: tuple[float, float]) -> None:
        self.grid, self.unit = grid, unit
        self.rectangles: dict[Fill, list[Place]] = {}
        self.texts: list[tuple[float, float, str, str]] = []

    def add(self, fill: Fill, place: Place) -> None:
        """Add a rectangle."""
        self.rectangles.setdefault(fill, []).append(place)

    def cluster(self, index: int, place: Place, busy: bool) -> None:
        """Add the cluster at `index`; with no cluster left, a compute unit."""
        left, top, wide, high = place
        if index == len(self.grid.clusters):
            fill = Fill(3 * index, COLOURS[3], 0.9) if busy else Fill(3 * index, PALE, 0.25)
            self.add(fill, (left + 0.1 * wide, top + 0.1 * high, 0.8 * wide, 0.8 * high))
            return
        cluster = self.grid.clusters[index]
        if cluster.memories:
            left, top, wide, high = self._memories(cluster, index, place, busy)
        size, along_y = cluster.fanout.size, cluster.fanout.axis == "Y"
        used, step = self.grid.used.get(cluster.name, size), (high if along_y else wide) / _span(size)
        for at, number in _slots(size):
            start = step * at
            if number is None:
                middle = start + step * GAP / 2
                spot = (left + wide / 2, top + middle) if along_y else (left + middle, top + high / 2)
                self.texts.append((*spot, "\u22ee" if along_y else "\u2026", PALE))
                continue
            inner = (left, top + start, wide, step) if along_y else (left + start, top, step, high)
            self.cluster(index + 1, inner, busy and number < used)

    def _memories(self, cluster: Cluster, index: int, place: Place, busy: bool) -> Place:
        """Add a block with a strip for each memory; return the place inside, below the strips."""
        left, top, wide, high = place
        across, down = min(0.04 * self.unit[0], 0.06 * wide), min(0.04 * self.unit[1], 0.06 * high)
        left, top, wide, high = left + across, top + down, wide - 2 * across, high - 2 * down
        colour = COLOURS[0] if busy else PALE
        self.add(Fill(3 * index, colour, 0.07 if busy else 0.04), (left, top, wide, high))
        self.add(Fill(3 * index + 1, colour, 1.0, outlined=True), (left, top, wide, high))
        strip = min(0.2 * self.unit[1], 0.4 * high / len(cluster.memories))
        for number, memory in enumerate(cluster.memories):
            start = top + number * strip
            self.add(Fill(3 * index + 2, colour, 0.45 if busy else 0.15), (left, start, wide, 0.9 * strip))
            name = printable(memory.name)
            if strip >= 0.12 * self.unit[1] and 0.06 * len(name) * self.unit[0] < wide:
                self.texts.append((left + wide / 2, start + 0.45 * strip, name, INK))
        strips = strip * len(cluster.memories)
        return left, top + strips, wide, high - strips

    def paint(self, axes: Axes) -> None:
        """Draw everything, outer clusters first."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        for fill, places in sorted(self.rectangles.items(), key=lambda item: item[0].depth):
            shapes = [
                Path([(x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y)], closed=True)
                for x, y, wide, high in places
            ]
            how = {"fill": False, "linewidth": 0.5, "edgecolor": fill.colour} if fill.outlined else {"linewidth": 0, "facecolor": fill.colour}  # fmt: skip
            axes.add_patch(PathPatch(Path.make_compound_path(*shapes), alpha=fill.alpha, **how))
        for x, y, text, colour in self.texts:
            axes.text(x, y, text, size="x-small", ha="center", va="center", color=colour)


def draw_grid(axes: Axes, grid: Grid, x: float, y: float, unit: tuple[float, float]) -> None:
    """Draw a grid whose upper left corner is at (x, y) of axes that grow downwards.

    Args:
        unit: Lengths of the axes in an inch.
    """
    painter = Painter(grid, unit)
    painter.cluster(0, (x, y, WIDTH * unit[0], grid.height * unit[1]), True)
    painter.paint(axes)


def _span(size: int) -> float:
    """Return the sub-clusters for which there is room along an axis."""
    return float(size) if size <= SHOWN + 2 else SHOWN + GAP + 1


def _slots(size: int) -> Iterator[tuple[float, int | None]]:
    """Yield (place, number) of the sub-clusters that are drawn; None in place of those that are not."""
    if size <= SHOWN + 2:
        yield from ((float(number), number) for number in range(size))
        return
    yield from ((float(number), number) for number in range(SHOWN))
    yield float(SHOWN), None
    yield SHOWN + GAP, size - 1
