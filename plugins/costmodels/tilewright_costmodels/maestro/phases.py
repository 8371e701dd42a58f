"""What the sub-clusters of a level do in a phase: who is at work, operations, elements sent down and up.

A phase is one state per directive. What is computed and sent up depends on the letters at their edge alone, what is sent
down on these and on the loop that moved last.
"""

from __future__ import annotations

from tilewright.compiled import compiled
from tilewright.notations.directives.table import NOWHERE, Letters
from tilewright_costmodels.maestro.work import (
    CLUSTERS,
    EDGE_CLUSTERS,
    FRESH,
    FRESH_PART,
    FULL,
    IN_SPACE,
    OUTPUT,
    PAIR,
    PART,
    PARTIAL,
    SHORT,
    SPLIT,
    UNROLLED,
    Work,
)


@compiled
def at_work_in(level: int, sub: int, edges: int, work: Work) -> tuple[int, bool, bool]:
    """In phases where `edges` are at their edge: sub-clusters at work; whether some letter in space is short; whether the
    last sub-cluster has a short tile, as the later letter in space says."""
    about, state = work.levels[level], work.states[level, sub]
    short = (state[SHORT] | edges) & about[IN_SPACE]
    if not short:
        return about[CLUSTERS], False, False
    last = about[PAIR] if about[PAIR] != NOWHERE and short >> about[PAIR] & 1 else about[SPLIT]
    partial = state[PARTIAL] >> last & 1 if edges >> last & 1 else 1
    return about[EDGE_CLUSTERS], True, partial == 1


@compiled
def inner_of(level: int, sub: int, edges: int, work: Work) -> tuple[int, int]:
    """The sub-problems of the next level in such phases: that of the last sub-cluster, and that of all others."""
    about, state = work.levels[level], work.states[level, sub]
    at_work, _, _ = at_work_in(level, sub, edges, work)
    short, split = state[SHORT] | edges, about[SPLIT]
    partial = state[PARTIAL] >> split & 1 if edges >> split & 1 else state[SHORT] >> split & 1
    others = short & ~about[IN_SPACE]
    if at_work == 1:
        return short, short
    return short if partial else others, others


@compiled
def worked_in(letters: Letters, level: int, sub: int, edges: int, steady: int, work: Work) -> tuple[int, int, int]:
    """In such phases: operations of the first sub-cluster, those of all, and elements of the output sent up.

    `steady`: letters in their steady state; matters for those in space if there are two.
    """
    about, state = work.levels[level], work.states[level, sub]
    inputs, results = work.inputs[level], work.results[level]
    at_work, short, partial = at_work_in(level, sub, edges, work)
    output, along = letters.tensors[OUTPUT], about[IN_SPACE]
    tile = sums = 1  # along letters in time, of the output and of what is summed up
    first = first_up = last = other_up = last_up = 1  # along letters in space, of operations and of the output
    for letter in range(len(letters.sizes)):
        up = output >> letter & 1
        if not along >> letter & 1:
            extent = results[PART if (state[SHORT] | edges) >> letter & 1 else FULL, letter]
            if up:
                tile *= extent
            else:
                sums *= extent
            continue
        at_start = not (edges | steady) >> letter & 1
        part = results[PART if at_start else FRESH_PART, letter]
        lone = part if partial else results[FULL, letter]
        if edges >> letter & 1:
            lone = inputs[PART, letter]  # MAESTRO takes the input's width even for output columns
        mine = lone if short and at_work == 1 else results[FULL, letter]
        first *= mine
        last *= part
        if up:
            first_up *= mine
            other_up *= results[FRESH, letter] if results[FRESH, letter] else results[FULL, letter]
            last_up *= results[FRESH_PART, letter]
    if at_work > 1:
        others = max(at_work - partial - 1, 0)
        if partial:
            every, every_up = first + others * first + last, first_up + others * other_up + last_up
        else:
            every, every_up = first + others * first, first_up + others * other_up
    else:
        every, every_up = first, first_up
    if not output & along:
        every_up = 1
    return tile * sums * first, tile * sums * every, tile * every_up


@compiled
def sent_in(letters: Letters, tensor: int, level: int, sub: int, edges: int, moved: int, work: Work) -> int:
    """Elements of an input sent down in such phases if letter `moved` moved last; NOWHERE: in the very first step."""
    mine = letters.tensors[tensor]
    if moved != NOWHERE and not mine >> moved & 1:
        return 0
    about, state, inputs = work.levels[level], work.states[level, sub], work.inputs[level]
    at_work, short, partial = at_work_in(level, sub, edges, work)
    inside = work.inside[level, moved] if moved != NOWHERE else 0
    fresh = inside
    if moved != NOWHERE and not mine & inside & ~state[UNROLLED]:  # no loop inside is back at its start
        fresh |= 1 << moved
    tile = first = other = last = 1
    for letter in range(len(letters.sizes)):
        if not mine >> letter & 1:
            continue
        full, part = inputs[FULL, letter], inputs[PART, letter]
        if not about[IN_SPACE] >> letter & 1:
            if letter == moved:
                tile *= max(inputs[FRESH, letter], 1) if fresh >> letter & 1 else full
            else:
                tile *= part if state[SHORT] >> letter & 1 else full
        elif moved == NOWHERE:
            cut = part if state[SHORT] >> letter & 1 else full
            first *= cut if at_work == 1 else full
            other *= full
            last *= cut
        else:
            first *= part if partial and at_work == 1 else full
            other *= inputs[FRESH, letter] if fresh >> letter & 1 else full
            last *= inputs[FRESH_PART, letter] if fresh >> letter & 1 else part
    if at_work > 1 and mine & about[IN_SPACE]:
        first += max(at_work - partial - 1, 0) * other
        if partial:
            first += last
    return tile * first
