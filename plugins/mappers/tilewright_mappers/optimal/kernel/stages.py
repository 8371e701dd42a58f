"""Stages of the staged search: successors of states in one dimension or one storage entry."""

from __future__ import annotations

from tilewright.compiled import compiled, integer, kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_mappers.optimal.kernel.bounds import bound
from tilewright_mappers.optimal.kernel.dominance import insert
from tilewright_mappers.optimal.kernel.holds import end_units, hold
from tilewright_mappers.optimal.kernel.links import find_links, find_neighbours
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    FRESH,
    LINKED,
    MASK,
    STATUS,
    USED,
    left_of,
    place_of,
    status_of,
    words,
)
from tilewright_mappers.optimal.kernel.steps import step, unroll
from tilewright_mappers.optimal.kernel.tables import (
    SLIDING,
    STILL,
    Ahead,
    Bag,
    Costing,
    Keeping,
    Layout,
    Level,
    Shape,
    Work,
)

UNROLL, LINKS, LEAVE, BRANCH, CLOSE, REST, HOLD = map(integer, range(7))
"""Kinds of stages."""


@compiled
def walk(
    kind: int,
    shape: Shape,
    layout: Layout,
    level: Level,
    ahead: Ahead,
    costing: Costing,
    keeping: Keeping,
    shared: Bools,
    trips: Bools,
    tiles: Bools,
    named: Ints,
    choices: Ints,
    dimension: int,
    position: int,
    limit: float,
    numbers: Floats,
    integers: Ints,
    keys: int,
    bag: Bag,
    work: Work,
    start: int,
    stop: int,
) -> int:
    """Write the successors of states into a table, except pruned ones (Lemmas 3 and 5).

    Args:
        trips: [D, J] trips that the slot allows.
        tiles: [D, K] tile counts that outer slots can iterate.
        named: [D] position in the order of a rule, outermost first; -1 if free.
        position: index of the slot in the level (UNROLL); whether the level is the innermost
            (LEAVE).
        keys: number of integers in the key.
        choices: sets of tensors that the entry may keep (HOLD).

    Returns:
        The first state that was not expanded, because the table was full; or `stop`.
    """
    dims = len(shape.sizes)
    factors = kind == UNROLL or kind == BRANCH or kind == REST
    for i in range(start, stop):
        if bag.made[0] + dims * shape.trip.shape[1] + len(choices) > len(bag.alive):
            return i
        first, last = 0, 1
        if kind == UNROLL or kind == REST:
            first, last = dimension, dimension + 1
        elif kind == BRANCH:
            last = dims
        elif kind == HOLD:
            last = len(choices)
        for what in range(first, last):
            options, steps = 1, False
            if factors:
                steps = kind == UNROLL or integers[i, MASK] >> what & 1 > 0
                if kind == BRANCH:
                    steps = not steps and _matters(shape, layout, named, integers, i, what)
                    steps = steps and _in_order(named, integers[i, MASK], what)
                    if not steps:
                        continue
                options = shape.trip.shape[1] if steps else 1
            for j in range(options):
                if factors and steps:
                    if kind == BRANCH and j == 0:
                        continue
                    n, left = shape.trip[what, j], left_of(shape, layout, integers, i, what)
                    if n == 0 or n > left:
                        break
                    if not trips[what, j] or not shape.ragged and left % n:
                        continue
                    if not tiles[what, place_of(shape, what, (left + n - 1) // n)]:
                        continue
                    if kind == UNROLL and integers[i, USED + position] * n > ahead.most[level.slot[position]]:
                        break
                n = bag.made[0]
                for k in range(layout.integers):
                    bag.integers[n, k] = integers[i, k]
                for k in range(layout.numbers):
                    bag.numbers[n, k] = numbers[i, k]
                bag.alive[n], bag.what[n] = True, what * shape.trip.shape[1] + j
                good = True
                if kind == UNROLL and j > 0:
                    unroll(
                        shape,
                        layout,
                        level,
                        shared,
                        bag.numbers,
                        bag.integers,
                        n,
                        what,
                        j,
                        position,
                        costing.links,
                        work,
                    )
                elif (kind == BRANCH or kind == REST) and j > 0:
                    step(shape, layout, level, shared, bag.numbers, bag.integers, n, what, j, work)
                elif kind == CLOSE:
                    good = _close(shape, layout, trips, tiles, named, bag.integers, n)
                elif kind == HOLD:
                    bag.what[n] = choices[what]
                    good = _fits(shape, layout, keeping, choices[what], bag.integers, n, work)
                    hold(shape, layout, keeping, choices[what], bag.numbers, bag.integers, n)
                elif kind == LINKS:
                    find_links(shape, layout, level, shared, bag.numbers, bag.integers, n, work)
                elif kind == LEAVE:
                    for k in range(len(level.slot)):
                        good &= bag.integers[n, USED + k] >= level.least[k]
                        bag.integers[n, USED + k] = 1
                    if not position:
                        find_neighbours(shape, layout, level, shared, bag.numbers, bag.integers, n, work)
                    else:
                        end_units(shape, layout, level, bag.numbers, bag.integers, n)
                if kind == BRANCH:
                    bag.integers[n, MASK] |= 1 << what
                elif kind == REST:
                    bag.integers[n, MASK] &= ~(1 << what)
                # a bound on the state holds for its successors (Lemma 5)
                value = numbers[i, BOUND]
                decided = kind == UNROLL and left_of(shape, layout, integers, i, what) > 1
                if j > 0 or decided or kind == HOLD or kind == LINKS or kind == LEAVE:
                    if not _fits_ahead(shape, layout, ahead, bag.integers, n):
                        if factors and steps:  # larger tiles do not fit either
                            break
                        continue
                    if good:
                        known = bound(shape, layout, ahead, costing, limit, bag.numbers, bag.integers, n, work)
                        value = max(value, known)
                if not good:
                    continue
                bag.numbers[n, BOUND] = value
                if value > limit:
                    bag.made[1] += 1
                elif not costing.dominate or insert(bag, layout, shape, costing, keys, n):
                    bag.made[0] += 1
                else:
                    bag.made[2] += 1
    return stop


@kernel_call
def _matters(shape: Shape, layout: Layout, named: Ints, integers: Ints, i: int, d: int) -> bool:
    """Return whether the position of a loop over d matters (Lemma 2)."""
    if left_of(shape, layout, integers, i, d) == 1:
        return False
    if named[d] >= 0 or (integers[i, STATUS] & FRESH and integers[i, layout.flag] >> LINKED):
        return True
    for t in range(len(shape.output)):
        status = status_of(integers, i, t)
        if status == STILL and (not shape.moves[t, d] or shape.rank[t, d] >= 0):
            return True
        if status == SLIDING and shape.moves[t, d] and shape.rank[t, d] == integers[i, layout.window + t]:
            return True
    return False


@kernel_part
def _in_order(named: Ints, mask: int, d: int) -> bool:
    """Return whether a loop over d may surround the placed loops under the order of a rule."""
    for e in range(len(named)):
        if named[d] >= 0 and named[e] >= 0 and mask >> e & 1 and named[e] < named[d]:
            return False
    return True


@kernel_call
def _close(shape: Shape, layout: Layout, trips: Bools, tiles: Bools, named: Ints, integers: Ints, i: int) -> bool:
    """End the placed loops of a block, and mark the other dimensions for the rest of it (Lemma 2).

    Returns:
        Whether each dimension can be completed that way.
    """
    rest = 0
    for d in range(len(shape.sizes)):
        placed = integers[i, MASK] >> d & 1
        left = left_of(shape, layout, integers, i, d)
        if not placed and left > 1 and not _matters(shape, layout, named, integers, i, d):
            rest |= 1 << d
        elif not tiles[d, integers[i, layout.left + d]] or not (placed or trips[d, 0]):
            return False
    integers[i, MASK] = rest
    return True


@kernel_call
def _fits(shape: Shape, layout: Layout, keeping: Keeping, kept: int, integers: Ints, i: int, work: Work) -> bool:
    """Return whether the kept tiles fit their memories."""
    good = True
    for t in range(len(shape.output)):
        if kept >> t & 1:
            work.words[keeping.memory[t]] += words(shape, layout, integers, i, t) * keeping.slices[t]
    for t in range(len(shape.output)):
        if kept >> t & 1:
            good &= work.words[keeping.memory[t]] <= keeping.usable[keeping.memory[t]]
    for t in range(len(shape.output)):
        work.words[max(0, keeping.memory[t])] = 0.0
    return bool(good)


@kernel_call
def _fits_ahead(shape: Shape, layout: Layout, ahead: Ahead, integers: Ints, i: int) -> bool:
    """Return whether tiles fit the next memories that always keep them (Lemma 11)."""
    for t in range(len(shape.output)):
        used = 0.0
        for u in range(len(shape.output)):
            if ahead.keeper[t] >= 0 and ahead.keeper[u] == ahead.keeper[t]:
                used += words(shape, layout, integers, i, u) * ahead.slices[u]
        if used > ahead.usable[t]:
            return False
    return True
