"""Parts of the kernel for tiles that do not divide: the pieces of one dimension at a time.

`walk` counts the pieces before a cut, by size: a cut is free where all its trips are meant, or at zero where only its first piece
is, which is the largest. Where a dimension's tiles divide one another, there are full pieces and at most one size of rest; the
dimension itself is the first rest.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import Index, kernel_call, kernel_part
from tilewright.mapspace.rules.scratch import Scratch
from tilewright_costmodels.timeloop.ragged.cuts import BEFORE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.remainders import cut_any, walk_any
from tilewright_costmodels.timeloop.tables import Hardware


@kernel_call
def cut_all(pieces: Pieces, hardware: Hardware, scratch: Scratch, b: int) -> None:
    """Cut all dimensions of the mapping in lane `b` as its loops say."""
    dims, chains, time = scratch.trips.shape[1], True, Index(0)
    for d in range(dims):
        pieces.chain[d] = True
    for level in range(len(hardware.level)):
        for d in range(dims):
            pieces.cuts[level + 1, d] = pieces.cuts[level, d]
        for s in range(hardware.level[level].start, hardware.level[level].stop):
            slot = hardware.slot[s]
            for position in range(dims):
                d = Index(scratch.order[slot.order, position, b] if slot.steps else position)
                if scratch.trips[s, d, b] > 1.0:
                    _cut(pieces, level, s, d, slot.steps, time, scratch.trips[s, d, b], scratch.inside[s + 1, d, b])
                    chains &= pieces.chain[d]
                    time = Index(time + slot.steps)
        pieces.end[level] = time
    for d in range(0 if chains else dims):
        if not pieces.chain[d]:
            cut_any(pieces, d)


@kernel_part
def _cut(pieces: Pieces, level: int, s: int, d: int, steps: bool, time: int, trips: float, step: float) -> None:
    """Write one more cut of a dimension."""
    k = pieces.cuts[level + 1, d]
    pieces.cuts[level + 1, d] = k + 1
    cut, after, size = pieces.cut[k], pieces.cut[k + 1], pieces.cut[pieces.cuts[0, d]].full
    cut.slot, cut.steps, cut.place, cut.trips = s, steps, time, trips
    after.full = step
    after.whole = np.floor(size / step)
    after.rest = size - after.whole * step
    part, more = after.whole - cut.whole * trips, min(1.0, after.rest)
    some = min(1.0, part)
    cut.part, cut.more = part, more
    after.many = after.whole + more
    after.latest, after.spread = (time, cut.spread) if steps else (cut.latest, k + 1)
    # what becomes of full pieces and of the rest where the cut is free, and where it is at zero
    lanes, turns = cut.lanes - cut.full_lanes, cut.turns - cut.full_turns
    full_lanes = cut.full_lanes * (1.0 if steps else trips) + lanes * (some if steps else part)
    full_turns = cut.full_turns * (trips if steps else 1.0) + turns * (part if steps else some)
    after.full_lanes, after.lanes = full_lanes, full_lanes + lanes * (1.0 - some if steps else more)
    after.full_turns, after.turns = full_turns, full_turns + turns * (more if steps else 1.0 - some)
    pieces.chain[d] &= (cut.whole == 0.0) | (trips * step == cut.full)
    if steps:
        pieces.calm[time] = cut.rest > 0.0 and part <= 1.0
        pieces.loop[time].dimension, pieces.loop[time].step = d, int(step)


@kernel_part
def mode_of(d: int, mode: int, advancing: int, hush: bool) -> int:
    """Which pieces of a dimension count when the loop at the limit, of dimension `advancing`, advances; `hush`: and no other one
    turns that moves the tile."""
    if d == advancing or mode == PLAIN:
        return mode
    return QUIET if hush else PLAIN


@kernel_part
def last_free(pieces: Pieces, last: int, limit: int) -> int:
    """The last cut, up to `last`, before which all loops in time are before the place `limit`."""
    for _ in range(2):  # seldom there are more: no branch that nobody can foresee
        last = Index(last - (pieces.cut[last].latest >= limit))
    while pieces.cut[last].latest >= limit:
        last = Index(last - 1)
    return last


@kernel_part
def walk(
    pieces: Pieces,
    d: int,
    last: int,
    limit: int,
    mode: int,
    tensor: int,
    moves: bool,
    every: bool,
    within: int,
    keeps: int,
    listed: bool,
) -> tuple[float, float, float]:
    """Count the pieces of a dimension before the cut `last`; how many there are, their iterations, and those of the least one.

    Args:
        limit: loops in time before this place are free; those from there on at zero, but for the one there as `mode` says.
        every: loops in space before the level `within` are free. From there on those are that move the tensor, if `moves`
            says that the dimension does, or whose sub-clusters share nothing of it.
        keeps: QUIET: before this cut, loops must be quiet whatever of the pieces exists further inside.
        listed: write to `share` how many there are of each size.
    """
    if not pieces.chain[d]:
        # of one type each: there is one such function, whoever calls
        given = int(limit), int(mode), Index(tensor), bool(moves), bool(every), Index(within), Index(keeps)
        walk_any(pieces, Index(d), Index(last), *given)
        found = pieces.shares[d]
        return found.count, found.iterations, found.least
    first, spread = last_free(pieces, last, limit), pieces.cut[last].spread
    # up to `first` all cuts are free (in time, if not `every`), and from `end` on all are at zero
    end = last
    if mode != QUIET:
        end = Index(max(first + (mode != PLAIN), spread))
    inside = pieces.cuts[within, d]
    if spread > inside and not (every and moves):
        first = min(first, inside)
    before = pieces.cut[first]
    # full pieces; whether there is the rest; QUIET: full pieces that the rest follows in the next trip
    whole, rest, followed = before.whole, before.many - before.whole, 0.0
    if not every:
        whole, rest = before.full_turns, before.turns - before.full_turns
    for k in range(first, end):
        cut = pieces.cut[k]
        trips, part, more = cut.trips, cut.part, cut.more
        some = min(1.0, part)
        if mode == QUIET and k == keeps:
            followed = 0.0
        if mode == QUIET and cut.steps and cut.place >= limit:
            # a full piece makes several trips, of which the second is full, too
            whole = rest if part == 1.0 and more == 0.0 else 0.0
            followed = rest if part == 1.0 and more > 0.0 else 0.0
            rest = rest if part == 0.0 else 0.0
        elif mode != PLAIN and mode != QUIET and cut.steps and cut.place == limit:
            whole, rest = whole * (trips - 1.0) + rest * max(0.0, part - 1.0), rest * more * some
        else:
            # no branch that nobody can foresee
            outside, apart = k < inside, moves | pieces.apart[tensor, cut.slot]
            space = (outside & every) | ((not outside) & apart)
            free = (cut.steps & (cut.place < limit)) | ((not cut.steps) & space)
            whole = whole * (trips if free else 1.0) + rest * (part if free else some)
            if mode == QUIET:  # of full pieces over sub-clusters that the rest does not reach
                whole += followed * (trips - part - more if free else 0.0)
            rest *= more if free else 1.0 - some
            followed *= more if free else 1.0 - some
    # before any piece there is a full one; of the rest, too, the first piece may be one
    full = pieces.cut[last].full
    left = full if mode == BEFORE else min(pieces.cut[end].rest, full)
    if listed:
        found, some = pieces.shares[d], Index((whole > 0.0) & (left < full))
        pieces.share[d, 0].iterations, pieces.share[d, 0].count = full, whole
        pieces.share[d, some].iterations, pieces.share[d, some].count = left, rest if left < full else whole + rest
        found.number = some + (pieces.share[d, some].count > 0.0)
    return whole + rest, whole * full + rest * left, left if rest > 0.0 else full
