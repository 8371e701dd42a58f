"""Parts of the kernel for tiles that do not divide: the pieces of one dimension at a time.

A piece of n cut into pieces of t gives floor(n / t) of t, and one of n mod t where that is not 0; so at every boundary a
dimension has few different sizes. `walk` counts the pieces of each size: a cut is free where all its trips are meant, or at zero
where only its first piece is, which is the largest. Once for each mapping they are counted with all cuts free, with those in time
free, and with those in space; a walk begins where it departs from one of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import Index, Records, compiled, integer, kernel_part, records
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_costmodels.timeloop.tables import Hardware, Tables

PLAIN, ADVANCE, BEFORE, QUIET = map(integer, range(4))
"""Which pieces `walk` counts. ADVANCE: those to which the loop at `limit` advances; BEFORE: the sizes of those before them;
QUIET: those for which no loop of the dimension turns at `limit` or further inside."""
ALL, TIME, SPACE = map(integer, range(3))
"""Which cuts are free: `Pieces.known`."""
COUNT, SUM, LIST = map(integer, range(3))
"""What `walk` finds: how many pieces there are; their iterations, too; and how many there are of each size."""


class Pieces(NamedTuple):
    """The pieces of one mapping. Shapes: D dimensions, S slots, Y sizes at most, T tensors, L levels."""

    cut: Records
    """[D, S]: cuts that are not trivial, outermost first: the slot; the place in the nest; whether it steps in time; the trip
    at hand; whether it makes no more than one full piece of some size (`calm`), so that its loop may not turn."""
    size: Records
    """[D, S + 1, Y]: sizes of pieces before a cut, the full one first: iterations; full pieces that the cut makes of it; which
    of the sizes after the cut the rest has (-1: there is none); the same, or a spare one; whether there is a full piece (`some`), or
    not (`less`), 1 or 0."""
    sizes: Ints
    """[D, S + 1]: how many."""
    cuts: Ints
    """[D, S + 1]: cuts in the slots before a slot."""
    known: Floats
    """[3, D, S + 1, Y]: pieces of each size before a cut, where all cuts, those in time or those in space are free."""
    total: Records
    """[3, D, S + 1]: how many they are, and their iterations."""
    apart: Bools
    """[S]: of a loop in space, whether sub-clusters that differ in it share nothing of the tensor at hand."""
    weight: Floats
    """[2, Y]: pieces of each size, before and after a cut."""
    pair: Floats
    """[2, Y, Y + 1]: the same for pairs of pieces; the last column: there is no second one."""
    share: Records
    """[D, Y]: what `walk` found: iterations, and how many pieces have so many."""
    shares: Records
    """[D]: how many sizes; pieces in all; their iterations; the one at hand."""
    words: Records
    """[T, L]: see `words.measure`."""
    seen: Records
    """[places]: hash table of boxes; a place is taken if its stamp is the current one."""
    stamp: Ints
    """[1]: the current one."""


def pieces_of(tables: Tables) -> Pieces:
    """Room for mappings of these tables."""
    levels, tensors, dims = tables.shape
    slots = len(tables.hardware.slot)
    most = slots + 2
    words = dict.fromkeys("left entered own first_left first_entered first_own".split(), float)
    return Pieces(
        cut=records((dims, slots), slot=Index, place=int, steps=bool, trip=int, calm=bool),
        size=records(
            (dims, slots + 1, most), iterations=float, full=float, rest=int, spill=int, some=float, less=float
        ),
        sizes=np.zeros((dims, slots + 1), np.int64),
        cuts=np.zeros((dims, slots + 1), np.int64),
        known=np.zeros((3, dims, slots + 1, most)),
        total=records((3, dims, slots + 1), count=float, iterations=float),
        apart=np.zeros(slots, np.bool_),
        weight=np.zeros((2, most)),
        pair=np.zeros((2, most, most + 1)),
        share=records((dims, most), iterations=float, count=float),
        shares=records(dims, number=int, count=float, iterations=float, at=int),
        words=records((tensors, levels), **words),
        seen=records(1 << (2 * tables.children).bit_length(), first=int, last=int, separate=int, stamp=int),
        stamp=np.zeros(1, np.int64),
    )


@compiled
def cut_all(pieces: Pieces, hardware: Hardware, inside: Floats, loops: Records, end: int) -> None:
    """Cut all dimensions into the tiles of `inside`; `loops` before `end` are those in time."""
    for d in range(inside.shape[1]):
        k, slots = 0, len(hardware.slot)
        pieces.sizes[d, 0] = 1
        pieces.size[d, 0, 0].iterations = inside[0, d]
        for which in range(3):
            pieces.known[which, d, 0, 0] = pieces.total[which, d, 0].count = 1.0
            pieces.total[which, d, 0].iterations = inside[0, d]
        for s in range(slots):
            pieces.cuts[d, s] = k
            tile = inside[s + 1, d]
            if tile < inside[s, d]:
                pieces.cut[d, k].slot, pieces.cut[d, k].steps = s, hardware.slot[s].steps
                pieces.cut[d, k].calm = False
                number = 1
                pieces.size[d, k + 1, 0].iterations = tile
                for y in range(pieces.sizes[d, k]):
                    size = pieces.size[d, k, y]
                    size.full = np.floor(size.iterations / tile)
                    rest = size.iterations - size.full * tile
                    size.rest, size.spill = -1, pieces.weight.shape[1] - 1
                    size.some = min(1.0, size.full)
                    size.less = 1.0 - size.some
                    pieces.cut[d, k].calm |= size.full <= 1.0
                    if rest > 0.0:
                        z = 1
                        while z < number and pieces.size[d, k + 1, z].iterations != rest:
                            z += 1
                        if z == number:
                            pieces.size[d, k + 1, z].iterations = rest
                            number += 1
                        size.rest = size.spill = z
                k += 1
                pieces.sizes[d, k] = number
                for which in range(3):
                    free = which == ALL or (which == TIME) == hardware.slot[s].steps
                    _cut(pieces, d, k - 1, free, pieces.known[which, d, k - 1], pieces.known[which, d, k])
                    total = pieces.total[which, d, k]
                    total.count = total.iterations = 0.0
                    for y in range(number):
                        total.count += pieces.known[which, d, k, y]
                        total.iterations += pieces.known[which, d, k, y] * pieces.size[d, k, y].iterations
        pieces.cuts[d, slots] = k
    for at in range(end):
        loop = loops[at]
        pieces.cut[loop.dimension, pieces.cuts[loop.dimension, loop.slot]].place = at


@kernel_part
def _cut(pieces: Pieces, d: int, k: int, free: bool, before: Floats, after: Floats) -> None:
    """Of the pieces of each size before a cut, make those after it."""
    for x in range(pieces.sizes[d, k + 1]):
        after[x] = 0.0
    for x in range(pieces.sizes[d, k]):  # no branch that nobody can foresee
        size, many = pieces.size[d, k, x], before[x]
        after[0] += many * (size.full if free else size.some)
        after[size.spill] += many * (1.0 if free else size.less)


@kernel_part
def recall(pieces: Pieces, d: int, which: int, k: int, listed: bool) -> None:
    """Write to `shares`, and to `share` where they are listed, what is known of the pieces before a cut."""
    found, total = pieces.shares[d], pieces.total[which, d, k]
    found.number, found.count, found.iterations = 0, total.count, total.iterations
    for x in range(pieces.sizes[d, k] if listed else 0):
        many = pieces.known[which, d, k, x]
        if many > 0.0:
            each = pieces.share[d, found.number]
            each.iterations, each.count = pieces.size[d, k, x].iterations, many
            found.number += 1


@kernel_part
def walk(
    pieces: Pieces,
    d: int,
    stop: int,
    limit: int,
    mode: int,
    moves: bool,
    every: bool,
    within: int,
    keeps_from: int,
    what: int,
) -> None:
    """Count the pieces of a dimension before the slot `stop`, and write them to `shares`, and to `share`.

    Args:
        limit: loops in time before this place are free; those from there on at zero, but for the one there as `mode` says.
        every: loops in space before the slot `within` are free. From there on those are that move the tensor at hand, if `moves`
            says that the dimension does, or whose sub-clusters share nothing.
        keeps_from: QUIET: before this slot, loops must be quiet whatever of the pieces exists further inside.
        what: is asked for.
    """
    last, cuts = pieces.cuts[d, stop], pieces.cut[d]
    which = ALL if every else TIME
    if every and limit == 0 and mode == PLAIN:
        which = SPACE
    begin, more = 0, True
    while more and begin < last:
        cut = cuts[begin]
        if cut.steps:
            more = which == SPACE or cut.place < limit
        else:
            more = cut.slot < within or (moves or pieces.apart[cut.slot]) == every
        begin += more
    more = what == COUNT
    while more and last > begin:  # cuts at zero make one piece of each
        cut = cuts[last - 1]
        if cut.steps:
            more = cut.place > limit or (cut.place == limit and mode == PLAIN)
        else:
            more = not (every if cut.slot < within else moves or pieces.apart[cut.slot])
        last -= more
    if begin == last:
        recall(pieces, d, which, last, what == LIST)
        return
    weight = pieces.weight
    for x in range(pieces.sizes[d, begin]):
        weight[0, x] = pieces.known[which, d, begin, x]
    if mode == BEFORE or mode == QUIET:
        _walk_pairs(pieces, d, begin, last, limit, mode, moves, every, within, keeps_from)
        return
    here = 0
    for k in range(begin, last):
        there, cut = 1 - here, cuts[k]
        if mode == ADVANCE and cut.steps and cut.place == limit:
            _advance(pieces, d, k, weight[here], weight[there])
        else:
            free = every if cut.slot < within else moves or pieces.apart[cut.slot]
            if cut.steps:
                free = cut.place < limit
            _cut(pieces, d, k, free, weight[here], weight[there])
        here = there
    _tell(pieces, d, last, weight[here])


@kernel_part
def _advance(pieces: Pieces, d: int, k: int, before: Floats, after: Floats) -> None:
    """Of the pieces of each size before a cut, make those to which its loop advances."""
    for x in range(pieces.sizes[d, k + 1]):
        after[x] = 0.0
    for x in range(pieces.sizes[d, k]):
        size, many = pieces.size[d, k, x], before[x]
        if size.full > 0.0:
            after[0] += many * (size.full - 1.0)
            if size.rest >= 0:
                after[size.rest] += many


@kernel_part
def _tell(pieces: Pieces, d: int, k: int, weight: Floats) -> None:
    """Write to `shares`, and to `share`, how many pieces of each size there are before a cut."""
    found = pieces.shares[d]
    found.number, found.count, found.iterations = 0, 0.0, 0.0
    for x in range(pieces.sizes[d, k]):
        many = weight[x]
        if many > 0.0:
            each = pieces.share[d, found.number]
            each.iterations, each.count = pieces.size[d, k, x].iterations, many
            found.number += 1
            found.count += many
            found.iterations += many * each.iterations


@compiled
def _walk_pairs(
    pieces: Pieces,
    d: int,
    begin: int,
    last: int,
    limit: int,
    mode: int,
    moves: bool,
    every: bool,
    within: int,
    keeps_from: int,
) -> None:
    """The rest of a walk that asks what comes before a piece, or whether anything does: BEFORE and QUIET. Seldom needed; out of
    the way of what is needed always."""
    cuts, weight, pair = pieces.cut[d], pieces.weight, pieces.pair
    none = pair.shape[2] - 1
    here, paired = 0, False
    for k in range(begin, last):
        there, number, after = 1 - here, pieces.sizes[d, k], pieces.sizes[d, k + 1]
        steps, place, slot = cuts[k].steps, cuts[k].place, cuts[k].slot
        free = place < limit if steps else (every if slot < within else moves or pieces.apart[slot])
        if mode == QUIET and steps and place >= limit and not paired:
            paired = True
            for x in range(number):
                for y in range(number):
                    pair[here, x, y] = 0.0
                pair[here, x, none] = weight[here, x]
        if paired:
            if mode == QUIET and k == pieces.cuts[d, keeps_from]:
                for x in range(number):
                    for y in range(number):
                        pair[here, x, y] = 0.0
            _no_pairs(pieces, there, after)
            for x in range(number):
                for column in range(number + 1):
                    y = column if column < number else none
                    if pair[here, x, y] > 0.0:
                        _cut_pair(pieces, d, k, x, y, here, steps, steps and mode == QUIET, free)
        elif mode == BEFORE and steps and place == limit:
            paired = True
            _no_pairs(pieces, there, after)
            for x in range(number):
                size, many = pieces.size[d, k, x], weight[here, x]
                if size.full > 0.0:
                    pair[there, 0, 0] += many * (size.full - 1.0)
                    if size.rest >= 0:
                        pair[there, size.rest, 0] += many
        else:
            _cut(pieces, d, k, free, weight[here], weight[there])
        here = there
    if paired:
        for x in range(pieces.sizes[d, last]):
            many = pair[here, x, none] if mode == QUIET else 0.0
            for y in range(pieces.sizes[d, last] if mode == BEFORE else 0):
                many += pair[here, y, x]
            weight[here, x] = many
    _tell(pieces, d, last, weight[here])


@kernel_part
def _no_pairs(pieces: Pieces, which: int, number: int) -> None:
    """Begin with none, of so many sizes."""
    for x in range(number):
        pieces.pair[which, x, pieces.pair.shape[2] - 1] = 0.0
        for y in range(number):
            pieces.pair[which, x, y] = 0.0


@kernel_part
def _cut_pair(
    pieces: Pieces, d: int, k: int, x: int, y: int, here: int, steps: bool, next_too: bool, free: bool
) -> None:
    """Cut a piece of size x and its second one of size y. `next_too`: what follows on the first piece of x may be second."""
    pair, there, none = pieces.pair, 1 - here, pieces.pair.shape[2] - 1
    many, one = pair[here, x, y], pieces.size[d, k, x]
    full, rest, second = one.full, one.rest, none  # of y, where there is one
    other, left = 0.0, -1
    if y != none:
        other, left = pieces.size[d, k, y].full, pieces.size[d, k, y].rest
    if steps or not free:
        if y != none:
            second = 0 if other > 0.0 else left
        if next_too:
            if full > 1.0:
                second = 0
            elif full > 0.0 and rest >= 0 and second != 0:
                larger = second == none
                if not larger:
                    larger = pieces.size[d, k + 1, rest].iterations > pieces.size[d, k + 1, second].iterations
                second = rest if larger else second
        pair[there, 0 if full > 0.0 else rest, second] += many
    elif y == none:
        pair[there, 0, none] += many * full
        if rest >= 0:
            pair[there, rest, none] += many
    else:
        last = left if left >= 0 else none
        pair[there, 0, 0] += many * min(full, other)
        if full == other:
            if rest >= 0:
                pair[there, rest, last] += many
        elif full > other:
            pair[there, 0, last] += many
            pair[there, 0, none] += many * (full - other - 1.0)
            if rest >= 0:
                pair[there, rest, none] += many
        elif rest >= 0:
            pair[there, rest, 0] += many
