"""Prices of accesses to sparse hardware, by kind and action: executed, gated and skipped reads, fills and updates."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from tilewright.prices import price_of
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Tensor
from tilewright.schema.sparse import SparseAction, SparseMemory

Prices = NDArray[np.float64]


def data_prices(memory: Memory) -> Prices:
    """Return the pJ of one access to data, [kind, action]."""
    executed = [memory.read_energy_pj, memory.write_energy_pj, memory.accumulation_energy_pj]
    return np.array([executed, *_prices(memory.sparse or SparseMemory(), "gated_", "skipped_")])


def metadata_prices(sparse: SparseMemory, skipped: str = "skipped_metadata_") -> Prices:
    """Return the pJ of one access to metadata, [kind, action].

    Args:
        skipped: prefix of the actions that skipped metadata cost.
    """
    return np.array(_prices(sparse, "metadata_", "gated_metadata_", skipped))


def data_pj(memory: Memory, tensor: Tensor, data: NDArray[np.int64]) -> float:
    """Return the pJ of the accesses to data of one instance, in values [kind, action]. One access moves a block."""
    slices = data * memory.slices_of(tensor)
    return float((np.ceil(slices / price_of(memory).block) * data_prices(memory)).sum())


def metadata_pj(sparse: SparseMemory, bits: NDArray[np.int64], skipped: str = "skipped_metadata_") -> float:
    """Return the pJ of the accesses to metadata of one instance, in bits [kind, action]; see `metadata_prices`."""
    width = sparse.metadata.width_bits
    return float((np.ceil(bits / width) * metadata_prices(sparse, skipped)).sum()) if width else 0.0


def _prices(sparse: SparseMemory, *kinds: str) -> list[list[float]]:
    """Return the pJ of actions by their prefix, [kind, action]."""
    actions = [[cast(SparseAction, f"{kind}{action}") for action in ("read", "fill", "update")] for kind in kinds]
    return [[sparse.energies_pj.get(action, 0.0) for action in row] for row in actions]
