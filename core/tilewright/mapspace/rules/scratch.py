"""Mappings laid side by side, one in each lane: their tiles, and what entries keep of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, every, kernel_part, lanes, soon, structure, turn
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.tables import NONE, Orders, Rules, Terms


@structure
class Scratch(NamedTuple):
    """Room for what is worked out of B = `LANES` mappings of S slots side by side; what `judge` leaves there is of use to cost
    models."""

    trips: Floats
    """[S, D, B]."""
    inside: Floats
    """[S + 1, D, B]: iterations inside a slot and all those further in; ones inside the last slot."""
    order: Orders
    """[row, position, B]: dimensions, as many rows as temporal slots at least."""
    used: Floats
    """[E, B]: sub-clusters."""
    kept: Bools
    """[E, T, B]: whether the entry keeps the tensor."""
    need: Floats
    """[M, B]: slices held."""
    good: Bools
    """[B]: no rule is broken."""
    faults: Floats
    """[F, 5]."""


def scratch_of(rules: Rules, slots: int = 0, faults: int = 1) -> Scratch:
    """Room for mappings with so many slots, and for so many faults."""
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
def spread(numbers: NDArray[Any], first: int, rows: NDArray[Any]) -> None:
    """Numbers [n, slot, dimension] of mappings, orders, or what entries keep, laid side by side; after the last one comes the last
    one again."""
    last = first + LANES
    if last <= len(numbers):
        turn(numbers[first:last], rows)
    else:
        for b in range(LANES):
            n = min(first + b, len(numbers) - 1)
            for s in range(numbers.shape[1]):
                for d in range(numbers.shape[2]):
                    rows[s, d, b] = numbers[n, s, d]


@kernel_part
def fetch(numbers: NDArray[Any], n: int) -> None:
    """Have the numbers of a mapping, if there is one, come from memory while others are worked on; a few mappings at a time, since
    more are not fetched."""
    if n < len(numbers):
        for s in range(numbers.shape[1]):
            soon(numbers[n, s])


@kernel_part
def lay_out(sizes: Ints, scratch: Scratch) -> Bools:
    """Turn trips into iterations inside every slot and all those further in, at most all of them. Not good [B] is a trip count
    below 1, an empty piece of the last cut, and what is not the whole dimension."""
    trips, inside, good = scratch.trips, scratch.inside, every(True)
    for d in range(len(sizes)):
        size, tile = float(sizes[d]), every(1.0)
        for s in range(len(trips) - 1, -1, -1):
            here = lanes(trips[s, d])
            good = good & (here >= 1.0) & ((here - 1.0) * tile < size)
            tile = np.minimum(here * tile, size)
            inside[s, d][:] = tile
        good = good & (tile == size)
    return good


@kernel_part
def hold_tiles(rules: Rules, temporal: Ints, keep: Bools, first: int, scratch: Scratch) -> None:
    """Add up what all entries keep of the tiles of `LANES` mappings from `first` on."""
    spread(keep, first, scratch.kept)
    scratch.need[:] = 0.0
    for e in range(temporal.shape[1]):
        spread(temporal[:, e : e + 1], first, scratch.inside)
        hold(rules, e, NONE, scratch)


@kernel_part
def hold_all(rules: Rules, slots: Ints, scratch: Scratch) -> None:
    """Add up what all entries keep of the tiles in `scratch`."""
    scratch.need[:] = 0.0
    row = len(scratch.inside) - 1
    for e in range(len(slots) - 1, -1, -1):
        row = slots[e, 1] if slots[e, 1] >= 0 else row
        hold(rules, e, row, scratch)
        row = slots[e, 0] if slots[e, 0] >= 0 else row


@kernel_part
def hold(rules: Rules, e: int, row: int, scratch: Scratch) -> None:
    """Add the slices that an entry keeps of the tiles in a row to what its memories need."""
    for t in range(scratch.kept.shape[1]):
        memory = rules.memory[e, t]
        if memory >= 0 and (e > 0 or rules.usable[memory] < np.inf):
            kept, slices = lanes(scratch.kept[e, t]), rules.slices[memory, t]
            if np.any(kept):
                words = words_of(rules.terms, t, scratch.inside[row])
                scratch.need[memory][:] = lanes(scratch.need[memory]) + np.where(kept, words * slices, 0.0)


@kernel_part
def words_of(terms: Terms, tensor: int, tiles: Floats) -> Floats:
    """`tile_words` of tiles [D, B] side by side, [B]."""
    words, side = every(1.0), every(1.0)
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        side = side + float(terms.term[p].coefficient) * (lanes(tiles[terms.term[p].dimension]) - 1.0)
        if terms.term[p].last:
            words, side = words * side, every(1.0)
    return words
