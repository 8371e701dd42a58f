"""What stands where in a state, and its tile."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Ints
from tilewright_mappers.optimal.kernel.tables import Layout, Shape

CODE, MASK, STATUS, USED = 0, 1, 2, 3
FRESH = 1 << 40
"""No loop in time since the last fanout that was used."""
INEXACT, ROUNDED, LINKED = 1, 2, 8
"""Flags: what is counted may be less than what it is; by less than a word for each part of an output; from bit LINKED on, by
tensor: neighbours may pass on words, depending on the next loop."""
SETTLED, LEAK, CYCLES, BOUND, FIRST = 0, 1, 2, 3, 4
PENDING, OWED, CREDIT, TILES, OVERLAP, LEAST_PENDING, LEAST_OWED, EACH = 0, 1, 2, 3, 4, 5, 6, 7
"""Of a tensor: energy that is not settled; words owed; energy credited; tiles' worth of words per tile; the share of a tile
that overlaps; least energy and words if neighbours pass on."""


@kernel_part
def status_of(integers: Ints, i: int, t: int) -> int:
    return int(integers[i, STATUS] >> (2 * t) & 3)


@kernel_part
def set_status(integers: Ints, i: int, t: int, status: int) -> None:
    integers[i, STATUS] = (integers[i, STATUS] & ~(3 << (2 * t))) | (status << (2 * t))


@kernel_part
def extent(shape: Shape, layout: Layout, integers: Ints, i: int, d: int) -> int:
    return int(shape.divisor[d, integers[i, layout.tile + d]])


@kernel_call
def words(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Of the tile's bounding box."""
    volume = side = 1.0
    for p in range(shape.start[t], shape.start[t + 1]):
        side += shape.factor[p] * (extent(shape, layout, integers, i, shape.dimension[p]) - 1.0)
        if shape.last[p]:
            volume *= side
            side = 1.0
    return volume
