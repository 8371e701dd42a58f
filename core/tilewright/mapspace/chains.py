"""Trip chains of ragged dimensions, and transfers of trips between two slots.

A chain holds the trips of one dimension in every slot. Their product is at least the size of the
dimension. A chain is canonical if no slot has more trips than its inner slots leave, so that no
piece is empty. Every mapping of a ragged space has exactly one canonical chain.
"""

from __future__ import annotations

import numpy as np

from tilewright.mapspace.batch import Ints


def canonical(sizes: Ints, trips: Ints) -> Ints:
    """Return chains [n, slot] without idle trips: from inside, each slot has at most the trips that sizes [n] leave."""
    result, left = np.empty_like(trips), sizes
    for slot in range(trips.shape[1] - 1, -1, -1):
        result[:, slot] = np.minimum(trips[:, slot], left)
        left = -(-left // result[:, slot])
    return result


def rebalanced(sizes: Ints, trips: Ints, wanted: Ints, source: Ints, target: Ints) -> Ints:
    """Return chains [n, slot] with `wanted` [n] trips in slot `target` [n].

    Slot `source` [n] gets the fewest trips that still cover the dimension.
    """
    line, result = np.arange(len(trips)), trips.copy()
    result[line, target] = wanted
    result[line, source] = 1
    result[line, source] = -(-sizes // result.prod(axis=1))
    return canonical(sizes, result)
