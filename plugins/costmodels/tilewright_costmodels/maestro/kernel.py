"""MAESTRO's analysis of complete directives, one dataflow after another (docs/maestro.md gives the rules).

Plain Python on arrays of integers: compiled for 64 bits, and as it stands (`interpreted`) for reading, debugging, and
counts beyond 64 bits (arrays of Python's integers).

No nest is walked. Each directive of a level is at its first step, in its steady state or at its edge, and the phases of a
level are taken in groups with the same edges, and for each loop at once.
"""

from __future__ import annotations

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.batch import Ints
from tilewright.notations.directives.table import NOWHERE, Letters, Table
from tilewright_costmodels.maestro import at
from tilewright_costmodels.maestro.phases import at_work_in, inner_of, list_groups, list_phases, sent_in, work_in
from tilewright_costmodels.maestro.tiles import cut_tiles, find_states
from tilewright_costmodels.maestro.work import (
    COUNTER_LIMIT,
    FILTER,
    IDLE,
    INEXACT,
    INPUT,
    NO_WORK_INSIDE,
    NONE,
    OUTPUT,
    OVERFLOW,
    UNTRANSLATED,
    Hardware,
    Result,
    Work,
)


@kernel_part
def _fail(level: int, sub: int, code: int, where: int, about: int, number: int, work: Work) -> None:
    """The first fault of a sub-problem is kept; `where`: the level it is of."""
    state = work.states[level, sub]
    if not state[at.FAULT]:
        state[at.FAULT], state[at.FAULT + 1], state[at.FAULT + 2], state[at.FAULT + 3] = code, where, about, number


@kernel_part
def _compute(level: int, sub: int, edges: int, work: Work) -> float:
    """Into the group: cycles that a step computes. Gives the sub-clusters at work in one."""
    group, at_work, lanes = work.group, work.group[at.AT_WORK], work.about[level, at.LANES]
    if lanes:
        group[at.COMPUTE] = -(-group[at.CRITICAL] // lanes)
        return float(at_work)
    last, others = inner_of(level, sub, edges, at_work, work)
    cycles, active = max(0, work.states[level + 1, last, at.CYCLES]), float(work.active[level + 1, last])
    if at_work > 1:  # the slower counts
        cycles = max(cycles, work.states[level + 1, others, at.CYCLES])
        active += (at_work - 1) * work.active[level + 1, others]
    for each in (last, others):
        inner = work.states[level + 1, each]
        if inner[at.FAULT] and (each == last or at_work > 1):
            _fail(level, sub, inner[at.FAULT], inner[at.FAULT + 1], inner[at.FAULT + 2], inner[at.FAULT + 3], work)
    if level == 0 and cycles <= 0:
        _fail(level, sub, NO_WORK_INSIDE, level, NONE, NONE, work)
    group[at.COMPUTE] = cycles
    return active


@kernel_part
def _delay(hardware: Hardware, elements: int) -> int:
    """Cycles of a transfer."""
    if elements == 0:
        return hardware.noc_latency - 1
    return hardware.noc_latency - -elements // hardware.noc_bandwidth - 1


@kernel_part
def _step(
    letters: Letters, hardware: Hardware, level: int, sub: int, moved: int, occurrences: int, need: Ints, work: Work
) -> None:
    """Add phases of the group, those in which a letter moved last, to `work.sums`; `need`: what L2 must hold."""
    group, sums = work.group, work.sums
    sent = sent_in(letters, INPUT, level, sub, moved, work)
    filtered = sent_in(letters, FILTER, level, sub, moved, work)
    group[at.OCCURRENCES], group[at.INPUT_SENT], group[at.FILTER_SENT] = occurrences, sent, filtered
    group[at.ARRIVING], group[at.LEAVING] = _delay(hardware, sent + filtered), _delay(hardware, group[at.EGRESS])
    sums[at.EGRESS] += occurrences * group[at.EGRESS]
    sums[at.ALL_MACS] += occurrences * group[at.MACS]
    if level == 0 and not sums[at.OCCURRENCES]:  # up to the first step that does work
        need[INPUT] += 2 * sent
        need[FILTER] += 2 * filtered
        need[OUTPUT] = 2 * group[at.EGRESS]
    if group[at.CRITICAL] <= 0:  # passed over
        return
    cycles = group[at.COMPUTE] + group[at.ARRIVING]
    if moved != NOWHERE:
        cycles = max(group[at.COMPUTE], group[at.ARRIVING], group[at.LEAVING])
    if level == 0:  # a whole tile of L2 is loaded and stored, half of it hidden
        bandwidth = hardware.offchip_bandwidth
        cycles = max(cycles, (need[INPUT] + need[FILTER]) // bandwidth // 2, need[OUTPUT] // bandwidth // 2)
    sums[at.OCCURRENCES] += occurrences
    sums[at.INPUT_SENT] += occurrences * sent
    sums[at.FILTER_SENT] += occurrences * filtered
    sums[at.MACS] += occurrences * group[at.MACS]
    sums[at.ALL_CYCLES] += occurrences * cycles


@kernel_part
def _total(
    letters: Letters, hardware: Hardware, level: int, sub: int, one_by_one: bool, need: Ints, steps: Ints, work: Work
) -> int:
    """What all steps of a level on a sub-problem come to. Gives how many kinds of phases there are.

    `one_by_one`: in MAESTRO's order, noted in `steps`; else they are taken together as far as that changes nothing,
    which it does where the first of the outermost level does no work: then gives NONE.
    """
    kinds = list_phases(level, sub, work) if one_by_one else list_groups(level, sub, work)
    for column in range(len(work.sums)):
        work.sums[column] = 0
    if level == 0:
        need[INPUT], need[FILTER], need[OUTPUT] = 0, 0, 0
    active, total_active, group = 0.0, 0.0, work.group
    for kind in range(kinds):
        edges, steady, moved, occurrences, most = work.kinds[kind]
        if moved == NOWHERE or edges != work.kinds[kind - 1, 0] or steady != work.kinds[kind - 1, 1]:
            work_in(letters, level, sub, edges, steady, work)
            group[at.COMPUTE], active = 0, 0.0
            if group[at.CRITICAL] > 0:
                active = _compute(level, sub, edges, work)
            elif level == 0 and moved == NOWHERE and not one_by_one:
                return NONE
        _step(letters, hardware, level, sub, moved, occurrences, need, work)
        total_active += active * occurrences
        if most >= COUNTER_LIMIT and group[at.CRITICAL] > 0:
            _fail(level, sub, OVERFLOW, level, NONE, most, work)
        if one_by_one:
            for column in range(steps.shape[1]):
                steps[kind, column] = group[column]
    work.states[level, sub, at.CYCLES] = work.sums[at.ALL_CYCLES]
    work.active[level, sub] = total_active / work.sums[at.OCCURRENCES] if work.sums[at.OCCURRENCES] else 0.0
    return kinds


@kernel_part
def _meet(level: int, sub: int, work: Work) -> None:
    """Put a sub-problem into its level's queue, once."""
    if not work.states[level, sub, at.MET]:
        work.states[level, sub, at.MET] = 1
        work.queue[level, 0] += 1
        work.queue[level, work.queue[level, 0]] = sub


@kernel_part
def _cost(hardware: Hardware, row: int, result: Result) -> None:
    """Energy of the counts, and whether the memories hold what is required."""
    counts, operations = result.counts[row], result.counts[row, at.L1, INPUT, at.READS]
    energy = operations * hardware.energy_per_operation_pj
    for level in range(2):
        for tensor in range(3):
            for action in range(3):
                energy += counts[level, tensor, action] * hardware.energies[level, tensor, action]
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


@kernel_part
def _largest(hardware: Hardware, levels: int, work: Work) -> float:
    """No count or number of cycles of a row is larger: steps, times what each can compute or send."""
    most = 0.0
    for level in range(levels - 1, -1, -1):
        tiles, outer = work.tiles[level], work.tiles[max(level - 1, 0)]
        steps, elements = 1.0, float(work.about[level, at.CLUSTERS])
        for letter in range(tiles.shape[1]):
            full, cut = tiles[at.FULL, letter], tiles[at.CUT, letter]
            if level:
                cut = max(outer[at.FULL, letter], outer[at.PART, letter])
            if cut > full:
                steps *= (cut - full) / tiles[at.OFFSET, letter] + 2.0
            elements *= max(full, tiles[at.PART, letter], 1)
        most = steps * (max(most, elements) + hardware.noc_latency + 1.0)
    return 2.0 * most


@kernel_part
def _meet_all(letters: Letters, levels: int, work: Work) -> None:
    """Queue the sub-problems of all levels, with their states."""
    for level in range(levels):
        work.queue[level, 0] = 0
    _meet(NONE, NONE, work)
    for level in range(levels):
        for index in range(work.queue[level, 0]):
            sub = work.queue[level, 1 + index]
            find_states(letters, level, sub, work)
            edges, present = NONE, work.states[level, sub, at.EDGES]
            while level + 1 < levels:
                at_work, _, _ = at_work_in(level, sub, edges, work)
                for inner in inner_of(level, sub, edges, at_work, work):
                    _meet(level + 1, inner, work)
                edges = edges - present & present
                if not edges:
                    break


@kernel_part
def _write(letters: Letters, hardware: Hardware, innermost: int, row: int, result: Result, work: Work) -> None:
    """Counts and requirements of a row, from the sums of its outermost level."""
    counts, need, sums, held = result.counts[row], result.required[row], work.sums, hardware.held
    counts[:] = 0
    for tensor, column in ((INPUT, at.INPUT_SENT), (FILTER, at.FILTER_SENT)):
        counts[at.L2, tensor, at.READS], counts[at.L2, tensor, at.FILLS] = sums[column], held[tensor]
        counts[at.L1, tensor, at.READS], counts[at.L1, tensor, at.FILLS] = sums[at.MACS], sums[column]
    counts[at.L2, OUTPUT, at.READS], counts[at.L2, OUTPUT, at.UPDATES] = held[OUTPUT], sums[at.EGRESS]
    counts[at.L1, OUTPUT, at.READS] = counts[at.L1, OUTPUT, at.UPDATES] = sums[at.ALL_MACS]
    for tensor in range(3):
        words = 2
        for letter in range(len(letters.sizes)):
            if letters.tensors[tensor] >> letter & 1:
                words *= work.tiles[innermost, at.FULL, letter]
        need[at.L1, tensor] = words
    result.cycles[row], result.active[row] = work.states[0, 0, at.CYCLES], work.active[0, 0]
    for number in range(4):
        result.fault[row, number] = work.states[0, 0, at.FAULT + number]


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
        levels = table.levels[row]
        if table.fault[row, 0]:
            result.fault[row, 0] = UNTRANSLATED
            continue
        cut_tiles(letters, table, row, work)
        if _largest(hardware, levels, work) >= limit:
            result.fault[row, 0] = INEXACT
            continue
        _meet_all(letters, levels, work)
        need, steps = result.required[row, at.L2], result.steps
        for level in range(levels - 1, -1, -1):
            for index in range(work.queue[level, 0]):
                sub, one_by_one, kinds = work.queue[level, 1 + index], explain and level == 0, NONE
                work.states[level, sub, at.MET] = 0
                while not kinds:
                    kinds = _total(letters, hardware, level, sub, one_by_one, need, steps, work)
                    result.phases[row], one_by_one = kinds, True
        if not work.sums[at.OCCURRENCES]:
            _fail(NONE, NONE, IDLE, NONE, NONE, NONE, work)
        _write(letters, hardware, levels - 1, row, result, work)
        _cost(hardware, row, result)
