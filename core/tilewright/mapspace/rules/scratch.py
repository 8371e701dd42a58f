"""Scratch arrays with one mapping per SIMD lane: tiles, and the words that entries keep of them.

In `Scratch` the mappings are the last axis. This is one lane of a matrix product A[m, k] B[k, n] of 4 x 4 x 4:

    row   slot of the loops       trips m, n, k   inside m, n, k
    0     DRAM: m x 2, n x 4      2, 4, 1         4, 4, 4
    1     fanout: k x 2           1, 1, 2         2, 1, 4
    2     PE: m x 2, k x 2        2, 1, 2         2, 1, 2
    3     units: none             1, 1, 1         1, 1, 1
    4     after the last slot     -               1, 1, 1

`inside` has the iterations of the slot and of all slots after it. The memory of the PE keeps the tile of row 2: A has
2 * 2 = 4 words, B 2 * 1 = 2 and the output 2 * 1 = 2. So `need` is 8 (`hold`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, kernel_part, lanes, passed_by_pointer, prefetch, splat16, transpose_to_lanes
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.tables import NONE, Orders, Rules, Terms


@passed_by_pointer
class Scratch(NamedTuple):
    """Scratch arrays for B = `LANES` mappings of S slots in SIMD lanes.

    `check_trips` leaves results here that cost models reuse.
    """

    trips: Floats
    """Trip counts, [S, D, B]."""
    inside: Floats
    """Iterations inside a slot, its own included, [S + 1, D, B]; ones after the last slot."""
    order: Orders
    """Dimension indices, [row, position, B], with at least one row per temporal slot."""
    used: Floats
    """Sub-clusters in use, [E, B]."""
    kept: Bools
    """Whether the entry keeps the tensor, [E, T, B]."""
    need: Floats
    """Slices in use, [M, B]."""
    good: Bools
    """Whether no rule is broken, [B]."""
    faults: Floats
    """Recorded violations, [F, 5]."""


def scratch_of(rules: Rules, slots: int = 0, faults: int = 1) -> Scratch:
    """Return scratch arrays for mappings with `slots` slots, and for `faults` violations."""
    entries, tensors = rules.memory.shape
    return Scratch(
        trips=np.ones((slots, len(rules.sizes), LANES)),
        inside=np.ones((slots + 1, len(rules.sizes), LANES)),
        order=np.ones((slots + entries, len(rules.sizes), LANES), np.uint8),
        used=np.ones((entries, LANES)),
        kept=np.ones((entries, tensors, LANES), np.bool_),
        need=np.zeros((len(rules.usable), LANES)),
        good=np.ones(LANES, np.bool_),
        faults=np.zeros((faults, 5)),
    )


@kernel_part
def to_lanes(numbers: NDArray[Any], first: int, rows: NDArray[Any]) -> None:
    """Transpose values [n, slot, dimension] into SIMD lanes, `rows` [slot, dimension, B].

    The values are trips, orders or kept tensors. Beyond the last mapping, its values are repeated.
    """
    last = first + LANES
    if last <= len(numbers):
        transpose_to_lanes(numbers[first:last], rows)
    else:
        for b in range(LANES):
            n = min(first + b, len(numbers) - 1)
            for s in range(numbers.shape[1]):
                for d in range(numbers.shape[2]):
                    rows[s, d, b] = numbers[n, s, d]


@kernel_part
def fetch(numbers: NDArray[Any], n: int) -> None:
    """Prefetch the values of mapping `n`, if it exists.

    Call this only a few mappings ahead: the processor keeps few prefetches in flight.
    """
    if n < len(numbers):
        for s in range(numbers.shape[1]):
            prefetch(numbers[n, s])


@kernel_part
def lay_out(sizes: Ints, scratch: Scratch) -> Bools:
    """Compute from the trips the iterations inside every slot, capped at the dimension's size.

    Returns:
        Whether the trips are valid, [B]: each is at least 1, leaves no piece empty, and all
        together cover the dimension.
    """
    trips, inside, good = scratch.trips, scratch.inside, splat16(True)
    for d in range(len(sizes)):
        size, tile = float(sizes[d]), splat16(1.0)
        for s in range(len(trips) - 1, -1, -1):
            here = lanes(trips[s, d])
            good = good & (here >= 1.0) & ((here - 1.0) * tile < size)
            tile = np.minimum(here * tile, size)
            inside[s, d][:] = tile
        good = good & (tile == size)
    return good


@kernel_part
def hold_tiles(rules: Rules, temporal: Ints, keep: Bools, first: int, scratch: Scratch) -> None:
    """Sum the slices that all entries need, for the tiles of `LANES` mappings from `first` on."""
    to_lanes(keep, first, scratch.kept)
    scratch.need[:] = 0.0
    for e in range(temporal.shape[1]):
        to_lanes(temporal[:, e : e + 1], first, scratch.inside)
        hold(rules, e, NONE, scratch)


@kernel_part
def hold_all(rules: Rules, slots: Ints, scratch: Scratch) -> None:
    """Sum the slices that all entries need, for the tiles in `scratch`."""
    scratch.need[:] = 0.0
    row = len(scratch.inside) - 1
    for e in range(len(slots) - 1, -1, -1):
        row = slots[e, 1] if slots[e, 1] >= 0 else row
        hold(rules, e, row, scratch)
        row = slots[e, 0] if slots[e, 0] >= 0 else row


@kernel_part
def hold(rules: Rules, e: int, row: int, scratch: Scratch) -> None:
    """Add the slices that an entry needs for the tiles in a row to those of its memories."""
    for t in range(scratch.kept.shape[1]):
        memory = rules.memory[e, t]
        if memory >= 0 and (e > 0 or rules.usable[memory] < np.inf):
            kept, slices = lanes(scratch.kept[e, t]), rules.slices[memory, t]
            if np.any(kept):
                words = stored_words(rules, memory, t, scratch.inside[row])
                scratch.need[memory][:] = lanes(scratch.need[memory]) + np.where(kept, words * slices, 0.0)


@kernel_part
def stored_words(rules: Rules, memory: int, tensor: int, tiles: Floats) -> Floats:
    """Return the words [B] that a memory stores of tiles [D, B]; the vector form of `Memory.tile_words`."""
    terms = rules.terms
    if not rules.distinct[memory]:
        return words_of(terms, tensor, tiles)
    words, side, pairs, repeated = splat16(1.0), splat16(1.0), splat16(1.0), splat16(1.0)
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        term, tile = terms.term[p], lanes(tiles[terms.term[p].dimension])
        side = side + float(term.coefficient) * (tile - 1.0)
        pairs, repeated = pairs * tile, repeated * np.maximum(tile - term.period, 0.0)
        if term.last:
            if term.period > 0.0:
                side = pairs - repeated
            words = words * side
            side, pairs, repeated = splat16(1.0), splat16(1.0), splat16(1.0)
    return words


@kernel_part
def words_of(terms: Terms, tensor: int, tiles: Floats) -> Floats:
    """Return the words [B] of tiles [D, B] in SIMD lanes; the vector form of `tile_words`."""
    words, side = splat16(1.0), splat16(1.0)
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        side = side + float(terms.term[p].coefficient) * (lanes(tiles[terms.term[p].dimension]) - 1.0)
        if terms.term[p].last:
            words, side = words * side, splat16(1.0)
    return words
