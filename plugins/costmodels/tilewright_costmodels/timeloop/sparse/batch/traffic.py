"""Accesses and operations of one mapping on sparse hardware; the kernel's form of `thinning`."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable, find
from tilewright_costmodels.timeloop.sparse.batch.tables import (
    BITS,
    EXISTS,
    HELD,
    STORED,
    UNITS,
    SparseScratch,
    SparseTables,
)
from tilewright_costmodels.timeloop.sparse.thinning import EXECUTED, FILL, READ, UPDATE, rounded


@kernel_part
def look_up_contents(tables: SparseTables, work: SparseScratch, contents: MemoTable) -> None:
    """Write the row of what every tile holds, where a format or alternatives of an action depend on it.

    `SparseScratch.missing` becomes True if the memo lacks a row.
    """
    tensors, key = len(tables.tensor), work.key
    for level in range(len(tables.level)):
        for t in range(tensors):
            parent = work.parent[level, t]
            sent = parent >= 0 and tables.format[parent, t].ranks > 0
            if not work.kept[level, t] or not (sent or tables.format[level, t].ranks > 0 or tables.weighs):
                work.content[level, t] = -1
                continue
            for position in range(2 + 2 * work.ranks[level, t], len(key)):
                key[position] = 0
            key[0], key[1] = (level * tensors + t) * 2 + sent, work.tile[level, t]
            for rank in range(work.ranks[level, t]):
                key[2 + 2 * rank] = work.length[level, t, rank]
                key[3 + 2 * rank] = work.rank_tile[level, t, rank]
            row = find(contents, key)
            if row < 0 or np.isnan(contents.values[row, 0]):
                work.missing[0] = True
            work.content[level, t] = row


@kernel_part
def fits(tables: SparseTables, work: SparseScratch, contents: MemoTable) -> bool:
    """Return whether data and metadata of the fullest tiles fit the memories."""
    work.need[:] = 0.0
    for level in range(len(tables.level)):
        for t in range(len(tables.tensor)):
            if work.kept[level, t]:
                memory, words, bits = tables.memory[level, t], work.words[level, t], 0.0
                if tables.format[level, t].ranks > 0:
                    words, bits = (
                        contents.values[work.content[level, t], STORED],
                        contents.values[work.content[level, t], BITS],
                    )
                work.need[memory, 0] += words * tables.slices[level, t]
                work.need[memory, 1] += bits
    good = True
    for memory in range(len(tables.storage)):
        good &= (
            work.need[memory, 0] <= tables.storage[memory].usable and work.need[memory, 1] <= tables.storage[memory].fit
        )
    return good


@kernel_part
def count_accesses(
    tables: SparseTables, work: SparseScratch, contents: MemoTable, counts: Counts, group: int, lane: int
) -> None:
    """Write the accesses of all tensors, without those of words that formats omit."""
    levels = len(tables.level)
    for level in range(levels):
        outer = levels - 1 - level  # the dense model's levels begin with the outermost one
        for t in range(len(tables.tensor)):
            if work.kept[level, t]:
                data, size = work.data[level, t], work.words[level, t]
                data[EXECUTED, READ] = counts.reads[group, outer, t, lane]
                data[EXECUTED, FILL] = counts.fills[group, outer, t, lane]
                data[EXECUTED, UPDATE] = counts.updates[group, outer, t, lane]
                if tables.format[level, t].ranks > 0:
                    values = contents.values[work.content[level, t]]
                    omitted = 1.0 - values[HELD] / size
                    for rank in range(work.ranks[level, t]):
                        metadata = work.metadata[level, t, rank]
                        for kind in range(2):
                            units = values[UNITS + 2 * rank + kind]
                            for action in range(3):
                                metadata[kind, EXECUTED, action] = np.ceil(units * (data[EXECUTED, action] / size))
                    for action in range(3):
                        data[EXECUTED, action] -= np.floor(data[EXECUTED, action] * omitted)


@kernel_call
def thin(tables: SparseTables, work: SparseScratch) -> float:
    """Take off what actions save. Return the operations that are left; -1 if an action saves less than an outer one."""
    operations = tables.compute[0].operations
    for t in range(len(tables.tensor)):
        work.saved[t] = 0.0
        share, ranks, within = 0.0, 0, False
        for level in range(len(tables.level) - 1, -1, -1):
            if not work.kept[level, t]:
                continue
            data, own = work.data[level, t], work.ranks[level, t]
            if within:
                for action in range(3):
                    data[EXECUTED, action] -= np.floor(data[EXECUTED, action] * share)
                if ranks == 1 and own > 0:
                    pieces = work.metadata[level, t, 0]
                    for kind in range(2):
                        pieces[kind, EXECUTED, READ] -= np.floor(pieces[kind, EXECUTED, READ] * share)
                        pieces[kind, EXECUTED, FILL] -= np.floor(pieces[kind, EXECUTED, FILL] * share)
            if work.kind[level, t] > 0:
                local = work.share[level, t]
                if within:
                    local = 1.0 - (1.0 - local) / (1.0 - share) if share < 1.0 else 0.0
                    for rank in range(own):
                        for kind in range(2):
                            pieces = work.metadata[level, t, rank]
                            pieces[kind, EXECUTED, READ] = pieces[kind, EXECUTED, UPDATE]
                if local < 0.0:
                    return -1.0
                _save(tables, work, level, t, local)
                share, ranks, within = work.share[level, t], own, True
        if within and not tables.tensor[t].is_output:
            operations -= np.floor(operations * share)
            work.saved[t] = rounded(share)
    return float(operations)


@kernel_part
def _save(tables: SparseTables, work: SparseScratch, level: int, t: int, share: float) -> None:
    """Move a share of the executed reads and updates to another kind; reads of outputs are rounded up."""
    data, to, child = work.data[level, t], work.kind[level, t], work.child[level, t]
    reads = data[EXECUTED, READ] * share
    data[to, READ] = np.ceil(reads) if tables.tensor[t].is_output else np.floor(reads)
    data[to, FILL] = 0.0
    data[to, UPDATE] = np.floor(data[EXECUTED, UPDATE] * share)
    data[EXECUTED, READ] -= data[to, READ]
    data[EXECUTED, UPDATE] -= data[to, UPDATE]
    moved = work.ranks[level, t] if child < 0 else work.ranks[child, t]
    for rank in range(work.ranks[level, t]):
        for kind in range(2):
            pieces = work.metadata[level, t, rank, kind]
            for action in range(3):
                pieces[to, action] = 0.0
                if rank < moved and action != FILL:
                    pieces[to, action] = np.floor(pieces[EXECUTED, action] * share)
                    pieces[EXECUTED, action] -= pieces[to, action]


@kernel_call
def operate(tables: SparseTables, work: SparseScratch, operations: float) -> tuple[float, float, float]:
    """Return (actual, gated, skipped) operations; actual ones are -1 if actions save more than there are zeros."""
    compute = tables.compute[0]
    a, a_zero, a_absent = _operand(tables, work, compute.first, compute.second)
    b, b_zero, b_absent = _operand(tables, work, compute.second, compute.first)
    if a < 0.0 or b < 0.0:
        return -1.0, 0.0, 0.0
    # in Timeloop's order, so that sums round alike
    zero, lone = operations * (a * b_zero + a_zero * b), operations * (a * b_absent + a_absent * b)
    both, mixed = operations * (a_zero * b_zero), operations * (a_zero * b_absent + a_absent * b_zero)
    gated = 0.0
    if compute.gate:
        gated = zero + both if compute.skip else zero + lone + both + mixed
    gates, skips = np.floor(gated), np.floor(lone + mixed) if compute.skip else 0.0
    nothing = np.floor(operations * (a_absent * b_absent))
    return operations - gates - skips - nothing, gates, skips


@kernel_part
def _operand(tables: SparseTables, work: SparseScratch, t: int, other: int) -> tuple[float, float, float]:
    """Return the shares of an operand's values that are nonzero, zero, and absent; -1 first if there are none such."""
    left, innermost = 1.0 - work.saved[other], 0
    while not work.kept[innermost, t]:
        innermost += 1
    nonzero = tables.tensor[t].nonzero / left if left > 0.0 else np.inf
    if not nonzero <= 1.0 + 1e-5:
        return -1.0, 0.0, 0.0
    nonzero = min(nonzero, 1.0)
    if tables.format[innermost, t].ranks > 0:
        return nonzero, 0.0, 1.0 - nonzero
    return nonzero, 1.0 - nonzero, 0.0


@kernel_part
def existing(work: SparseScratch, contents: MemoTable, level: int, t: int) -> float:
    """Return the share of the tiles that exist."""
    return contents.values[work.content[level, t], EXISTS] if work.content[level, t] >= 0 else 1.0
