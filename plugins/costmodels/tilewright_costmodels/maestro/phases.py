"""What the sub-clusters of a level do in a phase: who is at work, operations, elements sent down and up.

A phase is one state per directive. What is computed and sent up depends on the letters at their edge alone, what is sent
down on these and on the letter that moved last.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from tilewright.compiled import alike, among, eight, kernel_part, product
from tilewright.mapspace.batch import Ints
from tilewright.notations.directives.table import NOWHERE, Letters
from tilewright_costmodels.maestro.work import INPUT, OUTPUT, Group, Work

Number = TypeVar("Number", int, Ints)


@kernel_part
def at_work_in(number: int, sub: int, edges: int, work: Work) -> tuple[int, bool, bool]:
    """In phases where `edges` are at their edge: sub-clusters at work; whether some letter in space is short; whether the
    last sub-cluster has a short tile, as the later letter in space says."""
    state, level = work.states[number, sub], work.levels[number]
    short, pair = (state.short | edges) & level.along, level.pair
    if not short:
        return level.clusters, False, False
    later = pair if pair != NOWHERE and short >> pair & 1 else level.spatial
    partial = state.partial >> later & 1 == 1 if edges >> later & 1 else True
    return level.edge_clusters, True, partial


@kernel_part
def inner_of(number: int, sub: int, edges: int, at_work: int, work: Work) -> tuple[int, int]:
    """The sub-problems of the next level in such phases: that of the last sub-cluster at work, and that of the others."""
    state, level = work.states[number, sub], work.levels[number]
    short = state.short | edges
    if at_work == 1:
        return short, short
    partial = (state.partial if edges >> level.spatial & 1 else state.short) >> level.spatial & 1
    others = short & ~level.along
    return short if partial else others, others


@kernel_part
def all_of(at_work: int, partial: bool, first: Number, other: Number, last: Number) -> Number:
    """The sum over sub-clusters; numbers or rows of them."""
    if at_work <= 1:
        return first
    whole = first + max(at_work - partial - 1, 0) * other
    return whole + last if partial else whole


@kernel_part
def work_in(
    letters: Letters, number: int, sub: int, edges: int, steady: int, work: Work
) -> tuple[int, bool, int, int, int]:
    """What sub-clusters do in such phases: the first fields of a `Group`.

    `steady`: letters in their steady state; matters for those in space if there are two.
    """
    state, level = work.states[number, sub], work.levels[number]
    at_work, short, partial = at_work_in(number, sub, edges, work)
    along, up, tiles = level.along, letters.tensors[OUTPUT], work.tiles[number]
    extents = np.where(among(state.short | edges), eight(tiles.part_outputs), eight(tiles.outputs))
    tile = product(np.where(among(up & ~along), extents, 1))  # along letters in time, of the output
    sums = product(np.where(among(up | along), 1, extents))  # and of what is summed up
    first = first_up = last = other_up = last_up = 1  # along letters in space, of operations and of the output
    for letter in (level.spatial, level.pair):
        if letter == NOWHERE:
            continue
        mine, part, fresh_part = tiles.outputs[letter], tiles.part_outputs[letter], tiles.fresh_part[letter]
        if letters.windows[letter] != NOWHERE:
            fresh_part = min(tiles.offset[letter], part)
        cut = fresh_part if (edges | steady) >> letter & 1 else part
        if short and at_work == 1:
            if edges >> letter & 1:
                mine = tiles.part[letter]  # MAESTRO takes the input's even for output columns
            elif partial:
                mine = cut
        first *= mine
        last *= cut
        if up >> letter & 1:
            first_up *= mine
            other_up *= min(tiles.full[letter], tiles.offset[letter])
            last_up *= fresh_part
    critical, macs = tile * sums * first, tile * sums * all_of(at_work, partial, first, first, last)
    egress = tile * all_of(at_work, partial, first_up, other_up, last_up) if up & along else tile
    return at_work, partial, critical, macs, egress


@kernel_part
def _along_space(mine: int, short: int, shared: Ints, number: int, group: Group, work: Work) -> Ints:
    """Elements of a tensor with letters `mine`, along letters in space, that all sub-clusters at work are sent, [L].

    Args:
        short: letters whose last tile may be.
        shared: letters of which only what is new is sent, [L].
    """
    level, tiles = work.levels[number], work.tiles[number]
    first = other = last = alike(1)
    for letter in (level.spatial, level.pair):
        if letter == NOWHERE or not mine >> letter & 1:
            continue
        full = part = tiles.full[letter]
        if group.partial and short >> letter & 1:
            part = tiles.part[letter]
        is_shared = (shared >> letter & 1) == 1
        first = first * (part if group.at_work == 1 else full)
        other = other * np.where(is_shared, min(full, tiles.offset[letter]), full)
        last = last * np.where(is_shared, tiles.fresh_part[letter], part)
    return all_of(group.at_work, group.partial, first, other, last)


@kernel_part
def sent_first(letters: Letters, tensor: int, number: int, sub: int, group: Group, work: Work) -> int:
    """Elements of an input sent down in the very first step."""
    state, mine = work.states[number, sub], letters.tensors[tensor]
    tile: int = state.input_tile if tensor == INPUT else state.filter_tile
    if mine & work.levels[number].along:
        tile *= _along_space(mine, state.short, alike(0), number, group, work)[0]
    return tile


@kernel_part
def sent_in(letters: Letters, tensor: int, number: int, sub: int, group: Group, work: Work) -> Ints:
    """Elements of an input sent down in the phases of a group, by the letter that moved last, [L]."""
    state, level, tiles = work.states[number, sub], work.levels[number], work.tiles[number]
    mine = letters.tensors[tensor]
    inside: Ints = eight(tiles.inside)
    anew = (inside & (mine & ~state.unrolled)) == 0  # no loop inside is back at its start
    tile: int = state.input_tile if tensor == INPUT else state.filter_tile
    sent = np.where(anew & among(~level.along), tile // eight(tiles.full) * eight(tiles.fresh), tile)
    if mine & level.along:
        shared = np.where(anew, inside | eight(letters.bit), inside)
        sent = sent * _along_space(mine, mine, shared, number, group, work)
    return np.where(among(mine), sent, 0)


@kernel_part
def in_pair(number: int, sub: int, work: Work) -> int:
    """Of two letters in space, those that move: it matters whether they are in their steady state."""
    state, level, movers, found = work.states[number, sub], work.levels[number], work.movers[number, sub], 0
    if level.pair != NOWHERE:
        for place in range(state.movers):
            if movers[place].times:
                found |= level.along & 1 << movers[place].letter
    return found


@kernel_part
def times_of(number: int, sub: int, edges: int, steady: int, other: int, work: Work) -> tuple[Ints, Ints]:
    """Of phases of a level with the same edges, by the letter that moved last, whatever the letters outside it do: how often they
    occur, and the commonest of them, [L].

    `other`: of the letters in a pair, those that are not in their steady state.
    """
    state, movers, tiles = work.states[number, sub], work.movers[number, sub], work.tiles[number]
    times = most = alike(0)
    outside = all_outside = 1
    for place in range(state.movers):
        letter = movers[place].letter
        moves = 1 if edges >> letter & 1 else movers[place].times
        if not moves or other >> letter & 1:
            continue
        all_outside *= moves
        if not (edges | steady) & tiles.inside[letter]:
            times = np.where(among(1 << letter), outside * moves, times)
            most = np.where(among(1 << letter), all_outside, most)
        outside *= moves if (edges | steady) >> letter & 1 else moves + 1
    return times, most


@kernel_part
def phases_of(number: int, sub: int, work: Work) -> int:
    """How many phases a level has."""
    state, movers, phases = work.states[number, sub], work.movers[number, sub], 1
    for place in range(state.movers):
        phases *= 1 + (movers[place].times > 0) + (state.edges >> movers[place].letter & 1)
    return phases


@kernel_part
def phase_at(phase: int, phases: int, number: int, sub: int, work: Work) -> tuple[int, int, int, int]:
    """A phase in MAESTRO's order: letters at their edge, in their steady state, and the one that moved last; how often it occurs."""
    state, movers = work.states[number, sub], work.movers[number, sub]
    edges, steady, moved, occurrences = 0, 0, NOWHERE, 1
    for place in range(state.movers):
        letter, times = movers[place].letter, movers[place].times
        states = 1 + (times > 0) + (state.edges >> letter & 1)
        phases //= states
        which = -(-phase // phases) % states
        if which:
            moved = letter
            if which == 1 and times > 0:
                steady |= 1 << letter
                occurrences *= times
            else:
                edges |= 1 << letter
    return edges, steady, moved, occurrences
