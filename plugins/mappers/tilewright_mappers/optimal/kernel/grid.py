"""Positions of the sub-clusters' tiles: equal tiles (Lemma 8), and tiles of neighbours (Lemma 14)."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Ints
from tilewright_mappers.optimal.kernel.state import extent, left_of
from tilewright_mappers.optimal.kernel.tables import Layout, Level, Shape, Work


@kernel_call
def reached(
    shape: Shape,
    layout: Layout,
    level: Level,
    integers: Ints,
    i: int,
    t: int,
    r: int,
    shared: Bools,
    sharing: bool,
    work: Work,
) -> int:
    """Mark the offsets of all sub-clusters' tiles along window r, and return the largest.

    Args:
        sharing: only slots that may multicast the tensor count.
    """
    reach = 0
    work.reached[0] = True
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            step = integers[i, layout.tile + e] * shape.coefficient[t, e]
            for k in range(len(level.slot)):
                n = integers[i, layout.conf + k * len(shape.sizes) + e]
                step //= n
                if n > 1 and (shared[k, t] or not sharing):
                    for at in range(reach + 1, reach + (n - 1) * step + 1):
                        work.reached[at] = False
                    for at in range(reach, -1, -1):
                        if work.reached[at]:
                            for m in range(1, n):
                                work.reached[at + m * step] = True
                    reach += (n - 1) * step
    return int(reach)


@kernel_part
def _inner(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, e: int) -> int:
    """Return the extent of a sub-cluster's tile."""
    result = extent(shape, layout, integers, i, e)
    for k in range(len(level.slot)):
        result //= integers[i, layout.conf + k * len(shape.sizes) + e]
    return int(result)


@kernel_call
def side_of(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, r: int) -> int:
    """Return the side of a sub-cluster's tile along window r."""
    side = 1
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            side += shape.coefficient[t, e] * (_inner(shape, layout, level, integers, i, e) - 1)
    return int(side)


@kernel_call
def reach_of(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, r: int) -> int:
    """Return the maximum distance of two sub-clusters' tiles along window r."""
    reach = 0
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            apart = extent(shape, layout, integers, i, e) - _inner(shape, layout, level, integers, i, e)
            reach += shape.coefficient[t, e] * apart
    return int(reach)


@kernel_call
def inner_words(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int) -> float:
    """Return the values of a sub-cluster's tile."""
    volume = side = 1.0
    for p in range(shape.start[t], shape.start[t + 1]):
        side += shape.factor[p] * (_inner(shape, layout, level, integers, i, shape.dimension[p]) - 1.0)
        if shape.last[p]:
            volume *= side
            side = 1.0
    return volume


@kernel_part
def alike(shape: Shape, layout: Layout, integers: Ints, i: int, t: int, r: int, work: Work) -> float:
    """Return the maximum number of sub-clusters with equal tiles along window r (Lemma 8).

    `work.along` has the sub-clusters along each dimension, `work.within` those inside the tile.
    """
    dims, result, most = len(shape.sizes), 1.0, 1.0
    for e in range(dims):
        if shape.rank[t, e] == r and work.along[e] > 1.0:
            step, others, reach = integers[i, layout.tile + e] * shape.coefficient[t, e] // int(work.within[e]), 0, 0.0
            for o in range(dims):
                if o != e and shape.rank[t, o] == r and work.along[o] > 1.0:
                    apart = integers[i, layout.tile + o] * shape.coefficient[t, o] // int(work.within[o])
                    others, reach = common(others, apart), reach + apart * (work.along[o] - 1.0)
            number = 1.0
            if others > 0:
                number += min(reach, step * (work.along[e] - 1.0)) // (step // common(step, others) * others)
            result, most = result * number, max(most, number)
    return float(result / most)


@kernel_call
def lay_out(
    shape: Shape, layout: Layout, level: Level, shared: Bools, integers: Ints, i: int, t: int, work: Work
) -> tuple[int, int]:
    """Compute the positions of the sub-clusters' tiles, row by row.

    A position is one number: a sum of coordinates with weights that make sums unique.

    Returns:
        The number of sub-clusters, 0 if there are too many; and the number per row.
    """
    dims, weight, count, across = len(shape.sizes), 1, 1, 1
    for e in range(dims):
        work.weight[e] = 0
        for o in range(e):
            if shape.moves[t, e] and shape.rank[t, e] >= 0 and shape.rank[t, o] == shape.rank[t, e]:
                work.weight[e] = work.weight[o]
        if shape.moves[t, e] and work.weight[e] == 0:
            work.weight[e] = weight
            far = extent(shape, layout, integers, i, e)
            if shape.rank[t, e] >= 0:
                far = reach_of(shape, layout, level, integers, i, t, shape.rank[t, e])
            weight *= 4 * far + 2
    work.place[0] = work.group[0] = 0
    for vertical in range(2):
        for k in range(len(level.slot) - 1, -1, -1):
            for e in range(dims - 1, -1, -1):
                n = integers[i, layout.conf + k * dims + e]
                if level.slot[k] < 0 or level.vertical[k] != vertical or n == 1:
                    continue
                if count * n > len(work.place):
                    return 0, 0
                move = extent(shape, layout, integers, i, e) * max(1, shape.coefficient[t, e])
                for outer in range(k + 1):
                    move //= integers[i, layout.conf + outer * dims + e]
                for number in range(count, n * count):
                    like, index = number % count, number // count
                    work.place[number] = work.place[like] + index * move * work.weight[e]
                    work.group[number] = work.group[like] + (0 if shared[k, t] else index * count)
                count *= n
        if vertical == 0:
            across = count
    return int(count), int(max(level.width, across))


@kernel_call
def count_deliveries(count: int, width: int, shift: int, alone: bool, work: Work) -> tuple[int, int, int]:
    """Count the parent's deliveries to the sub-clusters, one per set of equal tiles.

    Args:
        shift: distance of the tile that a neighbour had one step before; 0 if none forwards.
        alone: leave out all sub-clusters marked by `meets`.

    Returns:
        Deliveries; sub-clusters served by neighbours; the most sub-clusters per delivery.
    """
    deliveries = linked = largest = 0
    mask = 1
    while mask < 2 * count:
        mask *= 2
    mask -= 1
    for at in range(mask + 1):
        work.table[at] = -1
    for number in range(count):
        wanted, x = work.place[number] + shift, number % width
        if (
            (alone and work.meets[number])
            or shift != 0
            and (
                (x > 0 and work.place[number - 1] == wanted)
                or (x < width - 1 and number + 1 < count and work.place[number + 1] == wanted)
                or (number >= width and work.place[number - width] == wanted)
                or (number + width < count and work.place[number + width] == wanted)
            )
        ):
            linked += 1
            continue
        at = (work.place[number] * 0x9E3779B1 + work.group[number] * 0x85EBCA6B) & mask
        like = work.table[at]
        while like >= 0 and (work.place[like] != work.place[number] or work.group[like] != work.group[number]):
            at = (at + 1) & mask
            like = work.table[at]
        if like < 0:
            work.table[at] = like = number
            work.size[like] = 0
            deliveries += 1
        work.size[like] += 1
        largest = max(largest, work.size[like])
    return deliveries, linked, largest


@kernel_call
def meets(shape: Shape, layout: Layout, integers: Ints, i: int, t: int, count: int, width: int, work: Work) -> bool:
    """Return whether outer loops may give a sub-cluster the tile of a neighbour, and mark which ones."""
    result = False
    for number in range(count):
        work.meets[number] = 0
    for number in range(count):
        for way in range(2):
            other = number + 1 if way == 0 else number + width
            if other < count and (way == 1 or other % width > 0):
                if _in_steps(shape, layout, integers, i, t, work.place[other] - work.place[number], work):
                    work.meets[number] = work.meets[other] = 1
                    result = True
    return result


@kernel_call
def _in_steps(shape: Shape, layout: Layout, integers: Ints, i: int, t: int, apart: int, work: Work) -> bool:
    """Return whether outer loops may move a tile by a distance, as `lay_out` encodes it (Lemma 14)."""
    if apart == 0:
        return False
    dims = len(shape.sizes)
    for d in range(dims - 1, -1, -1):  # largest weight first
        weight, step, first = work.weight[d], 0, True
        for o in range(dims):
            if weight > 0 and work.weight[o] == weight:
                first &= o >= d
                if left_of(shape, layout, integers, i, o) > 1:
                    step = common(step, extent(shape, layout, integers, i, o) * max(1, shape.coefficient[t, o]))
        if weight > 0 and first:
            here = (2 * apart + weight) // (2 * weight)
            apart -= here * weight
            if here != 0 and (step == 0 or here % step != 0):
                return False
    return True


@kernel_part
def common(a: int, b: int) -> int:
    """Return the greatest common divisor."""
    while b > 0:
        a, b = b, a % b
    return a
