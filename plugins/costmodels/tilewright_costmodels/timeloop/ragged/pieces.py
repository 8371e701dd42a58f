"""Parts of the kernel for tiles that do not divide: the pieces of one dimension at a time.

`walk` counts the pieces before a cut, by size: a cut is free where all its trips are meant, or at zero where only its first piece
is, which is the largest. Where a dimension's tiles divide one another, there are full pieces and at most one size of rest; the
dimension itself is the first rest.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import Index, Records, kernel_part
from tilewright.mapspace.batch import Floats
from tilewright_costmodels.timeloop.ragged.cuts import BEFORE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.remainders import cut_any, walk_any
from tilewright_costmodels.timeloop.tables import Hardware


@kernel_part
def cut_all(pieces: Pieces, hardware: Hardware, sizes: Floats, loops: Records, end: int, unrolled_end: int) -> None:
    """Cut all dimensions of these sizes as the loops say: those in time before `end`, those in space before `unrolled_end`."""
    time, space, chains = Index(0), Index(len(loops) // 2), True
    for d in range(len(sizes)):
        first = pieces.cut[d, 0]
        first.full = first.rest = sizes[d]
        first.whole, first.many, first.latest, first.spread = 0.0, 1.0, -1, 0
        pieces.cuts[0, d], pieces.chain[d] = 0, True
    for s in range(len(hardware.slot)):
        for d in range(len(sizes)):
            pieces.cuts[s + 1, d] = pieces.cuts[s, d]
        steps = hardware.slot[s].steps
        at, stop = (time, end) if steps else (space, unrolled_end)
        while at < stop and loops[at].slot == s:
            loop = loops[at]
            d = loop.dimension
            k = pieces.cuts[s + 1, d]
            pieces.cuts[s + 1, d] = k + 1
            cut, after = pieces.cut[d, k], pieces.cut[d, k + 1]
            cut.slot, cut.steps, cut.place, cut.trips = s, steps, at, loop.trips
            after.full = float(loop.step)
            after.whole = np.floor(sizes[d] / after.full)
            after.rest = sizes[d] - after.whole * after.full
            cut.part, cut.more = after.whole - cut.whole * loop.trips, min(1.0, after.rest)
            after.many = after.whole + cut.more
            after.latest, after.spread = (at, cut.spread) if steps else (cut.latest, k + 1)
            cut.calm = cut.rest > 0.0 and cut.part <= 1.0
            cut.exact = loop.trips * after.full == cut.full
            if k > 0 and not cut.exact:
                chains = pieces.chain[d] = False
            at = Index(at + 1)
        if steps:
            time = at
        else:
            space = at
    for d in range(0 if chains else len(sizes)):
        if not pieces.chain[d]:
            cut_any(pieces, d)


@kernel_part
def walk(
    pieces: Pieces,
    d: int,
    last: int,
    limit: int,
    mode: int,
    moves: bool,
    every: bool,
    within: int,
    keeps: int,
    listed: bool,
) -> tuple[float, float, float]:
    """Count the pieces of a dimension before the cut `last`; how many there are, their iterations, and those of the least one.

    Args:
        limit: loops in time before this place are free; those from there on at zero, but for the one there as `mode` says.
        every: loops in space before the slot `within` are free. From there on those are that move the tensor at hand, if `moves`
            says that the dimension does, or whose sub-clusters share nothing.
        keeps: QUIET: before this cut, loops must be quiet whatever of the pieces exists further inside.
        listed: write to `share` how many there are of each size.
    """
    if not pieces.chain[d]:
        walk_any(pieces, d, last, limit, mode, moves, every, within, keeps)
        found = pieces.shares[d]
        return found.count, found.iterations, found.least
    first, spread = last, pieces.cut[d, last].spread
    while pieces.cut[d, first].latest >= limit:
        first -= 1
    # up to `first` all cuts are free, and from `end` on all are at zero
    end = max(first + 1, spread) if mode != PLAIN else max(first, spread)
    if mode == QUIET:
        end = last
    if not every:
        first = first if spread == 0 else 0
    elif not moves and spread > pieces.cuts[within, d]:
        first = min(first, pieces.cuts[within, d])
    # full pieces; whether there is the rest; QUIET: full pieces that the rest follows in the next trip
    whole, followed = pieces.cut[d, first].whole, 0.0
    rest = pieces.cut[d, first].many - whole
    for k in range(first, end):
        cut = pieces.cut[d, k]
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
            outside, apart = cut.slot < within, moves | pieces.apart[cut.slot]  # no branch that nobody can foresee
            space = (outside & every) | ((not outside) & apart)
            free = (cut.steps & (cut.place < limit)) | ((not cut.steps) & space)
            whole = whole * (trips if free else 1.0) + rest * (part if free else some)
            if mode == QUIET:  # of full pieces over sub-clusters that the rest does not reach
                whole += followed * (trips - part - more if free else 0.0)
            rest *= more if free else 1.0 - some
            followed *= more if free else 1.0 - some
    full = pieces.cut[d, last].full
    left = min(pieces.cut[d, end].rest, full)
    # before any piece there is a full one; of the rest, too, the first piece may be one
    if mode == BEFORE or left == full:
        whole, rest = whole + rest, 0.0
    if listed:
        found = pieces.shares[d]
        found.number = 0
        if whole > 0.0:
            pieces.share[d, 0].iterations, pieces.share[d, 0].count = full, whole
            found.number = 1
        if rest > 0.0:
            each = pieces.share[d, found.number]
            each.iterations, each.count = left, rest
            found.number += 1
    return whole + rest, whole * full + rest * left, left if rest > 0.0 else full
