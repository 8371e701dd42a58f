"""MAESTRO's analysis, one dataflow after another (docs/maestro.md gives the rules).

Plain Python on arrays of integers: compiled for 64 bits, and as it stands (`interpreted`) for reading, debugging, and
counts beyond 64 bits (arrays of Python's integers).

No nest is walked. Each directive of a level is at its first step, in its steady state or at its edge, and the phases of a
level are taken in groups with the same edges, and for each loop at once.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import among, compiled, eight, kernel_part, product
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.rules.scratch import fetch
from tilewright.notations.directives.nest import Nests, Scratch, write_directives
from tilewright.notations.directives.table import NOWHERE, Letters, Table, fill_in
from tilewright_costmodels.maestro import work as at
from tilewright_costmodels.maestro.phases import at_work_in, inner_of, list_groups, list_phases, sent_in, work_in
from tilewright_costmodels.maestro.tiles import cut_tiles, find_states
from tilewright_costmodels.maestro.work import FILTER, INPUT, L1, L2, NONE, OUTPUT, Group, Hardware, Result, Work


@kernel_part
def _fail(number: int, sub: int, code: int, where: int, about: int, value: int, work: Work) -> None:
    """The first fault of a sub-problem is kept; `where`: the level it is of."""
    fault = work.faults[number, sub]
    if not fault[0]:
        fault[0], fault[1], fault[2], fault[3] = code, where, about, value


@kernel_part
def _compute(number: int, sub: int, edges: int, group: Group, work: Work) -> tuple[int, float]:
    """Cycles that a step computes, and the sub-clusters of the innermost level at work in one."""
    at_work, lanes = group.at_work, work.levels[number].lanes
    if lanes:
        return -(-group.critical // lanes), float(at_work)
    last, others = inner_of(number, sub, edges, at_work, work)
    cycles, active = max(0, work.states[number + 1, last].cycles), work.states[number + 1, last].active
    if at_work > 1:  # the slower counts
        cycles = max(cycles, work.states[number + 1, others].cycles)
        active += (at_work - 1) * work.states[number + 1, others].active
    for each in (last, others):
        fault = work.faults[number + 1, each]
        if fault[0] and (each == last or at_work > 1):
            _fail(number, sub, fault[0], fault[1], fault[2], fault[3], work)
    if number == 0 and cycles <= 0:
        _fail(number, sub, at.NO_WORK_INSIDE, number, NONE, NONE, work)
    return cycles, active


@kernel_part
def _delay(hardware: Hardware, elements: int) -> int:
    """Cycles of a transfer."""
    return hardware.noc_latency - -elements // hardware.noc_bandwidth - 1


@kernel_part
def _load(hardware: Hardware, sent: int, filtered: int, egress: int, work: Work) -> int:
    """Add what a step of the outermost level, up to the first that does work, asks of L2. Gives the cycles of DRAM behind each
    step: a whole tile of L2 is loaded and stored, half of it hidden."""
    need, bandwidth = work.required[L2], hardware.offchip_bandwidth
    need[INPUT] += 2 * sent
    need[FILTER] += 2 * filtered
    need[OUTPUT] = 2 * egress
    cycles: int = max((need[INPUT] + need[FILTER]) // bandwidth // 2, need[OUTPUT] // bandwidth // 2)
    return cycles


@kernel_part
def _total(letters: Letters, hardware: Hardware, number: int, sub: int, one_by_one: bool, work: Work) -> int:
    """What all steps of a level on a sub-problem come to. Gives how many kinds of phases there are.

    `one_by_one`: in MAESTRO's order, noted in `work.steps`; else they are taken together as far as that changes nothing,
    which it does where the first of the outermost level does no work: then gives NONE.
    """
    kinds = list_phases(number, sub, work) if one_by_one else list_groups(number, sub, work)
    occurrences = input_sent = filter_sent = macs = all_macs = egress = cycles = offchip = 0
    active = at_once = 0.0
    group, leaving, compute = Group(0, False, 0, 0, 0), 0, 0
    if number == 0:
        work.required[L2, :] = 0
    for place in range(kinds):
        kind, before = work.kinds[place], work.kinds[max(place - 1, 0)]
        if place == 0 or kind.edges != before.edges or kind.steady != before.steady:
            group = work_in(letters, number, sub, kind.edges, kind.steady, work)
            leaving, compute, at_once = _delay(hardware, group.egress), 0, 0.0
            if group.critical > 0:
                compute, at_once = _compute(number, sub, kind.edges, group, work)
            elif number == 0 and place == 0 and not one_by_one:
                return NONE
        moved, times = kind.moved, kind.occurrences
        sent = sent_in(letters, INPUT, number, sub, moved, group, work)
        filtered = sent_in(letters, FILTER, number, sub, moved, group, work)
        arriving = _delay(hardware, sent + filtered)
        if one_by_one:
            step = work.steps[place]
            step.occurrences, step.input_sent, step.filter_sent, step.egress = times, sent, filtered, group.egress
            step.macs, step.arriving, step.leaving, step.compute = group.macs, arriving, leaving, compute
        egress += times * group.egress
        all_macs += times * group.macs
        if number == 0 and not occurrences:
            offchip = _load(hardware, sent, filtered, group.egress, work)
        if group.critical <= 0:  # passed over
            continue
        if kind.most >= at.COUNTER_LIMIT:
            _fail(number, sub, at.OVERFLOW, number, NONE, kind.most, work)
        longest = compute + arriving if moved == NOWHERE else max(compute, arriving, leaving)
        cycles += times * (max(longest, offchip) if number == 0 else longest)
        occurrences += times
        input_sent += times * sent
        filter_sent += times * filtered
        macs += times * group.macs
        active += times * at_once
    sums, state = work.sums[0], work.states[number, sub]
    sums.occurrences, sums.input_sent, sums.filter_sent = occurrences, input_sent, filter_sent
    sums.macs, sums.all_macs, sums.egress = macs, all_macs, egress
    state.cycles, state.active = cycles, active / occurrences if occurrences else 0.0
    return kinds


@kernel_part
def _meet(number: int, sub: int, work: Work) -> None:
    """Put a sub-problem into its level's queue, once."""
    if not work.states[number, sub].met:
        work.states[number, sub].met = 1
        work.queue[number, 0] += 1
        work.queue[number, work.queue[number, 0]] = sub


@kernel_part
def _meet_all(letters: Letters, order: Ints, levels: int, work: Work) -> None:
    """Queue the sub-problems of all levels, with their states."""
    for number in range(levels):
        work.queue[number, 0] = 0
    _meet(NONE, NONE, work)
    for number in range(levels):
        for index in range(work.queue[number, 0]):
            sub = work.queue[number, 1 + index]
            find_states(letters, order[number], number, sub, work)
            edges, present = NONE, work.states[number, sub].edges
            while number + 1 < levels:
                at_work, _, _ = at_work_in(number, sub, edges, work)
                for inner in inner_of(number, sub, edges, at_work, work):
                    _meet(number + 1, inner, work)
                edges = edges - present & present
                if not edges:
                    break


@kernel_part
def _count(letters: Letters, hardware: Hardware, innermost: int, work: Work) -> None:
    """Counts and requirements, from the sums of the outermost level."""
    counts, sums, held = work.counts, work.sums[0], hardware.held
    for tensor, sent in ((INPUT, sums.input_sent), (FILTER, sums.filter_sent)):
        counts[L2, tensor, at.READS], counts[L2, tensor, at.FILLS] = sent, held[tensor]
        counts[L1, tensor, at.READS], counts[L1, tensor, at.FILLS] = sums.macs, sent
    counts[L2, OUTPUT, at.READS], counts[L2, OUTPUT, at.UPDATES] = held[OUTPUT], sums.egress
    counts[L1, OUTPUT, at.READS] = counts[L1, OUTPUT, at.UPDATES] = sums.all_macs
    for tensor in range(3):
        elements = np.where(among(letters.tensors[tensor]), eight(work.tiles[innermost].full), 1)
        work.required[L1, tensor] = 2 * product(elements)


@kernel_part
def _cost(hardware: Hardware, n: int, result: Result, work: Work) -> None:
    """Energy of the counts and cycles, if the memories hold what is required."""
    for memory in range(len(hardware.capacity)):
        need = 0
        for level in range(2):
            for tensor in range(3):
                need += work.required[level, tensor] if hardware.home[level, tensor] == memory else 0
        if need > hardware.capacity[memory]:
            return
    energy = work.counts[L1, INPUT, at.READS] * hardware.energy_per_operation_pj
    for level in range(2):
        for tensor in range(3):
            for action in range(3):
                energy += work.counts[level, tensor, action] * hardware.energies[level, tensor, action]
    result.energy_pj[n], result.cycles[n] = energy, work.states[0, 0].cycles


@kernel_part
def _count_all(letters: Letters, hardware: Hardware, table: Table, explain: bool, work: Work) -> None:
    """The account of complete directives whose tiles were cut."""
    levels = table.levels[0]
    _meet_all(letters, table.order, levels, work)
    for number in range(levels - 1, -1, -1):
        for index in range(work.queue[number, 0]):
            sub, one_by_one, kinds = work.queue[number, 1 + index], explain and number == 0, NONE
            work.states[number, sub].met = 0
            while not kinds:
                kinds = _total(letters, hardware, number, sub, one_by_one, work)
                work.phases[0], one_by_one = kinds, True
    if not work.sums[0].occurrences:
        _fail(NONE, NONE, at.IDLE, NONE, NONE, NONE, work)
    _count(letters, hardware, levels - 1, work)


@compiled
def analyse_all(
    letters: Letters,
    hardware: Hardware,
    nests: Nests,
    scratch: Scratch,
    table: Table,
    explain: bool,
    limit: float,
    result: Result,
    work: Work,
) -> None:
    """MAESTRO's figures of mappings, by way of their directives; if there are none, of the complete directives in `table`.

    Args:
        explain: with the phases of the last one.
        limit: those whose counts may be as large are left out.
    """
    for n in range(len(result.code)):
        fault = work.faults[0, 0]
        fault[0] = at.FINE
        if len(nests.legal):
            fetch(nests.trips, n + 8)
            fault[0] = at.UNTRANSLATED
            if nests.legal[n]:
                write_directives(letters, nests, n, table, scratch)
                if not table.fault[0]:
                    fill_in(letters, table)
                    fault[0] = at.FINE
        if not fault[0] and cut_tiles(letters, hardware, table, work) >= limit:
            fault[0] = at.INEXACT
        if not fault[0]:
            _count_all(letters, hardware, table, explain, work)
            if not fault[0]:
                _cost(hardware, n, result, work)
        result.code[n] = fault[0]
