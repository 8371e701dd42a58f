"""Gating and skipping: which share of a tensor's accesses falls on empty tiles of its conditions, of `LANES` mappings.

The example of `tables` skips B where A is empty, in the buffers. A row is the level of that action:

    level   loop that ends the tile of B   tile of B   tile of A   share
    0       K in a buffer, 4 x             1 word      1 word      0.75
    1       K over the buffers, 2 x        4 x 2       4 x 4       0.0012

At level 0, a word of A is zero with probability 1 - 8 / 32 = 0.75. Thus 0.75 * 32 = 24 of 32 reads of B are skipped.
Were the action at level 1, all 16 words of a tile of A would have to be zero.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import words_of
from tilewright_costmodels.timeloop.sparse.batch.loops import begin_at, extend, list_loops, tile_of
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable, look_up
from tilewright_costmodels.timeloop.sparse.batch.notes import TARGET, refuse
from tilewright_costmodels.timeloop.sparse.batch.tables import HELD, NOTHING, PIECES, SparseScratch, SparseTables
from tilewright_costmodels.timeloop.sparse.operations import GATED, SKIPPED


@kernel_part
def save_all(tables: SparseTables, work: SparseScratch, good: Bools, empties: MemoTable) -> Bools:
    """Write the share that actions save, by level and tensor. Return whether each has a memory to act on, [B].

    `SparseScratch.missing` becomes True where the memo lacks a probability.

    Args:
        good: [B], mappings to look at.
    """
    levels, tensors = work.kind.shape[0], work.kind.shape[1]
    for at in range(levels):
        for t in range(tensors):
            work.share[at, t][:], work.kind[at, t][:] = splat16(0.0), splat16(0)
            work.in_space[at, t][:] = splat16(False)
    for action in tables.action:
        best, best_level, best_tensor, best_share = splat16(-1.0), splat16(NOTHING), splat16(NOTHING), splat16(0.0)
        for o in range(action.first, action.last):
            t = tables.option[o].tensor
            level, child = splat16(NOTHING), splat16(NOTHING)  # nearest ones that keep the tensor
            for at in range(levels):
                kept = lanes(work.kept[at, t]) & (level < 0)
                level = np.where(kept & (at >= action.level), at, level)
                child = np.where(kept & (at < action.level), at, child)
            good = good & (level >= 0)
            refuse(work, level < 0, TARGET, splat16(0) + tables.option[o].place, level, t)
            share = _share(tables, work, good, empties, level, child, o)
            worth = splat16(0.0)
            if action.last - action.first > 1:
                worth = _moved(tables, work, level, child, t) * share
            better = worth >= best  # the last of equals
            best, best_level = np.where(better, worth, best), np.where(better, level, best_level)
            best_tensor, best_share = np.where(better, t, best_tensor), np.where(better, share, best_share)
        for at in range(action.level, levels):
            for o in range(action.first, action.last):
                t = tables.option[o].tensor
                share, kind = lanes(work.share[at, t]), lanes(work.kind[at, t])
                larger = (best_level == at) & (best_tensor == t) & ((kind == 0) | (best_share > share))
                work.share[at, t][:] = np.where(larger, best_share, share)
                work.kind[at, t][:] = np.where(larger, SKIPPED if action.skips else GATED, kind)
    return good


@kernel_part
def _moved(tables: SparseTables, work: SparseScratch, level: Ints, child: Ints, t: int) -> Floats:
    """Return the pJ to read what a level has of a tensor, [B], by which alternatives are compared."""
    moved, pieces = splat16(0.0), splat16(0.0)
    for at in range(len(work.kind)):
        pieces = np.where(np.where(child < 0, level, child) == at, lanes(work.values[at, t, PIECES]), pieces)
    for at in range(len(work.kind)):
        memory = tables.memory[at, t]
        if memory >= 0:
            here = lanes(work.values[at, t, HELD]) + pieces * tables.storage[memory].default
            moved = np.where(level == at, tables.storage[memory].worth * here, moved)
    return moved


@kernel_call
def _share(
    tables: SparseTables, work: SparseScratch, good: Bools, empties: MemoTable, level: Ints, child: Ints, option: int
) -> Floats:
    """Return the share of a tensor's accesses at a level for which some condition's tile is empty, [B]."""
    t, first, last = tables.option[option].tensor, tables.option[option].first, tables.option[option].last
    dims, mask = len(work.mold), tables.tensor[t].dims
    begin_at(tables, work, child)
    for c in range(last - first):
        work.product[c][:], work.stepped[c][:], work.effective[c][:] = splat16(1.0), splat16(False), splat16(True)
        for d in range(dims):
            work.both[c, d][:] = splat16(0.0)
    size, block, target, has_target, single = splat16(1.0), splat16(1.0), splat16(0), splat16(False), splat16(False)
    target_unrolled, passing = splat16(False), splat16(False)
    for at in range(len(work.kind)):
        inside = good & (child < at) & (at <= level)
        if not np.any(inside):
            continue
        if not work.listed[at]:
            list_loops(tables, work, at)
        unrolled, ends = lanes(work.unrolled[at]), lanes(work.ends[at])
        outermost, fans_outside = level == at, splat16(False)
        if at + 1 < len(work.kind):
            fans_outside = lanes(work.fans[at + 1])
        for row in range(work.rows[at]):
            bit, trips = lanes(work.bit[at, row]), lanes(work.trips[at, row])
            there, turned = inside & (bit > 0), row < work.turn[at]
            indexes, steps, ending = (bit & mask) != 0, trips > 1.0, row + 1 == ends
            next_unrolled = np.where(ending & ~outermost, fans_outside, row + 1 < unrolled)
            ends_here = (ending & outermost) | (indexes & steps) | ((child < 0) & ~next_unrolled)
            inner = there & ~has_target
            now = inner & ends_here
            outer = there & has_target & steps
            if not turned:
                passing = passing & ~(outer & indexes)
            outer = outer & (passing | turned)
            has_target = has_target | now
            extend(work.mold, -1, bit, trips, inner | outer)
            if np.any(now):
                target = np.where(now, bit, target)
                target_unrolled = np.where(now, turned, target_unrolled)
                single = np.where(now, (child < 0) & (not turned), single)
                passing = np.where(now, (child >= 0) & turned, passing)
                for d in range(dims):
                    work.mold[d][:] = np.where(now & single, 1.0, lanes(work.mold[d]))
                size = np.where(now, words_of(tables.terms, t, work.mold), size)
            taken = (now | outer) & ~single
            if np.any(taken):
                _step(tables, work, option, taken, bit, trips, target_unrolled)
    for at in range(len(work.kind)):
        memory = tables.memory[at, t]
        if memory >= 0:
            storage = tables.storage[memory]
            block = np.where(level == at, storage.block / storage.per_word, block)
    kept = splat16(1.0)
    for c in range(last - first):
        kept = kept * (1.0 - _empty(tables, work, good, empties, option, c, size, block, target))
    return 1.0 - kept


@kernel_part
def _step(
    tables: SparseTables,
    work: SparseScratch,
    option: int,
    taken: Bools,
    bit: Ints,
    trips: Floats,
    target_unrolled: Bools,
) -> None:
    """Note loops that step tensor and condition. Outside an unrolled target, a second one leaves the condition no effect."""
    mask, first = tables.tensor[tables.option[option].tensor].dims, tables.option[option].first
    for c in range(tables.option[option].last - first):
        indexed = taken & ((bit & tables.tensor[tables.condition[first + c]].dims) != 0)
        stepped, both = lanes(work.stepped[c]), indexed & ((bit & mask) != 0)
        work.effective[c][:] = lanes(work.effective[c]) & ~(indexed & target_unrolled & stepped)
        work.stepped[c][:] = stepped | both
        product = lanes(work.product[c])
        work.product[c][:] = np.where(both, product * trips, product)
        for d in range(len(work.mold)):
            before = lanes(work.both[c, d])
            work.both[c, d][:] = np.where(both & (bit == 1 << d), np.maximum(before, 1.0) * trips, before)


@kernel_part
def _empty(
    tables: SparseTables,
    work: SparseScratch,
    good: Bools,
    empties: MemoTable,
    option: int,
    c: int,
    size: Floats,
    block: Floats,
    target: Ints,
) -> Floats:
    """Return the probability that the tile of an option's condition `c` is empty, [B]; 0 if the condition has no effect.

    Of loops that step both tensors, only what one step covers counts.
    """
    condition = tables.condition[tables.option[option].first + c]
    dims, needed = len(work.mold), np.ceil(block / (size / lanes(work.product[c])))
    for d in range(dims):
        both, part = lanes(work.both[c, d]), lanes(work.mold[d])
        stepped = both > 0.0
        covered = np.ceil(part / (both / needed))
        if work.reported[0]:
            narrower = stepped & lanes(work.effective[c]) & (covered < np.ceil(part / both))
            work.narrowed[option][:] = lanes(work.narrowed[option]) | narrower
        work.part[d][:] = np.where(stepped, covered, part)
        needed = np.where(stepped, needed / both, needed)
    for d in range(dims):
        part = lanes(work.part[d])
        work.part[d][:] = np.where((needed > 1.0) & (target == 1 << d), np.floor(part * needed), part)
    keys, value = work.empty_key, work.memo
    keys[0][:], keys[1][:] = splat16(0) + condition, tile_of(tables, condition, work.part)
    work.wanted[:] = good & lanes(work.effective[c])
    look_up(empties, keys, work.wanted, work.row, work.missing)
    for b in range(LANES):
        value[b] = empties.values[work.row[b], 0] if work.row[b] >= 0 else 0.0
    return lanes(value)
