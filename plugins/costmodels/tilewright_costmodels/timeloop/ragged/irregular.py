"""Pieces of one dimension at a time, for any tiles: as many sizes as there are.

Files may specify such tiles, map spaces do not. This is slow, and therefore apart from `regular`.

A dimension of 10 iterations. Cut 0 makes tiles of 4, and cut 1 tiles of 3, which do not divide 4.

    outside cut 0    [0  1  2  3  4  5  6  7  8  9]       one size: 10
    outside cut 1    [0  1  2  3] [4  5  6  7] [8  9]     two sizes: 4, 2
    inside cut 1     [0  1  2][3] [4  5  6][7] [8  9]     three sizes: 3, 1, 2

`Pieces.size` has a row per cut and a column per size; a cell is (iterations, full, remainder).
`Pieces.weight` has the number of pieces of each size, here with both cuts free:

    row   column 0      column 1      column 2      number of pieces
    0     (10, 2, 1)                                1
    1     (4, 1, 1)     (2, 0, 2)                   2, 1
    2     (3, -, -)     (1, -, -)     (2, -, -)     2, 2, 1

Row 1, column 0: a piece of 4 has 4 // 3 = 1 full piece of 3. Its remainder has the size in column 1 of row 2.
So the two pieces of 4 give two pieces of 3 and two of 1.

Modes that ask for the piece before or after another one count pairs of sizes, in `Pieces.pair`.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats
from tilewright_costmodels.timeloop.ragged.tables import ADVANCE, BEFORE, SECOND, UNMOVED, Pieces, Query


@kernel_call
def cut_irregular(pieces: Pieces, d: int) -> None:
    """Write the sizes of the pieces outside every cut, their numbers, and which loops may stay."""
    first, last = pieces.first_cut[0, d], pieces.first_cut[-1, d]
    pieces.size_count[first] = 1
    pieces.size[first, 0].iterations = pieces.cut[first].full
    for k in range(first, last):
        cut, after = pieces.cut[k], pieces.cut[k + 1]
        size_count = 1
        pieces.size[k + 1, 0].iterations = after.full
        can_stay = False
        for y in range(pieces.size_count[k]):
            size = pieces.size[k, y]
            size.full = np.floor(size.iterations / after.full)
            remainder = size.iterations - size.full * after.full
            size.remainder = -1
            can_stay |= size.full <= 1.0
            if remainder > 0.0:
                z = 1
                while z < size_count and pieces.size[k + 1, z].iterations != remainder:
                    z += 1
                if z == size_count:
                    pieces.size[k + 1, z].iterations = remainder
                    size_count += 1
                size.remainder = z
        pieces.size_count[k + 1] = size_count
        if cut.temporal:
            pieces.can_stay[cut.loop] = can_stay
    for free in range(3):  # free cuts: all, spatial ones, temporal ones
        pieces.weight[first % 2, 0] = 1.0
        for k in range(first, last):
            steps, count = pieces.cut[k].temporal, 0.0
            here, there = pieces.weight[k % 2], pieces.weight[(k + 1) % 2]
            _cut_sizes(pieces, k, free == 0 or steps == (free == 2), here, there)
            for y in range(pieces.size_count[k + 1]):
                count += there[y]
            after = pieces.cut[k + 1]
            if free == 0:
                after.count = count
            elif free == 1:
                after.spatial_count = count
            else:
                after.temporal_count = count


@kernel_part
def is_free(pieces: Pieces, query: Query, d: int, k: int) -> bool:
    """Return whether all trips of cut `k` of a dimension count. It has no branch, because no processor predicts it."""
    cut, movement = pieces.cut[k], query.movement
    outside = k < pieces.first_cut[movement.shared_from, d]
    separate = query.relevant | pieces.unicast[movement.tensor, cut.slot]
    spatial_free = (outside & movement.all_instances) | ((not outside) & separate)
    return bool((cut.temporal & (cut.loop < query.limit)) | ((not cut.temporal) & spatial_free))


@kernel_call
def count_any_pieces(pieces: Pieces, query: Query, d: int, last: int) -> None:
    """Count the pieces of a dimension outside the cut `last`; see `regular.count_pieces`."""
    cuts, weight, pair, first = pieces.cut, pieces.weight, pieces.pair, pieces.first_cut[0, d]
    none, mode, limit = pair.shape[2] - 1, query.mode, query.limit
    keeps_from = pieces.first_cut[query.movement.keeps_from, d]
    here, paired = 0, False
    weight[0, 0] = 1.0
    for k in range(first, last):
        there, size_count, next_count = 1 - here, pieces.size_count[k], pieces.size_count[k + 1]
        temporal, loop, free = cuts[k].temporal, cuts[k].loop, is_free(pieces, query, d, k)
        if mode == UNMOVED and temporal and loop >= limit and not paired:
            paired = True
            _clear_pairs(pieces, here, size_count)
            for x in range(size_count):
                pair[here, x, none] = weight[here, x]
        if paired:
            if mode == UNMOVED and k == keeps_from:
                for x in range(size_count):
                    for y in range(size_count):
                        pair[here, x, y] = 0.0
            _clear_pairs(pieces, there, next_count)
            for x in range(size_count):
                for column in range(size_count + 1):
                    y = column if column < size_count else none
                    if pair[here, x, y] > 0.0:
                        _cut_pair(pieces, k, x, y, here, free, mode == UNMOVED)
        elif mode == BEFORE and temporal and loop == limit:
            paired = True
            _clear_pairs(pieces, there, next_count)
            for x in range(size_count):
                size, count = pieces.size[k, x], weight[here, x]
                if size.full > 0.0:
                    pair[there, 0, 0] += count * (size.full - 1.0)
                    if size.remainder >= 0:
                        pair[there, size.remainder, 0] += count
        elif mode == SECOND and temporal and loop >= limit:
            _second_sizes(pieces, k, weight[here], weight[there])
        elif mode == ADVANCE and temporal and loop == limit:
            _advance_sizes(pieces, k, weight[here], weight[there])
        else:
            _cut_sizes(pieces, k, free, weight[here], weight[there])
        here = there
    if paired:
        for x in range(pieces.size_count[last]):
            count = pair[here, x, none] if mode == UNMOVED else 0.0
            for y in range(pieces.size_count[last] if mode == BEFORE else 0):
                count += pair[here, y, x]
            weight[here, x] = count
    totals = pieces.totals[d]
    totals.sizes, totals.count, totals.iterations, totals.smallest = 0, 0.0, 0.0, np.inf
    for x in range(pieces.size_count[last]):
        count = weight[here, x]
        if count > 0.0:
            row = pieces.results[d, totals.sizes]
            row.iterations, row.count = pieces.size[last, x].iterations, count
            row.next = row.iterations  # the first trips are at least as long
            totals.sizes += 1
            totals.count += count
            totals.iterations += count * row.iterations
            totals.smallest = min(totals.smallest, row.iterations)


@kernel_part
def _cut_sizes(pieces: Pieces, k: int, free: bool, before: Floats, after: Floats) -> None:
    """Write the numbers of pieces inside a cut: all of them, or the first one of each piece outside it."""
    for x in range(pieces.size_count[k + 1]):
        after[x] = 0.0
    for x in range(pieces.size_count[k]):
        size, count = pieces.size[k, x], before[x]
        after[0] += count * (size.full if free else min(1.0, size.full))
        if size.remainder >= 0 and (free or size.full == 0.0):
            after[size.remainder] += count


@kernel_part
def _advance_sizes(pieces: Pieces, k: int, before: Floats, after: Floats) -> None:
    """Write the numbers of the pieces to which the loop of a cut advances."""
    for x in range(pieces.size_count[k + 1]):
        after[x] = 0.0
    for x in range(pieces.size_count[k]):
        size, count = pieces.size[k, x], before[x]
        if size.full > 0.0:
            after[0] += count * (size.full - 1.0)
            if size.remainder >= 0:
                after[size.remainder] += count


@kernel_part
def _second_sizes(pieces: Pieces, k: int, before: Floats, after: Floats) -> None:
    """Write the numbers of the pieces at the second trip of the loop of a cut."""
    for x in range(pieces.size_count[k + 1]):
        after[x] = 0.0
    for x in range(pieces.size_count[k]):
        size, count = pieces.size[k, x], before[x]
        if size.full > 1.0:
            after[0] += count
        elif size.full == 1.0 and size.remainder >= 0:
            after[size.remainder] += count


@kernel_part
def _clear_pairs(pieces: Pieces, which: int, number: int) -> None:
    """Set the numbers of pairs of `number` sizes to zero."""
    for x in range(number):
        pieces.pair[which, x, pieces.pair.shape[2] - 1] = 0.0
        for y in range(number):
            pieces.pair[which, x, y] = 0.0


@kernel_part
def _cut_pair(pieces: Pieces, k: int, x: int, y: int, here: int, free: bool, pair_next: bool) -> None:
    """Cut a piece of size `x` and the following piece of size `y`.

    Args:
        here: row of `Pieces.pair` with the pairs outside the cut.
        pair_next: if the cut is temporal, the second piece of `x` may follow its first one.
    """
    pair, there, none = pieces.pair, 1 - here, pieces.pair.shape[2] - 1
    count, one, temporal = pair[here, x, y], pieces.size[k, x], pieces.cut[k].temporal
    full, remainder, second = one.full, one.remainder, none  # index of the size that follows
    second_full, second_remainder = 0.0, -1
    if y != none:
        second_full, second_remainder = pieces.size[k, y].full, pieces.size[k, y].remainder
    if temporal or not free:
        if y != none:
            second = 0 if second_full > 0.0 else second_remainder
        if temporal and pair_next:
            if full > 1.0:
                second = 0
            elif full > 0.0 and remainder >= 0 and second != 0:
                larger = second == none
                if not larger:
                    larger = pieces.size[k + 1, remainder].iterations > pieces.size[k + 1, second].iterations
                second = remainder if larger else second
        pair[there, 0 if full > 0.0 else remainder, second] += count
    elif y == none:
        pair[there, 0, none] += count * full
        if remainder >= 0:
            pair[there, remainder, none] += count
    else:
        last = second_remainder if second_remainder >= 0 else none
        pair[there, 0, 0] += count * min(full, second_full)
        if full == second_full:
            if remainder >= 0:
                pair[there, remainder, last] += count
        elif full > second_full:
            pair[there, 0, last] += count
            pair[there, 0, none] += count * (full - second_full - 1.0)
            if remainder >= 0:
                pair[there, remainder, none] += count
        elif remainder >= 0:
            pair[there, remainder, 0] += count
