"""Storage entries, and the end of the fanout of compute units."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.links import take_least
from tilewright_mappers.optimal.kernel.state import (
    CREDIT,
    EACH,
    FIRST,
    INEXACT,
    LEAK,
    LEAST_OWED,
    LINKED,
    OWED,
    PENDING,
    TILES,
    all_words,
    extent,
    least_is_all,
    set_status,
    status_of,
    still_left,
)
from tilewright_mappers.optimal.kernel.steps import forget_unrolling, settle
from tilewright_mappers.optimal.kernel.tables import DEAD, SLIDING, STILL, Keeping, Layout, Level, Shape


@kernel_call
def end_units(shape: Shape, layout: Layout, level: Level, numbers: Floats, integers: Ints, i: int) -> None:
    """End the innermost fanout: compute units may share words as long as these are stationary."""
    dims = len(shape.sizes)
    for t in range(len(shape.output)):
        at, same, window = FIRST + EACH * t, False, False
        for k in range(len(level.slot)):
            for d in range(dims):
                if integers[i, layout.conf + k * dims + d] > 1:
                    same |= not shape.moves[t, d]
                    window |= shape.rank[t, d] >= 0
        if shape.odd[t]:
            continue
        set_status(integers, i, t, STILL if (same or window) and not shape.blind[t] else DEAD)
        if same or window:
            if window:
                numbers[i, at + OWED] = numbers[i, at + LEAST_OWED]
            for d in range(dims):
                if shape.rank[t, d] >= 0:
                    numbers[i, layout.side + shape.rank[t, d]] = 1.0
            integers[i, layout.flag] |= INEXACT
            if shape.ragged:  # the model averages sharing over unequal tiles, so nothing is counted
                numbers[i, at + OWED] = numbers[i, at + LEAST_OWED] = 0.0
    forget_unrolling(shape, layout, numbers, integers, i)


@kernel_call
def hold(
    shape: Shape,
    layout: Layout,
    keeping: Keeping,
    kept: int,
    numbers: Floats,
    integers: Ints,
    i: int,
) -> None:
    """Add a storage entry that keeps the tensors in the bits of `kept` (Lemma 1)."""
    linked = integers[i, layout.flag] >> LINKED
    for t in range(len(shape.output)):
        if (linked & kept) >> t & 1:
            take_least(shape, layout, numbers, integers, i, t)
            integers[i, layout.flag] = integers[i, layout.flag] & ~(1 << (LINKED + t)) | INEXACT
    for m in range(len(keeping.leakage)):
        if keeping.leakage[m] > 0.0:
            used = 0
            for t in range(len(shape.output)):
                if keeping.memory[t] == m:
                    used |= kept >> t & 1
            if used:
                numbers[i, LEAK] += keeping.leakage[m]
            else:
                integers[i, layout.flag] |= INEXACT
    for t in range(len(shape.output)):
        if not kept >> t & 1 or shape.odd[t]:
            continue
        at, moved = FIRST + EACH * t, all_words(shape, layout, integers, i, t)
        owed = numbers[i, at + OWED]
        reads, writes, width = keeping.reads[t], keeping.writes[t], keeping.words[t]
        first, tile = shape.whole[t] if shape.vague[t] else moved, moved * still_left(shape, layout, integers, i, t)
        numbers[i, at + PENDING] += owed * (keeping.read_pj[t] + keeping.update_pj[t])
        pending, credit = layout.pending[t], layout.credit[t]
        if reads >= 0:
            numbers[i, pending + reads] += owed * width
        if shape.output[t]:
            numbers[i, at + CREDIT] += first * keeping.read_pj[t]
            if reads >= 0:
                numbers[i, credit + reads] += first * width
            if writes >= 0:
                numbers[i, pending + writes] += owed * width
        status = status_of(integers, i, t)
        if shape.ragged and status == DEAD:  # otherwise the tile of an inner entry may remain stationary, too
            integers[i, layout.unrolled + t] = 0
        if status == SLIDING:
            settle(layout, numbers, integers, i, t, 1.0 / numbers[i, at + TILES])
            integers[i, layout.flag] |= INEXACT
        elif status == DEAD or keeping.outermost:
            settle(layout, numbers, integers, i, t, 0.0)
        if keeping.outermost:
            continue
        set_status(integers, i, t, DEAD if shape.blind[t] else STILL)
        numbers[i, at + PENDING] += tile * keeping.fill_pj[t]
        if writes >= 0:
            numbers[i, pending + writes] += tile * width
        if shape.output[t]:
            numbers[i, at + CREDIT] += first * keeping.fill_pj[t]
            if writes >= 0:
                numbers[i, credit + writes] += first * width
        numbers[i, at + OWED] = tile
        if _note_sides(shape, layout, numbers, integers, i, t) and status == STILL:
            integers[i, layout.flag] |= INEXACT  # smaller inner tiles, which are stationary too, overlap less
    for t in range(len(shape.output)):
        if not (linked & ~kept) >> t & 1:
            least_is_all(numbers, i, t)
    if not linked & ~kept:
        forget_unrolling(shape, layout, numbers, integers, i)


@kernel_part
def _note_sides(shape: Shape, layout: Layout, numbers: Floats, integers: Ints, i: int, t: int) -> bool:
    """Record the sides of the tile's windows; return whether one that has loops left has grown."""
    changed = False
    for d in range(len(shape.sizes)):
        r, side, loops, first = shape.rank[t, d], 1.0, False, True
        for e in range(len(shape.sizes)):
            if r >= 0 and shape.rank[t, e] == r:
                side += shape.coefficient[t, e] * (extent(shape, layout, integers, i, e) - 1.0)
                loops |= extent(shape, layout, integers, i, e) < shape.sizes[e]
                first &= e >= d
        if r >= 0 and first:
            changed |= loops and side != numbers[i, layout.side + r]
            numbers[i, layout.side + r] = side
    return changed
