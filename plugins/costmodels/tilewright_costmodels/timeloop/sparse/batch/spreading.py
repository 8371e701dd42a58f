"""Skipping in space: how many units have work if empty tiles occupy none, of `LANES` mappings.

Four units are unrolled along K, and one word of A [M, K] in four is nonzero (a structured density). B skips units:

    unit along X           0     1     2     3
    a fiber of A           0     5     0     0        4 words; the tile of a unit is 1 word
    the unit has work      no    yes   no    no

A row of the memo `fibers`, and the arrays of B that follow:

    key: tensor, tile, fiber   units   share     `dense_x`   `x`                  `busy`
    (A, 1, 4)                  1       0.25      4           floor(4 * 1 / 4)     0.25

So 4 * 1 / 4 = 1 unit has work at most. The action saves 1 - 0.25 = 0.75 of the accesses to B.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Ints
from tilewright_costmodels.timeloop.sparse.batch.loops import extend, list_loops, tile_of
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable, look_up
from tilewright_costmodels.timeloop.sparse.batch.notes import (
    NO_UNITS,
    SPATIAL_AND_TEMPORAL,
    SPATIAL_TILES,
    TARGET,
    refuse,
)
from tilewright_costmodels.timeloop.sparse.batch.tables import NOTHING, SparseScratch, SparseTables
from tilewright_costmodels.timeloop.sparse.operations import SKIPPED


@kernel_call
def spread_all(tables: SparseTables, work: SparseScratch, good: Bools, fibers: MemoTable) -> Bools:
    """Write the units with work, and what the actions that skip units save. Return whether they exist, [B].

    `SparseScratch.missing` becomes True where the memo lacks a fiber.

    Args:
        good: [B], mappings to look at.
    """
    levels = len(tables.level)
    for action in tables.unit_action:
        absent = _kept_from(work, action.level, action.tensor) < 0
        good = good & ~absent
        refuse(work, absent, TARGET, splat16(0) + action.place, splat16(NOTHING), action.tensor)
    for t in range(len(tables.tensor)):
        for level in range(levels):
            work.x[level, t][:], work.y[level, t][:] = lanes(work.dense_x[level]), lanes(work.dense_y[level])
            work.before_x[level][:], work.before_y[level][:] = lanes(work.dense_x[level]), lanes(work.dense_y[level])
            work.busy[level, t][:] = splat16(1.0)
        for level in range(levels):
            good = _reduce(tables, work, good, fibers, level, t, t, 4 * t)
            work.stops[level][:] = lanes(work.busy[level, t]) != 1.0
        good = _pass_on(tables, work, good, t, 4 * t + 1)
        for level in range(levels):
            work.before_x[level][:], work.before_y[level][:] = lanes(work.x[level, t]), lanes(work.y[level, t])
            work.stops[level][:] = splat16(False)
        for action in tables.unit_action:
            if action.tensor == t:
                work.busy[action.level, t][:] = splat16(1.0)  # Timeloop forgets the share by the tensor's own format
                good = _reduce(tables, work, good, fibers, action.level, t, action.condition, 4 * t + 2)
                work.stops[action.level][:] = splat16(True)
        good = _pass_on(tables, work, good, t, 4 * t + 3)
    for t in range(len(tables.tensor)):
        good = _save_units(tables, work, good, t)
    _count_instances(tables, work)
    return _note_crowd(tables, work, good)


@kernel_part
def _kept_from(work: SparseScratch, level: int, t: int) -> Ints:
    """Return the nearest level from `level` outwards that keeps a tensor, [B]; -1: none does."""
    nearest = splat16(NOTHING)
    for at in range(work.kept.shape[0] - 1, level - 1, -1):
        nearest = np.where(lanes(work.kept[at, t]), at, nearest)
    return nearest


@kernel_call
def _reduce(
    tables: SparseTables,
    work: SparseScratch,
    good: Bools,
    fibers: MemoTable,
    level: int,
    t: int,
    condition: int,
    place: int,
) -> Bools:
    """Leave out units of a tensor whose tile of a condition is empty, if its format tells which ones are.

    Return whether tiles of units divide what all units need, [B].

    Args:
        place: of the refusal.
    """
    kept, told = _kept_from(work, level, condition), splat16(False)
    for at in range(level, len(tables.level)):
        if tables.format[at, condition].ranks > 0:
            told = told | (kept == at)
    told = told & good
    if not np.any(told):
        return good
    if not work.listed[level]:
        list_loops(tables, work, level)
    dims, seen = len(work.mold), splat16(False)
    for d in range(dims):
        work.mold[d][:] = lanes(work.scratch.inside[tables.inside[level], d])
    for row in range(work.turn[level]):
        bit, trips = lanes(work.bit[level, row]), lanes(work.trips[level, row])
        there = told & (trips > 1.0) & ((bit & tables.tensor[condition].dims) != 0)
        if np.any(there):
            _cover(tables, work, level, t, condition, there, bit)
            keys = work.fiber_key
            keys[0][:], keys[1][:] = splat16(0) + condition, tile_of(tables, condition, work.part)
            extend(work.part, -1, bit, trips, there)
            keys[2][:] = tile_of(tables, condition, work.part)
            work.wanted[:] = there
            look_up(fibers, keys, work.wanted, work.row, work.missing)
            for b in range(LANES):
                known = work.row[b] >= 0
                work.memo[b] = fibers.values[work.row[b], 0] if known else trips[b]
                work.memo_too[b] = fibers.values[work.row[b], 1] if known else 1.0
            units, share, vertical = lanes(work.memo), lanes(work.memo_too), lanes(work.vertical[level, row])
            good = good & ~(there & (units < 0.0))
            first = refuse(work, there & (units < 0.0), SPATIAL_TILES, splat16(place), kept, condition)
            for number in range(2):
                before = lanes(work.refused_tiles[number])
                work.refused_tiles[number][:] = np.where(first, lanes(keys[1 + number]), before)
            along_x, along_y = lanes(work.x[level, t]), lanes(work.y[level, t])
            work.x[level, t][:] = np.where(there & ~vertical, np.floor(along_x * units / trips), along_x)
            work.y[level, t][:] = np.where(there & vertical, np.floor(along_y * units / trips), along_y)
            work.busy[level, t][:] = np.where(there & ~seen, share, lanes(work.busy[level, t]))
            seen = seen | there
        extend(work.mold, -1, bit, trips, bit > 0)
    return good


@kernel_part
def _cover(
    tables: SparseTables, work: SparseScratch, level: int, t: int, condition: int, there: Bools, bit: Ints
) -> None:
    """Write the iterations of the sub-tile that one unit needs to have work to `part`."""
    for d in range(len(work.mold)):
        work.part[d][:] = lanes(work.mold[d])
    mask = tables.tensor[t].dims
    waiting = there & ((bit & mask) != 0) & (lanes(work.child[level, t]) >= 0)
    if t == condition or not np.any(waiting):
        return
    kept = _kept_from(work, level, t)
    for at in range(level, len(tables.level)):
        inside = waiting & ((kept >= at) | (at == level))
        if not np.any(inside):
            continue
        if not work.listed[at]:
            list_loops(tables, work, at)
        for row in range(work.turn[at], work.rows[at]):
            stepped, trips = lanes(work.bit[at, row]), lanes(work.trips[at, row])
            steps = inside & waiting & (trips > 1.0)
            waiting = waiting & ~(steps & ((stepped & mask) != 0))
            extend(work.part, -1, stepped, trips, steps & waiting)


@kernel_part
def _pass_on(tables: SparseTables, work: SparseScratch, good: Bools, t: int, place: int) -> Bools:
    """Reduce the units inside every level by what outer levels leave out; averages only up to a level that stops them.

    As in Timeloop, a reduction applies again at every level that it has reached. Return whether each level has a unit
    with work, [B].
    """
    for level in range(len(tables.level) - 1, 0, -1):
        along_x = lanes(work.x[level, t]) / lanes(work.before_x[level])
        along_y = lanes(work.y[level, t]) / lanes(work.before_y[level])
        reduced, share = (along_x != 1.0) | (along_y != 1.0), lanes(work.busy[level, t])
        if np.any(reduced):
            for inner in range(level - 1, -1, -1):
                x, y, busy = lanes(work.x[inner, t]), lanes(work.y[inner, t]), lanes(work.busy[inner, t])
                work.x[inner, t][:] = np.where(reduced, np.floor(x * along_x), x)
                work.y[inner, t][:] = np.where(reduced, np.floor(y * along_y), y)
                reduced_share = reduced & ~_stopped(work, inner, level)
                work.busy[inner, t][:] = np.where(reduced_share, busy * share, busy)
    some: Bools = splat16(True)
    for level in range(len(tables.level)):
        some = some & (lanes(work.x[level, t]) * lanes(work.y[level, t]) > 0.0)
    refuse(work, ~some, NO_UNITS, splat16(place), splat16(NOTHING), t)
    return good & some


@kernel_part
def _stopped(work: SparseScratch, inner: int, level: int) -> Bools:
    """Return whether a level from `inner` up to `level`, exclusive, stops averages, [B]."""
    stopped = splat16(False)
    for at in range(inner, level):
        stopped = stopped | lanes(work.stops[at])
    return stopped


@kernel_part
def _save_units(tables: SparseTables, work: SparseScratch, good: Bools, t: int) -> Bools:
    """Write the share that the actions on a tensor save. Return whether none of its accesses there are skipped, too, [B]."""
    for at in range(len(tables.level)):
        share, acts = splat16(0.0), splat16(False)
        for level in range(at + 1):
            for action in tables.unit_action:
                if action.tensor == t and action.level == level:
                    here = _kept_from(work, level, t) == at
                    share, acts = np.where(here, 1.0 - lanes(work.busy[level, t]), share), acts | here
        both = acts & (lanes(work.kind[at, t]) > 0)
        refuse(work, both, SPATIAL_AND_TEMPORAL, splat16(at + t * len(tables.level)), splat16(at), t)
        good = good & ~both
        work.share[at, t][:] = np.where(acts, share, lanes(work.share[at, t]))
        work.kind[at, t][:] = np.where(acts, SKIPPED, lanes(work.kind[at, t]))
        work.in_space[at, t][:] = acts
    return good


@kernel_part
def _count_instances(tables: SparseTables, work: SparseScratch) -> None:
    """Write the instances with work, and the compute units with work, on average."""
    units, most = lanes(work.dense_x[0]) * lanes(work.dense_y[0]), splat16(0.0)
    for t in range(len(tables.tensor)):
        most = np.maximum(most, lanes(work.busy[0, t]))
        for level in range(len(tables.level)):
            instances = average = splat16(1.0)
            if level + 1 < len(tables.level):
                instances = lanes(work.x[level + 1, t]) * lanes(work.y[level + 1, t])
                average = lanes(work.dense_x[level + 1]) * lanes(work.dense_y[level + 1])
                average = average * lanes(work.busy[level + 1, t])
            work.instances[level, t][:], work.average[level, t][:] = instances, average
    work.units[:] = units * most


@kernel_part
def _note_crowd(tables: SparseTables, work: SparseScratch, good: Bools) -> Bools:
    """Write the sub-clusters of an instance with work. Return whether they exist, or `good` for a report, [B]."""
    for level in range(len(tables.level)):
        along_x = along_y = splat16(0.0)
        for t in range(len(tables.tensor)):
            x, y = lanes(work.x[level, t]), lanes(work.y[level, t])
            if level + 1 < len(tables.level):
                x = np.floor(x / lanes(work.x[level + 1, t]))
                y = np.floor(y / lanes(work.y[level + 1, t]))
            along_x, along_y = np.maximum(along_x, x), np.maximum(along_y, y)
        work.crowd[level, 0][:], work.crowd[level, 1][:] = along_x, along_y
        if not work.reported[0]:
            good = good & (along_x <= tables.fanout[level, 0]) & (along_y <= tables.fanout[level, 1])
    return good
