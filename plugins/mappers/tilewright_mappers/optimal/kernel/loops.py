"""Temporal and spatial loops: their effect on a state (Lemma 1).

The loop M x 4 turns state 36 of the worked example in docs/optimal.md into state 45. M moves A and Z, and B stays.

    state    tiles M, N, K    committed    deferred A, B, Z    demand A, B, Z
    36       4, 2, 1          512          64, 128, 32         32, 64, 16
    45       1, 2, 1          608          0, 32, 0            32, 16, 16

A and Z move at each trip, so their deferred energy is committed: 512 + 64 + 32 = 608. B moves once in 4 trips: 128 / 4.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.forwarding import (
    NOTHING,
    UNDECIDED,
    count_forwarding,
    count_later,
    distinct_tiles,
)
from tilewright_mappers.optimal.kernel.state import (
    COMMITTED,
    CYCLES,
    DEFERRED,
    DEMAND,
    FIRST_READ_CREDIT,
    FIRST_TENSOR,
    FORWARDING_OPEN,
    LEAK,
    MIN_DEFERRED,
    MIN_DEMAND,
    NO_LOOP_YET,
    OVERLAP,
    PER_TENSOR,
    SHAPE_CODE,
    STATUS,
    TILE_EQUIVALENTS,
    UNDERCOUNTED,
    USED,
    extent,
    forward_nothing,
    irrelevant_tile_count,
    is_partial,
    max_spared,
    set_status,
    status_of,
    subclusters_along,
    tile_count,
    tile_index,
    total_tile_count,
    words,
)
from tilewright_mappers.optimal.kernel.structures import (
    ALWAYS,
    NEVER,
    NON_STATIONARY,
    SLIDING,
    STATIONARY,
    FanoutLevel,
    SearchContext,
    StateRows,
)
from tilewright_mappers.optimal.kernel.subclusters import max_equal_tiles


@kernel_call
def end_fanout(context: SearchContext, states: StateRows, i: int, undecided: int) -> None:
    """Clear the unrolling of the current fanout, after which its neighbours forward nothing.

    Args:
        undecided: bits of tensors on which outer loops decide (`count_later`).
    """
    problem, layout = context.problem, context.layout
    numbers, integers = states.numbers, states.integers
    integers[i, STATUS] &= ~NO_LOOP_YET
    if not undecided:
        for k in range(layout.unrolling, layout.full_key):
            integers[i, k] = 1
        for d in range(len(problem.sizes)):
            integers[i, layout.fanout_tile + d] = integers[i, layout.tile + d]
    integers[i, layout.flags] = integers[i, layout.flags] & (1 << FORWARDING_OPEN) - 1 | undecided << FORWARDING_OPEN
    for t in range(len(problem.output)):
        if not undecided >> t & 1:
            forward_nothing(numbers, i, t)


@kernel_part
def grow_tile(context: SearchContext, states: StateRows, i: int, d: int, j: int) -> None:
    """Enlarge the tile by the trips with index j."""
    problem, layout = context.problem, context.layout
    integers = states.integers
    old, n = integers[i, layout.tile_index + d], problem.trip[d, j]
    new = tile_index(problem, d, (problem.tile_count[d, old] + n - 1) // n)
    integers[i, layout.tile_index + d] = new
    integers[i, layout.tile + d] *= n
    integers[i, SHAPE_CODE] += (new - old) * problem.stride[d]


@kernel_call
def add_temporal_loop(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, d: int, j: int) -> None:
    """Add a temporal loop over d with the trips at index j (Lemma 1)."""
    problem, layout = context.problem, context.layout
    numbers, integers = states.numbers, states.integers
    n = float(problem.trip[d, j])
    e, tiles = extent(context, states, i, d), float(tile_count(context, states, i, d))
    tiles_after = np.ceil(tiles / n)
    no_loop_yet = (integers[i, STATUS] & NO_LOOP_YET) != 0
    last = tiles - (tiles_after - 1.0) * n  # trips in the last tile
    partial = problem.ragged and is_partial(context, states, i, d)
    undecided = 0 if no_loop_yet else count_later(context, level, states, i, d, problem.trip[d, j])
    if not problem.ragged:
        numbers[i, CYCLES] *= n
    elif tiles_after == 1.0:
        numbers[i, CYCLES] *= tiles - 1.0 + numbers[i, layout.last_steps + d]
        numbers[i, layout.last_steps + d] = 1.0
    else:
        numbers[i, CYCLES] *= n
        numbers[i, layout.last_steps + d] = (last - 1.0 + numbers[i, layout.last_steps + d]) / n
    for t in range(len(problem.output)):
        if problem.unmodelled[t]:
            continue
        at, status, moved, rank = (
            FIRST_TENSOR + PER_TENSOR * t,
            status_of(integers, i, t),
            problem.relevant[t, d],
            problem.window_index[t, d],
        )
        # some sub-clusters are idle in the last trip
        idle = partial and integers[i, layout.unrolled + t] >> d & 1 > 0
        if no_loop_yet and rank >= 0 and integers[i, layout.flags] >> (FORWARDING_OPEN + t) & 1:
            result = count_forwarding(context, level, states, i, t, d, problem.trip[d, j])
            integers[i, layout.flags] |= UNDERCOUNTED * (result != NOTHING)
            undecided |= (result == UNDECIDED) << t
        if status == NON_STATIONARY:
            continue
        times, shift = 1.0, e * problem.coefficient[t, d]  # `times`: words as a fraction of one tile per step
        if status == STATIONARY and not moved:
            times = 1.0 / n if idle else tiles_after / tiles
            integers[i, layout.flags] |= UNDERCOUNTED * idle
        elif status == STATIONARY and rank >= 0:
            side = numbers[i, layout.window_side + rank]
            overlap = max(0.0, side - shift) / side
            times = (1.0 + (n - 1.0) * (1.0 - overlap)) / n
            numbers[i, at + TILE_EQUIVALENTS], numbers[i, at + OVERLAP] = times * n, overlap
            integers[i, layout.first_shift + t] = integers[i, layout.total_shift + t] = shift
            integers[i, layout.window + t] = rank
            status = SLIDING
        elif status == STATIONARY:
            status = NON_STATIONARY
        elif moved and rank == integers[i, layout.window + t]:
            overlap, rho = 0.0, numbers[i, at + TILE_EQUIVALENTS]
            if shift == integers[i, layout.total_shift + t]:
                overlap = 1.0
            elif shift == integers[i, layout.total_shift + t] + integers[i, layout.first_shift + t]:
                overlap = numbers[i, at + OVERLAP]
            times = 1.0 - (1.0 - 1.0 / n) * overlap / rho
            numbers[i, at + TILE_EQUIVALENTS] = rho * times * n
            integers[i, layout.total_shift + t] += shift
        elif moved:
            status = NON_STATIONARY
        else:
            numbers[i, at + TILE_EQUIVALENTS] *= n
        if moved and problem.ragged:
            times = _last_tile_fraction(context, states, i, t, d, n, tiles_after, last, idle)
        numbers[i, at + DEFERRED] *= times
        numbers[i, at + DEMAND] *= times
        for p in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
            numbers[i, p] *= times
        set_status(integers, i, t, status)
        if status == NON_STATIONARY:
            commit(context, states, i, t, 0.0)
    grow_tile(context, states, i, d, j)
    for t in range(len(problem.output)):
        at, sure = FIRST_TENSOR + PER_TENSOR * t, numbers[i, FIRST_TENSOR + PER_TENSOR * t + MIN_DEFERRED]
        open_still = undecided >> t & 1 > 0 and no_loop_yet
        pending = numbers[i, at + DEFERRED] - sure if open_still else 0.0
        status = status_of(integers, i, t)
        if status == SLIDING and max_spared(context, states, i, t) == 0.0:
            numbers[i, at + DEFERRED] -= pending
            commit(context, states, i, t, 0.0)
            numbers[i, at + DEFERRED] = pending
        elif status != NON_STATIONARY and open_still:  # outer loops may spare whole tiles, so the minima hold
            numbers[i, at + DEFERRED], numbers[i, at + DEMAND] = sure, numbers[i, at + MIN_DEMAND]
            undecided &= ~(1 << t)
    end_fanout(context, states, i, undecided)


@kernel_call
def _last_tile_fraction(
    context: SearchContext,
    states: StateRows,
    i: int,
    t: int,
    d: int,
    n: float,
    tiles_after: float,
    last: float,
    idle: bool,
) -> float:
    """Return the minimum fraction of words that a temporal loop of n trips brings.

    A single trip in the last tile moves nothing. Two move nothing where a sub-cluster is idle in
    the second.
    """
    problem, layout = context.problem, context.layout
    integers = states.integers
    share, tile = 0.0, float(integers[i, layout.tile + d])
    if last == 1.0 and tiles_after > 1.0:
        share = (problem.sizes[d] - (tiles_after - 1.0) * n * tile) / problem.sizes[d]
    elif last == 2.0 and idle:
        share = tile / problem.sizes[d]
    if share == 0.0:
        return 1.0
    integers[i, layout.flags] |= UNDERCOUNTED
    return float(1.0 - share + share / irrelevant_tile_count(context, states, i, t))


@kernel_call
def commit(context: SearchContext, states: StateRows, i: int, t: int, spared: float) -> None:
    """Commit the deferred costs of a tensor, less the fraction `spared`: all outer loops repeat them."""
    layout = context.layout
    numbers, integers = states.numbers, states.integers
    at = FIRST_TENSOR + PER_TENSOR * t
    set_status(integers, i, t, NON_STATIONARY)
    numbers[i, COMMITTED] += numbers[i, at + DEFERRED] * (1.0 - spared)
    numbers[i, at + DEFERRED] = numbers[i, at + MIN_DEFERRED] = numbers[i, at + TILE_EQUIVALENTS] = numbers[
        i, at + OVERLAP
    ] = 0.0
    integers[i, layout.first_shift + t] = integers[i, layout.total_shift + t] = integers[i, layout.window + t] = 0
    for p in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
        numbers[i, layout.port + layout.port_of[p]] += numbers[i, p] * (1.0 - spared)
        numbers[i, p] = 0.0


@kernel_call
def unroll(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, d: int, j: int, k: int) -> None:
    """Unroll d over slot k of the level, with the trips at index j (Lemma 1)."""
    problem, layout = context.problem, context.layout
    numbers, integers = states.numbers, states.integers
    n, dims = float(problem.trip[d, j]), len(problem.sizes)
    short = problem.ragged and is_partial(context, states, i, d)
    copies, groups = _unroll_last_tile(context, states, i, d, n)
    for t in range(len(problem.output)):
        if problem.unmodelled[t] or problem.ragged_window[t]:
            continue
        if problem.window_index[t, d] >= 0 and level.multicast[k, t]:
            numbers[i, FIRST_TENSOR + PER_TENSOR * t + DEMAND] /= distinct_tiles(context, level, states, i, t, d)
    integers[i, USED + k] *= problem.trip[d, j]
    integers[i, layout.unrolling + k * dims + d] = problem.trip[d, j]
    integers[i, STATUS] |= NO_LOOP_YET
    # first reads of a sub-cluster are a fraction of the tensor, by the words of its tile
    _scale_first_reads(context, states, i, False)
    grow_tile(context, states, i, d, j)
    integers[i, layout.fanout_tile + d] = integers[i, layout.tile + d]
    _scale_first_reads(context, states, i, True)
    numbers[i, LEAK] *= copies
    for p in range(layout.port, layout.first_reads[0]):
        numbers[i, p] /= n
    for t in range(len(problem.output)):
        if problem.unmodelled[t]:
            continue
        at, windowed = FIRST_TENSOR + PER_TENSOR * t, problem.window_index[t, d] >= 0
        if problem.windowed_output[t] or not problem.relevant[t, d]:
            numbers[i, at + FIRST_READ_CREDIT] *= n
        else:
            for p in range(layout.first_reads[t], layout.first_reads[t + 1]):
                numbers[i, p] /= n
        if windowed and level.multicast[k, t]:
            numbers[i, at + DEMAND] /= n
            if not problem.ragged_window[t]:
                numbers[i, at + DEMAND] *= distinct_tiles(context, level, states, i, t, d)
        elif not problem.relevant[t, d] and level.multicast[k, t]:
            numbers[i, at + DEMAND] *= groups
            if short:
                integers[i, layout.flags] |= UNDERCOUNTED
        if context.costs.forwarding and windowed and not problem.ragged_window[t]:
            integers[i, layout.flags] |= 1 << (FORWARDING_OPEN + t)
        if integers[i, layout.flags] >> (FORWARDING_OPEN + t) & 1:
            _lower_minima(context, level, states, i, t, d, n)
        else:
            forward_nothing(numbers, i, t)


@kernel_part
def _unroll_last_tile(context: SearchContext, states: StateRows, i: int, d: int, n: float) -> tuple[float, float]:
    """Update the steps of the last tile for an unrolling of n trips.

    Returns:
        Minimum sub-clusters in use; the fraction of deliveries that remain, one per group of
        sub-clusters.
    """
    problem, layout = context.problem, context.layout
    numbers, integers = states.numbers, states.integers
    tiles = float(tile_count(context, states, i, d))
    tiles_after = np.ceil(tiles / n)
    if not problem.ragged:
        return n, tiles_after / tiles
    copies, groups, last = n, tiles_after / tiles, tiles - (tiles_after - 1.0) * n
    everywhere = layout.unrolled + len(problem.output)
    short = is_partial(context, states, i, d)
    if short and integers[i, everywhere] >> d & 1:
        # inner sub-clusters are idle in the last tile
        integers[i, layout.flags] |= UNDERCOUNTED
        copies = n - 1.0 if tiles_after == 1.0 else n
    if tiles_after == 1.0 or last > 1.0:
        numbers[i, layout.last_steps + d] = 1.0
    if short and last == 1.0:  # the last tile may have fewer words than the others
        groups = (tiles_after - 1.0) / (tiles - 1.0)
    for place in range(layout.unrolled, everywhere + 1):
        integers[i, place] |= 1 << d
    numbers[i, layout.port - 1] *= n * tiles_after / tiles
    return copies, groups


@kernel_part
def _scale_first_reads(context: SearchContext, states: StateRows, i: int, divide: bool) -> None:
    """Multiply or divide the first reads of outputs with windows by the words of their tiles."""
    problem, layout, numbers = context.problem, context.layout, states.numbers
    for t in range(len(problem.output)):
        if problem.windowed_output[t]:
            at, values = FIRST_TENSOR + PER_TENSOR * t + FIRST_READ_CREDIT, words(context, states, i, t)
            numbers[i, at] = numbers[i, at] / values if divide else numbers[i, at] * values
            for p in range(layout.first_reads[t], layout.first_reads[t + 1]):
                numbers[i, p] = numbers[i, p] / values if divide else numbers[i, p] * values


@kernel_part
def _lower_minima(
    context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, d: int, n: float
) -> None:
    """Lower the minima of demand and energy for an unrolling of n trips (Lemma 14)."""
    problem, layout, scratch = context.problem, context.layout, context.scratch
    numbers, at = states.numbers, FIRST_TENSOR + PER_TENSOR * t
    dims, r = len(problem.sizes), problem.window_index[t, d]
    part = 1.0 if problem.relevant[t, d] and r < 0 else 1.0 / n
    # one delivery serves sub-clusters with equal tiles (Lemma 8)
    if level.inner_storage[t] == NEVER and r >= 0:
        for e in range(dims):
            scratch.along[e] = scratch.within[e] = subclusters_along(context, states, i, e, dims)
        now = max_equal_tiles(context, states, i, t, r)
        scratch.along[d] /= n
        numbers[i, at + MIN_DEMAND] *= max_equal_tiles(context, states, i, t, r) / now
    else:
        numbers[i, at + MIN_DEMAND] *= part
    numbers[i, at + MIN_DEFERRED] *= part
    if level.inner_storage[t] == NEVER:
        numbers[i, at + MIN_DEFERRED] = numbers[i, at + DEFERRED]
    elif level.inner_storage[t] == ALWAYS and level.outermost:
        # every tile arrives; of at least two words per tile one may be rounded away
        count = total_tile_count(context, states, i)
        for o in range(layout.unrolling, layout.full_key):
            count *= states.integers[i, o]
        least = numbers[i, at + DEFERRED] - 0.5 * count * level.fill_pj[t]
        numbers[i, at + MIN_DEFERRED] = max(numbers[i, at + MIN_DEFERRED], least)
