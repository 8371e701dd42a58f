"""Space for compressed tiles and their metadata."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.errors import Reason
from tilewright.schema.architecture import Memory
from tilewright_costmodels.timeloop.sparse.densities import Distribution
from tilewright_costmodels.timeloop.sparse.formats import Pieces, Stored
from tilewright_costmodels.timeloop.sparse.nest import Nest, words


@dataclass(frozen=True, eq=False)
class Largest:
    """The fullest tile of a tensor: its words, and the pieces and bits of its metadata by rank, innermost first."""

    words: int
    units: Pieces
    bits: int


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


def lacking(nest: Nest, found: Mapping[tuple[int, str], Largest]) -> Iterator[Reason]:
    """Yield a reason for every memory that has not enough room for data or for metadata."""
    for memory in nest.architecture.memories:
        here = [
            (nest.problem.tensor(name), each)
            for (level, name), each in found.items()
            if nest.memory(nest.problem.tensor(name), level) is memory
        ]
        if memory.usable_words is None:
            continue
        slices = sum(each.words * memory.slices_of(tensor) for tensor, each in here)
        if slices > memory.usable_slices:
            text = f"the tiles need {slices / memory.slices_per_word:.15g} words, {memory.usable_words} fit"
            yield Reason(code="capacity", where=memory.name, message=text)
        storage = None if memory.sparse is None else memory.sparse.metadata
        bits = sum(each.bits for _, each in here)
        fit = math.floor(storage.depth * storage.width_bits / memory.multiple_buffering) if storage else 0
        if bits > fit:
            text = f"the metadata of the tiles needs {bits} bits, {fit} fit"
            yield Reason(code="metadata", where=memory.name, message=text)
