"""What stands where in a state, and its tile."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats, Ints
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
that overlaps; least energy and words if neighbours pass on. Energies and words are those of the whole problem, if every loop
outside brings them again; credits, if loops outside that do not move the tensor do not."""


@kernel_part
def status_of(integers: Ints, i: int, t: int) -> int:
    return int(integers[i, STATUS] >> (2 * t) & 3)


@kernel_part
def set_status(integers: Ints, i: int, t: int, status: int) -> None:
    integers[i, STATUS] = (integers[i, STATUS] & ~(3 << (2 * t))) | (status << (2 * t))


@kernel_part
def least_is_all(numbers: Floats, i: int, t: int) -> None:
    """Neighbours pass on no words of the tensor."""
    at = FIRST + EACH * t
    numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED] = numbers[i, at + PENDING], numbers[i, at + OWED]


@kernel_part
def extent(shape: Shape, layout: Layout, integers: Ints, i: int, d: int) -> int:
    """Iterations of a tile, but of the last one."""
    return int(min(integers[i, layout.tile + d], shape.sizes[d]))


@kernel_part
def left_of(shape: Shape, layout: Layout, integers: Ints, i: int, d: int) -> int:
    """Tiles that the dimension consists of."""
    return int(shape.left[d, integers[i, layout.left + d]])


@kernel_part
def tiles_left(shape: Shape, layout: Layout, integers: Ints, i: int) -> float:
    """Tiles that the whole problem consists of."""
    result = 1.0
    for d in range(len(shape.sizes)):
        result *= left_of(shape, layout, integers, i, d)
    return result


@kernel_part
def used_along(layout: Layout, integers: Ints, i: int, d: int, dims: int) -> float:
    """Sub-clusters of the level's fanout along a dimension."""
    result = 1.0
    for at in range(layout.conf + d, layout.keys, dims):
        result *= integers[i, at]
    return result


@kernel_part
def place_of(shape: Shape, d: int, left: int) -> int:
    """The place of a number of tiles in `Shape.left`."""
    first, last = 0, shape.left.shape[1] - 1
    while first < last:
        middle = (first + last) // 2
        if shape.left[d, middle] > left:
            first = middle + 1
        else:
            last = middle
    return first


@kernel_part
def is_partial(shape: Shape, layout: Layout, integers: Ints, i: int, d: int) -> bool:
    """Whether the last tile is smaller than the others."""
    left = shape.left[d, integers[i, layout.left + d]]
    return bool(left > 1 and left * integers[i, layout.tile + d] != shape.sizes[d])


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


@kernel_call
def all_words(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Of the bounding boxes of all tiles of the tensor, short last ones as they are; as far as they are known."""
    result = tiles = 1.0
    if shape.blind[t]:
        return 0.0
    if not shape.ragged:
        for d in range(len(shape.sizes)):
            if shape.moves[t, d]:
                tiles *= left_of(shape, layout, integers, i, d)
        return tiles * words(shape, layout, integers, i, t)
    side, first = 1.0, shape.start[t]
    for p in range(shape.start[t], shape.start[t + 1]):
        tiles *= left_of(shape, layout, integers, i, shape.dimension[p])
        side -= shape.factor[p]
        if shape.last[p]:
            total = side * tiles
            for q in range(first, p + 1):
                d = shape.dimension[q]
                total += shape.factor[q] * float(shape.sizes[d]) * (tiles / left_of(shape, layout, integers, i, d))
            result *= total
            tiles, side, first = 1.0, 1.0, p + 1
    return result


@kernel_part
def still_left(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Tiles along the dimensions that do not move the tensor."""
    result = 1.0
    for d in range(len(shape.sizes)):
        if not shape.moves[t, d]:
            result *= left_of(shape, layout, integers, i, d)
    return result


@kernel_part
def covered(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Words that tiles like this one have together: at least so many come from any memory further out, to the next one to keep the tensor."""
    result, at = 1.0 if shape.least[t] > 0.0 else 0.0, 0
    for p in range(shape.start[t], shape.start[t + 1]):
        at += integers[i, layout.left + shape.dimension[p]] * shape.step[p]
        if shape.last[p]:
            result *= shape.covered[shape.first[p] + at]
            at = 0
    return result
