"""What the sub-clusters of a level do in a phase: who is at work, operations, elements sent down and up.

A phase is one state per directive. What is computed and sent up depends on the letters at their edge alone, what is sent
down on these and on the letter that moved last.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import among, eight, kernel_part, product
from tilewright.notations.directives.table import NOWHERE, Letters
from tilewright_costmodels.maestro.work import INPUT, OUTPUT, Group, Work


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
def every(at_work: int, partial: bool, first: int, other: int, last: int) -> int:
    """The sum over sub-clusters."""
    if at_work > 1:
        first += max(at_work - partial - 1, 0) * other
        if partial:
            first += last
    return first


@kernel_part
def work_in(letters: Letters, number: int, sub: int, edges: int, steady: int, work: Work) -> Group:
    """What sub-clusters do in such phases.

    `steady`: letters in their steady state; matters for those in space if there are two.
    """
    state, level = work.states[number, sub], work.levels[number]
    at_work, short, partial = at_work_in(number, sub, edges, work)
    along, up, tiles = level.along, letters.tensors[OUTPUT], work.tiles[number]
    extents = np.where(among(state.short | edges), eight(tiles.part_outputs), eight(tiles.outputs))
    tile = product(
        np.where(among(up & ~along), extents, 1)
    )  # along letters in time, of the output and of what is summed up
    sums = product(np.where(among(up | along), 1, extents))
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
    critical, macs = tile * sums * first, tile * sums * every(at_work, partial, first, first, last)
    egress = tile * every(at_work, partial, first_up, other_up, last_up) if up & along else tile
    return Group(at_work, partial, critical, macs, egress)


@kernel_part
def sent_in(letters: Letters, tensor: int, number: int, sub: int, moved: int, group: Group, work: Work) -> int:
    """Elements of an input sent down in such phases if letter `moved` moved last; NOWHERE: in the very first step."""
    state, level, tiles = work.states[number, sub], work.levels[number], work.tiles[number]
    at_work, partial, mine = group.at_work, group.partial, letters.tensors[tensor]
    shared = 0  # letters of which only what is new is sent
    tile: int = state.input_tile if tensor == INPUT else state.filter_tile
    if moved != NOWHERE:
        if not mine >> moved & 1:
            return 0
        shared = tiles.inside[moved]
        if not mine & shared & ~state.unrolled:  # no loop inside is back at its start
            shared |= 1 << moved
            if not level.along >> moved & 1 and tiles.fresh[moved] != tiles.full[moved]:
                tile = tile // tiles.full[moved] * tiles.fresh[moved]
    if not mine & level.along:
        return tile
    first = other = last = 1
    for letter in (level.spatial, level.pair):
        if letter == NOWHERE or not mine >> letter & 1:
            continue
        full = part = tiles.full[letter]
        if partial and (moved != NOWHERE or state.short >> letter & 1):
            part = tiles.part[letter]
        first *= part if at_work == 1 else full
        if shared >> letter & 1:
            other *= min(full, tiles.offset[letter])
            last *= tiles.fresh_part[letter]
        else:
            other *= full
            last *= part
    return tile * every(at_work, partial, first, other, last)


@kernel_part
def list_groups(number: int, sub: int, work: Work) -> int:
    """Into `work.kinds`: phases of a level with the same edges, by the letter that moved last, whatever the letters outside
    it do. Gives how many kinds there are."""
    state, level, movers = work.states[number, sub], work.levels[number], work.movers[number, sub]
    in_pair = 0  # of two letters in space it matters whether they are in their steady state
    if level.pair != NOWHERE:
        for place in range(state.movers):
            if movers[place].times:
                in_pair |= level.along & 1 << movers[place].letter
    kinds = edges = 0
    while True:  # all subsets of the edges, the empty one first
        may_be, steady = in_pair & ~edges, 0
        while True:
            fixed = edges | steady
            if not fixed:  # the very first step
                kinds = _note(kinds, 0, 0, NOWHERE, 1, 1, work)
            outside = most = 1
            for place in range(state.movers):
                mover = movers[place]
                letter = mover.letter
                moves = 1 if edges >> letter & 1 else mover.times
                if not moves or (may_be & ~steady) >> letter & 1:
                    continue
                most *= moves
                after = _note(kinds, edges, steady, letter, outside * moves, most, work)
                kinds = kinds if fixed & work.tiles[number].inside[letter] else after
                outside *= moves if fixed >> letter & 1 else moves + 1
            steady = steady - may_be & may_be
            if not steady:
                break
        edges = edges - state.edges & state.edges
        if not edges:
            return kinds


@kernel_part
def list_phases(number: int, sub: int, work: Work) -> int:
    """Into `work.kinds`: all phases of a level in MAESTRO's order. Gives how many there are."""
    state, movers = work.states[number, sub], work.movers[number, sub]
    at_edge = state.edges
    phases = 1
    for place in range(state.movers):
        phases *= 1 + (movers[place].times > 0) + (at_edge >> movers[place].letter & 1)
    for phase in range(phases):
        inside, edges, steady, moved, occurrences = phases, 0, 0, NOWHERE, 1
        for place in range(state.movers):
            letter, times = movers[place].letter, movers[place].times
            states = 1 + (times > 0) + (at_edge >> letter & 1)
            inside //= states
            which = -(-phase // inside) % states
            if which:
                moved = letter
                if which == 1 and times > 0:
                    steady |= 1 << letter
                    occurrences *= times
                else:
                    edges |= 1 << letter
        _note(phase, edges, steady, moved, occurrences, occurrences, work)
    return phases


@kernel_part
def _note(place: int, edges: int, steady: int, moved: int, occurrences: int, most: int, work: Work) -> int:
    """Write a kind. Gives the place after it."""
    kind = work.kinds[place]
    kind.edges, kind.steady, kind.moved, kind.occurrences, kind.most = edges, steady, moved, occurrences, most
    return place + 1
