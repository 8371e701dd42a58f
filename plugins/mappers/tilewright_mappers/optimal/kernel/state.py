"""Columns of a state, and properties of its tile."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.tables import Layout, Shape

CODE, MASK, STATUS, USED = 0, 1, 2, 3
FRESH = 1 << 40
"""Bit of `STATUS`: no temporal loop since the last unrolling of this fanout."""
INEXACT, ROUNDED, LINKED = 1, 2, 8
"""Flags of a state: undercounted (Lemma 13); first reads are rounded (Lemma 4).

From bit `LINKED` on, one bit per tensor: forwarding is open (Lemma 14).
"""
SETTLED, LEAK, CYCLES, BOUND, FIRST = 0, 1, 2, 3, 4
PENDING, OWED, CREDIT, TILES, OVERLAP, LEAST_PENDING, LEAST_OWED, EACH = 0, 1, 2, 3, 4, 5, 6, 7
"""Offsets of the numbers per tensor.

These are deferred energy; demand; first-read credit; tile equivalents of a sliding tensor; overlap
of its steps; lower bounds of energy and demand if neighbours forward words.

Energies and words are those of the whole problem, as if every outer loop repeated them. Credits are
normalised for relevant outer loops only.
"""


@kernel_part
def status_of(integers: Ints, i: int, t: int) -> int:
    return int(integers[i, STATUS] >> (2 * t) & 3)


@kernel_part
def set_status(integers: Ints, i: int, t: int, status: int) -> None:
    integers[i, STATUS] = (integers[i, STATUS] & ~(3 << (2 * t))) | (status << (2 * t))


@kernel_part
def least_is_all(numbers: Floats, i: int, t: int) -> None:
    """Set the lower bounds of a tensor to its energy and demand: its neighbours forward nothing."""
    at = FIRST + EACH * t
    numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED] = numbers[i, at + PENDING], numbers[i, at + OWED]


@kernel_part
def extent(shape: Shape, layout: Layout, integers: Ints, i: int, d: int) -> int:
    """Return the iterations of a full tile."""
    return int(min(integers[i, layout.tile + d], shape.sizes[d]))


@kernel_part
def left_of(shape: Shape, layout: Layout, integers: Ints, i: int, d: int) -> int:
    """Return the number of tiles of a dimension."""
    return int(shape.left[d, integers[i, layout.left + d]])


@kernel_part
def tiles_left(shape: Shape, layout: Layout, integers: Ints, i: int) -> float:
    """Return the number of tiles of the whole problem."""
    result = 1.0
    for d in range(len(shape.sizes)):
        result *= left_of(shape, layout, integers, i, d)
    return result


@kernel_part
def used_along(layout: Layout, integers: Ints, i: int, d: int, dims: int) -> float:
    """Return the sub-clusters of the current fanout along a dimension."""
    result = 1.0
    for at in range(layout.conf + d, layout.keys, dims):
        result *= integers[i, at]
    return result


@kernel_part
def place_of(shape: Shape, d: int, left: int) -> int:
    """Return the index of a tile count."""
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
    """Return whether the last tile is smaller than the others."""
    left = shape.left[d, integers[i, layout.left + d]]
    return bool(left > 1 and left * integers[i, layout.tile + d] != shape.sizes[d])


@kernel_call
def words(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Return the values of the tile's bounding box."""
    volume = side = 1.0
    for p in range(shape.start[t], shape.start[t + 1]):
        side += shape.factor[p] * (extent(shape, layout, integers, i, shape.dimension[p]) - 1.0)
        if shape.last[p]:
            volume *= side
            side = 1.0
    return volume


@kernel_call
def all_words(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Return the values of the bounding boxes of all tiles of a tensor; 0 for ragged windows.

    Short last tiles count with their own size.
    """
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
    """Return the number of tiles along the irrelevant dimensions."""
    result = 1.0
    for d in range(len(shape.sizes)):
        if not shape.moves[t, d]:
            result *= left_of(shape, layout, integers, i, d)
    return result


@kernel_part
def covered(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> float:
    """Return the values that all tiles cover together, the words of Lemma 10."""
    result, at = 1.0 if shape.least[t] > 0.0 else 0.0, 0
    for p in range(shape.start[t], shape.start[t + 1]):
        at += integers[i, layout.left + shape.dimension[p]] * shape.step[p]
        if shape.last[p]:
            result *= shape.covered[shape.first[p] + at]
            at = 0
    return result
