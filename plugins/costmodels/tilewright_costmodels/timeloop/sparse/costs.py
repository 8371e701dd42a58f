"""Energies and cycles of sparse hardware, from its counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.prices import charged, leakage_pj, memory_speed, prices_of, slowed_cycles, throttling_limits
from tilewright.prices.sparse import data_pj, metadata_pj
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Tensor
from tilewright.schema.report import Limit
from tilewright.schema.sparse import SparseMemory
from tilewright_costmodels.timeloop.sparse.densities import exact_sum
from tilewright_costmodels.timeloop.sparse.formats import Stored
from tilewright_costmodels.timeloop.sparse.nest import Nest, words
from tilewright_costmodels.timeloop.sparse.thinning import EXECUTED, FILL, GATED, READ, Content, Traffic

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
class Spent:
    """Energies and cycles."""

    cycles: int
    energy_pj: dict[tuple[int, str], float]
    leakage_pj: dict[str, float]
    memory_cycles: dict[str, int]
    limits: tuple[Limit, ...]


def spent(nest: Nest, traffic: Mapping[tuple[int, str], Traffic], computing: int) -> Spent:
    """Return energies and cycles, if computing takes `computing` cycles without waiting for a memory."""
    energies: dict[tuple[int, str], float] = {}
    rates: dict[str, tuple[float, float]] = {}
    in_use: dict[str, float] = {}
    prices = prices_of(nest.architecture)
    for (level, name), each in traffic.items():
        tensor = nest.problem.tensor(name)
        memory = nest.memory(tensor, level)
        share = float(charged(prices[memory.name], each.instances)) / each.instances if each.instances else 0.0
        energies[level, name] = _energy(memory, tensor, each) * share * each.average
        spreads = each.average / each.instances if each.instances else 0.0
        read, write = rates.get(memory.name, (0.0, 0.0))
        reads, writes = (math.ceil(count * spreads) for count in _transferred(memory, tensor, each))
        rates[memory.name] = read + reads / computing, write + writes / computing
        in_use[memory.name] = max(in_use.get(memory.name, 1.0), each.average)
    limits = [Limit(name="compute", action="compute", cycles=computing)]
    memory_cycles = {}
    for memory in nest.architecture.memories:
        read, write = rates.get(memory.name, (0.0, 0.0))
        limits += throttling_limits(memory, computing, read, write)
        speed = memory_speed(prices[memory.name], read, write)
        memory_cycles[memory.name] = int(slowed_cycles(computing, speed))
    cycles = max(computing, *memory_cycles.values())
    leakage = leakage_pj(nest.architecture, cycles, in_use)
    return Spent(cycles, energies, leakage, memory_cycles, tuple(limits))


def _energy(memory: Memory, tensor: Tensor, each: Traffic) -> float:
    """Return the pJ of one instance."""
    sparse = memory.sparse or SparseMemory()
    energy = data_pj(memory, tensor, each.data) * partly_filled(memory, each.stored, each.content)
    if each.stored.has_metadata:
        energy += metadata_pj(sparse, _bits(memory, each))
    energy += each.decompressions * sparse.energy_pj("decompression")
    return energy + each.compressions * sparse.energy_pj("compression")


def _bits(memory: Memory, each: Traffic) -> NDArray[np.int64]:
    """Return the bits of metadata that are moved, [kind, action]."""
    if not each.stored.has_metadata:
        return np.zeros((3, 3), np.int64)
    assert memory.sparse is not None
    widths = [memory.sparse.metadata.bits_of(rank.spec) for rank in each.stored.ranks if rank.spec is not None]
    return np.asarray((each.metadata * np.array(widths)[:, :, None, None]).sum(axis=(0, 1)))


def _transferred(memory: Memory, tensor: Tensor, each: Traffic) -> tuple[int, int]:
    """Return the slices read and written; gated accesses take bandwidth, skipped ones do not."""
    data = each.data[[EXECUTED, GATED]].sum(axis=0) * memory.slices_of(tensor)
    bits = _bits(memory, each)[[EXECUTED, GATED]].sum(axis=0)
    return (
        int(data[READ] + bits[READ] // memory.word_bits * memory.slices_per_word),
        int(data[FILL:].sum() + bits[FILL:].sum() // memory.word_bits * memory.slices_per_word),
    )


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
