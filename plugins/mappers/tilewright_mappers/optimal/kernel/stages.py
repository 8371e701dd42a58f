"""Stages of the staged search: successors of states in one dimension or one storage entry."""

from __future__ import annotations

from tilewright.compiled import compiled, integer, kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_mappers.optimal.kernel.bounds import bound
from tilewright_mappers.optimal.kernel.dominance import insert
from tilewright_mappers.optimal.kernel.forwarding import find_forwarding, resolve_forwarding
from tilewright_mappers.optimal.kernel.loops import add_temporal_loop, unroll
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    FORWARDING_OPEN,
    LOOP_MASK,
    NO_LOOP_YET,
    STATUS,
    USED,
    status_of,
    tile_count,
    tile_index,
    words,
)
from tilewright_mappers.optimal.kernel.storage import end_compute_fanout, hold
from tilewright_mappers.optimal.kernel.structures import (
    SLIDING,
    STATIONARY,
    CostFunction,
    FanoutLevel,
    OuterContext,
    ProblemArrays,
    SearchScratch,
    StateLayout,
    StateTable,
    StorageEntry,
)

UNROLL, FIND_FORWARDING, END_FANOUT, PLACE_LOOP, CLOSE_BLOCK, PLACE_REST, STORE = map(integer, range(7))
"""Kinds of stages."""


@compiled
def expand_states(
    kind: int,
    problem: ProblemArrays,
    layout: StateLayout,
    level: FanoutLevel,
    outer: OuterContext,
    costs: CostFunction,
    storage: StorageEntry,
    multicast: Bools,
    trips: Bools,
    tiles: Bools,
    rule_order: Ints,
    choices: Ints,
    dimension: int,
    position: int,
    cutoff: float,
    numbers: Floats,
    integers: Ints,
    keys: int,
    table: StateTable,
    scratch: SearchScratch,
    start: int,
    stop: int,
) -> int:
    """Write the successors of states into a table, except pruned ones (Lemmas 3 and 5).

    Args:
        trips: [D, J] trips that the slot allows.
        tiles: [D, K] tile counts that outer slots can iterate.
        rule_order: [D] position in the order of a rule, outermost first; -1 if free.
        position: index of the slot in the level (UNROLL); whether the level is the innermost
            (LEAVE).
        keys: number of integers in the key.
        choices: sets of tensors that the entry may keep (HOLD).

    Returns:
        The first state that was not expanded, because the table was full; or `stop`.
    """
    dims = len(problem.sizes)
    factors = kind == UNROLL or kind == PLACE_LOOP or kind == PLACE_REST
    for i in range(start, stop):
        if table.counters[0] + dims * problem.trip.shape[1] + len(choices) > len(table.alive):
            return i
        first, last = 0, 1
        if kind == UNROLL or kind == PLACE_REST:
            first, last = dimension, dimension + 1
        elif kind == PLACE_LOOP:
            last = dims
        elif kind == STORE:
            last = len(choices)
        for what in range(first, last):
            options, steps = 1, False
            if factors:
                steps = kind == UNROLL or integers[i, LOOP_MASK] >> what & 1 > 0
                if kind == PLACE_LOOP:
                    steps = not steps and _matters(problem, layout, rule_order, integers, i, what)
                    steps = steps and _in_order(rule_order, integers[i, LOOP_MASK], what)
                    if not steps:
                        continue
                options = problem.trip.shape[1] if steps else 1
            for j in range(options):
                if factors and steps:
                    if kind == PLACE_LOOP and j == 0:
                        continue
                    n, count = problem.trip[what, j], tile_count(problem, layout, integers, i, what)
                    if n == 0 or n > count:
                        break
                    if not trips[what, j] or not problem.ragged and count % n:
                        continue
                    if not tiles[what, tile_index(problem, what, (count + n - 1) // n)]:
                        continue
                    if kind == UNROLL and integers[i, USED + position] * n > outer.max_used[level.slot[position]]:
                        break
                n = table.counters[0]
                for k in range(layout.integers):
                    table.integers[n, k] = integers[i, k]
                for k in range(layout.numbers):
                    table.numbers[n, k] = numbers[i, k]
                table.alive[n], table.decision_code[n] = True, what * problem.trip.shape[1] + j
                legal = True
                if kind == UNROLL and j > 0:
                    unroll(
                        problem,
                        layout,
                        level,
                        multicast,
                        table.numbers,
                        table.integers,
                        n,
                        what,
                        j,
                        position,
                        costs.forwarding,
                        scratch,
                    )
                elif (kind == PLACE_LOOP or kind == PLACE_REST) and j > 0:
                    add_temporal_loop(
                        problem, layout, level, multicast, table.numbers, table.integers, n, what, j, scratch
                    )
                elif kind == CLOSE_BLOCK:
                    legal = _close(problem, layout, trips, tiles, rule_order, table.integers, n)
                elif kind == STORE:
                    table.decision_code[n] = choices[what]
                    legal = _fits(problem, layout, storage, choices[what], table.integers, n, scratch)
                    hold(problem, layout, storage, choices[what], table.numbers, table.integers, n)
                elif kind == FIND_FORWARDING:
                    find_forwarding(problem, layout, level, multicast, table.numbers, table.integers, n, scratch)
                elif kind == END_FANOUT:
                    for k in range(len(level.slot)):
                        legal &= table.integers[n, USED + k] >= level.min_used[k]
                        table.integers[n, USED + k] = 1
                    if not position:
                        resolve_forwarding(problem, layout, level, multicast, table.numbers, table.integers, n, scratch)
                    else:
                        end_compute_fanout(problem, layout, level, table.numbers, table.integers, n)
                if kind == PLACE_LOOP:
                    table.integers[n, LOOP_MASK] |= 1 << what
                elif kind == PLACE_REST:
                    table.integers[n, LOOP_MASK] &= ~(1 << what)
                # a bound on the state holds for its successors (Lemma 5)
                value = numbers[i, BOUND]
                decided = kind == UNROLL and tile_count(problem, layout, integers, i, what) > 1
                if j > 0 or decided or kind == STORE or kind == FIND_FORWARDING or kind == END_FANOUT:
                    if not _fits_ahead(problem, layout, outer, table.integers, n):
                        if factors and steps:  # larger tiles do not fit either
                            break
                        continue
                    if legal:
                        known = bound(problem, layout, outer, costs, cutoff, table.numbers, table.integers, n, scratch)
                        value = max(value, known)
                if not legal:
                    continue
                table.numbers[n, BOUND] = value
                if value > cutoff:
                    table.counters[1] += 1
                elif not costs.dominance or insert(table, layout, problem, costs, keys, n):
                    table.counters[0] += 1
                else:
                    table.counters[2] += 1
    return stop


@kernel_call
def _matters(problem: ProblemArrays, layout: StateLayout, rule_order: Ints, integers: Ints, i: int, d: int) -> bool:
    """Return whether the position of a loop over d matters (Lemma 2)."""
    if tile_count(problem, layout, integers, i, d) == 1:
        return False
    if rule_order[d] >= 0 or (integers[i, STATUS] & NO_LOOP_YET and integers[i, layout.flags] >> FORWARDING_OPEN):
        return True
    for t in range(len(problem.output)):
        status = status_of(integers, i, t)
        if status == STATIONARY and (not problem.relevant[t, d] or problem.window_index[t, d] >= 0):
            return True
        if (
            status == SLIDING
            and problem.relevant[t, d]
            and problem.window_index[t, d] == integers[i, layout.window + t]
        ):
            return True
    return False


@kernel_part
def _in_order(rule_order: Ints, mask: int, d: int) -> bool:
    """Return whether a loop over d may surround the placed loops under the order of a rule."""
    for e in range(len(rule_order)):
        if rule_order[d] >= 0 and rule_order[e] >= 0 and mask >> e & 1 and rule_order[e] < rule_order[d]:
            return False
    return True


@kernel_call
def _close(
    problem: ProblemArrays, layout: StateLayout, trips: Bools, tiles: Bools, rule_order: Ints, integers: Ints, i: int
) -> bool:
    """End the placed loops of a block, and mark the other dimensions for the rest of it (Lemma 2).

    Returns:
        Whether each dimension can be completed that way.
    """
    rest = 0
    for d in range(len(problem.sizes)):
        placed = integers[i, LOOP_MASK] >> d & 1
        count = tile_count(problem, layout, integers, i, d)
        if not placed and count > 1 and not _matters(problem, layout, rule_order, integers, i, d):
            rest |= 1 << d
        elif not tiles[d, integers[i, layout.tile_index + d]] or not (placed or trips[d, 0]):
            return False
    integers[i, LOOP_MASK] = rest
    return True


@kernel_call
def _fits(
    problem: ProblemArrays,
    layout: StateLayout,
    storage: StorageEntry,
    kept: int,
    integers: Ints,
    i: int,
    scratch: SearchScratch,
) -> bool:
    """Return whether the kept tiles fit their memories."""
    good = True
    for t in range(len(problem.output)):
        if kept >> t & 1:
            scratch.memory_reads[storage.memory[t]] += words(problem, layout, integers, i, t) * storage.slices[t]
    for t in range(len(problem.output)):
        if kept >> t & 1:
            good &= scratch.memory_reads[storage.memory[t]] <= storage.usable[storage.memory[t]]
    for t in range(len(problem.output)):
        scratch.memory_reads[max(0, storage.memory[t])] = 0.0
    return bool(good)


@kernel_call
def _fits_ahead(problem: ProblemArrays, layout: StateLayout, outer: OuterContext, integers: Ints, i: int) -> bool:
    """Return whether tiles fit the next memories that always keep them (Lemma 11)."""
    for t in range(len(problem.output)):
        used = 0.0
        for u in range(len(problem.output)):
            if outer.capacity_group[t] >= 0 and outer.capacity_group[u] == outer.capacity_group[t]:
                used += words(problem, layout, integers, i, u) * outer.slices[u]
        if used > outer.usable[t]:
            return False
    return True
