"""Accesses and operations of `LANES` mappings on sparse hardware: what formats omit, and what actions save.

Accesses of a buffer in the example of `tables`. A row is a tensor; columns are reads in the order of these functions:

    tensor   dense   omitted by the format   skipped   executed
    A        32      23                      0         9
    B        32      0                       24        8
    Z        24      0                       0         24

A tile of A has 16 words, and the format holds 4.0049 on average. So a share of 1 - 4.0049 / 16 = 0.7497 is omitted.
That is floor(32 * 0.7497) = 23 reads. Operations are thinned like reads of B: 64 - 48 = 16 remain.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable, look_up
from tilewright_costmodels.timeloop.sparse.batch.notes import (
    CONDITIONS,
    METADATA_NOT_SCALED,
    METADATA_READS_LOST,
    NEGATIVE_SAVING,
    note,
    refuse,
)
from tilewright_costmodels.timeloop.sparse.batch.tables import (
    BITS,
    EXISTS,
    HELD,
    STORED,
    UNITS,
    SparseScratch,
    SparseTables,
)
from tilewright_costmodels.timeloop.sparse.operations import FILL, READ, UPDATE, State, perform, rounded, state_of


@kernel_part
def look_up_contents(tables: SparseTables, work: SparseScratch, good: Bools, contents: MemoTable) -> None:
    """Write what every tile holds, where a format or alternatives of an action depend on it.

    `SparseScratch.missing` becomes True where the memo lacks a row.

    Args:
        good: [B], mappings to look at.
    """
    tensors = len(tables.tensor)
    for level in range(len(tables.level)):
        for t in range(tensors):
            work.values[level, t, EXISTS][:] = splat16(1.0)
            ranks, sent = tables.format[level, t].ranks, lanes(work.sent[level, t])
            wanted = good & lanes(work.kept[level, t])
            if ranks == 0 and not tables.weighs:
                wanted = wanted & sent
            if not np.any(wanted):
                continue
            keys = work.key[level, t]
            keys[0][:] = np.where(sent, 1, 0) + (level * tensors + t) * 2
            keys[1][:] = lanes(work.tile[level, t])
            for rank in range(ranks):
                keys[2 + 2 * rank][:] = lanes(work.length[level, t, rank])
                keys[3 + 2 * rank][:] = lanes(work.rank_tile[level, t, rank])
            work.wanted[:] = wanted
            look_up(contents, keys, work.wanted, work.row, work.missing)
            count = UNITS + 2 * ranks if ranks > 0 or tables.weighs else EXISTS + 1
            for b in range(LANES):
                for value in range(count if work.row[b] >= 0 else 0):
                    work.values[level, t, value, b] = contents.values[work.row[b], value]


@kernel_part
def fits(tables: SparseTables, work: SparseScratch) -> Bools:
    """Return whether data and metadata of the fullest tiles fit the memories, [B]."""
    for memory in range(len(tables.storage)):
        work.need[memory, 0][:] = work.need[memory, 1][:] = splat16(0.0)
    for level in range(len(tables.level)):
        for t in range(len(tables.tensor)):
            memory, kept = tables.memory[level, t], lanes(work.kept[level, t])
            if memory >= 0 and np.any(kept):
                words, bits = lanes(work.words[level, t]), splat16(0.0)
                if tables.format[level, t].ranks > 0:
                    words, bits = lanes(work.values[level, t, STORED]), lanes(work.values[level, t, BITS])
                data, metadata = lanes(work.need[memory, 0]), lanes(work.need[memory, 1])
                work.need[memory, 0][:] = data + np.where(kept, words * tables.slices[level, t], 0.0)
                work.need[memory, 1][:] = metadata + np.where(kept, bits, 0.0)
    good = splat16(True)
    for m in range(len(tables.storage)):
        storage = tables.storage[m]
        good = good & (lanes(work.need[m, 0]) <= storage.usable) & (lanes(work.need[m, 1]) <= storage.fit)
    return good


@kernel_part
def count_accesses(tables: SparseTables, work: SparseScratch, counts: Counts, group: int) -> None:
    """Write the accesses of all tensors, without those of words that formats omit."""
    levels = len(tables.level)
    for level in range(levels):
        outer = levels - 1 - level  # the dense model's levels begin with the outermost one
        for t in range(len(tables.tensor)):
            data, ranks = work.data[level, t], tables.format[level, t].ranks
            data[READ][:] = lanes(counts.reads[group, outer, t])
            data[FILL][:] = lanes(counts.fills[group, outer, t])
            data[UPDATE][:] = lanes(counts.updates[group, outer, t])
            if not len(tables.unit_action):
                instances = lanes(counts.instances[group, outer])
                work.instances[level, t][:] = instances
                work.average[level, t][:] = instances * lanes(work.values[level, t, EXISTS])
            if ranks > 0:
                size = lanes(work.words[level, t])
                omitted = 1.0 - lanes(work.values[level, t, HELD]) / size
                for action in range(3):
                    words = lanes(data[action])
                    for rank in range(ranks):
                        for kind in range(2):
                            units = lanes(work.values[level, t, UNITS + 2 * rank + kind])
                            work.metadata[level, t, rank, kind, action][:] = np.ceil(units * (words / size))
                    data[action][:] = words - np.floor(words * omitted)


@kernel_call
def thin(tables: SparseTables, work: SparseScratch) -> Floats:
    """Take off what actions save. Return the operations left, [B]; -1 if an action saves less than an outer one."""
    operations, good = splat16(tables.compute[0].operations), splat16(True)
    for t in range(len(tables.tensor)):
        share, single, within = splat16(0.0), splat16(False), splat16(False)
        for level in range(len(tables.level) - 1, -1, -1):
            kept, acts = lanes(work.kept[level, t]), lanes(work.kind[level, t]) > 0
            ranks, inside = tables.format[level, t].ranks, kept & within
            if np.any(inside):
                if ranks > 0:
                    note(work, level, t, METADATA_NOT_SCALED, inside & ~single & (share != 0.0))
                for action in range(3):
                    _take_off(work.data[level, t, action], share, inside)
                for kind in range(2 if ranks > 0 else 0):
                    _take_off(work.metadata[level, t, 0, kind, READ], share, inside & single)
                    _take_off(work.metadata[level, t, 0, kind, FILL], share, inside & single)
            acts = acts & kept
            if np.any(acts):
                local = lanes(work.share[level, t])
                inner = np.where(share < 1.0, 1.0 - (1.0 - local) / (1.0 - share), 0.0)
                local = np.where(within, inner, local)
                for rank in range(ranks):
                    for kind in range(2):
                        reads, updates = (
                            work.metadata[level, t, rank, kind, READ],
                            work.metadata[level, t, rank, kind, UPDATE],
                        )
                        note(work, level, t, METADATA_READS_LOST, acts & within & (lanes(reads) != lanes(updates)))
                        reads[:] = np.where(acts & within, lanes(updates), lanes(reads))
                in_time = acts & ~lanes(work.in_space[level, t])
                good = good & ~(in_time & (local < 0.0))
                if work.reported[0]:
                    place = splat16(len(tables.level) * (t + 1) - level)
                    refuse(work, in_time & (local < 0.0), NEGATIVE_SAVING, place, splat16(0) + level, t)
                _save(tables, work, level, t, in_time, local)
                share, single = np.where(acts, lanes(work.share[level, t]), share), np.where(acts, ranks == 1, single)
                within = within | acts
        saved = splat16(0.0)
        if not tables.tensor[t].is_output:
            operations = np.where(within, operations - np.floor(operations * share), operations)
            saved = np.where(within, rounded(share), 0.0)
        work.saved[t][:] = saved
    return np.where(good, operations, -1.0)


@kernel_part
def _take_off(row: Floats, share: Floats, where: Bools) -> None:
    """Take a share off a row, rounded down, in some lanes."""
    before = lanes(row)
    row[:] = np.where(where, before - np.floor(before * share), before)


@kernel_part
def _save(tables: SparseTables, work: SparseScratch, level: int, t: int, acts: Bools, share: Floats) -> None:
    """Move a share of the executed reads and updates to another kind; reads of outputs are rounded up."""
    data, other = work.data[level, t], work.other_data[level, t]
    for action in (READ, UPDATE):
        saved = lanes(data[action]) * share
        if action == READ and tables.tensor[t].is_output:
            saved = np.ceil(saved)
        else:
            saved = np.floor(saved)
        saved = np.where(acts, saved, 0.0)
        other[action][:], data[action][:] = saved, lanes(data[action]) - saved
    for rank in range(tables.format[level, t].ranks):
        moves = acts & (lanes(work.moved[level, t]) > rank)
        for kind in range(2):
            pieces, others = work.metadata[level, t, rank, kind], work.other_metadata[level, t, rank, kind]
            for action in (READ, UPDATE):
                saved = np.where(moves, np.floor(lanes(pieces[action]) * share), 0.0)
                others[action][:], pieces[action][:] = saved, lanes(pieces[action]) - saved


@kernel_part
def operate(tables: SparseTables, work: SparseScratch, operations: Floats) -> Bools:
    """Write (actual, gated, skipped) operations. Return whether there are as many zeros as actions save, [B]."""
    compute = tables.compute[0]
    first, good = _operand(tables, work, compute.first, compute.second, 0)
    second, also = _operand(tables, work, compute.second, compute.first, 1)
    actual, gated, skipped = perform(operations, first, second, bool(compute.gate), bool(compute.skip))
    work.operations[0][:], work.operations[1][:], work.operations[2][:] = actual, gated, skipped
    return good & also


@kernel_part
def _operand(tables: SparseTables, work: SparseScratch, t: int, other: int, place: int) -> tuple[State, Bools]:
    """Return the shares of an operand's values that are nonzero, zero, and absent, and whether there are as many zeros."""
    state, possible = state_of(tables.tensor[t].expected, lanes(work.saved[other]), lanes(work.absent[t]))
    refuse(work, ~possible, CONDITIONS, splat16(place), splat16(0), t)
    return state, possible
