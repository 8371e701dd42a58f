"""Boxes of tensors whose dimensions share coordinates (windows), where tiles do not divide.

Dimensions p and r share the coordinate p + r, as in a convolution. Sub-clusters are unrolled over 3 tiles of p, of 2
iterations, and over 2 tiles of r, of 2 iterations. Each has a box of the words p + r that it needs:

    tile of p    r = 0, 1       r = 2, 3
    0, 1         0 .. 2         2 .. 4
    2, 3         2 .. 4         4 .. 6        boxes 2 .. 4 are equal: one delivery serves both
    4            4 .. 5         6 .. 7        the last tile of p is short, and so are its boxes

The boxes have 3 + 3, 3 + 3 and 2 + 2 words, 16 in all. One box of 3 is a duplicate, so 13 are sent.
"""

from __future__ import annotations

from tilewright.compiled import Index, Records, integer, kernel_call, kernel_part, truth
from tilewright_costmodels.timeloop.multicast import hash_bits
from tilewright_costmodels.timeloop.ragged.regular import count_pieces, mode_of
from tilewright_costmodels.timeloop.ragged.tables import NO_INDEX, PLAIN, SECOND, Movement, Pieces, Query, Selection
from tilewright_costmodels.timeloop.tables import Tensors

ZERO, YES = integer(0), truth(True)


@kernel_call
def deduplicated_fraction(pieces: Pieces, tensors: Tensors, movement: Movement) -> float:
    """Return the fraction of the words sent to sub-clusters that remains if equal boxes are multicast."""
    fraction = 1.0
    for group in range(2, tensors.info[movement.tensor].groups):
        fraction *= _fraction_of_group(pieces, tensors, movement, group)
    return fraction


@kernel_part
def _fraction_of_group(pieces: Pieces, tensors: Tensors, movement: Movement, group: int) -> float:
    """Return the fraction for the dimensions of one group, unrolled between two levels.

    Boxes are equal if their first and last words are. That requires several unrolled dimensions in a group.
    """
    projection, start, stop = tensors.projection[movement.tensor], movement.shared_from, movement.stop
    unrolled, one, other, plain = 0, NO_INDEX, NO_INDEX, True
    for d in range(len(projection)):
        if projection[d].group == group:
            loops = 0
            for k in range(pieces.first_cut[start, d], pieces.first_cut[stop, d]):
                plain &= not (loops > 0 and pieces.cut[k].temporal)  # no temporal loop inside sub-clusters
                if not pieces.cut[k].temporal:
                    loops += 1
                    plain &= loops == 1 and not pieces.unicast[movement.tensor, pieces.cut[k].slot]
            if loops > 0:
                unrolled, one, other = unrolled + 1, other, d
            plain &= projection[d].one_coordinate
    if unrolled < 2:
        return 1.0
    if unrolled == 2 and plain:
        return _fraction_of_two_loops(pieces, projection, movement, group, one, other)
    return _fraction_of_any_loops(pieces, tensors, movement, group)


@kernel_part
def _fraction_of_two_loops(
    pieces: Pieces, projection: Records, movement: Movement, group: int, one: int, other: int
) -> float:
    """Return the fraction for two dimensions of one coordinate, each unrolled once, without temporal loops inside.

    The loop of dimension `one` numbers rows of sub-clusters, that of `other` columns. Boxes are
    equal if a number of rows and a number of columns shift them by the same distance.
    """
    stop, query = movement.stop, Query(movement, PLAIN, len(pieces.can_stay), YES)
    # number of pieces of the other dimensions, and what they add to the sides of boxes
    other_pieces = 1.0
    other_sides = 0.0
    for d in range(len(projection)):
        if projection[d].group == group:
            is_unrolled = d == one or d == other
            end_cut = pieces.first_cut[stop, d]
            count, iterations, _ = count_pieces(pieces, query, Index(d), Index(end_cut - is_unrolled), is_unrolled)
            if not is_unrolled:
                other_sides = other_sides * count + projection[d].coefficient * (iterations - count) * other_pieces
                other_pieces *= count
    row_tile, column_tile = pieces.cut[pieces.first_cut[stop, one]].full, pieces.cut[pieces.first_cut[stop, other]].full
    row_step, column_step = projection[one].coefficient, projection[other].coefficient
    row_shift, column_shift = int(row_step * row_tile), int(column_step * column_tile)
    divisor, remainder = row_shift, column_shift
    while remainder > 0:
        divisor, remainder = remainder, divisor % remainder
    # this many columns shift a box as far as that many rows
    columns_apart = row_shift // divisor
    rows_apart = column_shift // divisor
    sent = received = 0.0
    for x in range(pieces.totals[one].sizes):
        row_size = pieces.results[one, x]
        rows = int(row_size.iterations / row_tile)
        edge_rows = row_size.iterations - rows * row_tile
        for y in range(pieces.totals[other].sizes):
            column_size = pieces.results[other, y]
            columns = int(column_size.iterations / column_tile)
            edge_columns = column_size.iterations - columns * column_tile
            side = 1.0 + row_step * (row_tile - 1.0) + column_step * (column_tile - 1.0)
            rows_less, columns_less = row_step * (row_tile - edge_rows), column_step * (column_tile - edge_columns)
            full_words = other_pieces * side + other_sides
            row_edge_words = other_pieces * (side - rows_less) + other_sides
            column_edge_words = other_pieces * (side - columns_less) + other_sides
            words = rows * columns * full_words
            duplicates = max(0, rows - rows_apart) * max(0, columns - columns_apart) * full_words
            if edge_rows > 0.0:
                words += columns * row_edge_words
            if edge_columns > 0.0:
                words += rows * column_edge_words
            if edge_rows > 0.0 and edge_columns > 0.0:
                words += other_pieces * (side - rows_less - columns_less) + other_sides
                if rows_less == columns_less:
                    duplicates += min(rows // rows_apart, columns // columns_apart) * row_edge_words
            received += row_size.count * column_size.count * words
            sent += row_size.count * column_size.count * (words - duplicates)
    return sent / received


@kernel_part
def _fraction_of_any_loops(pieces: Pieces, tensors: Tensors, movement: Movement, group: int) -> float:
    """Return the fraction for any loops, by comparing all boxes."""
    tensor, start, stop = movement.tensor, movement.shared_from, movement.stop
    projection, query = tensors.projection[tensor], Query(movement, PLAIN, len(pieces.can_stay), YES)
    for d in range(len(projection)):
        for k in range(pieces.first_cut[start, d], pieces.first_cut[stop, d]):
            pieces.cut[k].trip = 0
    for d in range(len(projection)):
        pieces.totals[d].current = 0
        if projection[d].group == group:
            count_pieces(pieces, query, Index(d), pieces.first_cut[start, d], YES)
    sent = received = 0.0
    pieces.stamp[0] += 1
    more = True
    while more:  # over the sizes of the outer tile, the temporal trips, and the sub-clusters
        first = last = unicast_trip = ZERO
        count, words, exists = 1.0, 1.0, True
        for d in range(len(projection)):
            if projection[d].group == group:
                size = pieces.results[d, pieces.totals[d].current]
                low, iterations = 0.0, size.iterations
                count *= size.count
                divides = _divides(pieces, movement, d)
                for k in range(pieces.first_cut[start, d], pieces.first_cut[stop, d]):
                    tile, trip = pieces.cut[k + 1].full, pieces.cut[k].trip
                    low += trip * tile
                    iterations = min(tile, iterations - trip * tile)
                    exists &= iterations > 0.0
                    if divides and pieces.cut[k].temporal:
                        count *= pieces.cut[k].trips
                    if not pieces.cut[k].temporal and pieces.unicast[tensor, pieces.cut[k].slot]:
                        unicast_trip = unicast_trip * len(pieces.seen) + trip
                pieces.totals[d].iterations = iterations
                first += int(projection[d].displacement * low)
                last += int(projection[d].displacement * (low + iterations - 1.0))
        if exists:
            side = 1.0
            for t in range(tensors.start[tensor], tensors.start[tensor + 1]):
                term = tensors.term[t]
                if projection[term.dimension].group == group:
                    side += term.coefficient * (pieces.totals[term.dimension].iterations - 1.0)
                    if term.last:
                        words *= side
                        side = 1.0
            received += count * words
            if not _was_seen(pieces, first, last, unicast_trip):
                sent += count * words
        more, another = _next_trip(pieces, projection, movement, group)
        if another:
            pieces.stamp[0] += 1
    return sent / received


@kernel_call
def window_words(pieces: Pieces, tensors: Tensors, movement: Movement, selection: Selection, group: int) -> float:
    """Return the words of all selected boxes along the coordinates of one group, over all combinations of pieces.

    With SECOND, these are words that two boxes share: that of the second trips, and the next one, `shift` iterations later.
    """
    tensor, two_boxes = movement.tensor, selection.mode == SECOND
    projection = tensors.projection[tensor]
    for d in range(len(projection)):
        if projection[d].group == group:
            query = Query(movement, mode_of(d, selection), selection.limit, YES)
            count_pieces(pieces, query, Index(d), pieces.first_cut[movement.stop, d], YES)
    total, more = 0.0, True
    for d in range(len(projection)):
        pieces.totals[d].current = 0
    while more:
        words = side = next_side = 1.0
        for t in range(tensors.start[tensor], tensors.start[tensor + 1]):
            term = tensors.term[t]
            if projection[term.dimension].group == group:
                d = Index(term.dimension)
                piece = pieces.results[d, pieces.totals[d].current]
                iterations, following = piece.iterations, piece.next
                if two_boxes and d == selection.dimension:  # a piece that the loop advances from is full
                    iterations, following = pieces.cut[pieces.first_cut[movement.stop, d]].full, iterations
                moved = selection.shift if d == selection.shifted else 0.0
                side += term.coefficient * (iterations - 1.0 - moved)
                next_side += term.coefficient * (following - 1.0)
                if term.last:
                    words *= max(0.0, min(side, next_side) if two_boxes else side)
                    side = next_side = 1.0
        for d in range(len(projection)):
            if projection[d].group == group:
                words *= pieces.results[d, pieces.totals[d].current].count
        total += words
        carry = True
        for d in range(len(projection)):
            if carry and projection[d].group == group:
                at = pieces.totals[d].current + 1
                carry = at == pieces.totals[d].sizes
                pieces.totals[d].current = 0 if carry else at
        more = not carry
    return total


@kernel_part
def _was_seen(pieces: Pieces, first: int, last: int, unicast_trip: int) -> bool:
    """Return whether a box with this first and last word was seen since the last stamp, and remember it."""
    mask, stamp = len(pieces.seen) - 1, pieces.stamp[0]
    row = hash_bits(hash_bits(first) ^ hash_bits(last + 1) ^ unicast_trip) & mask
    while pieces.seen[row].stamp == stamp:
        box = pieces.seen[row]
        if box.first == first and box.last == last and box.unicast_trip == unicast_trip:
            return True
        row = (row + 1) & mask
    box = pieces.seen[row]
    box.first, box.last, box.unicast_trip, box.stamp = first, last, unicast_trip, stamp
    return False


@kernel_part
def _next_trip(pieces: Pieces, projection: Records, movement: Movement, group: int) -> tuple[bool, bool]:
    """Advance to the next trip of a group's loops between two levels.

    Spatial loops are fastest, then temporal ones, then the sizes of the outer tile. If a size
    divides into full pieces, one temporal trip represents all.

    Returns:
        Whether there is another trip, and whether it is of another temporal step.
    """
    start, stop = movement.shared_from, movement.stop
    for temporal in range(2):
        for d in range(len(projection)):
            for k in range(
                pieces.first_cut[start, d], pieces.first_cut[stop, d] if projection[d].group == group else 0
            ):
                cut = pieces.cut[k]
                if cut.temporal == temporal and not (temporal > 0 and _divides(pieces, movement, d)):
                    cut.trip += 1
                    if cut.trip < cut.trips:
                        return True, temporal > 0
                    cut.trip = 0
    for d in range(len(projection)):
        if projection[d].group == group:
            pieces.totals[d].current += 1
            if pieces.totals[d].current < pieces.totals[d].sizes:
                return True, True
            pieces.totals[d].current = 0
    return False, True


@kernel_part
def _divides(pieces: Pieces, movement: Movement, d: int) -> bool:
    """Return whether the cuts between two levels divide the size at hand into full pieces only."""
    first = pieces.first_cut[movement.shared_from, d]
    exact = pieces.results[d, pieces.totals[d].current].iterations == pieces.cut[first].full
    for k in range(first, pieces.first_cut[movement.stop, d]):
        exact &= pieces.cut[k].trips * pieces.cut[k + 1].full == pieces.cut[k].full
    return bool(exact)
