"""Sub-clusters whose tiles overlap along a window: how many differ, and what neighbours may pass on to one another."""

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
    """Different tiles along the window that dimension d moves, of the sub-clusters that may share."""
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
    """Count what neighbours pass on where a loop over d of n trips, which slides a window, is the first in time; whether
    the state then counts less than what it costs.

    Per tile: at all steps but the first of a sweep the parent serves those that no neighbour does, unless tiles overlap: a
    neighbour's last step then brought less than a tile. The first of a sweep may be passed on, too, where loops further out
    undo the sweep.
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
        if left >= tiles:  # it would save nothing
            left, linked, usual = tiles, 0, False
    if not usual and not later:
        return False
    if kept == NEVER:  # what enters is known, and leaves by the same deliveries
        # at the first step of a sweep, if others are passed on, deliveries are as large as any; at steps after it tiles may be smaller
        first, others = float(tiles), (0.0 if later and overlaps else n - 1.0)
        if later:
            first = max(count / largest, float(count_deliveries(count, width, 0, True, work)[0]))
        part = (first + others * left) / (count + others * (count - linked)) * count / tiles
        if abs(part - 1.0) < 1e-12:
            return False
        rounded = 0.5 / n * tiles_left(shape, layout, integers, i)  # in the end
        numbers[i, at + OWED] = max(0.0, numbers[i, at + OWED] * part - rounded)
        return True
    first = numbers[i, at + LEAST_OWED] / numbers[i, at + OWED] if later and numbers[i, at + OWED] > 0.0 else 1.0
    numbers[i, at + OWED] *= first if overlaps else (first + (n - 1.0) * left / tiles) / n
    # of several parents' sub-clusters all have from neighbours what those of one have; words are rounded in the end
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
    """Neighbours may have passed on what there is to pass on."""
    at = FIRST + EACH * t
    numbers[i, at + PENDING], numbers[i, at + OWED] = numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED]
    for j in range(layout.pending[t], layout.pending[t + 1]):
        numbers[i, j] = 0.0


@kernel_call
def _passes_later(
    shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, d: int, n: int, overlaps: bool
) -> bool:
    """Whether neighbours may pass on words at a step of a loop further out, after the first one over d, of n trips.

    Such a step moves tiles by its own shift less one step of every loop inside. So does one that does not move the tensor, by
    nothing less that. A loop that moves it along no window takes it out of the neighbours' reach, and one over another window, unless
    two dimensions of that are unrolled or left.
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
    if overlaps:  # by the same as the first
        return bool(others or (again and n == 2))
    if stays and shift <= reach:
        return True
    if (others and reach > 0) or (again and shift * (n - 1) <= reach):
        return True
    return bool(across and (others or shift <= reach))


@kernel_call
def may_pass(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int) -> bool:
    """Whether a loop in time, here or further out, may bring what a neighbour in this fanout holds."""
    dims = len(shape.sizes)
    for d in range(dims):
        e = extent(shape, layout, integers, i, d)
        if shape.rank[t, d] >= 0 and e < shape.sizes[d]:
            reach, others = reach_of(shape, layout, level, integers, i, t, shape.rank[t, d]), False
            for o in range(dims):
                if shape.rank[t, o] == shape.rank[t, d]:
                    others |= o != d and extent(shape, layout, integers, i, o) < shape.sizes[o]
            # steps of two loops may almost undo each other
            if e * shape.coefficient[t, d] <= reach or (others and reach > 0):
                return True
    return False


@kernel_call
def _may_meet(
    shape: Shape, layout: Layout, level: Level, shared: Bools, integers: Ints, i: int, t: int, work: Work
) -> bool:
    """Whether loops that are left may bring a sub-cluster the tile of another one, neighbour or not."""
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
    """Windows are unrolled: whether neighbours may pass on words, whoever is whose neighbour once other dimensions are."""
    for t in range(len(shape.output)):
        if not integers[i, layout.flag] >> (LINKED + t) & 1:
            continue
        at, passes = FIRST + EACH * t, may_pass(shape, layout, level, integers, i, t)
        if passes and level.kept[t] != MAYBE:
            passes = _may_meet(shape, layout, level, shared, integers, i, t, work)
        if passes and level.kept[t] == NEVER:  # what enters is known, and leaves by deliveries of whatever size
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
    """The whole fanout is unrolled: who is whose neighbour is known."""
    for t in range(len(shape.output)):
        if not integers[i, layout.flag] >> (LINKED + t) & 1 or level.kept[t] == MAYBE:
            continue
        at = FIRST + EACH * t
        count, width = lay_out(shape, layout, level, shared, integers, i, t, work)
        if count > 0 and not meets(shape, layout, integers, i, t, count, width, work):
            integers[i, layout.flag] &= ~(1 << (LINKED + t))
            least_is_all(numbers, i, t)
        elif count > 0:  # sub-clusters that no neighbour can serve have theirs from the parent
            tiles, _, largest = count_deliveries(count, width, 0, False, work)
            part = count_deliveries(count, width, 0, True, work)[0] / tiles
            least = numbers[i, at + LEAST_OWED]
            if level.kept[t] == NEVER:
                part, least = max(part, count / (tiles * largest)), 0.0
            rounded = 0.5 * tiles_left(shape, layout, integers, i)
            numbers[i, at + LEAST_OWED] = max(least, numbers[i, at + OWED] * part - rounded)
