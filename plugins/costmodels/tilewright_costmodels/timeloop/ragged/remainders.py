"""Parts of the kernel for tiles that do not divide: the pieces of a dimension that is cut anyhow, of as many sizes as there are.

Files may say so, map spaces do not: slow, and out of the way of what is needed always.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats
from tilewright_costmodels.timeloop.ragged.cuts import ADVANCE, BEFORE, QUIET, Pieces


@kernel_call
def cut_any(pieces: Pieces, d: int) -> None:
    """Write the sizes of the pieces at every boundary, how many there are, and which loops are calm."""
    first, last = pieces.cuts[0, d], pieces.cuts[-1, d]
    pieces.sizes[first] = 1
    pieces.size[first, 0].iterations = pieces.cut[first].full
    for k in range(first, last):
        cut, after = pieces.cut[k], pieces.cut[k + 1]
        number = 1
        pieces.size[k + 1, 0].iterations = after.full
        calm = False
        for y in range(pieces.sizes[k]):
            size = pieces.size[k, y]
            size.full = np.floor(size.iterations / after.full)
            rest = size.iterations - size.full * after.full
            size.rest = -1
            calm |= size.full <= 1.0
            if rest > 0.0:
                z = 1
                while z < number and pieces.size[k + 1, z].iterations != rest:
                    z += 1
                if z == number:
                    pieces.size[k + 1, z].iterations = rest
                    number += 1
                size.rest = z
        pieces.sizes[k + 1] = number
        if cut.steps:
            pieces.calm[cut.place] = calm
    for free in range(3):  # all cuts; those in space; those in time
        pieces.weight[first % 2, 0] = 1.0
        for k in range(first, last):
            steps, count = pieces.cut[k].steps, 0.0
            here, there = pieces.weight[k % 2], pieces.weight[(k + 1) % 2]
            _cut(pieces, k, free == 0 or steps == (free == 2), here, there)
            for y in range(pieces.sizes[k + 1]):
                count += there[y]
            after = pieces.cut[k + 1]
            if free == 0:
                after.many = count
            elif free == 1:
                after.lanes = count
            else:
                after.turns = count


@kernel_call
def walk_any(
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
) -> None:
    """As `pieces.walk`."""
    cuts, weight, pair, first = pieces.cut, pieces.weight, pieces.pair, pieces.cuts[0, d]
    none = pair.shape[2] - 1
    here, paired = 0, False
    weight[0, 0] = 1.0
    for k in range(first, last):
        there, number, after = 1 - here, pieces.sizes[k], pieces.sizes[k + 1]
        steps, place = cuts[k].steps, cuts[k].place
        free = (
            place < limit
            if steps
            else (every if k < pieces.cuts[within, d] else moves or pieces.apart[tensor, cuts[k].slot])
        )
        if mode == QUIET and steps and place >= limit and not paired:
            paired = True
            for x in range(number):
                for y in range(number):
                    pair[here, x, y] = 0.0
                pair[here, x, none] = weight[here, x]
        if paired:
            if mode == QUIET and k == keeps:
                for x in range(number):
                    for y in range(number):
                        pair[here, x, y] = 0.0
            _no_pairs(pieces, there, after)
            for x in range(number):
                for column in range(number + 1):
                    y = column if column < number else none
                    if pair[here, x, y] > 0.0:
                        _cut_pair(pieces, k, x, y, here, steps, steps and mode == QUIET, free)
        elif mode == BEFORE and steps and place == limit:
            paired = True
            _no_pairs(pieces, there, after)
            for x in range(number):
                size, many = pieces.size[k, x], weight[here, x]
                if size.full > 0.0:
                    pair[there, 0, 0] += many * (size.full - 1.0)
                    if size.rest >= 0:
                        pair[there, size.rest, 0] += many
        elif mode == ADVANCE and steps and place == limit:
            _advance(pieces, k, weight[here], weight[there])
        else:
            _cut(pieces, k, free, weight[here], weight[there])
        here = there
    if paired:
        for x in range(pieces.sizes[last]):
            many = pair[here, x, none] if mode == QUIET else 0.0
            for y in range(pieces.sizes[last] if mode == BEFORE else 0):
                many += pair[here, y, x]
            weight[here, x] = many
    found = pieces.shares[d]
    found.number, found.count, found.iterations, found.least = 0, 0.0, 0.0, np.inf
    for x in range(pieces.sizes[last]):
        many = weight[here, x]
        if many > 0.0:
            each = pieces.share[d, found.number]
            each.iterations, each.count = pieces.size[last, x].iterations, many
            found.number += 1
            found.count += many
            found.iterations += many * each.iterations
            found.least = min(found.least, each.iterations)


@kernel_part
def _cut(pieces: Pieces, k: int, free: bool, before: Floats, after: Floats) -> None:
    """Of the pieces of each size before a cut, make those after it: all, or the first one of each."""
    for x in range(pieces.sizes[k + 1]):
        after[x] = 0.0
    for x in range(pieces.sizes[k]):
        size, many = pieces.size[k, x], before[x]
        after[0] += many * (size.full if free else min(1.0, size.full))
        if size.rest >= 0 and (free or size.full == 0.0):
            after[size.rest] += many


@kernel_part
def _advance(pieces: Pieces, k: int, before: Floats, after: Floats) -> None:
    """Of the pieces of each size before a cut, make those to which its loop advances."""
    for x in range(pieces.sizes[k + 1]):
        after[x] = 0.0
    for x in range(pieces.sizes[k]):
        size, many = pieces.size[k, x], before[x]
        if size.full > 0.0:
            after[0] += many * (size.full - 1.0)
            if size.rest >= 0:
                after[size.rest] += many


@kernel_part
def _no_pairs(pieces: Pieces, which: int, number: int) -> None:
    """Begin with none, of so many sizes."""
    for x in range(number):
        pieces.pair[which, x, pieces.pair.shape[2] - 1] = 0.0
        for y in range(number):
            pieces.pair[which, x, y] = 0.0


@kernel_part
def _cut_pair(pieces: Pieces, k: int, x: int, y: int, here: int, steps: bool, next_too: bool, free: bool) -> None:
    """Cut a piece of size x and its second one of size y. `next_too`: what follows on the first piece of x may be second."""
    pair, there, none = pieces.pair, 1 - here, pieces.pair.shape[2] - 1
    many, one = pair[here, x, y], pieces.size[k, x]
    full, rest, second = one.full, one.rest, none  # of y, where there is one
    other, left = 0.0, -1
    if y != none:
        other, left = pieces.size[k, y].full, pieces.size[k, y].rest
    if steps or not free:
        if y != none:
            second = 0 if other > 0.0 else left
        if next_too:
            if full > 1.0:
                second = 0
            elif full > 0.0 and rest >= 0 and second != 0:
                larger = second == none
                if not larger:
                    larger = pieces.size[k + 1, rest].iterations > pieces.size[k + 1, second].iterations
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
