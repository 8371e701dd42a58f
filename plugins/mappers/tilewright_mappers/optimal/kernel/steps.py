"""Temporal and spatial loops: their effect on a state (Lemma 1)."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_mappers.optimal.kernel.grid import alike
from tilewright_mappers.optimal.kernel.links import distinct, pass_on
from tilewright_mappers.optimal.kernel.state import (
    CODE,
    CREDIT,
    CYCLES,
    EACH,
    FIRST,
    FRESH,
    INEXACT,
    LEAK,
    LEAST_OWED,
    LEAST_PENDING,
    LINKED,
    OVERLAP,
    OWED,
    PENDING,
    SETTLED,
    STATUS,
    TILES,
    USED,
    extent,
    is_partial,
    least_is_all,
    left_of,
    place_of,
    set_status,
    status_of,
    still_left,
    tiles_left,
    used_along,
    words,
)
from tilewright_mappers.optimal.kernel.tables import ALWAYS, DEAD, NEVER, SLIDING, STILL, Layout, Level, Shape, Work


@kernel_call
def forget_unrolling(shape: Shape, layout: Layout, numbers: Floats, integers: Ints, i: int) -> None:
    """Clear the unrolling of the current fanout, after which its neighbours forward nothing."""
    integers[i, STATUS] &= ~FRESH
    for k in range(layout.conf, layout.keys):
        integers[i, k] = 1
    integers[i, layout.flag] &= (1 << LINKED) - 1
    for t in range(len(shape.output)):
        least_is_all(numbers, i, t)


@kernel_part
def advance(shape: Shape, layout: Layout, integers: Ints, i: int, d: int, j: int) -> None:
    """Enlarge the tile by the trips with index j."""
    old, n = integers[i, layout.left + d], shape.trip[d, j]
    new = place_of(shape, d, (shape.left[d, old] + n - 1) // n)
    integers[i, layout.left + d] = new
    integers[i, layout.tile + d] *= n
    integers[i, CODE] += (new - old) * shape.stride[d]


@kernel_call
def step(
    shape: Shape,
    layout: Layout,
    level: Level,
    shared: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    d: int,
    j: int,
    work: Work,
) -> None:
    """Add a temporal loop over d with the trips at index j (Lemma 1)."""
    n = float(shape.trip[d, j])
    e, left = extent(shape, layout, integers, i, d), float(left_of(shape, layout, integers, i, d))
    after = np.ceil(left / n)
    fresh = (integers[i, STATUS] & FRESH) != 0
    last = left - (after - 1.0) * n  # trips in the last tile
    partial = shape.ragged and is_partial(shape, layout, integers, i, d)
    if not shape.ragged:
        numbers[i, CYCLES] *= n
    elif after == 1.0:
        numbers[i, CYCLES] *= left - 1.0 + numbers[i, layout.last + d]
        numbers[i, layout.last + d] = 1.0
    else:
        numbers[i, CYCLES] *= n
        numbers[i, layout.last + d] = (last - 1.0 + numbers[i, layout.last + d]) / n
    for t in range(len(shape.output)):
        if shape.odd[t]:
            continue
        at, status, moved, rank = FIRST + EACH * t, status_of(integers, i, t), shape.moves[t, d], shape.rank[t, d]
        # some sub-clusters are idle in the last trip
        idle = partial and integers[i, layout.unrolled + t] >> d & 1 > 0
        if fresh and rank >= 0 and integers[i, layout.flag] >> (LINKED + t) & 1:
            if pass_on(shape, layout, level, shared, numbers, integers, i, t, d, shape.trip[d, j], work):
                integers[i, layout.flag] |= INEXACT
        if status == DEAD:
            continue
        times, shift = 1.0, e * shape.coefficient[t, d]  # `times`: words as a fraction of one tile per step
        if status == STILL and not moved:
            times = 1.0 / n if idle else after / left
            integers[i, layout.flag] |= INEXACT * idle
        elif status == STILL and rank >= 0:
            side = numbers[i, layout.side + rank]
            overlap = max(0.0, side - shift) / side
            times = (1.0 + (n - 1.0) * (1.0 - overlap)) / n
            numbers[i, at + TILES], numbers[i, at + OVERLAP] = times * n, overlap
            integers[i, layout.usual + t] = integers[i, layout.inner + t] = shift
            integers[i, layout.window + t] = rank
            status = SLIDING
        elif status == STILL:
            status = DEAD
        elif moved and rank == integers[i, layout.window + t]:
            overlap, rho = 0.0, numbers[i, at + TILES]
            if shift == integers[i, layout.inner + t]:
                overlap = 1.0
            elif shift == integers[i, layout.inner + t] + integers[i, layout.usual + t]:
                overlap = numbers[i, at + OVERLAP]
            times = 1.0 - (1.0 - 1.0 / n) * overlap / rho
            numbers[i, at + TILES] = rho * times * n
            integers[i, layout.inner + t] += shift
        elif moved:
            status = DEAD
        else:
            numbers[i, at + TILES] *= n
        if moved and shape.ragged:
            times = _moved_in_part(shape, layout, integers, i, t, d, n, after, last, idle)
        numbers[i, at + PENDING] *= times
        numbers[i, at + OWED] *= times
        for p in range(layout.pending[t], layout.pending[t + 1]):
            numbers[i, p] *= times
        set_status(integers, i, t, status)
        if status == DEAD:
            settle(layout, numbers, integers, i, t, 0.0)
    advance(shape, layout, integers, i, d, j)
    for t in range(len(shape.output)):
        if status_of(integers, i, t) == SLIDING and not _may_return(shape, layout, integers, i, t):
            settle(layout, numbers, integers, i, t, 0.0)
    forget_unrolling(shape, layout, numbers, integers, i)


@kernel_call
def _moved_in_part(
    shape: Shape,
    layout: Layout,
    integers: Ints,
    i: int,
    t: int,
    d: int,
    n: float,
    after: float,
    last: float,
    idle: bool,
) -> float:
    """Return the minimum fraction of words that a temporal loop of n trips brings.

    A single trip in the last tile moves nothing. Two move nothing where a sub-cluster is idle in
    the second.
    """
    share, tile = 0.0, float(integers[i, layout.tile + d])
    if last == 1.0 and after > 1.0:
        share = (shape.sizes[d] - (after - 1.0) * n * tile) / shape.sizes[d]
    elif last == 2.0 and idle:
        share = tile / shape.sizes[d]
    if share == 0.0:
        return 1.0
    integers[i, layout.flag] |= INEXACT
    return float(1.0 - share + share / still_left(shape, layout, integers, i, t))


@kernel_call
def settle(layout: Layout, numbers: Floats, integers: Ints, i: int, t: int, spared: float) -> None:
    """Commit the deferred costs of a tensor, less the fraction `spared`: all outer loops repeat them."""
    at = FIRST + EACH * t
    set_status(integers, i, t, DEAD)
    numbers[i, SETTLED] += numbers[i, at + PENDING] * (1.0 - spared)
    numbers[i, at + PENDING] = numbers[i, at + LEAST_PENDING] = numbers[i, at + TILES] = numbers[i, at + OVERLAP] = 0.0
    integers[i, layout.usual + t] = integers[i, layout.inner + t] = integers[i, layout.window + t] = 0
    for p in range(layout.pending[t], layout.pending[t + 1]):
        numbers[i, layout.port + layout.through[p]] += numbers[i, p] * (1.0 - spared)
        numbers[i, p] = 0.0


@kernel_call
def _may_return(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> bool:
    """Return whether an outer loop may move a sliding tile by no more than inner loops did."""
    left, near = 0, integers[i, layout.inner + t] + integers[i, layout.usual + t]
    able = False
    for d in range(len(shape.sizes)):
        if shape.rank[t, d] == integers[i, layout.window + t]:
            e = extent(shape, layout, integers, i, d)
            if e < shape.sizes[d]:
                left += 1
                able |= e * shape.coefficient[t, d] <= near
    return bool(able or left > 1)


@kernel_call
def unroll(
    shape: Shape,
    layout: Layout,
    level: Level,
    shared: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    d: int,
    j: int,
    k: int,
    links: bool,
    work: Work,
) -> None:
    """Unroll d over slot k of the level, with the trips at index j (Lemma 1)."""
    n, dims = float(shape.trip[d, j]), len(shape.sizes)
    left = float(left_of(shape, layout, integers, i, d))
    after, copies = np.ceil(left / n), n
    groups, short = after / left, False  # fraction of deliveries that remain, one per group of sub-clusters
    if shape.ragged:
        last = left - (after - 1.0) * n
        everywhere = layout.unrolled + len(shape.output)
        short = is_partial(shape, layout, integers, i, d)
        if short and integers[i, everywhere] >> d & 1:
            # inner sub-clusters are idle in the last tile
            integers[i, layout.flag] |= INEXACT
            copies = n - 1.0 if after == 1.0 else n
        if after == 1.0 or last > 1.0:
            numbers[i, layout.last + d] = 1.0
        if short and last == 1.0:  # the last tile may have fewer words than the others
            groups = (after - 1.0) / (left - 1.0)
        for place in range(layout.unrolled, everywhere + 1):
            integers[i, place] |= 1 << d
        numbers[i, layout.port - 1] *= n * after / left
    for t in range(len(shape.output)):
        if not (shape.odd[t] or shape.blind[t]) and shape.rank[t, d] >= 0 and shared[k, t]:
            numbers[i, FIRST + EACH * t + OWED] /= distinct(shape, layout, level, shared, integers, i, t, d, work)
    integers[i, USED + k] *= shape.trip[d, j]
    integers[i, layout.conf + k * dims + d] = shape.trip[d, j]
    integers[i, STATUS] |= FRESH
    for t in range(len(shape.output)):
        # first reads of a sub-cluster are a fraction of the tensor, by the words of its tile
        if shape.vague[t]:
            share = words(shape, layout, integers, i, t)
            numbers[i, FIRST + EACH * t + CREDIT] *= share
            for p in range(layout.credit[t], layout.credit[t + 1]):
                numbers[i, p] *= share
    advance(shape, layout, integers, i, d, j)
    for t in range(len(shape.output)):
        if shape.vague[t]:
            share = words(shape, layout, integers, i, t)
            numbers[i, FIRST + EACH * t + CREDIT] /= share
            for p in range(layout.credit[t], layout.credit[t + 1]):
                numbers[i, p] /= share
    numbers[i, LEAK] *= copies
    for p in range(layout.port, layout.credit[0]):
        numbers[i, p] /= n
    for t in range(len(shape.output)):
        if shape.odd[t]:
            continue
        at = FIRST + EACH * t
        if shape.vague[t] or not shape.moves[t, d]:
            numbers[i, at + CREDIT] *= n
        for p in range(layout.credit[t], layout.credit[t + 1] if shape.moves[t, d] and not shape.vague[t] else 0):
            numbers[i, p] /= n
        if shape.rank[t, d] >= 0 and shared[k, t]:
            numbers[i, at + OWED] /= n
            if not shape.blind[t]:
                numbers[i, at + OWED] *= distinct(shape, layout, level, shared, integers, i, t, d, work)
        elif not shape.moves[t, d] and shared[k, t]:
            numbers[i, at + OWED] *= groups
            if short:
                integers[i, layout.flag] |= INEXACT
        if links and shape.rank[t, d] >= 0 and not shape.blind[t]:
            integers[i, layout.flag] |= 1 << (LINKED + t)
        if not integers[i, layout.flag] >> (LINKED + t) & 1:
            least_is_all(numbers, i, t)
            continue
        part = 1.0 if shape.moves[t, d] and shape.rank[t, d] < 0 else 1.0 / n
        # one delivery serves sub-clusters with equal tiles (Lemma 8)
        if level.kept[t] == NEVER and shape.rank[t, d] >= 0:
            for e in range(dims):
                work.along[e] = work.within[e] = used_along(layout, integers, i, e, dims)
            now = alike(shape, layout, integers, i, t, shape.rank[t, d], work)
            work.along[d] /= n
            numbers[i, at + LEAST_OWED] *= alike(shape, layout, integers, i, t, shape.rank[t, d], work) / now
        else:
            numbers[i, at + LEAST_OWED] *= part
        numbers[i, at + LEAST_PENDING] *= part
        if level.kept[t] == NEVER:
            numbers[i, at + LEAST_PENDING] = numbers[i, at + PENDING]
        elif level.kept[t] == ALWAYS and level.alone:
            # every tile arrives; of at least two words per tile one may be rounded away
            count = tiles_left(shape, layout, integers, i)
            for o in range(layout.conf, layout.keys):
                count *= integers[i, o]
            least = numbers[i, at + PENDING] - 0.5 * count * level.fill_pj[t]
            numbers[i, at + LEAST_PENDING] = max(numbers[i, at + LEAST_PENDING], least)
