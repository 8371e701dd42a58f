"""What the sub-clusters of a level do in a phase: who is at work, operations, elements sent down and up.

A phase is one state per directive. What is computed and sent up depends on the letters at their edge alone, what is sent
down on these and on the letter that moved last.
"""

from __future__ import annotations

from tilewright.compiled import kernel_part
from tilewright.notations.directives.table import NOWHERE, Letters
from tilewright_costmodels.maestro import at
from tilewright_costmodels.maestro.work import OUTPUT, Work


@kernel_part
def at_work_in(level: int, sub: int, edges: int, work: Work) -> tuple[int, bool, bool]:
    """In phases where `edges` are at their edge: sub-clusters at work; whether some letter in space is short; whether the
    last sub-cluster has a short tile, as the later letter in space says."""
    state, about = work.states[level, sub], work.about[level]
    short, pair = (state[at.SHORT] | edges) & about[at.ALONG], about[at.PAIR]
    if not short:
        return about[at.CLUSTERS], False, False
    later = pair if pair != NOWHERE and short >> pair & 1 else about[at.SPATIAL]
    partial = state[at.PARTIAL] >> later & 1 == 1 if edges >> later & 1 else True
    return about[at.EDGE_CLUSTERS], True, partial


@kernel_part
def inner_of(level: int, sub: int, edges: int, at_work: int, work: Work) -> tuple[int, int]:
    """The sub-problems of the next level in such phases: that of the last sub-cluster at work, and that of the others."""
    state, spatial = work.states[level, sub], work.about[level, at.SPATIAL]
    short = state[at.SHORT] | edges
    others = short & ~work.about[level, at.ALONG]
    if at_work == 1:
        return short, short
    partial = state[at.PARTIAL] >> spatial & 1 if edges >> spatial & 1 else state[at.SHORT] >> spatial & 1
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
def work_in(letters: Letters, level: int, sub: int, edges: int, steady: int, work: Work) -> None:
    """Into `work.group`: who is at work in such phases, operations of the first sub-cluster, those of all, and elements of
    the output sent up.

    `steady`: letters in their steady state; matters for those in space if there are two.
    """
    at_work, short, partial = at_work_in(level, sub, edges, work)
    tiles, along, at_edge = work.tiles[level], work.about[level, at.ALONG], work.states[level, sub, at.SHORT] | edges
    tile = sums = 1  # along letters in time, of the output and of what is summed up
    first = first_up = last = other_up = last_up = 1  # along letters in space, of operations and of the output
    for letter in range(len(letters.sizes)):
        window, up = letters.windows[letter], letters.tensors[OUTPUT] >> letter & 1
        full, part = tiles[at.FULL, letter], tiles[at.PART, letter]
        fresh, fresh_part = min(full, tiles[at.OFFSET, letter]), tiles[at.FRESH_PART, letter]
        if window != NOWHERE:  # in outputs; strides are not regarded
            full, part = full - tiles[at.FULL, window] + 1, part - tiles[at.PART, window] + 1
            fresh_part = min(tiles[at.OFFSET, letter], part)
        if not along >> letter & 1:
            extent = part if at_edge >> letter & 1 else full
            if up:
                tile *= extent
            else:
                sums *= extent
            continue
        cut = fresh_part if (edges | steady) >> letter & 1 else part
        mine = full
        if short and at_work == 1:
            if edges >> letter & 1:
                mine = tiles[at.PART, letter]  # MAESTRO takes the input's even for output columns
            elif partial:
                mine = cut
        first *= mine
        last *= cut
        if up:
            first_up *= mine
            other_up *= fresh
            last_up *= fresh_part
    group = work.group
    group[at.AT_WORK], group[at.LAST_SHORT], group[at.CRITICAL] = at_work, 1 if partial else 0, tile * sums * first
    group[at.MACS] = tile * sums * every(at_work, partial, first, first, last)
    group[at.EGRESS] = tile
    if letters.tensors[OUTPUT] & along:
        group[at.EGRESS] = tile * every(at_work, partial, first_up, other_up, last_up)


@kernel_part
def sent_in(letters: Letters, tensor: int, level: int, sub: int, moved: int, work: Work) -> int:
    """Elements of an input sent down in the phases of `work.group` if letter `moved` moved last; NOWHERE: in the very
    first step."""
    state, tiles, about = work.states[level, sub], work.tiles[level], work.about[level]
    at_work, partial, mine = work.group[at.AT_WORK], work.group[at.LAST_SHORT] == 1, letters.tensors[tensor]
    shared = 0  # letters of which only what is new is sent
    tile: int = state[at.INPUT_TILE + tensor]
    if moved != NOWHERE:
        if not mine >> moved & 1:
            return 0
        shared = tiles[at.INSIDE, moved]
        if not mine & shared & ~state[at.UNROLLED]:  # no loop inside is back at its start
            shared |= 1 << moved
            full = tiles[at.FULL, moved]
            fresh = max(min(full, tiles[at.OFFSET, moved]) if tiles[at.CUT, moved] > full else 0, 1)
            if not about[at.ALONG] >> moved & 1 and fresh != full:
                tile = tile // full * fresh
    if not mine & about[at.ALONG]:
        return tile
    first = other = last = 1
    for letter in (about[at.SPATIAL], about[at.PAIR]):
        if letter == NOWHERE or not mine >> letter & 1:
            continue
        full, part = tiles[at.FULL, letter], tiles[at.PART, letter] if partial else tiles[at.FULL, letter]
        if moved == NOWHERE:
            part = part if state[at.SHORT] >> letter & 1 else full
        first *= part if at_work == 1 else full
        if shared >> letter & 1:
            other *= min(full, tiles[at.OFFSET, letter])
            last *= tiles[at.FRESH_PART, letter]
        else:
            other *= full
            last *= part
    return tile * every(at_work, partial, first, other, last)


@kernel_part
def list_groups(level: int, sub: int, work: Work) -> int:
    """Into `work.kinds`: phases of a level with the same edges, by the letter that moved last, whatever the letters outside
    it do. Gives how many kinds there are."""
    tiles, about, times, present = (
        work.tiles[level],
        work.about[level],
        work.steady[level, sub],
        work.states[level, sub, at.EDGES],
    )
    in_pair = 0  # of two letters in space it matters whether they are in their steady state
    if about[at.PAIR] != NOWHERE:
        for letter in (about[at.SPATIAL], about[at.PAIR]):
            if times[letter]:
                in_pair |= 1 << letter
    kinds = edges = 0
    while True:  # all subsets of the edges, the empty one first
        may_be, steady = in_pair & ~edges, 0
        while True:
            fixed = edges | steady
            outside = most = 1
            for place in range(NOWHERE, tiles.shape[1]):  # the very first step, then by the letter that moved last
                letter, moves, states, last = NOWHERE, 1, 1, not fixed
                if place != NOWHERE:
                    letter = tiles[at.ORDER, place]
                    moves = 1 if edges >> letter & 1 else times[letter]
                    states = moves if fixed >> letter & 1 else moves + 1
                    last = not fixed & tiles[at.INSIDE, letter]
                    if not moves or (may_be & ~steady) >> letter & 1:
                        continue
                most *= moves
                if last:
                    kind = work.kinds[kinds]
                    kind[0], kind[1], kind[2], kind[3], kind[4] = edges, steady, letter, outside * moves, most
                    kinds += 1
                outside *= states
            steady = steady - may_be & may_be
            if not steady:
                break
        edges = edges - present & present
        if not edges:
            return kinds


@kernel_part
def list_phases(level: int, sub: int, work: Work) -> int:
    """Into `work.kinds`: all phases of a level in MAESTRO's order. Gives how many there are."""
    tiles, times, present = work.tiles[level], work.steady[level, sub], work.states[level, sub, at.EDGES]
    count = tiles.shape[1]
    phases = 1
    for letter in range(count):
        phases *= 1 + (times[letter] > 0) + (present >> letter & 1)
    for phase in range(phases):
        inside, edges, steady, moved, occurrences = phases, 0, 0, NOWHERE, 1
        for place in range(count):
            letter = tiles[at.ORDER, place]
            states = 1 + (times[letter] > 0) + (present >> letter & 1)
            inside //= states
            number = -(-phase // inside) % states
            if number:
                moved = letter
                if number == 1 and times[letter] > 0:
                    steady |= 1 << letter
                    occurrences *= times[letter]
                else:
                    edges |= 1 << letter
        kind = work.kinds[phase]
        kind[0], kind[1], kind[2], kind[3], kind[4] = edges, steady, moved, occurrences, occurrences
    return phases
