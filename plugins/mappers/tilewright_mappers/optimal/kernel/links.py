"""Sub-clusters whose tiles overlap along a window: how many differ, and what neighbours may pass on to one another."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
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
    reach, r = 0, shape.rank[t, d]
    work.reached[0] = True
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            step = integers[i, layout.tile + e] * shape.coefficient[t, e]
            for k in range(len(level.slot)):
                n = integers[i, layout.conf + k * len(shape.sizes) + e]
                step //= n
                if n > 1 and shared[k, t]:
                    for at in range(reach + 1, reach + (n - 1) * step + 1):
                        work.reached[at] = False
                    for at in range(reach, -1, -1):
                        if work.reached[at]:
                            for m in range(1, n):
                                work.reached[at + m * step] = True
                    reach += (n - 1) * step
    count = 0
    for at in range(reach + 1):
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
    overlaps = _side(shape, layout, level, integers, i, t, r) > shift
    later = _passes_later(shape, layout, level, integers, i, t, d, n, overlaps)
    usual = not overlaps and shift <= _reach(shape, layout, level, integers, i, t, r)
    if not usual and not later:
        return False
    count, width = (0, 0) if kept == MAYBE else lay_out(shape, layout, level, shared, integers, i, t, work)
    if count == 0:
        take_least(shape, layout, numbers, integers, i, t)
        return True
    later = later and _meets(shape, layout, integers, i, t, count, width, work)
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
    tile = _inner_words(shape, layout, level, integers, i, t)
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
    shift, reach = e * shape.coefficient[t, d], _reach(shape, layout, level, integers, i, t, r)
    again, others, across, stays = e * n < shape.sizes[d], False, False, False
    for o in range(len(shape.sizes)):
        side = extent(shape, layout, integers, i, o)
        stays |= not shape.moves[t, o] and side < shape.sizes[o]
        if o == d or shape.rank[t, o] < 0 or side == shape.sizes[o]:
            continue
        if shape.rank[t, o] == r:
            others = True
            continue
        far = _reach(shape, layout, level, integers, i, t, shape.rank[t, o])
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


@kernel_part
def _inner(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, e: int) -> int:
    """Extent of a sub-cluster's tile."""
    result = extent(shape, layout, integers, i, e)
    for k in range(len(level.slot)):
        result //= integers[i, layout.conf + k * len(shape.sizes) + e]
    return int(result)


@kernel_call
def _side(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, r: int) -> int:
    """Of a sub-cluster's tile along window r."""
    side = 1
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            side += shape.coefficient[t, e] * (_inner(shape, layout, level, integers, i, e) - 1)
    return int(side)


@kernel_call
def _reach(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, r: int) -> int:
    """The farthest that two sub-clusters' tiles lie apart along window r."""
    reach = 0
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            apart = extent(shape, layout, integers, i, e) - _inner(shape, layout, level, integers, i, e)
            reach += shape.coefficient[t, e] * apart
    return int(reach)


@kernel_call
def _inner_words(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int) -> float:
    """Of a sub-cluster's tile."""
    volume = side = 1.0
    for p in range(shape.start[t], shape.start[t + 1]):
        side += shape.factor[p] * (_inner(shape, layout, level, integers, i, shape.dimension[p]) - 1.0)
        if shape.last[p]:
            volume *= side
            side = 1.0
    return volume


@kernel_call
def lay_out(
    shape: Shape, layout: Layout, level: Level, shared: Bools, integers: Ints, i: int, t: int, work: Work
) -> tuple[int, int]:
    """Write where the sub-clusters' tiles lie, row by row, columns first; how many there are, 0 if more than there is room for;
    how many a row has.

    A place is one number, in which the coordinates' weights are such that no two of them add up to a third.
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
                far = _reach(shape, layout, level, integers, i, t, shape.rank[t, e])
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
    """Of the sub-clusters that are laid out: deliveries of the parent, one for all tiles that are equal; sub-clusters that have
    theirs from a neighbour, whose tile lies one shift ahead (0: none has; `alone`: all that may); most that one delivery serves."""
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
def may_pass(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int) -> bool:
    """Whether a loop in time, here or further out, may bring what a neighbour in this fanout holds."""
    dims = len(shape.sizes)
    for d in range(dims):
        e = extent(shape, layout, integers, i, d)
        if shape.rank[t, d] >= 0 and e < shape.sizes[d]:
            reach, others = _reach(shape, layout, level, integers, i, t, shape.rank[t, d]), False
            for o in range(dims):
                if shape.rank[t, o] == shape.rank[t, d]:
                    others |= o != d and extent(shape, layout, integers, i, o) < shape.sizes[o]
            # steps of two loops may almost undo each other
            if e * shape.coefficient[t, d] <= reach or (others and reach > 0):
                return True
    return False


@kernel_call
def _meets(shape: Shape, layout: Layout, integers: Ints, i: int, t: int, count: int, width: int, work: Work) -> bool:
    """Whether loops that are left may bring one of the sub-clusters that are laid out the tile of a neighbour; which is noted."""
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
    """Whether loops that are left may move a tensor's tile so far, a number as `lay_out` writes them: along every coordinate by whole
    steps of theirs."""
    if apart == 0:
        return False
    dims = len(shape.sizes)
    for d in range(dims - 1, -1, -1):  # of most weight first
        weight, step, first = work.weight[d], 0, True
        for o in range(dims):
            if weight > 0 and work.weight[o] == weight:
                first &= o >= d
                if left_of(shape, layout, integers, i, o) > 1:
                    a, b = step, extent(shape, layout, integers, i, o) * max(1, shape.coefficient[t, o])
                    while b > 0:
                        a, b = b, a % b
                    step = a
        if weight > 0 and first:
            here = (2 * apart + weight) // (2 * weight)
            apart -= here * weight
            if here != 0 and (step == 0 or here % step != 0):
                return False
    return True


@kernel_call
def find_links(
    shape: Shape, layout: Layout, level: Level, shared: Bools, numbers: Floats, integers: Ints, i: int, work: Work
) -> None:
    """Windows are unrolled: what neighbours may pass on is known."""
    for t in range(len(shape.output)):
        if not integers[i, layout.flag] >> (LINKED + t) & 1:
            continue
        at, passes = FIRST + EACH * t, may_pass(shape, layout, level, integers, i, t)
        if passes and level.kept[t] != MAYBE:
            count, width = lay_out(shape, layout, level, shared, integers, i, t, work)
            passes = count == 0 or _meets(shape, layout, integers, i, t, count, width, work)
            if passes and count > 0:
                # sub-clusters that no neighbour can serve have theirs from the parent
                tiles, _, largest = count_deliveries(count, width, 0, False, work)
                part = count_deliveries(count, width, 0, True, work)[0] / tiles
                least = numbers[i, at + LEAST_OWED]
                if level.kept[t] == NEVER:  # what enters is known, and leaves by deliveries of whatever size
                    passes, part, least = tiles * largest > count, max(part, count / (tiles * largest)), 0.0
                rounded = 0.5 * tiles_left(shape, layout, integers, i)
                numbers[i, at + LEAST_OWED] = max(least, numbers[i, at + OWED] * part - rounded)
        if not passes:
            integers[i, layout.flag] &= ~(1 << (LINKED + t))
            least_is_all(numbers, i, t)
