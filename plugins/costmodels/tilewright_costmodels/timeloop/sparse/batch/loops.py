"""Loops and tiles of one mapping, by storage level; the kernel's form of `nest.Nest`."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.tables import Orders
from tilewright_costmodels.timeloop.sparse.batch.tables import NOTHING, SparseScratch, SparseTables


@kernel_part
def lay_out(tables: SparseTables, trips: Ints, keep: Bools, work: SparseScratch) -> None:
    """Write the iterations inside every level, and which levels keep each tensor.

    Args:
        trips: [S, D].
        keep: [E, T].
    """
    levels, dims, units = len(tables.level), trips.shape[1], 1.0
    for level in range(levels):
        work.listed[level] = False
        inner, extents = work.extents[level], work.extents[level + 1]
        for d in range(dims):
            extents[d] = inner[d]
        for slot in tables.unrolled[level]:
            if slot >= 0:
                for d in range(dims):
                    extents[d] *= trips[slot, d]
                    units *= trips[slot, d]
        for slot in tables.stepped[level]:
            if slot >= 0:
                for d in range(dims):
                    extents[d] *= trips[slot, d]
    work.units[0] = units
    for t in range(len(tables.tensor)):
        child = NOTHING
        for level in range(levels):
            kept = keep[tables.level[level].entry, t]
            work.kept[level, t] = kept
            if kept:
                work.child[level, t], work.parent[level, t] = child, NOTHING
                if child >= 0:
                    work.parent[child, t] = level
                child = level
                words = words_of(tables, t, work.extents[level + 1])
                work.words[level, t], work.tile[level, t] = words, int(words)
                if tables.tensor[t].base > 0:
                    work.tile[level, t] = tile_of(tables, t, work.extents[level + 1])


@kernel_part
def kept_from(work: SparseScratch, level: int, tensor: int) -> int:
    """Return the nearest level outwards that keeps the tensor; -1 if none does."""
    while level < len(work.kept) and not work.kept[level, tensor]:
        level += 1
    return level if level < len(work.kept) else NOTHING


@kernel_part
def words_of(tables: SparseTables, tensor: int, extents: Floats) -> float:
    """Return the words of a tile."""
    words, side = 1.0, 1.0
    for p in range(tables.terms.start[tensor], tables.terms.start[tensor + 1]):
        term = tables.terms.term[p]
        side += term.coefficient * (extents[term.dimension] - 1.0)
        if term.last:
            words, side = words * side, 1.0
    return words


@kernel_part
def tile_of(tables: SparseTables, tensor: int, extents: Floats) -> int:
    """Return the number of a tile (see `base_of`)."""
    if tables.tensor[tensor].base == 0:
        return int(words_of(tables, tensor, extents))
    number, side = 0, 1.0
    for p in range(tables.terms.start[tensor], tables.terms.start[tensor + 1]):
        term = tables.terms.term[p]
        side += term.coefficient * (extents[term.dimension] - 1.0)
        if term.last:
            number, side = number * tables.tensor[tensor].base + int(side), 1.0
    return number


@kernel_call
def list_loops(tables: SparseTables, trips: Ints, order: Orders, work: SparseScratch, level: int) -> None:
    """List the loops of a level, innermost first: unrolled ones along X, along Y, and temporal ones."""
    count, dims = 0, trips.shape[1]
    if tables.level[level].fans:
        count = _add_loops(tables, tables.unrolled, trips, order, work, level, count)
        between, row = False, NOTHING
        for position in range(tables.spatial_order.shape[1]):
            given = tables.spatial_order[level, position]
            if given >= 0 and not between and not _is_plain(order, given):
                between, row = True, given
        count = _add_single_trips(order, work, level, 0, count, row, between, dims)
    work.loops[level, 0] = count
    start, row = count, tables.level[level].order
    if row >= 0 and tables.single[level]:
        for position in range(dims - 1, -1, -1):
            d = int(order[row, position])
            work.dimension[level, count], work.trips[level, count] = d, trips[tables.stepped[level, 0], d]
            count += 1
    else:
        count = _add_loops(tables, tables.stepped, trips, order, work, level, count)
        count = _add_single_trips(order, work, level, start, count, row, True, dims)
    work.loops[level, 1] = count
    work.listed[level] = True


@kernel_part
def _is_plain(order: Orders, row: int) -> bool:
    """Return whether a row is the problem's order."""
    plain = True
    for position in range(order.shape[1]):
        plain &= order[row, position] == position
    return plain


@kernel_part
def _add_loops(
    tables: SparseTables, slots: Ints, trips: Ints, order: Orders, work: SparseScratch, level: int, count: int
) -> int:
    """Add the loops of slots with several trips. Return the number of loops."""
    dims = trips.shape[1]
    for number in range(slots.shape[1]):
        slot = slots[level, number]
        if slot >= 0:
            row = tables.slot_order[slot]
            for position in range(dims - 1, -1, -1):
                d = position if row < 0 else int(order[row, position])
                if trips[slot, d] > 1:
                    work.dimension[level, count], work.trips[level, count] = d, trips[slot, d]
                    count += 1
    return count


@kernel_part
def _add_single_trips(
    order: Orders, work: SparseScratch, level: int, start: int, count: int, row: int, between: bool, dims: int
) -> int:
    """Add a loop of one trip for each dimension without a loop from `start` on. Return the number of loops.

    Args:
        row: of the order that places them; -1: the problem's.
        between: place them between other loops by this order; else outside, innermost dimension first
            as the problem names them.
    """
    dimension, trips = work.dimension[level], work.trips[level]
    found = 0
    for at in range(start, count):
        found |= 1 << dimension[at]
    outside = (1 << dims) - 1
    for number in range(dims):
        position = dims - 1 - number if between else number
        d = position if row < 0 else int(order[row, position])
        outside &= ~(1 << d)
        if not found >> d & 1:
            at = count
            if between:
                at = start
                while at < count and not outside >> dimension[at] & 1:
                    at += 1
            for place in range(count, at, -1):
                dimension[place], trips[place] = dimension[place - 1], trips[place - 1]
            dimension[at], trips[at] = d, 1.0
            count += 1
    return count
