"""Temporal and spatial loops: their effect on a state (Lemma 1)."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_mappers.optimal.kernel.forwarding import count_forwarding, distinct_tiles
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
    ProblemArrays,
    SearchScratch,
    StateLayout,
)
from tilewright_mappers.optimal.kernel.subclusters import max_equal_tiles


@kernel_call
def end_fanout(problem: ProblemArrays, layout: StateLayout, numbers: Floats, integers: Ints, i: int) -> None:
    """Clear the unrolling of the current fanout, after which its neighbours forward nothing."""
    integers[i, STATUS] &= ~NO_LOOP_YET
    for k in range(layout.unrolling, layout.full_key):
        integers[i, k] = 1
    integers[i, layout.flags] &= (1 << FORWARDING_OPEN) - 1
    for t in range(len(problem.output)):
        forward_nothing(numbers, i, t)


@kernel_part
def grow_tile(problem: ProblemArrays, layout: StateLayout, integers: Ints, i: int, d: int, j: int) -> None:
    """Enlarge the tile by the trips with index j."""
    old, n = integers[i, layout.tile_index + d], problem.trip[d, j]
    new = tile_index(problem, d, (problem.tile_count[d, old] + n - 1) // n)
    integers[i, layout.tile_index + d] = new
    integers[i, layout.tile + d] *= n
    integers[i, SHAPE_CODE] += (new - old) * problem.stride[d]


@kernel_call
def add_temporal_loop(
    problem: ProblemArrays,
    layout: StateLayout,
    level: FanoutLevel,
    multicast: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    d: int,
    j: int,
    scratch: SearchScratch,
) -> None:
    """Add a temporal loop over d with the trips at index j (Lemma 1)."""
    n = float(problem.trip[d, j])
    e, tiles = extent(problem, layout, integers, i, d), float(tile_count(problem, layout, integers, i, d))
    tiles_after = np.ceil(tiles / n)
    no_loop_yet = (integers[i, STATUS] & NO_LOOP_YET) != 0
    last = tiles - (tiles_after - 1.0) * n  # trips in the last tile
    partial = problem.ragged and is_partial(problem, layout, integers, i, d)
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
            if count_forwarding(
                problem, layout, level, multicast, numbers, integers, i, t, d, problem.trip[d, j], scratch
            ):
                integers[i, layout.flags] |= UNDERCOUNTED
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
            times = _last_tile_fraction(problem, layout, integers, i, t, d, n, tiles_after, last, idle)
        numbers[i, at + DEFERRED] *= times
        numbers[i, at + DEMAND] *= times
        for p in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
            numbers[i, p] *= times
        set_status(integers, i, t, status)
        if status == NON_STATIONARY:
            commit(layout, numbers, integers, i, t, 0.0)
    grow_tile(problem, layout, integers, i, d, j)
    for t in range(len(problem.output)):
        if status_of(integers, i, t) == SLIDING and not _may_slide_back(problem, layout, integers, i, t):
            commit(layout, numbers, integers, i, t, 0.0)
    end_fanout(problem, layout, numbers, integers, i)


@kernel_call
def _last_tile_fraction(
    problem: ProblemArrays,
    layout: StateLayout,
    integers: Ints,
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
    share, tile = 0.0, float(integers[i, layout.tile + d])
    if last == 1.0 and tiles_after > 1.0:
        share = (problem.sizes[d] - (tiles_after - 1.0) * n * tile) / problem.sizes[d]
    elif last == 2.0 and idle:
        share = tile / problem.sizes[d]
    if share == 0.0:
        return 1.0
    integers[i, layout.flags] |= UNDERCOUNTED
    return float(1.0 - share + share / irrelevant_tile_count(problem, layout, integers, i, t))


@kernel_call
def commit(layout: StateLayout, numbers: Floats, integers: Ints, i: int, t: int, spared: float) -> None:
    """Commit the deferred costs of a tensor, less the fraction `spared`: all outer loops repeat them."""
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
def _may_slide_back(problem: ProblemArrays, layout: StateLayout, integers: Ints, i: int, t: int) -> bool:
    """Return whether an outer loop may move a sliding tile by no more than inner loops did."""
    open_loops, near = 0, integers[i, layout.total_shift + t] + integers[i, layout.first_shift + t]
    able = False
    for d in range(len(problem.sizes)):
        if problem.window_index[t, d] == integers[i, layout.window + t]:
            e = extent(problem, layout, integers, i, d)
            if e < problem.sizes[d]:
                open_loops += 1
                able |= e * problem.coefficient[t, d] <= near
    return bool(able or open_loops > 1)


@kernel_call
def unroll(
    problem: ProblemArrays,
    layout: StateLayout,
    level: FanoutLevel,
    multicast: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    d: int,
    j: int,
    k: int,
    forwarding: bool,
    scratch: SearchScratch,
) -> None:
    """Unroll d over slot k of the level, with the trips at index j (Lemma 1)."""
    n, dims = float(problem.trip[d, j]), len(problem.sizes)
    tiles = float(tile_count(problem, layout, integers, i, d))
    tiles_after, copies = np.ceil(tiles / n), n
    groups, short = tiles_after / tiles, False  # fraction of deliveries that remain, one per group of sub-clusters
    if problem.ragged:
        last = tiles - (tiles_after - 1.0) * n
        everywhere = layout.unrolled + len(problem.output)
        short = is_partial(problem, layout, integers, i, d)
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
    for t in range(len(problem.output)):
        if (
            not (problem.unmodelled[t] or problem.ragged_window[t])
            and problem.window_index[t, d] >= 0
            and multicast[k, t]
        ):
            numbers[i, FIRST_TENSOR + PER_TENSOR * t + DEMAND] /= distinct_tiles(
                problem, layout, level, multicast, integers, i, t, d, scratch
            )
    integers[i, USED + k] *= problem.trip[d, j]
    integers[i, layout.unrolling + k * dims + d] = problem.trip[d, j]
    integers[i, STATUS] |= NO_LOOP_YET
    for t in range(len(problem.output)):
        # first reads of a sub-cluster are a fraction of the tensor, by the words of its tile
        if problem.windowed_output[t]:
            share = words(problem, layout, integers, i, t)
            numbers[i, FIRST_TENSOR + PER_TENSOR * t + FIRST_READ_CREDIT] *= share
            for p in range(layout.first_reads[t], layout.first_reads[t + 1]):
                numbers[i, p] *= share
    grow_tile(problem, layout, integers, i, d, j)
    for t in range(len(problem.output)):
        if problem.windowed_output[t]:
            share = words(problem, layout, integers, i, t)
            numbers[i, FIRST_TENSOR + PER_TENSOR * t + FIRST_READ_CREDIT] /= share
            for p in range(layout.first_reads[t], layout.first_reads[t + 1]):
                numbers[i, p] /= share
    numbers[i, LEAK] *= copies
    for p in range(layout.port, layout.first_reads[0]):
        numbers[i, p] /= n
    for t in range(len(problem.output)):
        if problem.unmodelled[t]:
            continue
        at = FIRST_TENSOR + PER_TENSOR * t
        if problem.windowed_output[t] or not problem.relevant[t, d]:
            numbers[i, at + FIRST_READ_CREDIT] *= n
        for p in range(
            layout.first_reads[t],
            layout.first_reads[t + 1] if problem.relevant[t, d] and not problem.windowed_output[t] else 0,
        ):
            numbers[i, p] /= n
        if problem.window_index[t, d] >= 0 and multicast[k, t]:
            numbers[i, at + DEMAND] /= n
            if not problem.ragged_window[t]:
                numbers[i, at + DEMAND] *= distinct_tiles(problem, layout, level, multicast, integers, i, t, d, scratch)
        elif not problem.relevant[t, d] and multicast[k, t]:
            numbers[i, at + DEMAND] *= groups
            if short:
                integers[i, layout.flags] |= UNDERCOUNTED
        if forwarding and problem.window_index[t, d] >= 0 and not problem.ragged_window[t]:
            integers[i, layout.flags] |= 1 << (FORWARDING_OPEN + t)
        if not integers[i, layout.flags] >> (FORWARDING_OPEN + t) & 1:
            forward_nothing(numbers, i, t)
            continue
        part = 1.0 if problem.relevant[t, d] and problem.window_index[t, d] < 0 else 1.0 / n
        # one delivery serves sub-clusters with equal tiles (Lemma 8)
        if level.inner_storage[t] == NEVER and problem.window_index[t, d] >= 0:
            for e in range(dims):
                scratch.along[e] = scratch.within[e] = subclusters_along(layout, integers, i, e, dims)
            now = max_equal_tiles(problem, layout, integers, i, t, problem.window_index[t, d], scratch)
            scratch.along[d] /= n
            numbers[i, at + MIN_DEMAND] *= (
                max_equal_tiles(problem, layout, integers, i, t, problem.window_index[t, d], scratch) / now
            )
        else:
            numbers[i, at + MIN_DEMAND] *= part
        numbers[i, at + MIN_DEFERRED] *= part
        if level.inner_storage[t] == NEVER:
            numbers[i, at + MIN_DEFERRED] = numbers[i, at + DEFERRED]
        elif level.inner_storage[t] == ALWAYS and level.outermost:
            # every tile arrives; of at least two words per tile one may be rounded away
            count = total_tile_count(problem, layout, integers, i)
            for o in range(layout.unrolling, layout.full_key):
                count *= integers[i, o]
            least = numbers[i, at + DEFERRED] - 0.5 * count * level.fill_pj[t]
            numbers[i, at + MIN_DEFERRED] = max(numbers[i, at + MIN_DEFERRED], least)
