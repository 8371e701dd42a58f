"""Loops and tiles of `LANES` mappings as Timeloop lists them: by storage level, innermost first.

A level's loops are those between its entry and the next storage entry: unrolled ones along X, along Y, temporal ones.

Rows of `SparseScratch.bit` and `trips` in the example of `tables`. The loops of a buffer are M, N, K from outside:

    level   row   `bit`   `trips`
    0       0     2 (K)   4          temporal; `turn` is 0, because no loop is unrolled
    0       1     4 (N)   2
    0       2     1 (M)   4
    1       0     2 (K)   2          unrolled over the buffers
    1       1     1 (M)   1
    1       2     4 (N)   1
    1       3     4 (N)   1          temporal; `turn` is 3
    1       4     2 (K)   1
    1       5     1 (M)   1

Rows 0 and 2 of level 0 have the trips 4 of K and 4 of M. So the tile of A has 4 * 4 = 16 words, which is also its
number.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, integers, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import words_of
from tilewright_costmodels.timeloop.sparse.batch.tables import NOTHING, SparseScratch, SparseTables


@kernel_part
def relate(tables: SparseTables, work: SparseScratch) -> None:
    """Write the words of every tile, which levels keep each tensor, and what the next such level does."""
    units, scratch = splat16(1.0), work.scratch
    for level in range(len(tables.level)):
        work.listed[level] = False
        fanout = splat16(1.0)
        for slot in tables.unrolled[level]:
            if slot >= 0:
                for d in range(scratch.trips.shape[1]):
                    fanout = fanout * lanes(scratch.trips[slot, d])
        units = units * fanout
        work.fans[level][:] = (fanout > 1.0) | bool(tables.level[level].fans)
    work.units[:] = units
    if len(tables.unit_action):
        _count_units(tables, work)
    for t in range(len(tables.tensor)):
        child, ranks, absent = splat16(NOTHING), splat16(0), splat16(False)
        for level in range(len(tables.level)):
            kept, spec = lanes(scratch.kept[tables.level[level].entry, t]), tables.format[level, t]
            work.kept[level, t][:], work.child[level, t][:] = kept, child
            work.words[level, t][:] = words_of(tables.terms, t, scratch.inside[tables.inside[level + 1]])
            if tables.stored[t]:
                work.tile[level, t][:] = tile_of(tables, t, scratch.inside[tables.inside[level + 1]])
            absent = np.where(kept & (child < 0), spec.ranks > 0, absent)
            # of outputs and operands, actions move the metadata of the ranks that the next level inside has
            work.moved[level, t][:] = np.where(child < 0, int(spec.ranks), ranks)
            child, ranks = np.where(kept, level, child), np.where(kept, int(spec.ranks), ranks)
        work.absent[t][:] = absent
        sent, packed = splat16(False), splat16(False)
        for level in range(len(tables.level) - 1, -1, -1):
            kept, spec = lanes(work.kept[level, t]), tables.format[level, t]
            work.sent[level, t][:], work.packed[level, t][:] = sent, packed
            sent, packed = np.where(kept, spec.ranks > 0, sent), np.where(kept, bool(spec.compressed), packed)


@kernel_part
def _count_units(tables: SparseTables, work: SparseScratch) -> None:
    """Write the units inside every level that mappings unroll over."""
    along_x, along_y = splat16(1.0), splat16(1.0)
    for level in range(len(tables.level) - 1, -1, -1):
        for slot in tables.unrolled[level]:
            if slot >= 0:
                for d in range(work.scratch.trips.shape[1]):
                    if tables.vertical[slot]:
                        along_y = along_y * lanes(work.scratch.trips[slot, d])
                    else:
                        along_x = along_x * lanes(work.scratch.trips[slot, d])
        work.dense_x[level][:], work.dense_y[level][:] = along_x, along_y


@kernel_part
def tile_of(tables: SparseTables, tensor: int, extents: Floats) -> Ints:
    """Return the numbers of tiles [B] with extents [D, B] (see `base_of`)."""
    radix = tables.tensor[tensor].radix
    if radix == 0:
        return integers(words_of(tables.terms, tensor, extents))
    number, side = splat16(0), splat16(1.0)
    for p in range(tables.terms.start[tensor], tables.terms.start[tensor + 1]):
        term = tables.terms.term[p]
        side = side + float(term.coefficient) * (lanes(extents[term.dimension]) - 1.0)
        if term.last:
            number, side = number * radix + integers(side), splat16(1.0)
    return number


@kernel_part
def extend(extents: Floats, dims: int, bit: Ints, trips: Floats, where: Bools) -> None:
    """Multiply the extents [D, B] of dimensions, given as bits [B], by trips, in some lanes.

    Args:
        dims: dimensions that matter, as bits.
    """
    for d in range(len(extents)):
        if dims >> d & 1:
            before = lanes(extents[d])
            extents[d][:] = np.where(where & (bit == 1 << d), before * trips, before)


@kernel_part
def begin_at(tables: SparseTables, work: SparseScratch, level: Ints) -> None:
    """Write the iterations inside levels [B], their own loops included, to `mold`."""
    for d in range(len(work.mold)):
        extent = splat16(1.0)
        for at in range(len(tables.level)):
            if np.any(level == at):
                extent = np.where(level == at, lanes(work.scratch.inside[tables.inside[at + 1], d]), extent)
        work.mold[d][:] = extent


@kernel_call
def list_loops(tables: SparseTables, work: SparseScratch, level: int) -> None:
    """List the loops of a level, innermost first: unrolled ones along X, along Y, and temporal ones."""
    here, start, ones_outside = tables.level[level], 0, work.ones_outside[0]
    work.rows[level] = 0
    work.unrolled[level][:] = splat16(0)
    fans = lanes(work.fans[level])
    if np.any(fans) and not _any_placed(tables, work, level):
        work.unrolled[level][:] = _list_slots(tables, work, level, tables.unrolled[level], True, fans, True)
    elif np.any(fans):
        _clear(work, level, 0)
        for b in range(LANES):
            count = _add_loops(tables, tables.unrolled, work, level, 0, b)
            if work.fans[level, b]:
                placed = _placed(tables, work, level, b)
                _write_order(work, placed, NOTHING, b)
                count = _add_single_trips(work, level, 0, count, placed >= 0, b)
            work.unrolled[level, b] = count
            work.rows[level] = max(work.rows[level], count)
    work.turn[level] = start = work.rows[level]
    if tables.single[level]:
        work.ends[level][:] = _list_slots(
            tables, work, level, tables.stepped[level], bool(ones_outside), splat16(True), False
        )
    else:
        _clear(work, level, start)
        for b in range(LANES):
            count = _add_loops(tables, tables.stepped, work, level, start, b)
            _write_order(work, here.order, here.slot if ones_outside else NOTHING, b)
            work.ends[level, b] = _add_single_trips(work, level, start, count, True, b)
            work.rows[level] = max(work.rows[level], work.ends[level, b])
    work.listed[level] = True


@kernel_part
def _list_slots(
    tables: SparseTables,
    work: SparseScratch,
    level: int,
    slots: Ints,
    ones_outside: bool,
    lists: Bools,
    ascending: bool,
) -> Ints:
    """List the loops of slots. Rows in which no mapping has a loop are left out. Return the rows up to the last loop, [B].

    Args:
        ones_outside: loops of one trip are outside the others; else orders place them.
        lists: [B], whether the level has such loops.
        ascending: such loops begin with the problem's first dimension; else with its last one.
    """
    scratch, row, ends, seen = work.scratch, work.rows[level], splat16(0), splat16(0)
    dims = scratch.trips.shape[1]
    for slot in slots:
        order = tables.slot_order[slot] if slot >= 0 else NOTHING
        for position in range(dims - 1 if slot >= 0 else -1, -1, -1):
            dimension = splat16(0) + position
            if order >= 0:
                dimension = lanes(scratch.order[order, position])
            trips = splat16(1.0)
            for d in range(dims):
                trips = np.where(dimension == d, lanes(scratch.trips[slot, d]), trips)
            there = (trips > 1.0) | (not ones_outside)
            if np.any(there):
                bit = np.where(there, 1 << (dimension & 63), 0)
                work.bit[level, row][:], work.trips[level, row][:] = bit, trips
                work.vertical[level, row][:] = splat16(bool(tables.vertical[slot]))
                row += 1
                ends, seen = np.where(there, row, ends), seen | bit
    for number in range(dims if ones_outside else 0):
        one = 1 << (number if ascending else dims - 1 - number)
        there = lists & ((seen & one) == 0)
        if np.any(there):
            work.bit[level, row][:], work.trips[level, row][:] = np.where(there, one, 0), splat16(1.0)
            row += 1
            ends = np.where(there, row, ends)
    work.rows[level] = row
    return ends


@kernel_part
def _clear(work: SparseScratch, level: int, start: int) -> None:
    """Clear rows of loops."""
    for row in range(start, work.bit.shape[1]):
        work.bit[level, row][:], work.trips[level, row][:] = splat16(0), splat16(1.0)


@kernel_part
def _any_placed(tables: SparseTables, work: SparseScratch, level: int) -> bool:
    """Return whether some mapping orders its unrolled loops, other than the problem does or by statement."""
    answer = False
    for number in range(tables.spatial_order.shape[1]):
        given = tables.spatial_order[level, number]
        if given >= 0:
            answer = answer or bool(np.any(lanes(work.stated[tables.spatial_entry[level, number]])))
            for position in range(work.scratch.order.shape[1]):
                answer = answer or bool(np.any(lanes(work.scratch.order[given, position]) != position))
    return answer


@kernel_part
def _placed(tables: SparseTables, work: SparseScratch, level: int, b: int) -> int:
    """Return the first order of a level's unrolled loops that is stated or not the problem's; -1: there is none."""
    for number in range(tables.spatial_order.shape[1]):
        given = tables.spatial_order[level, number]
        if given >= 0:
            placed = bool(work.stated[tables.spatial_entry[level, number], b])
            for position in range(work.scratch.order.shape[1]):
                placed = placed or work.scratch.order[given, position, b] != position
            if placed:
                return int(given)
    return NOTHING


@kernel_part
def _add_loops(tables: SparseTables, slots: Ints, work: SparseScratch, level: int, count: int, b: int) -> int:
    """Add the loops of slots with several trips. Return the number of loops."""
    scratch = work.scratch
    for slot in slots[level]:
        if slot >= 0:
            row = tables.slot_order[slot]
            for position in range(scratch.trips.shape[1] - 1, -1, -1):
                d = position if row < 0 else int(scratch.order[row, position, b])
                if scratch.trips[slot, d, b] > 1.0:
                    work.bit[level, count, b], work.trips[level, count, b] = 1 << d, scratch.trips[slot, d, b]
                    work.vertical[level, count, b] = tables.vertical[slot]
                    count += 1
    return count


@kernel_part
def _write_order(work: SparseScratch, row: int, slot: int, b: int) -> None:
    """Write an order of dimensions, outermost first: that of a row; -1: the problem's.

    Args:
        slot: its loops of one trip are outermost, in the problem's order; -1: the row places them.
    """
    scratch, place = work.scratch, 0
    dims = scratch.trips.shape[1]
    if slot >= 0:
        for d in range(dims):
            if scratch.trips[slot, d, b] == 1.0:
                work.written[place] = d
                place += 1
    for position in range(dims):
        d = position if row < 0 else int(scratch.order[row, position, b])
        if slot < 0 or scratch.trips[slot, d, b] != 1.0:
            work.written[place] = d
            place += 1


@kernel_part
def _add_single_trips(work: SparseScratch, level: int, start: int, count: int, between: bool, b: int) -> int:
    """Add a loop of one trip for each dimension without a loop from `start` on. Return the number of loops.

    Args:
        between: place them between other loops by the written order; else outside, innermost dimension first
            as the problem names them.
    """
    bit, trips, vertical, dims = work.bit[level], work.trips[level], work.vertical[level], len(work.written)
    bits = 0
    for at in range(start, count):
        bits |= bit[at, b]
    outside = (1 << dims) - 1
    for number in range(dims):
        here = 1 << work.written[dims - 1 - number if between else number]
        outside &= ~here
        if not bits & here:
            at = count
            if between:
                at = start
                while at < count and not outside & bit[at, b]:
                    at += 1
            for place in range(count, at, -1):
                bit[place, b], trips[place, b] = bit[place - 1, b], trips[place - 1, b]
                vertical[place, b] = vertical[place - 1, b]
            bit[at, b], trips[at, b] = here, 1.0
            count += 1
    return count
