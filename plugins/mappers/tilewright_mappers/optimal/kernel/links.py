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
)
from tilewright_mappers.optimal.kernel.tables import Layout, Level, Shape, Work


@kernel_call
def distinct(
    shape: Shape, layout: Layout, level: Level, shared: Bools, integers: Ints, i: int, t: int, d: int, work: Work
) -> float:
    """Different tiles along the window that dimension d moves, of the sub-clusters that may share."""
    reach, r = 0, shape.rank[t, d]
    work.reached[0] = True
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            step = extent(shape, layout, integers, i, e) * shape.coefficient[t, e]
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
def passes(
    shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, d: int, overlaps: bool, work: Work
) -> bool:
    """Whether neighbours may pass on words where a loop over d, which slides a window, is the first in time.

    At a step of d they can if two of them lie one step apart; at steps further out, which bring whole tiles where nothing
    overlaps, perhaps: those undo the steps of d, so that sub-clusters have to lie so far apart along its window.
    """
    dims, r = len(shape.sizes), shape.rank[t, d]
    shift, reach = extent(shape, layout, integers, i, d) * shape.coefficient[t, d], 0
    for e in range(dims):
        move = extent(shape, layout, integers, i, e) * shape.coefficient[t, e]
        for k in range(len(level.slot)):
            n = integers[i, layout.conf + k * dims + e]
            move //= n
            if shape.rank[t, e] == r:
                reach += (n - 1) * move
    if not overlaps:
        for e in range(dims):
            if e != d and shape.rank[t, e] >= 0 and extent(shape, layout, integers, i, e) < shape.sizes[e]:
                same = shape.rank[t, e] == r
                if (same or shift <= reach) and _is_unrolled(shape, layout, level, integers, i, t, shape.rank[t, e]):
                    return True
        if 2 * shift <= reach:
            return True
    return bool(shift <= reach and _neighbours(shape, layout, level, integers, i, t, r, shift, work))


@kernel_part
def _is_unrolled(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, r: int) -> bool:
    """Whether window r is."""
    for e in range(len(shape.sizes)):
        if shape.rank[t, e] == r:
            for k in range(len(level.slot)):
                if integers[i, layout.conf + k * len(shape.sizes) + e] > 1:
                    return True
    return False


@kernel_call
def _neighbours(
    shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int, r: int, shift: int, work: Work
) -> bool:
    """Whether two sub-clusters side by side have tiles that lie so far apart, along window r alone; as laid out row by row,
    columns first, rows as wide as the fanout."""
    dims, count, across, radix = len(shape.sizes), 1, 1, 1
    work.place[0] = work.other[0] = 0
    for vertical in range(2):
        for k in range(len(level.slot) - 1, -1, -1):
            for e in range(dims - 1, -1, -1):
                n = integers[i, layout.conf + k * dims + e]
                if level.slot[k] < 0 or level.vertical[k] != vertical or n == 1:
                    continue
                if count * n > len(work.place):
                    return True
                move = extent(shape, layout, integers, i, e) * shape.coefficient[t, e]
                for outer in range(k + 1):
                    move //= integers[i, layout.conf + outer * dims + e]
                along = shape.rank[t, e] == r
                apart = shape.moves[t, e] and not along
                for number in range(count, n * count):
                    like, index = number % count, number // count
                    work.place[number] = work.place[like] + (index * move if along else 0)
                    work.other[number] = work.other[like] + (index * radix if apart else 0)
                radix *= n
                count *= n
        if vertical == 0:
            across = count
    width = max(level.width, across)
    for number in range(count):
        for step in range(2):
            other = number + 1 if step == 0 else number + width
            if other < count and (step == 1 or other % width > 0) and work.other[number] == work.other[other]:
                if abs(work.place[number] - work.place[other]) == shift:
                    return True
    return False


@kernel_call
def may_pass(shape: Shape, layout: Layout, level: Level, integers: Ints, i: int, t: int) -> bool:
    """Whether a loop in time, here or further out, may bring what a neighbour in this fanout holds."""
    dims = len(shape.sizes)
    for d in range(dims):
        e = extent(shape, layout, integers, i, d)
        if shape.rank[t, d] >= 0 and e < shape.sizes[d]:
            reach, others = 0, False
            for o in range(dims):
                if shape.rank[t, o] == shape.rank[t, d]:
                    others |= o != d and extent(shape, layout, integers, i, o) < shape.sizes[o]
                    move = extent(shape, layout, integers, i, o) * shape.coefficient[t, o]
                    for k in range(len(level.slot)):
                        n = integers[i, layout.conf + k * dims + o]
                        move //= n
                        reach += (n - 1) * move
            if e * shape.coefficient[t, d] <= reach or (
                others and reach > 0
            ):  # steps of two loops may almost undo each other
                return True
    return False


@kernel_call
def find_links(shape: Shape, layout: Layout, level: Level, numbers: Floats, integers: Ints, i: int) -> None:
    """Windows are unrolled: what neighbours may pass on is known."""
    for t in range(len(shape.output)):
        if integers[i, layout.flag] >> (LINKED + t) & 1 and not may_pass(shape, layout, level, integers, i, t):
            at = FIRST + EACH * t
            integers[i, layout.flag] &= ~(1 << (LINKED + t))
            numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED] = (
                numbers[i, at + PENDING],
                numbers[i, at + OWED],
            )
