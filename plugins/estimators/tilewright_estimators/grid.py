"""Costs of memory arrays: a table of CACTI results, interpolated between sizes.

Interpolation is linear in logarithms of costs, nodes and sizes, and in square roots of widths. The table holds 1,570
runs of CACTI 7 as Accelergy configures it. Settings: low-standby-power cells, 300 K, one read-write port, no ECC.
Range: 512 B to 4 MB, 32 to 512 bits wide, 1 to 32 banks of at least 64 rows, five technology nodes. CACTI changes the
shape of the array from size to size, so a table is more accurate than fitted formulas.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from math import exp, log, prod, sqrt

FILE = "cacti_grid.csv.gz"
FIGURES = ("read_pj", "write_pj", "leak_mw", "area_um2")
ROWS_PER_BANK = 64
"""Minimum rows of a bank on the grid."""


@dataclass(frozen=True)
class Sram:
    """A memory array: node in nanometres, total size of all banks in bytes."""

    technology_nm: float
    size_bytes: float
    width_bits: float
    banks: int


@dataclass(frozen=True)
class Figures:
    """Costs of a memory array: pJ per full-width access; mW and square micrometres of all banks."""

    read_pj: float
    write_pj: float
    leak_mw: float
    area_um2: float


Point = tuple[float, float, float, int]


class Grid:
    """A grid of points with costs. `axes`: ascending nodes, bytes, widths and banks."""

    def __init__(self, points: dict[Point, tuple[float, ...]]) -> None:
        self.points = points
        self.axes = [sorted({point[axis] for point in points}) for axis in range(4)]

    def at(self, sram: Sram) -> Figures:
        """Return the costs of an array, interpolated between grid points.

        Raises:
            ValueError: the array is outside the grid; the message names the limits.
        """
        place = (sram.technology_nm, sram.size_bytes, sram.width_bits)
        names = ("technology node", "size", "width")
        units = ("nm", "bytes", "bits")
        sides = []
        for name, unit, value, axis in zip(names, units, place, self.axes, strict=False):
            if not axis[0] <= value <= axis[-1]:
                raise ValueError(
                    f"a {name} of {value:,.6g} {unit}; expected {axis[0]:,.10g} to {axis[-1]:,.10g} {unit}"
                )
            sides.append(_sides(axis, value, sqrt if name == "width" else log))
        if sram.banks not in self.axes[3]:
            raise ValueError(f"{sram.banks} banks; expected one of {', '.join(map(str, self.axes[3]))}")
        least = ROWS_PER_BANK * sram.banks * sram.width_bits / 8
        if sram.size_bytes < least:
            raise ValueError(
                f"{sram.size_bytes:,.6g} bytes; expected at least {least:,.6g} for that width and number of banks"
            )
        mean = [0.0] * len(FIGURES)
        for corner in product(*sides):
            weight = prod(part for _, part in corner)
            (node, _), (size, _), (width, _) = corner
            point = self._nearest(node, size, width, sram.banks)
            for index, figure in enumerate(self.points[point]):
                mean[index] += weight * log(figure)
        return Figures(*map(exp, mean))

    def _nearest(self, node: float, size: float, width: float, banks: int) -> Point:
        """Return the grid point, or the next larger one if it would have too few rows."""
        while (node, size, width, banks) not in self.points:
            size *= 2
        return node, size, width, banks


def _sides(axis: list[float], value: float, scale: Callable[[float], float]) -> list[tuple[float, float]]:
    """Return the neighbours of a value on an axis, with their interpolation weights."""
    if value in axis:
        return [(value, 1.0)]
    high = next(point for point in axis if point > value)
    low = axis[axis.index(high) - 1]
    share = (scale(value) - scale(low)) / (scale(high) - scale(low))
    return [(low, 1 - share), (high, share)]


@cache
def cacti_grid() -> Grid:
    """Return the grid from the package's data file."""
    text = gzip.decompress((files(__package__) / FILE).read_bytes()).decode()
    points = {}
    for row in csv.DictReader(text.splitlines()):
        point = float(row["technology_nm"]), float(row["bytes"]), float(row["width_bits"]), int(row["banks"])
        points[point] = tuple(float(row[name]) for name in FIGURES)
    return Grid(points)
