"""Chains: the trips of ragged dimensions, and how one slot takes from another.

The trips of a chain, one per slot, cover the dimension: their product is at least its size. It is *settled* if no slot takes
more than what those inside it leave, so that no piece is empty; every mapping of a ragged space is one settled chain.
"""

from __future__ import annotations

import numpy as np

from tilewright.mapspace.batch import Ints


def settled(sizes: Ints, trips: Ints) -> Ints:
    """Chains [n, slot] that cover their dimensions [n], without the pieces that are empty."""
    result, left = np.empty_like(trips), sizes
    for slot in range(trips.shape[1] - 1, -1, -1):
        result[:, slot] = np.minimum(trips[:, slot], left)
        left = -(-left // result[:, slot])
    return result


def reshared(sizes: Ints, trips: Ints, wanted: Ints, source: Ints, target: Ints) -> Ints:
    """Chains [n, slot] in which the slot `target` [n] takes `wanted` [n] trips, and the slot `source` [n] the fewest with which
    the dimension is still covered."""
    line, result = np.arange(len(trips)), trips.copy()
    result[line, target] = wanted
    result[line, source] = 1
    result[line, source] = -(-sizes // result.prod(axis=1))
    return settled(sizes, result)
