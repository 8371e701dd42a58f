"""Contents of tiles: on average, in the fullest one, and how many of them are work for a unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.schema.architecture import Memory
from tilewright_costmodels.timeloop.sparse.densities import (
    Banded,
    Box,
    Distribution,
    Structured,
    exact_sum,
    words,
)
from tilewright_costmodels.timeloop.sparse.formats import Pieces, Stored

WHOLE_BLOCKS = {
    2: (251, 125, 84, 63, 51, 42, 36, 32, 28, 1),
    4: (375, 188, 125, 94, 75, 63, 54, 47, 42, 1),
    8: (438, 219, 146, 110, 88, 73, 63, 55, 49, 1),
    16: (469, 235, 157, 118, 94, 79, 67, 59, 52, 1),
    32: (485, 243, 162, 122, 97, 81, 70, 61, 52, 1),
    64: (493, 247, 165, 124, 99, 82, 71, 62, 53, 1),
}
"""Words of a block -> blocks of a tile from which on Timeloop takes all blocks to be full, by tenths of density."""


@dataclass(frozen=True)
class Content:
    """Contents of a tile on average.

    Attributes:
        probability: of each number of nonzeros among the tiles that exist.
        exists: share of the tiles that exist; empty ones are not sent from a memory with a format.
        least: number of nonzeros that is taken for none; 0 if all tiles exist.
        units: expected pieces of metadata and payload, by rank.
    """

    probability: dict[int, float]
    exists: float
    least: int
    held: float
    units: Pieces


@dataclass(frozen=True, eq=False)
class Largest:
    """The fullest tile of a tensor: its words, and the pieces and bits of its metadata by rank, innermost first."""

    words: int
    units: Pieces
    bits: int


def content_of(stored: Stored, density: Distribution, sent: bool) -> Content:
    """Return what a tile holds.

    Args:
        sent: empty tiles do not exist, because the parent has metadata.
    """
    probability, exists, least = dict(density.occupancies(stored.tile)), 1.0, 0
    if sent and density.may_be_empty(stored.tile):
        least = next(iter(probability))  # Timeloop takes the first possible number for zero
        exists = 1 - probability.pop(least)
        probability = {count: part / exists for count, part in probability.items()} if exists else {}
    parts = np.array(list(probability.values()))
    units = stored.units(density, list(probability)) * parts
    expected = np.array([[exact_sum(kind) for kind in rank] for rank in units]).reshape(-1, 2)
    held = exact_sum(np.array(list(probability)) * parts)
    return Content(probability, exists, least, held, expected)


def largest(memory: Memory, stored: Stored, density: Distribution) -> Largest:
    """Return what the fullest tile occupies."""
    if not stored.has_metadata:
        return Largest(words(stored.tile), np.zeros((0, 2)), 0)
    most = density.most(stored.tile)
    units, bits = stored.units(density, [most])[:, :, 0], 0
    for rank, pieces in zip(stored.ranks, units, strict=True):
        assert rank.spec is not None and memory.sparse is not None
        widths = memory.sparse.metadata.bits_of(rank.spec)
        bits += sum(math.ceil(count * width) for count, width in zip(pieces, widths, strict=True))
    return Largest(most, units, bits)


def partly_filled(memory: Memory, stored: Stored, content: Content) -> float:
    """Return how many blocks are accessed per full block, as a tile of nonzeros rarely fills its last block."""
    block, size = memory.block_words, words(stored.tile)
    density = content.held / size
    if not stored.compressed or block == 1 or not 0 < density < 1:
        return 1.0
    row = WHOLE_BLOCKS[block]
    if size // block >= row[max(math.floor(density / 0.1) - 1, 0)]:
        return 1.0
    parts = np.ceil(np.array(list(content.probability)) / block) * list(content.probability.values())
    # the blocks are those of all tiles, the density is that of the tiles that exist
    return content.exists * exact_sum(parts) / (size * density / block)


def busy_units(tile: Box, fiber: Box, density: Distribution) -> tuple[float, float]:
    """Return how many units along a fiber have a tile with work, at most, and the share of all units that has, on average.

    The first one is -1 if the words of the fiber are not whole tiles, as structured densities need.
    """
    tiles, most = words(fiber) / words(tile), density.most(fiber)
    if isinstance(density, Banded):
        units: float = math.ceil(tiles * density.empty(tile, fiber, most))
    else:
        units = -1 if words(fiber) % words(tile) and isinstance(density, Structured) else min(tiles, most)
    return units, 1 - density.empty(tile)
