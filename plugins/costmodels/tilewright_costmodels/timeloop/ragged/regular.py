"""Pieces of one dimension at a time, where tiles divide one another.

`count_pieces` counts the pieces outside a cut, by size. A cut is *free* if all its trips count, and
*at zero* if only its first trip does. The first piece is the largest.

This is a fast path: `irregular` counts any pieces, and a test compares both. There are two sizes, so a count is
a pair (full pieces, remainders). Each cut turns the pair outside it into the pair inside it.

Cut 1 in the example of `tables`, from pieces of 4 to pieces of 2: F = 2 full pieces and R = 1 remainder, P = 2 trips.
Here f is `remainder_full` = 0, and p is `remainder_partial` = 1.

    cut 1       full                            remainders                  pieces
    free        F P + R f = 2 * 2 + 1 * 0       R p = 1 * 1                 [0 1] [2 3] [4 5] [6 7] [8]
    at zero     F + R min(1, f) = 2 + 0         R (1 - min(1, f)) = 1       [0 1] [4 5] [8]
    advances    F (P - 1) + R max(0, f - 1)     R p min(1, f) = 0           [2 3] [6 7]
    second      F + R min(1, max(0, f - 1))     R p (f = 1) = 0             [2 3] [6 7]
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import Index, kernel_call, kernel_part
from tilewright.mapspace.rules.scratch import Scratch
from tilewright_costmodels.timeloop.ragged.irregular import count_any_pieces, cut_irregular, is_free
from tilewright_costmodels.timeloop.ragged.tables import (
    ADVANCE,
    BEFORE,
    PLAIN,
    SECOND,
    UNMOVED,
    Pieces,
    Query,
    Selection,
)
from tilewright_costmodels.timeloop.tables import Hardware


@kernel_call
def cut_mapping(pieces: Pieces, hardware: Hardware, scratch: Scratch, b: int) -> None:
    """Write the cuts of all dimensions of the mapping in lane `b`."""
    dims, all_regular, loop = scratch.trips.shape[1], True, Index(0)
    for d in range(dims):
        pieces.regular[d] = True
    for level in range(len(hardware.level)):
        for d in range(dims):
            pieces.first_cut[level + 1, d] = pieces.first_cut[level, d]
        for s in range(hardware.level[level].start, hardware.level[level].stop):
            slot = hardware.slot[s]
            for position in range(dims):
                d = Index(scratch.order[slot.order, position, b] if slot.temporal else position)
                if scratch.trips[s, d, b] > 1.0:
                    _cut(pieces, level, s, d, slot.temporal, loop, scratch.trips[s, d, b], scratch.inside[s + 1, d, b])
                    all_regular &= pieces.regular[d]
                    loop = Index(loop + slot.temporal)
        pieces.loop_end[level] = loop
    for d in range(0 if all_regular else dims):
        if not pieces.regular[d]:
            cut_irregular(pieces, d)


@kernel_part
def _cut(pieces: Pieces, level: int, s: int, d: int, temporal: bool, loop: int, trips: float, tile: float) -> None:
    """Write one more cut of a dimension."""
    k = pieces.first_cut[level + 1, d]
    pieces.first_cut[level + 1, d] = k + 1
    cut, after, size = pieces.cut[k], pieces.cut[k + 1], pieces.cut[pieces.first_cut[0, d]].full
    cut.slot, cut.temporal, cut.loop, cut.trips = s, temporal, loop, trips
    after.full = tile
    after.full_count = np.floor(size / tile)
    after.remainder = size - after.full_count * tile
    remainder_full, remainder_partial = after.full_count - cut.full_count * trips, min(1.0, after.remainder)
    any_full = min(1.0, remainder_full)
    cut.remainder_full, cut.remainder_partial = remainder_full, remainder_partial
    after.count = after.full_count + remainder_partial
    after.last_temporal, after.spatial_end = (loop, cut.spatial_end) if temporal else (cut.last_temporal, k + 1)
    # pieces inside the cut, if it is free and if it is at zero
    remainder_spatial, remainder_temporal = cut.spatial_count - cut.spatial_full, cut.temporal_count - cut.temporal_full
    spatial_full = cut.spatial_full * (1.0 if temporal else trips) + remainder_spatial * (
        any_full if temporal else remainder_full
    )
    temporal_full = cut.temporal_full * (trips if temporal else 1.0) + remainder_temporal * (
        remainder_full if temporal else any_full
    )
    after.spatial_full = spatial_full
    after.spatial_count = spatial_full + remainder_spatial * (1.0 - any_full if temporal else remainder_partial)
    after.temporal_full = temporal_full
    after.temporal_count = temporal_full + remainder_temporal * (remainder_partial if temporal else 1.0 - any_full)
    pieces.regular[d] &= (cut.full_count == 0.0) | (trips * tile == cut.full)
    if temporal:
        pieces.can_stay[loop] = cut.remainder > 0.0 and remainder_full <= 1.0
        pieces.loop[loop].dimension, pieces.loop[loop].step = d, int(tile)


@kernel_part
def mode_of(d: int, selection: Selection) -> int:
    """Return the mode in which dimension `d` is counted for a selection of tiles."""
    if d == selection.dimension:
        return ADVANCE if selection.mode == SECOND else selection.mode
    if selection.mode == PLAIN or selection.mode == SECOND:
        return selection.mode
    return UNMOVED if selection.unmoved_only else PLAIN


@kernel_part
def last_free(pieces: Pieces, last: int, limit: int) -> int:
    """Return the last cut, up to `last`, outside which all temporal loops are outside loop `limit`."""
    for _ in range(2):  # there are rarely more; without a branch, because no processor predicts it
        last = Index(last - (pieces.cut[last].last_temporal >= limit))
    while pieces.cut[last].last_temporal >= limit:
        last = Index(last - 1)
    return last


@kernel_part
def count_pieces(pieces: Pieces, query: Query, d: int, last: int, list_sizes: bool) -> tuple[float, float, float]:
    """Count the pieces of dimension `d` outside the cut `last`.

    Args:
        list_sizes: write the number of pieces of each size to `results`.

    Returns:
        Number of pieces, total of their iterations, iterations of the smallest piece.
    """
    if not pieces.regular[d]:
        count_any_pieces(pieces, query, Index(d), Index(last))
        totals = pieces.totals[d]
        return totals.count, totals.iterations, totals.smallest
    movement, mode, limit = query.movement, query.mode, query.limit
    all_instances, keeps_from = movement.all_instances, pieces.first_cut[movement.keeps_from, d]
    free_end, spatial_end = last_free(pieces, last, limit), pieces.cut[last].spatial_end
    # outside `free_end` all cuts are free (temporal ones if not `all_instances`); inside `end` all
    # are at zero
    end = last
    if mode != UNMOVED and mode != SECOND:
        end = Index(max(free_end + (mode != PLAIN), spatial_end))
    shared_cut = pieces.first_cut[movement.shared_from, d]
    if spatial_end > shared_cut and not (all_instances and query.relevant):
        free_end = min(free_end, shared_cut)
    before = pieces.cut[free_end]
    # full pieces; remainders; with UNMOVED, full pieces that a remainder follows in the next trip
    full, remainder, followed = before.full_count, before.count - before.full_count, 0.0
    if not all_instances:
        full, remainder = before.temporal_full, before.temporal_count - before.temporal_full
    first_full = False
    for k in range(free_end, end):
        cut = pieces.cut[k]
        trips, remainder_full, remainder_partial = cut.trips, cut.remainder_full, cut.remainder_partial
        any_full = min(1.0, remainder_full)
        if mode == UNMOVED and k == keeps_from:
            followed = 0.0
        if mode == UNMOVED and cut.temporal and cut.loop >= limit:
            # a full piece makes several trips, and the second is full as well
            full = remainder if remainder_full == 1.0 and remainder_partial == 0.0 else 0.0
            followed = remainder if remainder_full == 1.0 and remainder_partial > 0.0 else 0.0
            remainder = remainder if remainder_full == 0.0 else 0.0
        elif mode == SECOND and cut.temporal and cut.loop >= limit:
            # the first trip is full, too
            first_full = True
            full += remainder if remainder_full > 1.0 else 0.0
            remainder *= remainder_partial if remainder_full == 1.0 else 0.0
        elif (mode == ADVANCE or mode == BEFORE) and cut.temporal and cut.loop == limit:
            full = full * (trips - 1.0) + remainder * max(0.0, remainder_full - 1.0)
            remainder = remainder * remainder_partial * any_full
        else:
            free = is_free(pieces, query, d, k)
            full = full * (trips if free else 1.0) + remainder * (remainder_full if free else any_full)
            if mode == UNMOVED:  # full pieces in sub-clusters that have no remainder
                full += followed * (trips - remainder_full - remainder_partial if free else 0.0)
            remainder *= remainder_partial if free else 1.0 - any_full
            followed *= remainder_partial if free else 1.0 - any_full
    # the piece before any piece is full; the first piece of a remainder may be full, too
    full_size = pieces.cut[last].full
    remainder_size = full_size if mode == BEFORE else min(pieces.cut[end].remainder, full_size)
    if list_sizes:
        totals, row = pieces.totals[d], Index((full > 0.0) & (remainder_size < full_size))
        pieces.results[d, 0].iterations, pieces.results[d, 0].count = full_size, full
        pieces.results[d, row].iterations = remainder_size
        pieces.results[d, row].count = remainder if remainder_size < full_size else full + remainder
        pieces.results[d, 0].next, pieces.results[d, row].next = full_size, full_size if first_full else remainder_size
        totals.sizes = row + (pieces.results[d, row].count > 0.0)
    return (
        full + remainder,
        full * full_size + remainder * remainder_size,
        remainder_size if remainder > 0.0 else full_size,
    )
