"""Rows that layers take for one row of a shared axis, where their windows slide along it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.sliding import Window
from tilewright.schema.problem import Problem
from tilewright_mappers.fused.solution import Axis, Shared

FEW_TILES = 6
"""An axis with fewer tiles that divide has ragged ones, too."""


@dataclass(frozen=True)
class Pacing:
    """Rows that each layer takes for one row of an axis, and its length in rows of the axis.

    `windows`: maker, reader and window for each result that layers exchange. `slides`: a step reads rows of earlier steps.
    """

    rows: tuple[int, ...]
    lengths: tuple[int, ...]
    windows: tuple[tuple[int, int, Window], ...]

    @cached_property
    def slides(self) -> bool:
        return len(set(self.lengths)) > 1 or any(window.stays for *_, window in self.windows)

    def starts(self, tile: int) -> tuple[int, ...]:
        """Return the row at which each layer starts, at the earliest."""
        starts = [0] * len(self.rows)
        for maker, reader, window in self.windows:
            starts[reader] = max(starts[reader], starts[maker] + window.least_lag(tile))
        return tuple(starts)

    def tiles(self) -> list[int]:
        """Return the tiles of shared loops, the whole axis first."""
        if not self.slides:
            return list(divisors(self.lengths[0])[::-1])
        common = math.gcd(*self.lengths)
        return [max(self.lengths), *(tile for tile in divisors(common)[::-1] if tile < min(self.lengths))]

    def ragged_tiles(self) -> list[int]:
        """Return tiles that do not divide: powers of two, where few tiles divide."""
        whole = self.tiles()
        if len(whole) >= FEW_TILES:
            return []
        powers = (1 << power for power in range(1, min(self.lengths).bit_length()))
        return [tile for tile in powers if tile < min(self.lengths) and tile not in whole]


def pacing(problems: Sequence[Problem], axis: Axis, tensors: Sequence[Shared]) -> Pacing | None:
    """Return the pace of each layer along an axis that steps the results that they exchange; None if there is none."""
    exchanged, rates = list[tuple[int, int, Window]](), dict[int, Fraction]()
    for tensor in tensors:
        coordinate = tensor.stepped(0, axis)
        if coordinate is None:
            return None
        windows = tensor.windows[coordinate]
        if not windows and tensor.halos[coordinate]:
            return None
        exchanged += [(tensor.first, reader, window) for reader, window in windows.items()]
    ahead = [(maker, reader, Fraction(window.stride)) for maker, reader, window in exchanged]
    for start in range(len(axis)):
        rates.setdefault(start, Fraction(1))
        todo = [start]
        while todo:
            layer = todo.pop()
            for maker, reader, stride in ahead:
                for other, rate in ((maker, rates[layer] * stride), (reader, rates[layer] / stride)):
                    if layer not in (maker, reader) or other == layer:
                        continue
                    if other not in rates:
                        rates[other] = rate
                        todo.append(other)
                    elif rates[other] != rate:
                        return None
    scale = Fraction(
        math.lcm(*(rate.denominator for rate in rates.values())), math.gcd(*(rate.numerator for rate in rates.values()))
    )
    rows = [int(rates[at] * scale) for at in range(len(axis))]
    sizes = [problem.sizes[dimension] for problem, dimension in zip(problems, axis, strict=True)]
    if any(size % count for size, count in zip(sizes, rows, strict=True)):
        return None
    lengths = [size // count for size, count in zip(sizes, rows, strict=True)]
    placed = [
        (maker, reader, replace(window, made=rows[maker], taken=rows[reader], length=lengths[reader]))
        for maker, reader, window in sorted(exchanged, key=lambda row: row[:2])
    ]
    return Pacing(tuple(rows), tuple(lengths), tuple(placed))
