"""Overlapping tiles along a window: how many differ, and which words neighbours forward (Lemma 14)."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_mappers.optimal.kernel.grid import (
    common,
    count_deliveries,
    inner_words,
    lay_out,
    meets,
    reach_of,
    reached,
    side_of,
)
from tilewright_mappers.optimal.kernel.state import (
    EACH,
    FIRST,
    LEAST_OWED,
    LEAST_PENDING,
    LINKED,
    OWED,
    PENDING,
    extent,
    least_is_all,
    left_of,
    tiles_left,
)
from tilewright_mappers.optimal.kernel.tables import MAYBE, NEVER, Layout, Level, Shape, Work


@kernel_call
def distinct(
    shape: Shape, layout: Layout, level: Level, shared: Bools, integers: Ints, i: int, t: int, d: int, work: Work
) -> float:
    """Return the number of different tiles of multicasting sub-clusters along the window of d."""
    count = 0
    for at in range(reached(shape, layout, level, integers, i, t, shape.rank[t, d], shared, True, work) + 1):
        count += work.reached[at]
    return float(count)


@kernel_call
def pass_on(
    shape: Shape,
    layout: Layout,
    level: Level,
    shared: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    t: int,
    d: int,
    n: int,
    work: Work,
) -> bool:
    """Count forwarded words if the first temporal loop, over d with n trips, shifts a window.

    After the first step of a sweep, the parent serves only sub-clusters without a neighbour that
    had the tile. If tiles overlap, it serves all. Where an outer loop undoes the sweep, the tiles
    of a first step may be forwarded, too; they count once.

    Returns:
        Whether the state is now undercounted.
    """
    at, r, kept = FIRST + EACH * t, shape.rank[t, d], level.kept[t]
    shift = extent(shape, layout, integers, i, d) * shape.coefficient[t, d]
    overlaps = side_of(shape, layout, level, integers, i, t, r) > shift
    later = _passes_later(shape, layout, level, integers, i, t, d, n, overlaps)
    usual = not overlaps and shift <= reach_of(shape, layout, level, integers, i, t, r)
    if not usual and not later:
        return False
    count, width = (0, 0) if kept == MAYBE else lay_out(shape, layout, level, shared, integers, i, t, work)
    if count == 0:
        take_least(shape, layout, numbers, integers, i, t)
        return True
    later = later and meets(shape, layout, integers, i, t, count, width, work)
    tiles, _, largest = count_deliveries(count, width, 0, False, work)
    left, linked = tiles, 0
    if usual:
        left, linked, _ = count_deliveries(count, width, shift * work.weight[d], False, work)
        if left >= tiles:  # forwarding saves no delivery
            left, linked, usual = tiles, 0, False
    if not usual and not later:
        return False
    if kept == NEVER:  # not kept directly inside, so only the deliveries of the parent change
        # after a forwarded first step deliveries may be smaller, so each word counts once
        first, others = float(tiles), (0.0 if later and overlaps else n - 1.0)
        if later:
            first = max(count / largest, float(count_deliveries(count, width, 0, True, work)[0]))
        part = (first + others * left) / (count + others * (count - linked)) * count / tiles
        if abs(part - 1.0) < 1e-12:
            return False
        rounded = 0.5 / n * tiles_left(shape, layout, integers, i)  # the model rounds the words down
        numbers[i, at + OWED] = max(0.0, numbers[i, at + OWED] * part - rounded)
        return True
    first = numbers[i, at + LEAST_OWED] / numbers[i, at + OWED] if later and numbers[i, at + OWED] > 0.0 else 1.0
    numbers[i, at + OWED] *= first if overlaps else (first + (n - 1.0) * left / tiles) / n
    # with several parents the edge sub-clusters of one have neighbours in the next; the model
    # rounds the words
    spared = 0.0 if level.alone else (count if later else 0.0) + (n - 1.0) * (count if overlaps else linked)
    tile = inner_words(shape, layout, level, integers, i, t)
    spared = min(1.0, (spared / count + 1.0 / tile) / n)
    spared_pj = spared * level.fill_pj[t] * tile * count * tiles_left(shape, layout, integers, i)
    numbers[i, at + PENDING] -= min(numbers[i, at + PENDING], spared_pj)
    for j in range(layout.pending[t], layout.pending[t + 1]):
        numbers[i, j] *= 1.0 - spared
    return True


@kernel_part
def take_least(shape: Shape, layout: Layout, numbers: Floats, integers: Ints, i: int, t: int) -> None:
    """Set energy and demand of a tensor to their lower bounds: neighbours may forward words."""
    at = FIRST + EACH * t
    numbers[i, at + PENDING], numbers[i, at + OWED] = numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED]
    for j in range(layout.pending[t], layout.pending[t + 1]):
        numbers[i, j] = 0.0


@kernel_call
def _passes_later(
    shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, d: int, n: int, overlaps: bool
) -> bool:
    """Return whether neighbours may forward words at a step of an outer loop, after the first one.

    Such a step moves tiles by its own shift, less one sweep of every inner loop. So does a step of
    an irrelevant loop, with a shift of zero. Relevant loops move tiles out of reach. So do loops of
    another window, unless two of its dimensions are unrolled or left.
    """
    r, e = shape.rank[t, d], extent(shape, layout, integers, i, d)
    shift, reach = e * shape.coefficient[t, d], reach_of(shape, layout, level, integers, i, t, r)
    again, others, across, stays = e * n < shape.sizes[d], False, False, False
    for o in range(len(shape.sizes)):
        side = extent(shape, layout, integers, i, o)
        stays |= not shape.moves[t, o] and side < shape.sizes[o]
        if o == d or shape.rank[t, o] < 0 or side == shape.sizes[o]:
            continue
        if shape.rank[t, o] == r:
            others = True
            continue
        far = reach_of(shape, layout, level, integers, i, t, shape.rank[t, o])
        across |= side * shape.coefficient[t, o] <= far
        for other in range(o):
            same = shape.rank[t, other] == shape.rank[t, o]
            across |= same and extent(shape, layout, integers, i, other) < shape.sizes[other]
    if overlaps:  # by the same distance as the first loop
        return bool(others or (again and n == 2))
    if stays and shift <= reach:
        return True
    if (others and reach > 0) or (again and shift * (n - 1) <= reach):
        return True
    return bool(across and (others or shift <= reach))


@kernel_call
def may_pass(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int) -> bool:
    """Return whether some temporal loop may bring a tile that a neighbour in this fanout has."""
    dims = len(shape.sizes)
    for d in range(dims):
        e = extent(shape, layout, integers, i, d)
        if shape.rank[t, d] >= 0 and e < shape.sizes[d]:
            reach, others = reach_of(shape, layout, level, integers, i, t, shape.rank[t, d]), False
            for o in range(dims):
                if shape.rank[t, o] == shape.rank[t, d]:
                    others |= o != d and extent(shape, layout, integers, i, o) < shape.sizes[o]
            # steps of two loops may almost cancel
            if e * shape.coefficient[t, d] <= reach or (others and reach > 0):
                return True
    return False


@kernel_call
def _may_meet(
    shape: Shape, layout: Layout, level: Level, shared: Bools, integers: Ints, i: int, t: int, work: Work
) -> bool:
    """Return whether outer loops may give a sub-cluster the tile of another one, neighbour or not."""
    dims = len(shape.sizes)
    for d in range(dims):
        r, step, first = shape.rank[t, d], 0, shape.rank[t, d] >= 0
        for o in range(dims):
            if first and shape.rank[t, o] == r:
                first = o >= d
                if left_of(shape, layout, integers, i, o) > 1:
                    step = common(step, extent(shape, layout, integers, i, o) * shape.coefficient[t, o])
        if first and step > 0:
            reach = reached(shape, layout, level, integers, i, t, r, shared, False, work)
            for far in range(step, reach + 1, step):
                for at in range(reach + 1 - far):
                    if work.reached[at] and work.reached[at + far]:
                        return True
    return False


@kernel_call
def find_links(
    shape: Shape, layout: Layout, level: Level, shared: Bools, numbers: Floats, integers: Ints, i: int, work: Work
) -> None:
    """Close forwarding where no order of the other unrollings allows it. All windows are unrolled."""
    for t in range(len(shape.output)):
        if not integers[i, layout.flag] >> (LINKED + t) & 1:
            continue
        at, passes = FIRST + EACH * t, may_pass(shape, layout, level, integers, i, t)
        if passes and level.kept[t] != MAYBE:
            passes = _may_meet(shape, layout, level, shared, integers, i, t, work)
        if passes and level.kept[t] == NEVER:  # not kept directly inside: the number of deliveries may change
            count, width = lay_out(shape, layout, level, shared, integers, i, t, work)
            if count > 0:
                tiles, _, largest = count_deliveries(count, width, 0, False, work)
                passes = tiles * largest > count
                least = numbers[i, at + OWED] * count / (tiles * largest)
                numbers[i, at + LEAST_OWED] = max(0.0, least - 0.5 * tiles_left(shape, layout, integers, i))
        if not passes:
            integers[i, layout.flag] &= ~(1 << (LINKED + t))
            least_is_all(numbers, i, t)


@kernel_call
def find_neighbours(
    shape: Shape, layout: Layout, level: Level, shared: Bools, numbers: Floats, integers: Ints, i: int, work: Work
) -> None:
    """Close forwarding where no neighbours have matching tiles. The whole fanout is unrolled."""
    for t in range(len(shape.output)):
        if not integers[i, layout.flag] >> (LINKED + t) & 1 or level.kept[t] == MAYBE:
            continue
        at = FIRST + EACH * t
        count, width = lay_out(shape, layout, level, shared, integers, i, t, work)
        if count > 0 and not meets(shape, layout, integers, i, t, count, width, work):
            integers[i, layout.flag] &= ~(1 << (LINKED + t))
            least_is_all(numbers, i, t)
        elif count > 0:  # the parent serves sub-clusters that no neighbour can serve
            tiles, _, largest = count_deliveries(count, width, 0, False, work)
            part = count_deliveries(count, width, 0, True, work)[0] / tiles
            least = numbers[i, at + LEAST_OWED]
            if level.kept[t] == NEVER:
                part, least = max(part, count / (tiles * largest)), 0.0
            rounded = 0.5 * tiles_left(shape, layout, integers, i)
            numbers[i, at + LEAST_OWED] = max(least, numbers[i, at + OWED] * part - rounded)
