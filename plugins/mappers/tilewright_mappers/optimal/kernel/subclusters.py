"""Positions of the sub-clusters' tiles: equal tiles (Lemma 8), and tiles of neighbours (Lemma 14).

A window p + r, unrolled over 3 tiles of p with 2 iterations, and over 2 tiles of r with 2 iterations. `mark_offsets`
marks where the sub-clusters' tiles begin:

    offset         0     1     2     3     4     5     6
    after p        x           x           x
    after r        x           x           x           x

There are 6 sub-clusters and 4 offsets. So at least 2 sub-clusters have the tile of another one (Lemma 8).
"""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.state import extent, fanout_extent, tile_count
from tilewright_mappers.optimal.kernel.structures import (
    FanoutLevel,
    SearchContext,
    SearchScratch,
    StateRows,
)

MAX_DISTANCES = 16
"""Distances between neighbours that are remembered of a fanout."""


@kernel_call
def mark_offsets(
    context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, r: int, sharing: bool
) -> int:
    """Mark the offsets of all sub-clusters' tiles along window r, and return the largest.

    Args:
        sharing: only slots that may multicast the tensor count.
    """
    problem, layout, scratch = context.problem, context.layout, context.scratch
    integers = states.integers
    reach = 0
    scratch.offsets[0] = True
    for e in range(len(problem.sizes)):
        if problem.window_index[t, e] == r:
            step = integers[i, layout.tile + e] * problem.coefficient[t, e]
            for k in range(len(level.slot)):
                n = integers[i, layout.unrolling + k * len(problem.sizes) + e]
                step //= n
                if n > 1 and (level.multicast[k, t] or not sharing):
                    for at in range(reach + 1, reach + (n - 1) * step + 1):
                        scratch.offsets[at] = False
                    for at in range(reach, -1, -1):
                        if scratch.offsets[at]:
                            for m in range(1, n):
                                scratch.offsets[at + m * step] = True
                    reach += (n - 1) * step
    return int(reach)


@kernel_part
def _inner(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, e: int) -> int:
    """Return the extent of a sub-cluster's tile."""
    problem, layout = context.problem, context.layout
    integers = states.integers
    result = fanout_extent(context, states, i, e)
    for k in range(len(level.slot)):
        result //= integers[i, layout.unrolling + k * len(problem.sizes) + e]
    return int(result)


@kernel_call
def subcluster_side(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, r: int) -> int:
    """Return the side of a sub-cluster's tile along window r."""
    problem = context.problem
    side = 1
    for e in range(len(problem.sizes)):
        if problem.window_index[t, e] == r:
            side += problem.coefficient[t, e] * (_inner(context, level, states, i, e) - 1)
    return int(side)


@kernel_call
def max_offset(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, r: int) -> int:
    """Return the maximum distance of two sub-clusters' tiles along window r."""
    problem = context.problem
    reach = 0
    for e in range(len(problem.sizes)):
        if problem.window_index[t, e] == r:
            apart = fanout_extent(context, states, i, e) - _inner(context, level, states, i, e)
            reach += problem.coefficient[t, e] * apart
    return int(reach)


@kernel_call
def subcluster_words(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int) -> float:
    """Return the values of a sub-cluster's tile."""
    problem = context.problem
    volume = side = 1.0
    for p in range(problem.term_start[t], problem.term_start[t + 1]):
        side += problem.term_factor[p] * (_inner(context, level, states, i, problem.term_dimension[p]) - 1.0)
        if problem.term_last[p]:
            volume *= side
            side = 1.0
    return volume


@kernel_part
def max_equal_tiles(context: SearchContext, states: StateRows, i: int, t: int, r: int) -> float:
    """Return the maximum number of sub-clusters with equal tiles along window r (Lemma 8).

    `scratch.along` has the sub-clusters along each dimension, `scratch.within` those inside the tile.
    """
    problem, layout, scratch = context.problem, context.layout, context.scratch
    integers = states.integers
    dims, result, most = len(problem.sizes), 1.0, 1.0
    for e in range(dims):
        if problem.window_index[t, e] == r and scratch.along[e] > 1.0:
            step, others, reach = (
                integers[i, layout.tile + e] * problem.coefficient[t, e] // int(scratch.within[e]),
                0,
                0.0,
            )
            for o in range(dims):
                if o != e and problem.window_index[t, o] == r and scratch.along[o] > 1.0:
                    apart = integers[i, layout.tile + o] * problem.coefficient[t, o] // int(scratch.within[o])
                    others, reach = gcd(others, apart), reach + apart * (scratch.along[o] - 1.0)
            number = 1.0
            if others > 0:
                number += min(reach, step * (scratch.along[e] - 1.0)) // (step // gcd(step, others) * others)
            result, most = result * number, max(most, number)
    return float(result / most)


@kernel_call
def place_subclusters(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int) -> tuple[int, int]:
    """Compute the positions of the sub-clusters' tiles, row by row.

    A position is one number: a sum of coordinates with weights that make sums unique.

    Returns:
        The number of sub-clusters, 0 if there are too many; and the number per row.
    """
    problem, layout, scratch = context.problem, context.layout, context.scratch
    integers = states.integers
    dims, weight, count, across = len(problem.sizes), 1, 1, 1
    for e in range(dims):
        scratch.weight[e] = 0
        for o in range(e):
            if (
                problem.relevant[t, e]
                and problem.window_index[t, e] >= 0
                and problem.window_index[t, o] == problem.window_index[t, e]
            ):
                scratch.weight[e] = scratch.weight[o]
        if problem.relevant[t, e] and scratch.weight[e] == 0:
            scratch.weight[e] = weight
            far = fanout_extent(context, states, i, e)
            if problem.window_index[t, e] >= 0:
                far = max_offset(context, level, states, i, t, problem.window_index[t, e])
            weight *= 4 * far + 2
    scratch.position[0] = scratch.group[0] = 0
    for vertical in range(2):
        for k in range(len(level.slot) - 1, -1, -1):
            for e in range(dims - 1, -1, -1):
                n = integers[i, layout.unrolling + k * dims + e]
                if level.slot[k] < 0 or level.vertical[k] != vertical or n == 1:
                    continue
                if count * n > len(scratch.position):
                    return 0, 0
                move = fanout_extent(context, states, i, e) * max(1, problem.coefficient[t, e])
                for earlier in range(k + 1):
                    move //= integers[i, layout.unrolling + earlier * dims + e]
                for index in range(1, n):
                    apart, group = index * move * scratch.weight[e], 0 if level.multicast[k, t] else index * count
                    for like in range(count):
                        scratch.position[index * count + like] = scratch.position[like] + apart
                        scratch.group[index * count + like] = scratch.group[like] + group
                count *= n
        if vertical == 0:
            across = count
    return int(count), int(max(level.row_width, across))


@kernel_call
def count_deliveries(
    count: int, width: int, shift: int, skip_marked: bool, scratch: SearchScratch
) -> tuple[int, int, int]:
    """Count the parent's deliveries to the sub-clusters, one per set of equal tiles.

    Args:
        shift: distance of the tile that a neighbour had one step before; 0 if none forwards.
        skip_marked: leave out all sub-clusters marked by `can_forward`.

    Returns:
        Deliveries; sub-clusters served by neighbours; the most sub-clusters per delivery.
    """
    deliveries = forwarded = largest = 0
    mask = 1
    while mask < 2 * count:
        mask *= 2
    mask -= 1
    for at in range(mask + 1):
        scratch.hash_table[at] = -1
    x = -1  # column of the sub-cluster; a division per sub-cluster would take most of the time
    for number in range(count):
        x = 0 if x + 1 == width else x + 1
        wanted = scratch.position[number] + shift
        if (
            (skip_marked and scratch.has_neighbour[number])
            or shift != 0
            and (
                (x > 0 and scratch.position[number - 1] == wanted)
                or (x < width - 1 and number + 1 < count and scratch.position[number + 1] == wanted)
                or (number >= width and scratch.position[number - width] == wanted)
                or (number + width < count and scratch.position[number + width] == wanted)
            )
        ):
            forwarded += 1
            continue
        # positions are often multiples of a power of two, so the low bits of the product hardly differ
        mixed = (scratch.position[number] ^ (scratch.group[number] << 20)) & 0x7FFFFFFF
        at = (mixed * 0x9E3779B1 >> 20) & mask
        like = scratch.hash_table[at]
        while like >= 0 and (
            scratch.position[like] != scratch.position[number] or scratch.group[like] != scratch.group[number]
        ):
            at = (at + 1) & mask
            like = scratch.hash_table[at]
        if like < 0:
            scratch.hash_table[at] = like = number
            scratch.delivery_size[like] = 0
            deliveries += 1
        scratch.delivery_size[like] += 1
        largest = max(largest, scratch.delivery_size[like])
    return deliveries, forwarded, largest


@kernel_call
def can_forward(context: SearchContext, states: StateRows, i: int, t: int, count: int, width: int) -> bool:
    """Return whether outer loops may give a sub-cluster the tile of a neighbour, and mark which ones."""
    scratch = context.scratch
    result = False
    for number in range(count):
        scratch.has_neighbour[number] = 0
    # few distances are different, so each is looked up among those seen, which the hash table stores in pairs
    seen, x = 0, 0
    for way in range(2):
        for number in range(count):
            x = 0 if x + 1 == width else x + 1  # column of the next sub-cluster
            other = number + 1 if way == 0 else number + width
            if other >= count or (way == 0 and x == 0):
                continue
            apart, at = scratch.position[other] - scratch.position[number], 0
            while at < seen and scratch.hash_table[2 * at] != apart:
                at += 1
            if at == seen:
                seen += at < MAX_DISTANCES
                scratch.hash_table[2 * at], scratch.hash_table[2 * at + 1] = (
                    apart,
                    _in_steps(context, states, i, t, apart),
                )
            if scratch.hash_table[2 * at + 1]:
                scratch.has_neighbour[number] = scratch.has_neighbour[other] = 1
                result = True
    return result


@kernel_call
def _in_steps(context: SearchContext, states: StateRows, i: int, t: int, apart: int) -> bool:
    """Return whether outer loops may move a tile by a distance, as `place_subclusters` encodes it (Lemma 14)."""
    problem, scratch = context.problem, context.scratch
    if apart == 0:
        return False
    dims = len(problem.sizes)
    for d in range(dims - 1, -1, -1):  # largest weight first
        weight, step, first = scratch.weight[d], 0, True
        for o in range(dims):
            if weight > 0 and scratch.weight[o] == weight:
                first &= o >= d
                if tile_count(context, states, i, o) > 1:
                    step = gcd(step, extent(context, states, i, o) * max(1, problem.coefficient[t, o]))
        if weight > 0 and first:
            here = (2 * apart + weight) // (2 * weight)
            apart -= here * weight
            if here != 0 and (step == 0 or here % step != 0):
                return False
    return True


@kernel_part
def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor."""
    while b > 0:
        a, b = b, a % b
    return a
