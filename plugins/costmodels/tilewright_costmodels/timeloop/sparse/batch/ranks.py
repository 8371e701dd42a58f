"""Ranks of compressed formats on the loops of `LANES` mappings.

Ranks of A in the example of `tables`, innermost first. `rank_tile` is the tile that a fiber of the rank covers:

    level   rank   format   loop       `length`   `rank_tile`
    0       0      CP       K, 4 x     4          4 words
    0       1      UOP      M, 4 x     4          16 words
    1       0      CP       K, 4 x     4          4 words       as at level 0
    1       1      UOP      M, 4 x     4          16 words      as at level 0
    1       2      UOP      K, 2 x     2          32 words      the loop over buffers

Rank 2 of level 1, for instance: a fiber has 2 coordinates of 16 words, so it covers 2 * 16 = 32 words.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import integers, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.rules.scratch import words_of
from tilewright_costmodels.timeloop.sparse.batch.loops import begin_at, extend, list_loops, tile_of
from tilewright_costmodels.timeloop.sparse.batch.notes import (
    COMPRESSION,
    DECOMPRESSION,
    FLATTENED_SUBTILE,
    MORE_RANKS,
    OTHER_RANKS,
    RANK_SHIFT,
    TOO_FEW_RANKS,
    TOO_MANY_LOOPS,
    note,
    refuse,
)
from tilewright_costmodels.timeloop.sparse.batch.tables import SparseScratch, SparseTables


@kernel_part
def place_all(tables: SparseTables, work: SparseScratch) -> Bools:
    """Write the ranks of all formats. Return whether every format fits its loops and the next level outside, [B]."""
    good = splat16(True)
    for t in range(len(tables.tensor)):
        ranks, compressed, able = splat16(0), splat16(False), splat16(False)  # of the next level inside
        work.inner_words[:] = splat16(1.0)
        for level in range(len(tables.level)):
            kept, spec = lanes(work.kept[level, t]), tables.format[level, t]
            if spec.ranks > 0 and np.any(kept):
                good = good & (_place(tables, work, level, t, ranks) | ~kept)
            if tables.stored[t]:
                words = lanes(work.words[level, t])
                work.inner_words[:] = np.where(kept, words, lanes(work.inner_words))
                for rank in range(work.length.shape[2]):
                    length, tile = lanes(work.length[level, t, rank]), lanes(work.rank_tile[level, t, rank])
                    if spec.ranks == 0:  # without a format, one rank takes all loops
                        length, tile = integers(words), lanes(work.tile[level, t])
                    work.inner_length[rank][:] = np.where(kept, length, lanes(work.inner_length[rank]))
                    work.inner_tile[rank][:] = np.where(kept, tile, lanes(work.inner_tile[rank]))
            child = lanes(work.child[level, t])
            inside = kept & (child >= 0)
            packed, more = inside & compressed, inside & compressed & (ranks > spec.ranks)
            if not spec.compressed:
                good = good & ~packed
            good = good & ~more
            if spec.compressed:
                good = good & (~inside | compressed | able)
            if work.reported[0]:
                place = child + t * len(tables.level)
                if spec.compressed:
                    refuse(work, inside & ~compressed & ~able, DECOMPRESSION, place, child, t)
                else:
                    refuse(work, packed, COMPRESSION, place, child, t)
                refuse(work, more, MORE_RANKS, place, child, t)
            ranks = np.where(kept, int(spec.ranks), ranks)
            compressed = np.where(kept, bool(spec.compressed), compressed)
            able = np.where(kept, bool(spec.able), able)
    return good


@kernel_call
def _place(tables: SparseTables, work: SparseScratch, level: int, t: int, inner_ranks: Ints) -> Bools:
    """Write the ranks of one tensor at one level, innermost first. Return whether the format has enough ranks, [B]."""
    spec, child, good = tables.format[level, t], lanes(work.child[level, t]), splat16(True)
    kept, here = lanes(work.kept[level, t]), splat16(0) + level
    spot = here + t * len(tables.level)
    pretiled, below = splat16(False), splat16(0)
    if spec.compressed:
        pretiled = (child >= 0) & (lanes(work.inner_words) > 1.0)
        below = np.where(pretiled, np.maximum(inner_ranks, 1), 0)
        good = below <= spec.ranks
        refuse(work, kept & ~good, TOO_FEW_RANKS, spot, here, t)
        for inner in range(level):
            if not tables.aligned[level, t, inner]:
                other = pretiled & (child == inner)
                good = good & ~other
                refuse(work, kept & other, OTHER_RANKS, spot, here, t)
    if spec.takes_all:
        filled, unmatched, pending = _take_all(tables, work, level, t, pretiled, below)
    else:
        rows = _list_own_loops(tables, work, level, t, pretiled)
        filled, unmatched, pending = _match(tables, work, level, t, rows, below)
        if not spec.outwards:
            note(work, level, t, RANK_SHIFT, kept & (filled > 0) & (unmatched > 0))
    first_tile = lanes(work.first_tile)
    for rank in range(spec.ranks):
        # from inside: those of the next level, then those without loops, matched ones, and unmatched ones
        place = rank - below if spec.outwards else spec.ranks - 1 - rank - unmatched
        length, tile = splat16(1), first_tile
        for number in range(spec.ranks):
            there = (place == number) & (number < filled)
            length = np.where(there, lanes(work.matched_length[number]), length)
            tile = np.where(there, lanes(work.matched_tile[number]), tile)
        given = rank < below
        work.length[level, t, rank][:] = np.where(given, lanes(work.inner_length[rank]), length)
        work.rank_tile[level, t, rank][:] = np.where(given, lanes(work.inner_tile[rank]), tile)
    refuse(work, kept & pending, TOO_MANY_LOOPS, spot, here, t)
    return good & ~pending


@kernel_part
def _take_all(
    tables: SparseTables, work: SparseScratch, level: int, t: int, pretiled: Bools, below: Ints
) -> tuple[Ints, Ints, Bools]:
    """Match the outermost rank with all loops; see `_match`."""
    own_dims, ranks, steps = tables.tensor[t].dims, tables.format[level, t].ranks, splat16(False)
    begin_at(tables, work, lanes(work.child[level, t]))
    for d in range(len(work.mold)):
        extent = lanes(work.scratch.inside[tables.inside[level + 1], d])
        part = np.where(pretiled, extent / lanes(work.mold[d]), extent)
        work.part[d][:] = part
        if own_dims >> d & 1:
            steps = steps | (part > 1.0)
    tile = lanes(work.tile[level, t])
    work.matched_length[0][:], work.matched_tile[0][:] = integers(words_of(tables.terms, t, work.part)), tile
    work.first_tile[:] = tile
    if ranks > 1:
        _step_once(tables, work, level, t)
        work.first_tile[:] = tile_of(tables, t, work.mold)
    taken = steps & (below < ranks)
    return np.where(taken, 1, 0), splat16(0), steps & ~taken


@kernel_part
def _step_once(tables: SparseTables, work: SparseScratch, level: int, t: int) -> None:
    """Multiply `mold` by the trips of the innermost loop that indexes a tensor, outside its next level inside."""
    child, waiting, own_dims = lanes(work.child[level, t]), lanes(work.kept[level, t]), tables.tensor[t].dims
    for at in range(level + 1):
        between = child < at
        if not np.any(between & waiting):
            continue
        if not work.listed[at]:
            list_loops(tables, work, at)
        for row in range(work.rows[at]):
            bit = lanes(work.bit[at, row])
            first = between & waiting & ((bit & own_dims) != 0)
            if np.any(first):
                extend(work.mold, own_dims, bit, lanes(work.trips[at, row]), first)
                waiting = waiting & ~first
                if not np.any(waiting):
                    return


@kernel_part
def _list_own_loops(tables: SparseTables, work: SparseScratch, level: int, t: int, pretiled: Bools) -> int:
    """Write the loops that index a tensor from its next level inside to `level`, innermost first. Return their rows.

    Rows in which no mapping has a loop of several trips are left out. Without `pretiled`, the innermost loop of each
    dimension also has the trips of all inner levels.
    """
    child, dims, own_dims = lanes(work.child[level, t]), len(work.mold), tables.tensor[t].dims
    begin_at(tables, work, child)
    rest = splat16(0)  # dimensions with trips of inner levels that no loop has
    for d in range(dims):
        work.part[d][:] = lanes(work.mold[d])
        rest = rest | np.where(~pretiled & (lanes(work.mold[d]) > 1.0), 1 << d, 0)
    rows, any_seen, tile = 0, splat16(False), splat16(0) + tables.tensor[t].single
    work.first_tile[:] = tile
    for at in range(level + 1):
        between = child < at
        if not np.any(between & lanes(work.kept[level, t])):
            continue
        if not work.listed[at]:
            list_loops(tables, work, at)
        for row in range(work.rows[at]):
            bit, trips = lanes(work.bit[at, row]), lanes(work.trips[at, row])
            bit = np.where(between, bit & own_dims, 0)
            there = bit > 0
            first, steps, whole = there & ~any_seen, there & (trips > 1.0), (bit & rest) != 0
            if np.any(first | whole | steps):
                times, any_seen, rest = np.where(there, trips, 1.0), any_seen | there, rest ^ (rest & bit)
                for d in range(dims if np.any(whole) else 0):
                    times = np.where(whole & (bit == 1 << d), trips * lanes(work.part[d]), times)
                extend(work.mold, own_dims, bit, trips, steps)
                tile = np.where(first | steps, tile_of(tables, t, work.mold), tile)
                work.first_tile[:] = np.where(first, tile, lanes(work.first_tile))
                if np.any(times > 1.0):
                    work.own_bit[rows][:], work.own_trips[rows][:], work.own_tile[rows][:] = bit, times, tile
                    rows += 1
    return rows


@kernel_part
def _match(
    tables: SparseTables, work: SparseScratch, level: int, t: int, rows: int, below: Ints
) -> tuple[Ints, Ints, Bools]:
    """Match the loops of a tensor with ranks, and write the coordinates and tiles of these ranks.

    Returns:
        Ranks that were written, ranks without a loop of their dimensions that are not, and whether loops are left.
    """
    spec, failed = tables.format[level, t], splat16(False)
    room = spec.ranks - below
    matched, skipped, group = splat16(0), splat16(0), splat16(0)
    for number in range(rows):
        row = number if spec.outwards else rows - 1 - number
        bit, trips = lanes(work.own_bit[row]), lanes(work.own_trips[row])
        there = trips > 1.0
        joins = there & ((group & bit) != 0)
        pending, begins = there & ~joins, splat16(False)
        for step in range(spec.ranks):
            rank = spec.ranks - 1 - step if spec.outwards else step
            tried = matched + skipped
            turn = pending & (tried < room) & (rank == (room - 1 - tried if spec.outwards else tried))
            if np.any(turn):
                index = _group(tables.taken[level, t, rank], bit)
                fails = turn & (index < 0)
                if spec.outwards and np.any(fails):
                    _write(work, spec.ranks, matched, fails, splat16(1), splat16(0) + tables.tensor[t].single)
                    matched = np.where(fails, matched + 1, matched)
                else:
                    skipped = np.where(fails, skipped + 1, skipped)
                turn = turn & ~fails
                group, matched = np.where(turn, index, group), np.where(turn, matched + 1, matched)
                begins, pending = begins | turn, pending & ~turn
        failed = failed | pending
        if spec.outwards:
            note(work, level, t, FLATTENED_SUBTILE, lanes(work.kept[level, t]) & joins & (matched < room))
        for d in range(len(work.part)):
            if tables.tensor[t].dims >> d & 1:
                part = np.where(begins, 1.0, lanes(work.part[d]))
                work.part[d][:] = np.where((joins | begins) & (bit == 1 << d), part * trips, part)
        length = integers(words_of(tables.terms, t, work.part))
        tile = lanes(work.own_tile[row])
        for rank in range(spec.ranks):
            last = (joins | begins) & (matched - 1 == rank)
            work.matched_length[rank][:] = np.where(last, length, lanes(work.matched_length[rank]))
            work.matched_tile[rank][:] = np.where(last & begins, tile, lanes(work.matched_tile[rank]))
    return matched, skipped, failed


@kernel_part
def _write(work: SparseScratch, ranks: int, place: Ints, where: Bools, length: Ints, tile: Ints) -> None:
    """Write the coordinates and the tile of a matched rank, in some lanes."""
    for rank in range(ranks):
        here = where & (place == rank)
        work.matched_length[rank][:] = np.where(here, length, lanes(work.matched_length[rank]))
        work.matched_tile[rank][:] = np.where(here, tile, lanes(work.matched_tile[rank]))


@kernel_part
def _group(groups: Ints, bit: Ints) -> Ints:
    """Return the groups of dimensions, as bits, that a rank takes from a loop on; 0: this loop alone; -1: no loop."""
    if groups[0] == 0:
        return splat16(0)
    index = splat16(-1)
    for number in range(len(groups) - 1, -1, -1):
        index = np.where((bit & groups[number]) != 0, groups[number], index)
    return index
