"""Dominance: prune a state if another state's completions cost no more (Lemmas 3 and 4)."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    CREDIT,
    CYCLES,
    EACH,
    FIRST,
    LEAK,
    LEAST_OWED,
    LEAST_PENDING,
    OVERLAP,
    OWED,
    PENDING,
    ROUNDED,
    SETTLED,
    TILES,
    is_partial,
    status_of,
    still_left,
    tiles_left,
)
from tilewright_mappers.optimal.kernel.tables import SLIDING, STILL, Bag, Costing, Layout, Shape

MOST = 200
"""States with the same key that a new one is compared with. Fewer comparisons only keep more states."""


@kernel_call
def insert(bag: Bag, layout: Layout, shape: Shape, costing: Costing, keys: int, i: int) -> bool:
    """Add state i unless it is dominated; remove the states that it dominates."""
    integers, mixed = bag.integers, 0
    for k in range(keys):
        number = mixed ^ integers[i, k]
        mixed = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
        mixed ^= mixed >> 15
    # two chains per hash: exactly counted states, which may dominate, and the others
    full = integers[i, layout.flag] & ~ROUNDED == 0
    place = 2 * (mixed & (len(bag.heads) // 2 - 1))
    for chain in range(place, place + 1 + full):
        before, at, compared = -1, bag.heads[chain], 0
        while at >= 0 and compared < MOST:
            same, after = True, bag.following[at]
            for k in range(keys):
                same &= integers[at, k] == integers[i, k]
            compared += same
            if same and chain == place and _as_good(bag, layout, shape, costing, at, i):
                if integers[i, layout.flag] & ROUNDED:
                    bag.numbers[at, BOUND] = min(bag.numbers[at, BOUND], bag.numbers[i, BOUND])
                return False
            if same and full and _as_good(bag, layout, shape, costing, i, at):
                bag.alive[at] = False
                if integers[i, layout.flag] & ROUNDED:
                    bag.numbers[i, BOUND] = min(bag.numbers[i, BOUND], bag.numbers[at, BOUND])
                if before < 0:
                    bag.heads[chain] = after
                else:
                    bag.following[before] = after
            else:
                before = at
            at = after
    place += not full
    bag.following[i] = bag.heads[place]
    bag.heads[place] = i
    return True


@kernel_part
def _above(a: float, b: float) -> bool:
    """Return whether a exceeds b by more than rounding."""
    return a > b + 1e-12 * abs(b)


@kernel_call
def _as_good(bag: Bag, layout: Layout, shape: Shape, costing: Costing, a: int, b: int) -> bool:
    """Return whether state a, which is exactly counted, dominates state b."""
    numbers, integers, ports = bag.numbers, bag.integers, layout.pending[0] - layout.port
    spared = numbers[b, SETTLED] - numbers[a, SETTLED]
    if costing.energy:
        if _above(numbers[a, SETTLED], numbers[b, SETTLED]) or _above(numbers[a, LEAK], numbers[b, LEAK]):
            return False
    if costing.cycles and _above(numbers[a, CYCLES], numbers[b, CYCLES]):
        return False
    if shape.ragged and not _as_far(layout, shape, costing, bag, a, b):
        return False
    for t in range(len(shape.output)):
        at, status = FIRST + EACH * t, status_of(integers, a, t)
        if _above(numbers[a, at + OWED], numbers[b, at + LEAST_OWED]):
            return False
        if costing.energy:
            if _above(numbers[a, at + PENDING], numbers[b, at + LEAST_PENDING]):
                return False
            if shape.output[t] and _above(numbers[b, at + CREDIT], numbers[a, at + CREDIT]):
                if costing.outputs > 1:
                    return False
                # paid from committed energy: irrelevant loops repeat the credit no more often than
                # that
                more = numbers[b, at + CREDIT] - numbers[a, at + CREDIT]
                if shape.vague[t]:
                    more *= tiles_left(shape, layout, integers, a)
                else:
                    more *= still_left(shape, layout, integers, a, t)
                if _above(numbers[a, SETTLED] + more, numbers[b, SETTLED]):
                    return False
                spared -= more
        if status == SLIDING:
            if numbers[a, at + OVERLAP] < numbers[b, at + OVERLAP]:
                return False
            share, other = 1.0 - 1.0 / numbers[a, at + TILES], 1.0 - 1.0 / numbers[b, at + TILES]
            if _above(numbers[a, at + PENDING] * share, numbers[b, at + LEAST_PENDING] * other):
                return False
            if _above(numbers[a, at + OWED] * share, numbers[b, at + LEAST_OWED] * other):
                return False
            if ports and _above(share, other):
                return False
    for r in range(layout.side, layout.last):
        if numbers[a, r] < numbers[b, r]:
            return False
    if costing.cycles:
        more = numbers[a, layout.port - 1] if shape.ragged else 1.0
        for p in range(layout.port, layout.credit[0]):
            if _above(numbers[a, p] * more, numbers[b, p]):
                return False
        for p in range(layout.credit[0], layout.numbers):
            if _above(numbers[b, p], numbers[a, p]):
                return False
    return costing.margin == 0.0 or spared >= costing.margin or _alike(layout, shape, numbers, a, b)


@kernel_part
def _alike(layout: Layout, shape: Shape, numbers: Floats, a: int, b: int) -> bool:
    """Return whether b, which needs no less than a, needs the same words and cycles."""
    for t in range(len(shape.output)):
        for k in range(FIRST + EACH * t, FIRST + EACH * (t + 1)):
            energy = k == FIRST + EACH * t + PENDING or k == FIRST + EACH * t + LEAST_PENDING
            if not energy and (_above(numbers[a, k], numbers[b, k]) or _above(numbers[b, k], numbers[a, k])):
                return False
    for k in range(layout.side, layout.numbers):
        if _above(numbers[a, k], numbers[b, k]) or _above(numbers[b, k], numbers[a, k]):
            return False
    return not _above(numbers[b, CYCLES], numbers[a, CYCLES])


@kernel_part
def _as_far(layout: Layout, shape: Shape, costing: Costing, bag: Bag, a: int, b: int) -> bool:
    """Return whether ragged tiles of a are no larger, and their last tiles need no more steps.

    A short last tile of a may cost more later, in stationary words of unrolled sub-clusters and in
    words that further unrollings multicast. Then the answer is no.
    """
    for d in range(len(shape.sizes)):
        if is_partial(shape, layout, bag.integers, a, d):
            if bag.open[d] and bag.numbers[a, layout.last + d] < 1.0:
                return False
            for t in range(len(shape.output)):
                if bag.integers[a, layout.unrolled + t] >> d & 1 and not shape.moves[t, d]:
                    if status_of(bag.integers, a, t) == STILL:
                        return False
        mine, other = bag.integers[a, layout.tile + d], bag.integers[b, layout.tile + d]
        if mine > other or mine != other and layout.pending[0] > layout.port:
            return False
        if costing.cycles and _above(bag.numbers[a, layout.last + d], bag.numbers[b, layout.last + d]):
            return False
    return True
