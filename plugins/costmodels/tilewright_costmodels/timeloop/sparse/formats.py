"""Compressed formats: the metadata of each rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.schema.sparse import RankFormat
from tilewright_costmodels.timeloop.sparse.densities import Box, Distribution

Pieces = Floats
"""Pieces of metadata and of payload by rank, innermost first, [rank, 2, ...]."""


@dataclass(frozen=True)
class Rank:
    """One rank of a format on a tile: a fiber has `length` coordinates; `tile` is what all of its fibers cover."""

    length: int
    tile: Box
    spec: RankFormat | None = None


@dataclass(frozen=True)
class Stored:
    """A tensor at a level: its tile, and the ranks of its format, innermost first (none: not in a format)."""

    tile: Box
    ranks: tuple[Rank, ...] = ()
    outwards: bool = False
    """Ranks were matched with loops from the innermost one outwards."""

    @property
    def has_metadata(self) -> bool:
        return bool(self.ranks)

    @property
    def compressed(self) -> bool:
        return any(rank.spec is not None and rank.spec.is_compressed for rank in self.ranks)

    def units(self, density: Distribution, held: Sequence[int]) -> Pieces:
        """Return the pieces of each rank, innermost first, by the nonzeros that the tile holds: [rank, 2, n].

        Args:
            held: [n], ascending.
        """
        units: Pieces = np.zeros((len(self.ranks), 2, len(held)))
        fibers, top = 1.0, len(self.ranks) - 1
        for number in range(top, -1, -1):
            rank = self.ranks[number]
            assert rank.spec is not None
            below = self.ranks[number - 1].tile if number else (1,) * len(self.tile)
            tile = self.tile if number == top else rank.tile
            filled = fibers * (1 - density.empties(tile, self.tile, held))
            kept = 1 - density.empties(below, self.tile, held)
            if rank.length > 1 or number == (0 if self.outwards else top):
                units[number, 0], units[number, 1] = _pieces(rank.spec.format, fibers, filled, rank.length, kept)
            fibers *= rank.length
        data = np.ones(len(held), np.bool_)  # the innermost rank that costs anything has the data as its payload
        for pieces in units:
            costs = pieces.any(axis=0)
            pieces[1, data & costs] = 0.0
            data &= ~costs
        return units


def _pieces(
    kind: str, fibers: float, filled: Floats, length: int, kept: Floats
) -> tuple[Floats | float, Floats | float]:
    if kind == "UB":
        return fibers * length, fibers * length
    if kind == "UOP":
        return 0.0, filled * (length + 1)
    if kind == "RLE":
        return filled * (length * kept), filled * (length * kept)
    coordinates = filled * np.ceil(length * kept)
    return (filled * length if kind == "B" else coordinates), coordinates
