"""Dominance: prune a state if another state's completions cost no more (Lemmas 3 and 4).

States of one chain with the same key (`insert`), from the worked example in docs/optimal.md:

    state    tiles M, N, K    committed    demand A, B, Z    credit
    58       1, 1, 1          640          16, 32, 16        64
    59       1, 1, 1          640          16, 32, 16        64

No number of 59 is better than that of 58, so 58 dominates it: the same completion costs no less from 59.
"""

from __future__ import annotations

from tilewright.compiled import inlined, kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    COMMITTED,
    CYCLES,
    DEFERRED,
    DEMAND,
    FIRST_READ_CREDIT,
    FIRST_TENSOR,
    FORWARDING_OPEN,
    LEAK,
    MIN_DEFERRED,
    MIN_DEMAND,
    OVERLAP,
    PER_TENSOR,
    RELAXED,
    ROUNDED_FIRST_READS,
    TILE_EQUIVALENTS,
    irrelevant_tile_count,
    is_partial,
    status_of,
    total_tile_count,
)
from tilewright_mappers.optimal.kernel.structures import (
    SLIDING,
    STATIONARY,
    SearchContext,
    StateRows,
    StateTable,
)

MAX_COMPARISONS = 200
"""States with the same key that a new one is compared with. Fewer comparisons only keep more states."""


@inlined
def insert(context: SearchContext, table: StateTable, key_length: int, i: int) -> bool:
    """Add state i unless it is dominated; remove the states that it dominates."""
    layout, integers, mixed = context.layout, table.rows.integers, 0
    for k in range(key_length):
        number = mixed ^ integers[i, k]
        mixed = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
        mixed ^= mixed >> 15
    # two chains per hash: states that may dominate, and the others
    full = _may_dominate(context, integers[i, layout.flags])
    place = 2 * (mixed & (len(table.chain_heads) // 2 - 1))
    for chain in range(place, place + 1 + full):
        before, at, compared = -1, table.chain_heads[chain], 0
        while at >= 0 and compared < MAX_COMPARISONS:
            same, after = True, table.next_in_chain[at]
            for k in range(key_length):
                same &= integers[at, k] == integers[i, k]
            compared += same
            if same and chain == place and _dominates(context, table, at, i):
                _note_dominated(table, layout.flags, at, i)
                return False
            if same and full and _dominates(context, table, i, at):
                table.alive[at] = False
                _note_dominated(table, layout.flags, i, at)
                if before < 0:
                    table.chain_heads[chain] = after
                else:
                    table.next_in_chain[before] = after
            else:
                before = at
            at = after
    place += not full
    table.next_in_chain[i] = table.chain_heads[place]
    table.chain_heads[place] = i
    return True


@kernel_part
def _may_dominate(context: SearchContext, flags: int) -> bool:
    """Return whether a state may dominate others: it is exactly counted, or nothing is forwarded any more (Lemma 18)."""
    return bool(flags >> FORWARDING_OPEN == 0 if context.costs.relaxed else flags & ~ROUNDED_FIRST_READS == 0)


@kernel_part
def _note_dominated(table: StateTable, column: int, a: int, b: int) -> None:
    """Let the bound of state a, which dominates b, be one of b, too (Lemmas 4 and 18)."""
    numbers, integers = table.rows.numbers, table.rows.integers
    if integers[a, column]:
        numbers[a, BOUND] = min(numbers[a, BOUND], numbers[b, BOUND])
    if integers[a, column] & ~ROUNDED_FIRST_READS:
        integers[a, column] |= RELAXED


@kernel_part
def _above(a: float, b: float) -> bool:
    """Return whether a exceeds b by more than rounding."""
    return a > b + 1e-12 * abs(b)


@kernel_call
def _dominates(context: SearchContext, table: StateTable, a: int, b: int) -> bool:
    """Return whether state a, which is exactly counted, dominates state b (Lemma 3)."""
    problem, layout, costs, states = context.problem, context.layout, context.costs, table.rows
    numbers, integers, ports = states.numbers, states.integers, layout.deferred_words[0] - layout.port
    spared = numbers[b, COMMITTED] - numbers[a, COMMITTED]
    if costs.energy:
        if _above(numbers[a, COMMITTED], numbers[b, COMMITTED]) or _above(numbers[a, LEAK], numbers[b, LEAK]):
            return False
    if costs.cycles and _above(numbers[a, CYCLES], numbers[b, CYCLES]):
        return False
    if problem.ragged and not _tiles_dominate(context, table, a, b):
        return False
    for t in range(len(problem.output)):
        at, status = FIRST_TENSOR + PER_TENSOR * t, status_of(integers, a, t)
        if _above(numbers[a, at + DEMAND], numbers[b, at + MIN_DEMAND]):
            return False
        if costs.energy:
            if _above(numbers[a, at + DEFERRED], numbers[b, at + MIN_DEFERRED]):
                return False
            if problem.output[t] and _above(numbers[b, at + FIRST_READ_CREDIT], numbers[a, at + FIRST_READ_CREDIT]):
                if costs.outputs > 1:
                    return False
                # paid from committed energy; irrelevant loops repeat the credit this often at most
                more = numbers[b, at + FIRST_READ_CREDIT] - numbers[a, at + FIRST_READ_CREDIT]
                if problem.windowed_output[t]:
                    more *= total_tile_count(context, states, a)
                else:
                    more *= irrelevant_tile_count(context, states, a, t)
                if _above(numbers[a, COMMITTED] + more, numbers[b, COMMITTED]):
                    return False
                spared -= more
        if status == SLIDING:
            if numbers[a, at + OVERLAP] < numbers[b, at + OVERLAP]:
                return False
            share, other = 1.0 - 1.0 / numbers[a, at + TILE_EQUIVALENTS], 1.0 - 1.0 / numbers[b, at + TILE_EQUIVALENTS]
            if _above(numbers[a, at + DEFERRED] * share, numbers[b, at + MIN_DEFERRED] * other):
                return False
            if _above(numbers[a, at + DEMAND] * share, numbers[b, at + MIN_DEMAND] * other):
                return False
            if ports and _above(share, other):
                return False
    for u in range(layout.used_slices, layout.window_side):
        if numbers[a, u] > numbers[b, u]:
            return False
    for r in range(layout.window_side, layout.last_steps):
        if numbers[a, r] < numbers[b, r]:
            return False
    if costs.cycles:
        more = numbers[a, layout.port - 1] if problem.ragged else 1.0
        for p in range(layout.port, layout.first_reads[0]):
            if _above(numbers[a, p] * more, numbers[b, p]):
                return False
        for p in range(layout.first_reads[0], layout.numbers):
            if _above(numbers[b, p], numbers[a, p]):
                return False
    return costs.margin == 0.0 or spared >= costs.margin or _same_traffic(context, states, a, b)


@kernel_part
def _same_traffic(context: SearchContext, states: StateRows, a: int, b: int) -> bool:
    """Return whether b, which needs no less than a, needs the same words and cycles."""
    problem, layout = context.problem, context.layout
    numbers = states.numbers
    for t in range(len(problem.output)):
        for k in range(FIRST_TENSOR + PER_TENSOR * t, FIRST_TENSOR + PER_TENSOR * (t + 1)):
            energy = k == FIRST_TENSOR + PER_TENSOR * t + DEFERRED or k == FIRST_TENSOR + PER_TENSOR * t + MIN_DEFERRED
            if not energy and (_above(numbers[a, k], numbers[b, k]) or _above(numbers[b, k], numbers[a, k])):
                return False
    for k in range(layout.window_side, layout.numbers):
        if _above(numbers[a, k], numbers[b, k]) or _above(numbers[b, k], numbers[a, k]):
            return False
    return not _above(numbers[b, CYCLES], numbers[a, CYCLES])


@kernel_part
def _tiles_dominate(context: SearchContext, table: StateTable, a: int, b: int) -> bool:
    """Return whether ragged tiles of a are no larger, and their last tiles need no more steps.

    A short last tile of a may cost more later, in stationary words of unrolled sub-clusters and in
    words that further unrollings multicast. Then the answer is no.
    """
    problem, layout, costs, states = context.problem, context.layout, context.costs, table.rows
    numbers, integers = states.numbers, states.integers
    for d in range(len(problem.sizes)):
        if is_partial(context, states, a, d):
            if table.unrollable[d] and numbers[a, layout.last_steps + d] < 1.0:
                return False
            for t in range(len(problem.output)):
                if integers[a, layout.unrolled + t] >> d & 1 and not problem.relevant[t, d]:
                    if status_of(integers, a, t) == STATIONARY:
                        return False
        mine, other = integers[a, layout.tile + d], integers[b, layout.tile + d]
        if mine > other or mine != other and layout.deferred_words[0] > layout.port:
            return False
        if costs.cycles and _above(numbers[a, layout.last_steps + d], numbers[b, layout.last_steps + d]):
            return False
    return True
