"""Ranks of compressed formats on the loops of one mapping; the kernel's form of `formats`."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.rules.tables import Orders
from tilewright_costmodels.timeloop.sparse.batch.loops import list_loops, tile_of, words_of
from tilewright_costmodels.timeloop.sparse.batch.tables import SparseScratch, SparseTables


@kernel_part
def place_all(tables: SparseTables, trips: Ints, order: Orders, work: SparseScratch) -> bool:
    """Write the ranks of all formats. Return whether every format fits its loops and the next level outside."""
    good = True
    for t in range(len(tables.tensor)):
        for level in range(len(tables.level)):
            work.ranks[level, t] = 0
            if work.kept[level, t] and tables.format[level, t].ranks > 0:
                good = good and _place(tables, trips, order, work, level, t)
        for level in range(len(tables.level)):
            if work.kept[level, t] and work.parent[level, t] >= 0:
                here, outside = tables.format[level, t], tables.format[work.parent[level, t], t]
                good = good and (here.compressed or here.able or not outside.compressed)
                good = good and not (here.compressed and (not outside.compressed or here.ranks > outside.ranks))
    return good


@kernel_call
def _place(tables: SparseTables, trips: Ints, order: Orders, work: SparseScratch, level: int, t: int) -> bool:
    """Write the ranks of one tensor at one level, innermost first. Return whether the format has enough ranks."""
    spec, child = tables.format[level, t], work.child[level, t]
    length, tile = work.length[level, t], work.rank_tile[level, t]
    pretiled = spec.compressed and child >= 0 and work.words[child, t] > 1.0
    below = 0
    if pretiled:
        below = work.ranks[child, t]
        for rank in range(below):
            length[rank], tile[rank] = work.length[child, t, rank], work.rank_tile[child, t, rank]
        if below == 0:  # without a format, one rank takes all loops
            below, length[0], tile[0] = 1, int(work.words[child, t]), work.tile[child, t]
        if below > spec.ranks or not tables.aligned[level, t, child]:
            return False
    loops = _own_loops(tables, trips, order, work, level, t, not pretiled)
    first_tile = work.own_tile[0] if loops > 0 else _single(tables, t)
    step, at, stop = (1, 0, loops) if spec.outwards else (-1, loops - 1, -1)
    count, number = below, 0  # ranks so far; ranks that have been matched
    while number < spec.ranks - below:
        while at != stop and work.own_trips[at] == 1.0:
            at += step
        if at == stop:
            break
        # ranks are matched in this order: outermost first, or from the innermost one that is left
        rank = spec.ranks - below - 1 - number if spec.outwards else number
        number += 1
        group = _group(tables.taken[level, t, rank], work.own_dimension[at])
        if group < 0:
            length[count], tile[count] = 1, _single(tables, t) if spec.outwards else first_tile
            count += 1
            continue
        for d in range(len(work.part)):
            work.part[d] = 1.0
        work.part[work.own_dimension[at]] = work.own_trips[at]
        made = work.own_tile[at]
        at += step
        while group > 0 and at != stop and (work.own_trips[at] == 1.0 or group >> work.own_dimension[at] & 1):
            work.part[work.own_dimension[at]] *= work.own_trips[at]
            at += step
        place = count if spec.outwards else below
        _insert(length, place, count, int(words_of(tables, t, work.part)))
        _insert(tile, place, count, made)
        count += 1
    while count < spec.ranks:
        place = count if spec.outwards else below
        _insert(length, place, count, 1)
        _insert(tile, place, count, first_tile)
        count += 1
    work.ranks[level, t] = count
    while at != stop and work.own_trips[at] == 1.0:
        at += step
    return at == stop


@kernel_part
def _own_loops(
    tables: SparseTables, trips: Ints, order: Orders, work: SparseScratch, level: int, t: int, whole: bool
) -> int:
    """Write the loops that index a tensor from its next level inside to `level`, innermost first. Return their number.

    Args:
        whole: the innermost loop of each dimension also has the trips of all inner levels.
    """
    inner = work.child[level, t] + 1
    dims = len(work.mold)
    for d in range(dims):
        work.mold[d] = work.extents[inner, d]
    count, seen = 0, 0
    for at in range(inner, level + 1):
        if not work.listed[at]:
            list_loops(tables, trips, order, work, at)
        for number in range(work.loops[at, 1]):
            d = work.dimension[at, number]
            if tables.indexes[t, d]:
                work.mold[d] *= work.trips[at, number]
                work.own_dimension[count], work.own_trips[count] = d, work.trips[at, number]
                if count == 0 or work.trips[at, number] > 1.0:
                    work.own_tile[count] = tile_of(tables, t, work.mold)
                else:
                    work.own_tile[count] = work.own_tile[count - 1]
                if whole and not seen >> d & 1:
                    work.own_trips[count] *= work.extents[inner, d]
                seen |= 1 << d
                count += 1
    return count


@kernel_part
def _group(groups: Ints, d: int) -> int:
    """Return the group of dimensions, as bits, that a rank takes from a loop on; 0: this loop alone; -1: no loop."""
    if groups[0] == 0:
        return 0
    for group in groups:
        if group >> d & 1:
            return int(group)
    return -1


@kernel_part
def _single(tables: SparseTables, t: int) -> int:
    """Return the tile of one word."""
    return int(tables.tensor[t].single)


@kernel_part
def _insert(row: Ints, place: int, count: int, value: int) -> None:
    """Insert a value before the other ones from a place on."""
    for at in range(count, place, -1):
        row[at] = row[at - 1]
    row[place] = value
