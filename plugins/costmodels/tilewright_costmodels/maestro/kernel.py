"""MAESTRO's analysis of complete directives, one dataflow after another (docs/maestro.md gives the rules).

Plain Python on arrays of integers: compiled for 64 bits, and as it stands (`interpreted`) for reading, debugging, and
counts beyond 64 bits (arrays of Python's integers).

No nest is walked. Each directive of a level is at its first step, in its steady state or at its edge, and the phases of a
level are taken in groups with the same edges, and for each loop at once.
"""

from __future__ import annotations

from tilewright.compiled import compiled
from tilewright.notations.directives.table import NOWHERE, Letters, Table
from tilewright_costmodels.maestro.phases import at_work_in, inner_of, sent_in, worked_in
from tilewright_costmodels.maestro.tiles import cut_tiles, find_states
from tilewright_costmodels.maestro.work import (
    ALL_MACS,
    ARRIVING,
    COMPUTE,
    COUNTER_LIMIT,
    CYCLES,
    EDGES,
    EGRESS,
    FILLS,
    FILTER,
    FILTER_SENT,
    FULL,
    IDLE,
    INEXACT,
    INPUT,
    INPUT_SENT,
    L1,
    L2,
    LEAVING,
    MACS,
    MET,
    NO_WORK_INSIDE,
    NONE,
    OCCURRENCES,
    OUTPUT,
    OVERFLOW,
    PAIR,
    PART,
    READS,
    SPLIT,
    UNTRANSLATED,
    UPDATES,
    Hardware,
    Result,
    Work,
)


@compiled
def _fail(level: int, sub: int, code: int, where: int, about: int, number: int, work: Work) -> None:
    """The first fault of a sub-problem is kept; `where`: the level it is of."""
    fault = work.fault[level, sub]
    if not fault[0]:
        fault[0], fault[1], fault[2], fault[3] = code, where, about, number


@compiled
def _compute(table: Table, row: int, level: int, sub: int, edges: int, critical: int, work: Work) -> tuple[int, float]:
    """Cycles that a step of such phases computes, and sub-clusters at work in it."""
    at_work, _, _ = at_work_in(level, sub, edges, work)
    if level + 1 == table.levels[row]:
        return -(-critical // table.lanes[row]), 1.0 * at_work
    last, others = inner_of(level, sub, edges, work)
    cycles, active = max(0, work.cycles[level + 1, last]), work.active[level + 1, last]
    if at_work > 1:  # the slower counts
        cycles = max(cycles, work.cycles[level + 1, others])
        active += (at_work - 1) * work.active[level + 1, others]
    for each in (last, others):
        fault = work.fault[level + 1, each]
        if fault[0] and (each == last or at_work > 1):
            _fail(level, sub, fault[0], fault[1], fault[2], fault[3], work)
    if level == 0 and cycles <= 0:
        _fail(level, sub, NO_WORK_INSIDE, level, NONE, NONE, work)
    return cycles, active


@compiled
def _delay(hardware: Hardware, elements: int) -> int:
    """Cycles of a transfer."""
    return hardware.noc_latency - -elements // hardware.noc_bandwidth - 1


@compiled
def _add(
    letters: Letters,
    hardware: Hardware,
    table: Table,
    row: int,
    level: int,
    sub: int,
    edges: int,
    steady: int,
    can_steady: int,
    floor: int,
    work: Work,
) -> float:
    """Add the steps of a group of phases to `work.sums`: `edges` at their edge, of `can_steady` just `steady` in their
    steady state. Gives the sum over steps of sub-clusters at work."""
    times, sums, fixed = work.steady[level, sub], work.sums, edges | steady
    critical, macs, egress = worked_in(letters, level, sub, edges, steady, work)
    compute, active = 0, 0.0
    if critical > 0:
        compute, active = _compute(table, row, level, sub, edges, critical, work)
    leaving = _delay(hardware, egress)
    occurrences = most = 1
    for place in range(NOWHERE, len(letters.sizes)):  # the very first step; then by the letter that moved last
        moved, moves, all_states = NOWHERE, 1, 1
        if place != NOWHERE:
            moved = table.order[row, level, place]
            moves = 1 if edges >> moved & 1 else times[moved]
            all_states = moves
            if can_steady >> moved & 1 and not fixed >> moved & 1:
                moves, all_states = 0, 1
            elif not fixed >> moved & 1:
                all_states += 1
            most *= max(moves, 1)
        last = moves and not fixed & work.inside[level, moved] if place != NOWHERE else not fixed
        if critical > 0 and last:
            sent = sent_in(letters, INPUT, level, sub, edges, moved, work)
            filtered = sent_in(letters, FILTER, level, sub, edges, moved, work)
            arriving = _delay(hardware, sent + filtered)
            cycles = compute + arriving if place == NOWHERE else max(compute, arriving, leaving)
            sums[CYCLES] += occurrences * moves * max(cycles, floor)
            sums[INPUT_SENT] += occurrences * moves * sent
            sums[FILTER_SENT] += occurrences * moves * filtered
        occurrences *= all_states
    sums[EGRESS] += occurrences * egress
    sums[ALL_MACS] += occurrences * macs
    if critical <= 0:  # passed over
        return 0.0
    sums[MACS] += occurrences * macs
    sums[OCCURRENCES] += occurrences
    if most >= COUNTER_LIMIT:
        _fail(level, sub, OVERFLOW, level, NONE, most, work)
    return 1.0 * occurrences * active


@compiled
def _total(
    letters: Letters, hardware: Hardware, table: Table, row: int, level: int, sub: int, floor: int, work: Work
) -> None:
    """What all steps of a level on a sub-problem come to; none takes less than `floor`."""
    about, state = work.levels[level], work.states[level, sub]
    in_pair = 0
    if about[PAIR] != NOWHERE:
        for letter in (about[SPLIT], about[PAIR]):
            if work.steady[level, sub, letter]:
                in_pair |= 1 << letter
    work.sums[:] = 0
    active, edges = 0.0, 0
    while True:  # all subsets of the edges, the empty one first
        can_steady, steady = in_pair & ~edges, 0
        while True:
            active += _add(letters, hardware, table, row, level, sub, edges, steady, can_steady, floor, work)
            steady = steady - can_steady & can_steady
            if not steady:
                break
        edges = edges - state[EDGES] & state[EDGES]
        if not edges:
            break
    work.cycles[level, sub] = work.sums[CYCLES]
    work.active[level, sub] = active / work.sums[OCCURRENCES] if work.sums[OCCURRENCES] else 0.0


@compiled
def _meet(row: int, level: int, sub: int, work: Work) -> None:
    """Put a sub-problem into its level's queue, once."""
    if work.states[level, sub, MET] != row + 1:
        work.states[level, sub, MET] = row + 1
        work.queue[level, work.queued[level]] = sub
        work.queued[level] += 1


@compiled
def _phases(letters: Letters, hardware: Hardware, table: Table, row: int, result: Result, work: Work) -> None:
    """The phases of the outermost level in MAESTRO's order, into `result.steps`."""
    count, edge, times = len(letters.sizes), work.states[0, 0, EDGES], work.steady[0, 0]
    phases = 1
    for letter in range(count):
        phases *= 1 + (times[letter] > 0) + (edge >> letter & 1)
    for phase in range(phases):
        inside, edges, steady, moved, occurrences = phases, 0, 0, NOWHERE, 1
        for place in range(count):
            letter = table.order[row, 0, place]
            states = 1 + (times[letter] > 0) + (edge >> letter & 1)
            inside //= states
            number = -(-phase // inside) % states
            if number:
                moved = letter
                if number == 1 and times[letter] > 0:
                    steady |= 1 << letter
                    occurrences *= times[letter]
                else:
                    edges |= 1 << letter
        critical, macs, egress = worked_in(letters, NONE, NONE, edges, steady, work)
        sent = sent_in(letters, INPUT, NONE, NONE, edges, moved, work)
        filtered = sent_in(letters, FILTER, NONE, NONE, edges, moved, work)
        compute = 0
        if critical > 0:
            compute, _ = _compute(table, row, NONE, NONE, edges, critical, work)
        step = result.steps[phase]
        step[OCCURRENCES], step[MACS], step[EGRESS], step[COMPUTE] = occurrences, macs, egress, compute
        step[INPUT_SENT], step[FILTER_SENT] = sent, filtered
        step[ARRIVING], step[LEAVING] = _delay(hardware, sent + filtered), _delay(hardware, egress)
    result.phases[row] = phases


@compiled
def _require(
    letters: Letters, hardware: Hardware, table: Table, row: int, explain: bool, result: Result, work: Work
) -> None:
    """Buffers for what is sent up to the first step that does work (L2), and for the innermost tiles (L1)."""
    need = result.required[row]
    critical, _, egress = worked_in(letters, NONE, NONE, NONE, NONE, work)
    if explain or critical <= 0:
        _phases(letters, hardware, table, row, result, work)
    need[L2, INPUT] = 2 * sent_in(letters, INPUT, NONE, NONE, NONE, NOWHERE, work)
    need[L2, FILTER] = 2 * sent_in(letters, FILTER, NONE, NONE, NONE, NOWHERE, work)
    need[L2, OUTPUT] = 2 * egress
    for phase in range(1, result.phases[row] if critical <= 0 else 1):
        step = result.steps[phase]
        need[L2, INPUT] += 2 * step[INPUT_SENT]
        need[L2, FILTER] += 2 * step[FILTER_SENT]
        need[L2, OUTPUT] = 2 * step[EGRESS]
        if step[COMPUTE] > 0:
            break
    inner = work.inputs[table.levels[row] - 1]
    for tensor in range(3):
        need[L1, tensor] = 2
        for letter in range(len(letters.sizes)):
            if letters.tensors[tensor] >> letter & 1:
                need[L1, tensor] *= inner[FULL, letter]


@compiled
def _cost(hardware: Hardware, row: int, result: Result) -> None:
    """Energy of the counts, and whether the memories hold what is required."""
    counts, operations = result.counts[row], result.counts[row, L1, INPUT, READS]
    energy = operations * hardware.price_of_operation
    for level in range(2):
        for tensor in range(3):
            for action in range(3):
                energy += counts[level, tensor, action] * hardware.prices[level, tensor, action]
    result.energy_pj[row] = energy
    result.fits[row] = True
    for memory in range(len(hardware.capacity)):
        need = 0
        for level in range(2):
            for tensor in range(3):
                if hardware.home[level, tensor] == memory:
                    need += result.required[row, level, tensor]
        if need > hardware.capacity[memory]:
            result.fits[row] = False


@compiled
def _largest(letters: Letters, hardware: Hardware, table: Table, row: int, work: Work) -> float:
    """No count or number of cycles of a row is larger: steps, times what each can compute or send."""
    most = 0.0
    for level in range(table.levels[row] - 1, -1, -1):
        steps, tile = 1.0, 1.0 * table.clusters[row, level]
        for letter in range(len(letters.sizes)):
            full, cut = table.size[row, level, letter], letters.sizes[letter]
            if level:
                cut = max(work.inputs[level - 1, FULL, letter], work.inputs[level - 1, PART, letter])
            if cut > full:
                steps *= (cut - full) / table.offset[row, level, letter] + 2.0
            tile *= max(full, work.inputs[level, PART, letter], 1)
        most = steps * (max(most, tile) + hardware.noc_latency + 1.0)
    return 2.0 * most


@compiled
def analyse_rows(
    letters: Letters, hardware: Hardware, table: Table, explain: bool, limit: float, result: Result, work: Work
) -> None:
    """MAESTRO's figures for every row of complete directives.

    Args:
        explain: with the phases of the last row.
        limit: rows whose counts may be as large are left out.
    """
    for row in range(len(table.levels)):
        fault = result.fault[row]
        fault[:] = 0
        if table.fault[row, 0]:
            fault[0] = UNTRANSLATED
            continue
        levels = table.levels[row]
        for level in range(levels):
            cut_tiles(letters, table, row, level, work)
        if _largest(letters, hardware, table, row, work) >= limit:
            fault[0] = INEXACT
            continue
        work.queued[:] = 0
        _meet(row, NONE, NONE, work)
        for level in range(levels):
            for index in range(work.queued[level]):
                sub = work.queue[level, index]
                find_states(letters, table, row, level, sub, work)
                edges, present = 0, work.states[level, sub, EDGES]
                while level + 1 < levels:
                    for inner in inner_of(level, sub, edges, work):
                        _meet(row, level + 1, inner, work)
                    edges = edges - present & present
                    if not edges:
                        break
        for level in range(levels - 1, 0, -1):
            for index in range(work.queued[level]):
                _total(letters, hardware, table, row, level, work.queue[level, index], -(2**62), work)
        _require(letters, hardware, table, row, explain, result, work)
        # every step loads and stores a whole tile of L2, half of it hidden
        need, bandwidth = result.required[row, L2], hardware.offchip_bandwidth
        floor = max((need[INPUT] + need[FILTER]) // bandwidth // 2, need[OUTPUT] // bandwidth // 2)
        _total(letters, hardware, table, row, NONE, NONE, floor, work)
        if not work.sums[OCCURRENCES]:
            _fail(NONE, NONE, IDLE, NONE, NONE, NONE, work)
        for number in range(4):
            fault[number] = work.fault[0, 0, number]
        counts, sums = result.counts[row], work.sums
        counts[:] = 0
        for tensor in (INPUT, FILTER):
            sent = sums[INPUT_SENT] if tensor == INPUT else sums[FILTER_SENT]
            counts[L2, tensor, READS], counts[L2, tensor, FILLS] = sent, hardware.held[tensor]
            counts[L1, tensor, READS], counts[L1, tensor, FILLS] = sums[MACS], sent
        counts[L2, OUTPUT, READS], counts[L2, OUTPUT, UPDATES] = hardware.held[OUTPUT], sums[EGRESS]
        counts[L1, OUTPUT, READS] = counts[L1, OUTPUT, UPDATES] = sums[ALL_MACS]
        result.cycles[row], result.active[row] = work.cycles[0, 0], work.active[0, 0]
        _cost(hardware, row, result)
