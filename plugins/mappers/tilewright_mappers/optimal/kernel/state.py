"""Columns of a state, and properties of its tile.

A state is one row of two arrays, `integers` and `numbers`. This is state 36 of the worked example in docs/optimal.md, a
matrix product of 4 x 4 x 4 with the tensors A, B, Z:

    integers    tiles M, N, K    STATUS          LOOP_MASK     USED
    36          4, 2, 1          A B Z stay      none          1

    numbers     COMMITTED    DEFERRED        DEMAND         FIRST_READ_CREDIT    BOUND
    36          512          64, 128, 32     32, 64, 16     64                   7168

4 * 2 * 1 = 8 tiles are left, of 1 x 4 words of A. So the demand of A is 8 * 4 = 32 words.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.structures import ProblemArrays, SearchContext, StateRows

SHAPE_CODE, LOOP_MASK, STATUS, USED = range(4)
"""Columns of the first integers: code of the shape, placed loops as bits, statuses, used sub-clusters."""
NO_LOOP_YET = 1 << 40
"""Bit of `STATUS`: no temporal loop since the last unrolling of this fanout."""
KEPT_INSIDE = 41
"""First bit of `STATUS` with one bit per tensor: the entry directly inside the next fanout keeps it (Lemma 3)."""
UNDERCOUNTED, ROUNDED_FIRST_READS, RELAXED, FORWARDING_OPEN = 1, 2, 4, 8
"""Flags of a state: undercounted (Lemma 13); first reads are rounded (Lemma 4).

From bit `FORWARDING_OPEN` on, one bit per tensor: forwarding is open (Lemma 14).
"""
COMMITTED, LEAK, CYCLES, BOUND, FIRST_TENSOR = range(5)
"""Columns of the first numbers: committed energy, leakage in pJ per cycle, cycles of a tile, lower bound."""
DEFERRED, DEMAND, FIRST_READ_CREDIT, TILE_EQUIVALENTS, OVERLAP, MIN_DEFERRED, MIN_DEMAND, PER_TENSOR = range(8)
"""Offsets of the numbers per tensor, and their count.

A sliding tensor has tile equivalents (the words of its steps, in tiles) and the overlap of its steps.
The minima are the deferred energy and the demand if neighbours forward words (Lemma 14).

Energies and words are those of the whole problem, as if every outer loop repeated them. Credits are
normalised for relevant outer loops only.
"""


@kernel_part
def status_of(integers: Ints, i: int, t: int) -> int:
    """Return the status of a tensor."""
    return int(integers[i, STATUS] >> (2 * t) & 3)


@kernel_part
def set_status(integers: Ints, i: int, t: int, status: int) -> None:
    """Set the status of a tensor."""
    integers[i, STATUS] = (integers[i, STATUS] & ~(3 << (2 * t))) | (status << (2 * t))


@kernel_part
def forward_nothing(numbers: Floats, i: int, t: int) -> None:
    """Set the lower bounds of a tensor to its energy and demand: its neighbours forward nothing."""
    at = FIRST_TENSOR + PER_TENSOR * t
    numbers[i, at + MIN_DEFERRED], numbers[i, at + MIN_DEMAND] = numbers[i, at + DEFERRED], numbers[i, at + DEMAND]


@kernel_part
def extent(context: SearchContext, states: StateRows, i: int, d: int) -> int:
    """Return the iterations of a full tile."""
    problem, layout = context.problem, context.layout
    integers = states.integers
    return int(min(integers[i, layout.tile + d], problem.sizes[d]))


@kernel_part
def fanout_extent(context: SearchContext, states: StateRows, i: int, d: int) -> int:
    """Return the iterations of the tile of all sub-clusters of the current fanout, without the loops outside it."""
    return int(min(states.integers[i, context.layout.fanout_tile + d], context.problem.sizes[d]))


@kernel_part
def tile_count(context: SearchContext, states: StateRows, i: int, d: int) -> int:
    """Return the number of tiles of a dimension."""
    problem, layout = context.problem, context.layout
    integers = states.integers
    return int(problem.tile_count[d, integers[i, layout.tile_index + d]])


@kernel_part
def total_tile_count(context: SearchContext, states: StateRows, i: int) -> float:
    """Return the number of tiles of the whole problem."""
    problem = context.problem
    result = 1.0
    for d in range(len(problem.sizes)):
        result *= tile_count(context, states, i, d)
    return result


@kernel_part
def subclusters_along(context: SearchContext, states: StateRows, i: int, d: int, dims: int) -> float:
    """Return the sub-clusters of the current fanout along a dimension."""
    layout = context.layout
    integers = states.integers
    result = 1.0
    for at in range(layout.unrolling + d, layout.full_key, dims):
        result *= integers[i, at]
    return result


@kernel_part
def tile_index(problem: ProblemArrays, d: int, left: int) -> int:
    """Return the index of a tile count."""
    first, last = 0, problem.tile_count.shape[1] - 1
    while first < last:
        middle = (first + last) // 2
        if problem.tile_count[d, middle] > left:
            first = middle + 1
        else:
            last = middle
    return first


@kernel_part
def is_partial(context: SearchContext, states: StateRows, i: int, d: int) -> bool:
    """Return whether the last tile is smaller than the others."""
    problem, layout = context.problem, context.layout
    integers = states.integers
    left = problem.tile_count[d, integers[i, layout.tile_index + d]]
    return bool(left > 1 and left * integers[i, layout.tile + d] != problem.sizes[d])


@kernel_call
def words(context: SearchContext, states: StateRows, i: int, t: int) -> float:
    """Return the values of the tile's bounding box."""
    problem = context.problem
    volume = side = 1.0
    for p in range(problem.term_start[t], problem.term_start[t + 1]):
        side += problem.term_factor[p] * (extent(context, states, i, problem.term_dimension[p]) - 1.0)
        if problem.term_last[p]:
            volume *= side
            side = 1.0
    return volume


@kernel_call
def stored_words(context: SearchContext, states: StateRows, i: int, t: int, distinct: bool) -> float:
    """Return the values that a memory stores of the tile: `Memory.tile_words`."""
    problem = context.problem
    if not distinct:
        return words(context, states, i, t)
    volume = side = pairs = repeated = 1.0
    for p in range(problem.term_start[t], problem.term_start[t + 1]):
        tile = float(extent(context, states, i, problem.term_dimension[p]))
        side += problem.term_factor[p] * (tile - 1.0)
        pairs *= tile
        repeated *= max(tile - problem.term_period[p], 0.0)
        if problem.term_last[p]:
            volume *= pairs - repeated if problem.term_period[p] > 0.0 else side
            side = pairs = repeated = 1.0
    return volume


@kernel_call
def all_words(context: SearchContext, states: StateRows, i: int, t: int) -> float:
    """Return the values of the bounding boxes of all tiles of a tensor; 0 for ragged windows.

    Short last tiles count with their own size.
    """
    problem = context.problem
    result = tiles = 1.0
    if problem.ragged_window[t]:
        return 0.0
    if not problem.ragged:
        for d in range(len(problem.sizes)):
            if problem.relevant[t, d]:
                tiles *= tile_count(context, states, i, d)
        return tiles * words(context, states, i, t)
    side, first = 1.0, problem.term_start[t]
    for p in range(problem.term_start[t], problem.term_start[t + 1]):
        tiles *= tile_count(context, states, i, problem.term_dimension[p])
        side -= problem.term_factor[p]
        if problem.term_last[p]:
            total = side * tiles
            for q in range(first, p + 1):
                d = problem.term_dimension[q]
                total += problem.term_factor[q] * float(problem.sizes[d]) * (tiles / tile_count(context, states, i, d))
            result *= total
            tiles, side, first = 1.0, 1.0, p + 1
    return result


@kernel_part
def irrelevant_tile_count(context: SearchContext, states: StateRows, i: int, t: int) -> float:
    """Return the number of tiles along the irrelevant dimensions."""
    problem = context.problem
    result = 1.0
    for d in range(len(problem.sizes)):
        if not problem.relevant[t, d]:
            result *= tile_count(context, states, i, d)
    return result


@kernel_part
def union_words(context: SearchContext, states: StateRows, i: int, t: int) -> float:
    """Return the values that all tiles cover together, the words of Lemma 10."""
    problem, layout = context.problem, context.layout
    integers = states.integers
    result, at = 1.0 if problem.min_distinct[t] > 0.0 else 0.0, 0
    for p in range(problem.term_start[t], problem.term_start[t + 1]):
        at += integers[i, layout.tile_index + problem.term_dimension[p]] * problem.union_stride[p]
        if problem.term_last[p]:
            result *= problem.union_values[problem.union_start[p] + at]
            at = 0
    return result


@kernel_call
def max_spared(context: SearchContext, states: StateRows, i: int, t: int) -> float:
    """Return the part of a sweep that outer loops may spare a sliding tensor at most (Lemma 9)."""
    problem, layout, integers = context.problem, context.layout, states.integers
    at, r, tiles, spared = FIRST_TENSOR + PER_TENSOR * t, integers[i, layout.window + t], 1.0, 0.0
    first, total = integers[i, layout.first_shift + t], integers[i, layout.total_shift + t]
    open_loops, shift = open_loops_of(context, states, i, t, r, -1, 1)
    for d in range(len(problem.sizes)):
        if problem.window_index[t, d] == r:
            tiles *= np.ceil(problem.sizes[d] / extent(context, states, i, d))
    if open_loops > 1 or open_loops == 1 and shift <= total:
        spared = 1.0
    elif open_loops == 1 and shift == total + first:
        spared = states.numbers[i, at + OVERLAP]
    return float((1.0 - 1.0 / tiles) * spared / states.numbers[i, at + TILE_EQUIVALENTS])


@kernel_call
def open_loops_of(context: SearchContext, states: StateRows, i: int, t: int, r: int, d: int, n: int) -> tuple[int, int]:
    """Return how many dimensions of window r have tiles left after a loop over d with n trips, and the shift of the last."""
    problem, count, shift = context.problem, 0, 0
    for o in range(len(problem.sizes)):
        tile = extent(context, states, i, o) * (n if o == d else 1)
        if problem.window_index[t, o] == r and tile < problem.sizes[o]:
            count += 1
            shift = tile * problem.coefficient[t, o]
    return count, int(shift)
