"""Stages of the staged search: one function per kind of stage writes the successors of one state.

Stages write states, row by row. States of the worked example in docs/optimal.md:

    kind               state    successors    what they are
    END_FANOUT         start    1
    CLOSE_BLOCK        1        2
    PLACE_REST         3        6, 7, 8       no loop over N, N x 2, N x 4
    STORE              19       36            one successor per set of tensors that the entry may keep
    PLACE_LOOP         36       45, 46        M x 4 and N x 2: each makes another tensor stationary

UNROLL is like PLACE_REST, of a spatial slot. FIND_FORWARDING has one successor.
"""

from __future__ import annotations

from tilewright.compiled import compiled, inlined, integer, kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.bounds import bound
from tilewright_mappers.optimal.kernel.dominance import insert
from tilewright_mappers.optimal.kernel.forwarding import (
    find_forwarding,
    forget_placed,
    resolve_forwarding,
    settle_forwarding,
)
from tilewright_mappers.optimal.kernel.loops import add_temporal_loop, end_fanout, unroll
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    FORWARDING_OPEN,
    KEPT_INSIDE,
    LOOP_MASK,
    NO_LOOP_YET,
    STATUS,
    USED,
    status_of,
    stored_words,
    tile_count,
    tile_index,
)
from tilewright_mappers.optimal.kernel.storage import end_compute_fanout, store
from tilewright_mappers.optimal.kernel.structures import (
    SLIDING,
    STATIONARY,
    OuterContext,
    SearchContext,
    Stage,
    StateRows,
    StateTable,
    StorageEntry,
)

UNROLL, FIND_FORWARDING, END_FANOUT, PLACE_LOOP, CLOSE_BLOCK, PLACE_REST, STORE = map(integer, range(7))
"""Kinds of stages."""


@compiled
def expand_states(
    context: SearchContext, stage: Stage, states: StateRows, table: StateTable, start: int, stop: int
) -> int:
    """Write the successors of states into a table, except pruned ones (Lemmas 3 and 5).

    Returns:
        The first state that was not expanded, because the table was full; or `stop`.
    """
    problem = context.problem
    most = len(problem.sizes) * problem.trip.shape[1] + len(stage.choices)
    for i in range(start, stop):
        if table.counters[0] + most > len(table.alive):
            return i
        forget_placed(context)
        if stage.kind == UNROLL:
            _unroll(context, stage, states, i, table)
        elif stage.kind == FIND_FORWARDING:
            _find_forwarding(context, stage, states, i, table)
        elif stage.kind == END_FANOUT:
            _end_fanout(context, stage, states, i, table)
        elif stage.kind == PLACE_LOOP:
            _place_loop(context, stage, states, i, table)
        elif stage.kind == CLOSE_BLOCK:
            _close_block(context, stage, states, i, table)
        elif stage.kind == PLACE_REST:
            _place_rest(context, stage, states, i, table)
        else:
            _store(context, stage, states, i, table)
    return stop


@inlined
def _unroll(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """Unroll the stage's dimension over its slot, with all trips that fit (Lemma 1)."""
    d, k, rows = stage.dimension, stage.position, table.rows
    used, most = states.integers[i, USED + k], stage.outer.max_used[stage.level.slot[k]]
    for j in range(context.problem.trip.shape[1]):
        trips = _trips(context, stage, states, i, d, j)
        if trips < 0 or used * trips > most:
            break
        if trips > 0:
            n = _copy(context, states, i, table, d * context.problem.trip.shape[1] + j)
            if j > 0:
                unroll(context, stage.level, rows, n, d, j, k)
            # without tiles left nothing is decided, and the bound stays
            if j > 0 or tile_count(context, states, i, d) > 1:
                if not _fits_outside(context, stage.outer, rows, n):  # nor do larger tiles
                    break
                _raise_bound(context, stage.outer, rows, n)
            _keep(context, stage, table, n)


@inlined
def _find_forwarding(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """Close forwarding where no order of the other unrollings allows it (Lemma 14)."""
    n = _copy(context, states, i, table, 0)
    find_forwarding(context, stage.level, table.rows, n)
    # a state that may still forward never dominates, and the others forward nothing in this fanout
    table.rows.integers[n, STATUS] &= (1 << KEPT_INSIDE) - 1
    if _fits_outside(context, stage.outer, table.rows, n):
        _raise_bound(context, stage.outer, table.rows, n)
        _keep(context, stage, table, n)


@inlined
def _end_fanout(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """End the current fanout, if enough sub-clusters are used (Lemma 14)."""
    rows, level = table.rows, stage.level
    n = _copy(context, states, i, table, 0)
    for k in range(len(level.slot)):
        if rows.integers[n, USED + k] < level.min_used[k]:
            return
        rows.integers[n, USED + k] = 1
    if stage.feeds_units:
        end_compute_fanout(context, level, rows, n)
    else:
        resolve_forwarding(context, level, rows, n)
    if _fits_outside(context, stage.outer, rows, n):
        _raise_bound(context, stage.outer, rows, n)
        _keep(context, stage, table, n)


@inlined
def _place_loop(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """Add a temporal loop over each dimension that matters and is not placed yet (Lemma 2)."""
    rows, mask = table.rows, states.integers[i, LOOP_MASK]
    for d in range(len(context.problem.sizes)):
        if mask >> d & 1 or not _matters(context, stage, states, i, d) or not _in_order(stage, mask, d):
            continue
        for j in range(1, context.problem.trip.shape[1]):
            trips = _trips(context, stage, states, i, d, j)
            if trips < 0:
                break
            if trips > 0:
                n = _copy(context, states, i, table, d * context.problem.trip.shape[1] + j)
                add_temporal_loop(context, stage.level, rows, n, d, j)
                rows.integers[n, LOOP_MASK] |= 1 << d
                if not _fits_outside(context, stage.outer, rows, n):  # nor do larger tiles
                    break
                _raise_bound(context, stage.outer, rows, n)
                _keep(context, stage, table, n)


@inlined
def _close_block(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """End the placed loops of a block, and mark the other dimensions for the rest of it (Lemma 2).

    A dimension that can be completed neither way has no successor.
    """
    rest, integers = 0, states.integers
    for d in range(len(context.problem.sizes)):
        placed = integers[i, LOOP_MASK] >> d & 1
        count = tile_count(context, states, i, d)
        if not placed and count > 1 and not _matters(context, stage, states, i, d):
            rest |= 1 << d
        elif not stage.iterable_tiles[d, integers[i, context.layout.tile_index + d]]:
            return
        elif not (placed or stage.trips[d, 0]):
            return
    n = _copy(context, states, i, table, 0)
    if integers[i, STATUS] & NO_LOOP_YET == 0 and integers[i, context.layout.flags] >> FORWARDING_OPEN:
        for t in range(len(context.problem.output)):
            if integers[i, context.layout.flags] >> (FORWARDING_OPEN + t) & 1:
                settle_forwarding(context, table.rows, n, t, 0.0, 1.0)
        end_fanout(context, table.rows, n, 0)
    table.rows.integers[n, LOOP_MASK] = rest
    _keep(context, stage, table, n)


@inlined
def _place_rest(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """Add a temporal loop over the stage's dimension, if it is marked for the rest of the block."""
    d, rows, marked = stage.dimension, table.rows, states.integers[i, LOOP_MASK] >> stage.dimension & 1
    for j in range(context.problem.trip.shape[1] if marked else 1):
        trips = _trips(context, stage, states, i, d, j) if marked else 1
        if trips < 0:
            break
        if trips > 0:
            n = _copy(context, states, i, table, d * context.problem.trip.shape[1] + j)
            if j > 0:
                add_temporal_loop(context, stage.level, rows, n, d, j)
            rows.integers[n, LOOP_MASK] &= ~(1 << d)
            if j > 0:
                if not _fits_outside(context, stage.outer, rows, n):  # nor do larger tiles
                    break
                _raise_bound(context, stage.outer, rows, n)
            _keep(context, stage, table, n)


@inlined
def _store(context: SearchContext, stage: Stage, states: StateRows, i: int, table: StateTable) -> None:
    """Add the storage entry, once for each set of tensors that it may keep (Lemmas 1 and 11)."""
    for choice in range(len(stage.choices)):
        kept = stage.choices[choice]
        n = _copy(context, states, i, table, kept)
        if _fits(context, stage.storage, table.rows, n, kept):
            _note_used_slices(context, stage.storage, table.rows, n, kept)
            store(context, stage.storage, table.rows, n, kept)
            if _fits_outside(context, stage.outer, table.rows, n):
                _raise_bound(context, stage.outer, table.rows, n)
                _keep(context, stage, table, n)


@kernel_part
def _trips(context: SearchContext, stage: Stage, states: StateRows, i: int, d: int, j: int) -> int:
    """Return the trips of a loop over d at index j; 0 if they are not allowed, -1 if there are no more."""
    problem, count = context.problem, tile_count(context, states, i, d)
    trips = int(problem.trip[d, j])
    if trips == 0 or trips > count:
        return -1
    if not stage.trips[d, j] or not problem.ragged and count % trips:
        return 0
    return trips if stage.iterable_tiles[d, tile_index(problem, d, (count + trips - 1) // trips)] else 0


@kernel_part
def _copy(context: SearchContext, states: StateRows, i: int, table: StateTable, decision_code: int) -> int:
    """Copy a state to the end of the table, with the decision that its successor follows from."""
    n = int(table.counters[0])
    for k in range(context.layout.integers):
        table.rows.integers[n, k] = states.integers[i, k]
    for k in range(context.layout.numbers):
        table.rows.numbers[n, k] = states.numbers[i, k]
    table.alive[n], table.decision_code[n] = True, decision_code
    return n


@kernel_call
def _raise_bound(context: SearchContext, outer: OuterContext, rows: StateRows, n: int) -> None:
    """Raise the bound, which the state inherited (Lemma 5), to the bound of its own completions."""
    rows.numbers[n, BOUND] = max(rows.numbers[n, BOUND], bound(context, outer, rows, n))


@kernel_call
def _keep(context: SearchContext, stage: Stage, table: StateTable, n: int) -> None:
    """Keep the last state of the table, unless its bound or another state prunes it (Lemma 3)."""
    if table.rows.numbers[n, BOUND] > context.cutoff:
        table.counters[1] += 1
    elif not context.costs.dominance or insert(context, table, stage.key_length, n):
        table.counters[0] += 1
    else:
        table.counters[2] += 1


@kernel_call
def _matters(context: SearchContext, stage: Stage, states: StateRows, i: int, d: int) -> bool:
    """Return whether the position of a loop over d matters (Lemma 2)."""
    problem, layout, integers = context.problem, context.layout, states.integers
    if tile_count(context, states, i, d) == 1:
        return False
    if stage.ordered[d]:
        return True
    if integers[i, layout.flags] >> FORWARDING_OPEN:
        return True
    for t in range(len(problem.output)):
        status = status_of(integers, i, t)
        if status == STATIONARY and (not problem.relevant[t, d] or problem.window_index[t, d] >= 0):
            return True
        if status == SLIDING and problem.relevant[t, d]:
            if problem.window_index[t, d] == integers[i, layout.window + t]:
                return True
    return False


@kernel_part
def _in_order(stage: Stage, mask: int, d: int) -> bool:
    """Return whether a loop over d may surround the placed loops under the order of a rule."""
    for e in range(len(stage.ordered)):
        if mask >> e & 1 and stage.surrounding[d, e]:
            return False
    return True


@kernel_call
def _fits(context: SearchContext, storage: StorageEntry, states: StateRows, i: int, kept: int) -> bool:
    """Return whether the kept tiles fit their memories, with those of inner entries."""
    used, tensors, fits = context.scratch.memory_reads, len(context.problem.output), True
    for m in range(len(storage.used_slices)):
        if storage.used_slices[m] >= 0:
            used[m] = states.numbers[i, storage.used_slices[m]]
    for t in range(tensors):
        if kept >> t & 1:
            used[storage.memory[t]] += stored_words(context, states, i, t, storage.distinct[t]) * storage.slices[t]
    for t in range(tensors):
        if kept >> t & 1:
            fits &= used[storage.memory[t]] <= storage.usable[storage.memory[t]]
    used[:] = 0.0
    return bool(fits)


@kernel_call
def _note_used_slices(context: SearchContext, storage: StorageEntry, states: StateRows, i: int, kept: int) -> None:
    """Add the slices of the kept tiles to those that entries of the same memory use; forget them at the last entry."""
    for t in range(len(context.problem.output)):
        column = storage.used_slices[max(0, storage.memory[t])]
        if kept >> t & 1 and column >= 0:
            states.numbers[i, column] += stored_words(context, states, i, t, storage.distinct[t]) * storage.slices[t]
    for m in range(len(storage.used_slices)):
        if storage.used_slices[m] >= 0 and storage.outermost_of_memory[m]:
            states.numbers[i, storage.used_slices[m]] = 0.0


@kernel_call
def _fits_outside(context: SearchContext, outer: OuterContext, states: StateRows, i: int) -> bool:
    """Return whether tiles fit the next memories that always keep them (Lemma 11)."""
    for t in range(len(context.problem.output)):
        used = 0.0
        for u in range(len(context.problem.output)):
            if outer.capacity_group[t] >= 0 and outer.capacity_group[u] == outer.capacity_group[t]:
                used += stored_words(context, states, i, u, outer.distinct[u]) * outer.slices[u]
        if used > outer.usable[t]:
            return False
    return True
