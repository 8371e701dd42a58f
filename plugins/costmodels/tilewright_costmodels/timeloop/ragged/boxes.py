"""Parts of the kernel for tiles that do not divide: boxes of dimensions that share coordinates."""

from __future__ import annotations

from tilewright.compiled import Records, integer, kernel_call, kernel_part
from tilewright_costmodels.timeloop.ragged.cuts import NOWHERE, PLAIN, Pieces
from tilewright_costmodels.timeloop.ragged.pieces import mode_of, walk
from tilewright_costmodels.timeloop.sharing import mix
from tilewright_costmodels.timeloop.tables import Tensors

ZERO = integer(0)


@kernel_call
def shared(pieces: Pieces, tensors: Tensors, tensor: int, start: int, stop: int, every: bool) -> float:
    """The part of what sub-clusters are sent that is left where those with equal boxes share a delivery."""
    part = 1.0
    for group in range(2, tensors.whole[tensor].groups):
        part *= _shared_of_group(pieces, tensors, tensor, group, start, stop, every)
    return part


@kernel_part
def _shared_of_group(
    pieces: Pieces, tensors: Tensors, tensor: int, group: int, start: int, stop: int, every: bool
) -> float:
    """The same of the dimensions of a group, unrolled between two levels.

    Boxes are equal whose first and last words are. Only where several dimensions of a group are unrolled can that be.
    """
    moves = tensors.moves[tensor]
    unrolled, one, other, plain = 0, NOWHERE, NOWHERE, True
    for d in range(len(moves)):
        if moves[d].group == group:
            number = 0
            for k in range(pieces.cuts[start, d], pieces.cuts[stop, d]):
                plain &= not (number > 0 and pieces.cut[k].steps)  # no steps inside of sub-clusters
                if not pieces.cut[k].steps:
                    number += 1
                    plain &= number == 1 and not pieces.apart[tensor, pieces.cut[k].slot]
            if number > 0:
                unrolled, one, other = unrolled + 1, other, d
            plain &= moves[d].single
    if unrolled < 2:
        return 1.0
    if unrolled == 2 and plain:
        return _of_two_loops(pieces, moves, tensor, group, one, other, start, stop, every)
    return _of_any_loops(pieces, tensors, tensor, group, start, stop, every)


@kernel_part
def _of_two_loops(
    pieces: Pieces,
    moves: Records,
    tensor: int,
    group: int,
    one: int,
    other: int,
    start: int,
    stop: int,
    every: bool,
) -> float:
    """The same of two dimensions, each unrolled once, with no steps inside, that move one coordinate."""
    among, more = 1.0, 0.0  # pieces of the dimensions that are not unrolled, and what these add to the sides of boxes
    for d in range(len(moves)):
        if moves[d].group == group:
            unrolled = d == one or d == other
            last = pieces.cuts[stop, d]
            count, iterations, _ = walk(
                pieces, d, last - unrolled, len(pieces.calm), PLAIN, tensor, True, every, start, 0, unrolled
            )
            if not unrolled:
                more = more * count + moves[d].coefficient * (iterations - count) * among
                among *= count
    tile, second = pieces.cut[pieces.cuts[stop, one]].full, pieces.cut[pieces.cuts[stop, other]].full
    widens, lengthens = moves[one].coefficient, moves[other].coefficient
    step, over = int(widens * tile), int(lengthens * second)
    divisor, rest = step, over
    while rest > 0:
        divisor, rest = rest, divisor % rest
    again, period = step // divisor, over // divisor  # so many trips of the second are as far as these of the first
    sent = needed = 0.0
    for x in range(pieces.shares[one].number):
        outer = pieces.share[one, x]
        rows = int(outer.iterations / tile)
        short = outer.iterations - rows * tile
        for y in range(pieces.shares[other].number):
            inner = pieces.share[other, y]
            columns = int(inner.iterations / second)
            small = inner.iterations - columns * second
            side = 1.0 + widens * (tile - 1.0) + lengthens * (second - 1.0)
            lower, narrower = widens * (tile - short), lengthens * (second - small)
            full, below, beside = among * side + more, among * (side - lower) + more, among * (side - narrower) + more
            words = rows * columns * full
            twice = max(0, rows - period) * max(0, columns - again) * full
            if short > 0.0:
                words += columns * below
            if small > 0.0:
                words += rows * beside
            if short > 0.0 and small > 0.0:
                words += among * (side - lower - narrower) + more
                if lower == narrower:
                    twice += min(rows // period, columns // again) * below
            needed += outer.count * inner.count * words
            sent += outer.count * inner.count * (words - twice)
    return sent / needed


@kernel_part
def _of_any_loops(
    pieces: Pieces,
    tensors: Tensors,
    tensor: int,
    group: int,
    start: int,
    stop: int,
    every: bool,
) -> float:
    """The same, box by box."""
    moves = tensors.moves[tensor]
    for d in range(len(moves)):
        for k in range(pieces.cuts[start, d], pieces.cuts[stop, d]):
            pieces.cut[k].trip = 0
    for d in range(len(moves)):
        pieces.shares[d].at = 0
        if moves[d].group == group:
            walk(pieces, d, pieces.cuts[start, d], len(pieces.calm), PLAIN, tensor, True, every, start, 0, True)
    sent = needed = 0.0
    pieces.stamp[0] += 1
    more = True
    while more:  # over the sizes of what the memory outside holds, the steps in time, and the sub-clusters
        first = last = separate = ZERO
        many, words, exists = 1.0, 1.0, True
        for d in range(len(moves)):
            if moves[d].group == group:
                each = pieces.share[d, pieces.shares[d].at]
                low, size = 0.0, each.iterations
                many *= each.count
                alike = _divides(pieces, d, start, stop)
                for k in range(pieces.cuts[start, d], pieces.cuts[stop, d]):
                    tile, trip = pieces.cut[k + 1].full, pieces.cut[k].trip
                    low += trip * tile
                    size = min(tile, size - trip * tile)
                    exists &= size > 0.0
                    if alike and pieces.cut[k].steps:
                        many *= pieces.cut[k].trips
                    if not pieces.cut[k].steps and pieces.apart[tensor, pieces.cut[k].slot]:
                        separate = separate * len(pieces.seen) + trip
                pieces.shares[d].iterations = size
                first += int(moves[d].displacement * low)
                last += int(moves[d].displacement * (low + size - 1.0))
        if exists:
            side = 1.0
            for t in range(tensors.start[tensor], tensors.start[tensor + 1]):
                term = tensors.term[t]
                if moves[term.dimension].group == group:
                    side += term.coefficient * (pieces.shares[term.dimension].iterations - 1.0)
                    if term.last:
                        words *= side
                        side = 1.0
            needed += many * words
            if not _is_known(pieces, first, last, separate):
                sent += many * words
        more, another = _next_trip(pieces, moves, group, start, stop)
        if another:
            pieces.stamp[0] += 1
    return sent / needed


@kernel_call
def words_of_boxes(
    pieces: Pieces,
    tensors: Tensors,
    tensor: int,
    group: int,
    stop: int,
    limit: int,
    mode: int,
    advancing: int,
    hush: bool,
    keeps_from: int,
    every: bool,
    within: int,
    dimension: int,
    step: float,
) -> float:
    """The words of a tensor's boxes along the coordinates of one group of dimensions, in all pairs of their pieces; what each
    shares with itself so many steps of `dimension` further. The rest as in `words._different`."""
    moves = tensors.moves[tensor]
    for d in range(len(moves)):
        if moves[d].group == group:
            last, which = pieces.cuts[stop, d], mode_of(d, mode, advancing, hush)
            walk(pieces, d, last, limit, which, tensor, True, every, within, pieces.cuts[keeps_from, d], True)
    total, more = 0.0, True
    for d in range(len(moves)):
        pieces.shares[d].at = 0
    while more:
        words = side = 1.0
        for t in range(tensors.start[tensor], tensors.start[tensor + 1]):
            term = tensors.term[t]
            if moves[term.dimension].group == group:
                iterations = pieces.share[term.dimension, pieces.shares[term.dimension].at].iterations
                moved = step if term.dimension == dimension else 0.0
                side += term.coefficient * (iterations - 1.0 - moved)
                if term.last:
                    words *= max(0.0, side)
                    side = 1.0
        for d in range(len(moves)):
            if moves[d].group == group:
                words *= pieces.share[d, pieces.shares[d].at].count
        total += words
        carry = True
        for d in range(len(moves)):
            if carry and moves[d].group == group:
                at = pieces.shares[d].at + 1
                carry = at == pieces.shares[d].number
                pieces.shares[d].at = 0 if carry else at
        more = not carry
    return total


@kernel_part
def _is_known(pieces: Pieces, first: int, last: int, separate: int) -> bool:
    """Whether a box, given by its first and last word, has been seen since the last stamp; it is from now on."""
    mask, stamp = len(pieces.seen) - 1, pieces.stamp[0]
    place = mix(mix(first) ^ mix(last + 1) ^ separate) & mask
    while pieces.seen[place].stamp == stamp:
        here = pieces.seen[place]
        if here.first == first and here.last == last and here.separate == separate:
            return True
        place = (place + 1) & mask
    here = pieces.seen[place]
    here.first, here.last, here.separate, here.stamp = first, last, separate, stamp
    return False


@kernel_part
def _next_trip(pieces: Pieces, moves: Records, group: int, start: int, stop: int) -> tuple[bool, bool]:
    """Count on the trips of a group's loops between two levels, those in space first, and then the sizes before them; whether
    there is another one, and whether it is of another step in time. Of a size that divides one step stands for all."""
    for steps in range(2):
        for d in range(len(moves)):
            for k in range(pieces.cuts[start, d], pieces.cuts[stop, d] if moves[d].group == group else 0):
                cut = pieces.cut[k]
                if cut.steps == steps and not (steps > 0 and _divides(pieces, d, start, stop)):
                    cut.trip += 1
                    if cut.trip < cut.trips:
                        return True, steps > 0
                    cut.trip = 0
    for d in range(len(moves)):
        if moves[d].group == group:
            pieces.shares[d].at += 1
            if pieces.shares[d].at < pieces.shares[d].number:
                return True, True
            pieces.shares[d].at = 0
    return False, True


@kernel_part
def _divides(pieces: Pieces, d: int, start: int, stop: int) -> bool:
    """Whether all cuts of the size at hand between two levels leave full pieces only."""
    first = pieces.cuts[start, d]
    exact = pieces.share[d, pieces.shares[d].at].iterations == pieces.cut[first].full
    for k in range(first, pieces.cuts[stop, d]):
        exact &= pieces.cut[k].trips * pieces.cut[k + 1].full == pieces.cut[k].full
    return bool(exact)
