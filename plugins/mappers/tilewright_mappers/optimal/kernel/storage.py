"""Storage entries, and the end of the fanout of compute units.

Storing the buffer turns state 19 of the worked example in docs/optimal.md into state 36.

    state    committed    deferred A, B, Z    demand A, B, Z
    19       0            0, 0, 0             64, 64, 64
    36       512          64, 128, 32         32, 64, 16

64 operations read three words and update one, of 2 pJ each: 64 * 4 * 2 = 512. The new demand of A is 8 tiles of 4 words.
Filling them costs 32 * 2 = 64 pJ, which is deferred until a loop moves A.
"""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.forwarding import assume_forwarding
from tilewright_mappers.optimal.kernel.loops import commit, end_fanout
from tilewright_mappers.optimal.kernel.state import (
    DEFERRED,
    DEMAND,
    FIRST_READ_CREDIT,
    FIRST_TENSOR,
    FORWARDING_OPEN,
    KEPT_INSIDE,
    LEAK,
    MIN_DEMAND,
    PER_TENSOR,
    STATUS,
    UNDERCOUNTED,
    all_words,
    extent,
    forward_nothing,
    irrelevant_tile_count,
    max_spared,
    set_status,
    status_of,
)
from tilewright_mappers.optimal.kernel.structures import (
    NON_STATIONARY,
    SLIDING,
    STATIONARY,
    FanoutLevel,
    SearchContext,
    StateRows,
    StorageEntry,
)


@kernel_call
def end_compute_fanout(context: SearchContext, level: FanoutLevel, states: StateRows, i: int) -> None:
    """End the innermost fanout: compute units may share words as long as these are stationary."""
    problem, layout = context.problem, context.layout
    numbers, integers = states.numbers, states.integers
    dims = len(problem.sizes)
    for t in range(len(problem.output)):
        at, same, window = FIRST_TENSOR + PER_TENSOR * t, False, False
        for k in range(len(level.slot)):
            for d in range(dims):
                if integers[i, layout.unrolling + k * dims + d] > 1:
                    same |= not problem.relevant[t, d]
                    window |= problem.window_index[t, d] >= 0
        if problem.unmodelled[t]:
            continue
        set_status(integers, i, t, STATIONARY if (same or window) and not problem.ragged_window[t] else NON_STATIONARY)
        if same or window:
            if window:
                numbers[i, at + DEMAND] = numbers[i, at + MIN_DEMAND]
            for d in range(dims):
                if problem.window_index[t, d] >= 0:
                    numbers[i, layout.window_side + problem.window_index[t, d]] = 1.0
            integers[i, layout.flags] |= UNDERCOUNTED
            if problem.ragged:  # the model averages sharing over unequal tiles, so nothing is counted
                numbers[i, at + DEMAND] = numbers[i, at + MIN_DEMAND] = 0.0
    end_fanout(context, states, i, 0)


@kernel_call
def store(context: SearchContext, storage: StorageEntry, states: StateRows, i: int, kept: int) -> None:
    """Add a storage entry for the tensors in the bits of `kept` (Lemma 1)."""
    problem, layout = context.problem, context.layout
    numbers, integers = states.numbers, states.integers
    forwarding = integers[i, layout.flags] >> FORWARDING_OPEN
    for t in range(len(problem.output)):
        if (forwarding & kept) >> t & 1:
            assume_forwarding(context, states, i, t)
            integers[i, layout.flags] = integers[i, layout.flags] & ~(1 << (FORWARDING_OPEN + t)) | UNDERCOUNTED
    for m in range(len(storage.leakage)):
        if storage.leakage[m] > 0.0:
            used = 0
            for t in range(len(problem.output)):
                if storage.memory[t] == m:
                    used |= kept >> t & 1
            if used:
                numbers[i, LEAK] += storage.leakage[m]
            else:
                integers[i, layout.flags] |= UNDERCOUNTED
    for t in range(len(problem.output)):
        if not kept >> t & 1 or problem.unmodelled[t]:
            continue
        at, moved = FIRST_TENSOR + PER_TENSOR * t, all_words(context, states, i, t)
        demand = numbers[i, at + DEMAND]
        reads, writes, width = storage.read_port[t], storage.write_port[t], storage.words[t]
        first, tile = (
            problem.values[t] if problem.windowed_output[t] else moved,
            moved * irrelevant_tile_count(context, states, i, t),
        )
        numbers[i, at + DEFERRED] += demand * (storage.read_pj[t] + storage.update_pj[t])
        pending, credit = layout.deferred_words[t], layout.first_reads[t]
        if reads >= 0:
            numbers[i, pending + reads] += demand * width
        if problem.output[t]:
            numbers[i, at + FIRST_READ_CREDIT] += first * storage.read_pj[t]
            if reads >= 0:
                numbers[i, credit + reads] += first * width
            if writes >= 0:
                numbers[i, pending + writes] += demand * width
        status = status_of(integers, i, t)
        if (
            problem.ragged and status == NON_STATIONARY
        ):  # otherwise the tile of an inner entry may remain stationary, too
            integers[i, layout.unrolled + t] = 0
        if status == SLIDING:
            commit(context, states, i, t, max_spared(context, states, i, t))
            integers[i, layout.flags] |= UNDERCOUNTED
        elif status == NON_STATIONARY or storage.outermost:
            commit(context, states, i, t, 0.0)
        if storage.outermost:
            continue
        set_status(integers, i, t, NON_STATIONARY if problem.ragged_window[t] else STATIONARY)
        numbers[i, at + DEFERRED] += tile * storage.fill_pj[t]
        if writes >= 0:
            numbers[i, pending + writes] += tile * width
        if problem.output[t]:
            numbers[i, at + FIRST_READ_CREDIT] += first * storage.fill_pj[t]
            if writes >= 0:
                numbers[i, credit + writes] += first * width
        numbers[i, at + DEMAND] = tile
        if _note_sides(context, states, i, t) and status == STATIONARY:
            integers[i, layout.flags] |= UNDERCOUNTED  # smaller inner tiles, which are stationary too, overlap less
    for t in range(len(problem.output)):
        if not (forwarding & ~kept) >> t & 1:
            forward_nothing(numbers, i, t)
    if not forwarding & ~kept:
        end_fanout(context, states, i, 0)
    integers[i, STATUS] = integers[i, STATUS] & ((1 << KEPT_INSIDE) - 1) | (kept & storage.forwarded) << KEPT_INSIDE


@kernel_part
def _note_sides(context: SearchContext, states: StateRows, i: int, t: int) -> bool:
    """Record the sides of the tile's windows; return whether one that has loops left has grown."""
    problem, layout = context.problem, context.layout
    numbers = states.numbers
    changed = False
    for d in range(len(problem.sizes)):
        r, side, loops, first = problem.window_index[t, d], 1.0, False, True
        for e in range(len(problem.sizes)):
            if r >= 0 and problem.window_index[t, e] == r:
                side += problem.coefficient[t, e] * (extent(context, states, i, e) - 1.0)
                loops |= extent(context, states, i, e) < problem.sizes[e]
                first &= e >= d
        if r >= 0 and first:
            changed |= loops and side != numbers[i, layout.window_side + r]
            numbers[i, layout.window_side + r] = side
    return changed
