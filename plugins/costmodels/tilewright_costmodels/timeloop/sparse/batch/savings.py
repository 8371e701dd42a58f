"""Shares of accesses that gating and skipping save, of one mapping; the kernel's form of `savings`."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.rules.tables import Orders
from tilewright_costmodels.timeloop.sparse.batch.loops import kept_from, list_loops, tile_of, words_of
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable, find
from tilewright_costmodels.timeloop.sparse.batch.tables import HELD, PIECES, SparseScratch, SparseTables
from tilewright_costmodels.timeloop.sparse.thinning import GATED, SKIPPED


@kernel_part
def save_all(
    tables: SparseTables, trips: Ints, order: Orders, work: SparseScratch, contents: MemoTable, empties: MemoTable
) -> bool:
    """Write the share that actions save, by level and tensor. Return False if an action has no memory to act on.

    `SparseScratch.missing` becomes True if the memo lacks a probability.
    """
    for level in range(len(work.kind)):
        for t in range(len(tables.tensor)):
            work.share[level, t], work.kind[level, t] = 0.0, 0
    for action in tables.action:
        best, best_level, best_tensor, best_share = -1.0, -1, -1, 0.0
        for o in range(action.first, action.last):
            t = tables.option[o].tensor
            level = kept_from(work, action.level, t)
            if level < 0:
                return False
            share = _share(tables, trips, order, work, empties, level, o)
            worth = 0.0
            if action.last - action.first > 1:
                memory = tables.storage[tables.memory[level, t]]
                child = work.child[level, t]
                pieces = contents.values[work.content[level if child < 0 else child, t], PIECES]
                moved = contents.values[work.content[level, t], HELD] + pieces * memory.default
                worth = memory.worth * moved * share
            if worth >= best:  # the last of equals
                best, best_level, best_tensor, best_share = worth, level, t, share
        if work.kind[best_level, best_tensor] == 0 or best_share > work.share[best_level, best_tensor]:
            work.share[best_level, best_tensor] = best_share
            work.kind[best_level, best_tensor] = SKIPPED if action.skips else GATED
    return True


@kernel_call
def _share(
    tables: SparseTables, trips: Ints, order: Orders, work: SparseScratch, empties: MemoTable, level: int, option: int
) -> float:
    """Return the share of a tensor's accesses at a level for which some condition's tile is empty."""
    t, dims = tables.option[option].tensor, len(work.mold)
    child = work.child[level, t]
    for d in range(dims):
        work.mold[d] = work.extents[child + 1, d]
    count, size, target, found, single = 0, 1.0, 0, False, False
    target_unrolled = passing = False
    for at in range(child + 1, level + 1):
        if not work.listed[at]:
            list_loops(tables, trips, order, work, at)
        loops, unrolled = work.loops[at, 1], work.loops[at, 0]
        for number in range(loops):
            d, steps = work.dimension[at, number], work.trips[at, number]
            indexes, last = tables.indexes[t, d], at == level and number + 1 == loops
            if not found:
                if child >= 0:
                    found = last or (indexes and steps > 1.0)
                else:
                    next_unrolled = number + 1 < unrolled
                    if number + 1 == loops and at < level:
                        next_unrolled = tables.level[at + 1].fans
                    found = last or not next_unrolled or (indexes and steps > 1.0)
                work.mold[d] *= steps
                if found:
                    target, target_unrolled = d, number < unrolled
                    single = child < 0 and not target_unrolled
                    passing = target_unrolled and child >= 0
                    if single:
                        for each in range(dims):
                            work.mold[each] = 1.0
                    else:
                        work.taken_dimension[0], work.taken_trips[0], count = d, steps, 1
                    size = words_of(tables, t, work.mold)
            elif steps > 1.0:
                if number >= unrolled and indexes:
                    passing = False
                if number < unrolled or passing:
                    work.mold[d] *= steps
                    if not single:
                        work.taken_dimension[count], work.taken_trips[count] = d, steps
                        count += 1
    block = tables.storage[tables.memory[level, t]].block / tables.storage[tables.memory[level, t]].per_word
    kept = 1.0
    for c in range(tables.option[option].first, tables.option[option].last):
        kept *= 1.0 - _empty(tables, work, empties, t, tables.condition[c], count, size, block, target, target_unrolled)
    return 1.0 - kept


@kernel_part
def _empty(
    tables: SparseTables,
    work: SparseScratch,
    empties: MemoTable,
    t: int,
    condition: int,
    count: int,
    size: float,
    block: float,
    target: int,
    target_unrolled: bool,
) -> float:
    """Return the probability that the condition's tile is empty; 0 if the condition has no effect.

    Of loops that step both tensors, only what one step covers counts.
    """
    dims, stepped, product = len(work.mold), False, 1.0
    for d in range(dims):
        work.both[d], work.part[d] = 0.0, work.mold[d]
    for number in range(count):
        d = work.taken_dimension[number]
        if tables.indexes[condition, d]:
            if target_unrolled and stepped:
                return 0.0
            if tables.indexes[t, d]:
                stepped = True
                work.both[d] = max(work.both[d], 1.0) * work.taken_trips[number]
                product *= work.taken_trips[number]
    needed = np.ceil(block / (size / product))
    for d in range(dims):
        if work.both[d] > 0.0:
            work.part[d] = np.ceil(work.part[d] / (work.both[d] / needed))
            needed /= work.both[d]
    if needed > 1.0:
        work.part[target] = np.floor(work.part[target] * needed)
    work.key[0], work.key[1] = condition, tile_of(tables, condition, work.part)
    row = find(empties, work.key[:2])
    if row < 0 or np.isnan(empties.values[row, 0]):
        work.missing[0] = True
        return 0.0
    return float(empties.values[row, 0])
