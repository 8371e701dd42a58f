"""MAESTRO's analysis, one dataflow after another (docs/maestro.md gives the rules).

Plain Python on arrays of integers: compiled for 64 bits, and as it stands (`interpreted`) for reading, debugging, and
counts beyond 64 bits (arrays of Python's integers).

No nest is walked. Each directive of a level is at its first step, in its steady state or at its edge, and the phases of a
level are taken in groups with the same edges, and for each loop at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.compiled import alike, among, compiled, eight, kernel_part, product, total
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.rules.scratch import fetch
from tilewright.notations.directives.nest import Nests, Scratch, write_directives
from tilewright.notations.directives.table import NOWHERE, Letters, Table, fill_in
from tilewright_costmodels.maestro import work as at
from tilewright_costmodels.maestro.phases import (
    at_work_in,
    in_pair,
    inner_of,
    phase_at,
    phases_of,
    sent_first,
    sent_in,
    times_of,
    work_in,
)
from tilewright_costmodels.maestro.tiles import cut_tiles, find_states
from tilewright_costmodels.maestro.work import FILTER, INPUT, L1, L2, NONE, ONCE, OUTPUT, Group, Hardware, Result, Work


@kernel_part
def _fail(number: int, sub: int, code: int, where: int, about: int, value: int, work: Work) -> None:
    """The first fault of a sub-problem is kept; `where`: the level it is of."""
    fault = work.faults[number, sub]
    if not fault[0]:
        fault[0], fault[1], fault[2], fault[3] = code, where, about, value


@kernel_part
def _compute(number: int, sub: int, edges: int, at_work: int, critical: int, work: Work) -> tuple[int, float]:
    """Cycles that a step computes, and the sub-clusters of the innermost level at work in one."""
    lanes = work.levels[number].lanes
    if lanes:
        return -(-critical // lanes), float(at_work)
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
def _delay(hardware: Hardware, elements: Any) -> Any:
    """Cycles of a transfer; of a number of elements or a row of them."""
    return hardware.noc_latency - (0 - elements) // hardware.noc_bandwidth - 1


@kernel_part
def _group(letters: Letters, hardware: Hardware, number: int, sub: int, edges: int, steady: int, work: Work) -> Group:
    """What is done in phases with such edges."""
    at_work, partial, critical, macs, egress = work_in(letters, number, sub, edges, steady, work)
    compute, active = 0, 0.0
    if critical > 0:
        compute, active = _compute(number, sub, edges, at_work, critical, work)
    return Group(at_work, partial, critical, macs, egress, _delay(hardware, egress), compute, active)


@kernel_part
def _load(hardware: Hardware, sent: int, filtered: int, egress: int, work: Work) -> None:
    """Add what a step of the outermost level, up to the first that does work, asks of L2. A whole tile of L2 is loaded and stored
    behind each step, half of it hidden."""
    need, bandwidth = work.required[L2], hardware.offchip_bandwidth
    need[INPUT] += 2 * sent
    need[FILTER] += 2 * filtered
    need[OUTPUT] = 2 * egress
    work.sums[0].offchip = max((need[INPUT] + need[FILTER]) // bandwidth // 2, need[OUTPUT] // bandwidth // 2)


@kernel_part
def _note(phase: int, occurrences: int, sent: int, filtered: int, arriving: int, group: Group, work: Work) -> None:
    """What is done in a phase, for one occurrence."""
    step = work.steps[phase]
    step.occurrences, step.input_sent, step.filter_sent, step.egress = occurrences, sent, filtered, group.egress
    step.macs, step.arriving, step.leaving, step.compute = group.macs, arriving, group.leaving, group.compute


@kernel_part
def _first_step(letters: Letters, hardware: Hardware, number: int, sub: int, group: Group, work: Work) -> None:
    """Add the very first step."""
    sums = work.sums[0]
    sent = sent_first(letters, INPUT, number, sub, group, work)
    filtered = sent_first(letters, FILTER, number, sub, group, work)
    arriving = _delay(hardware, sent + filtered)
    _note(NONE, ONCE, sent, filtered, arriving, group, work)
    sums.egress += group.egress
    sums.all_macs += group.macs
    if number == 0:
        _load(hardware, sent, filtered, group.egress, work)
    if group.critical > 0:
        cycles = group.compute + arriving
        sums.occurrences += 1
        sums.input_sent += sent
        sums.filter_sent += filtered
        sums.macs += group.macs
        sums.cycles += max(cycles, sums.offchip) if number == 0 else cycles
        sums.active += group.active


@kernel_part
def _add(
    letters: Letters,
    hardware: Hardware,
    number: int,
    sub: int,
    group: Group,
    times: Ints,
    phase: int,
    moved: int,
    work: Work,
) -> None:
    """Add all other steps of a group: how often each occurs, by the letter that moved last, [L].

    `phase`: its number, and the letter that moved, if it is one alone.
    """
    sums = work.sums[0]
    sent = sent_in(letters, INPUT, number, sub, group, work)
    filtered = sent_in(letters, FILTER, number, sub, group, work)
    arriving, steps = _delay(hardware, sent + filtered), total(times)
    sums.egress += steps * group.egress
    sums.all_macs += steps * group.macs
    if phase:
        one = sent[moved], filtered[moved]
        _note(phase, steps, one[0], one[1], arriving[moved], group, work)
        if number == 0 and not sums.occurrences:
            _load(hardware, one[0], one[1], group.egress, work)
    if group.critical > 0:
        cycles = np.maximum(arriving, max(group.compute, group.leaving))
        cycles = np.maximum(cycles, sums.offchip) if number == 0 else cycles
        sums.occurrences += steps
        sums.input_sent += total(times * sent)
        sums.filter_sent += total(times * filtered)
        sums.macs += steps * group.macs
        sums.cycles += total(times * cycles)
        sums.active += steps * group.active


@kernel_part
def _limit(number: int, sub: int, group: Group, most: Ints, work: Work) -> None:
    """Phases that work and occur too often are a fault; `most`: how often the commonest does, by the letter that moved last, [L]."""
    if group.critical > 0 and np.any(most >= at.COUNTER_LIMIT):
        for place in range(work.states[number, sub].movers):
            often = most[work.movers[number, sub, place].letter]
            if often >= at.COUNTER_LIMIT:
                _fail(number, sub, at.OVERFLOW, number, NONE, often, work)


@kernel_part
def _forget(number: int, work: Work) -> None:
    """Nothing is added up yet of a level."""
    sums = work.sums[0]
    sums.occurrences = sums.input_sent = sums.filter_sent = sums.macs = sums.cycles = sums.all_macs = sums.egress = 0
    sums.active = 0.0
    if number == 0:
        work.required[L2, :] = 0


@kernel_part
def _total(letters: Letters, hardware: Hardware, number: int, sub: int, work: Work) -> bool:
    """What all steps of a level on a sub-problem come to. They are taken together as far as that changes nothing, which it
    does where the first of the outermost level does no work: then this is not done."""
    state, pair, edges = work.states[number, sub], in_pair(number, sub, work), NONE
    while True:  # all subsets of the edges, the empty one first
        steady = NONE
        while True:
            group = _group(letters, hardware, number, sub, edges, steady, work)
            if not edges | steady:
                if number == 0 and group.critical <= 0:
                    return False
                _first_step(letters, hardware, number, sub, group, work)
            if state.movers:
                times, most = times_of(number, sub, edges, steady, pair & ~edges & ~steady, work)
                _add(letters, hardware, number, sub, group, times, NONE, NOWHERE, work)
                _limit(number, sub, group, most, work)
            steady = steady - (pair & ~edges) & pair & ~edges
            if not steady:
                break
        edges = edges - state.edges & state.edges
        if not edges:
            return True


@kernel_part
def _total_one_by_one(letters: Letters, hardware: Hardware, number: int, sub: int, work: Work) -> int:
    """The same in MAESTRO's order, noted in `work.steps`. Gives how many phases there are."""
    phases = phases_of(number, sub, work)
    for phase in range(phases):
        edges, steady, moved, occurrences = phase_at(phase, phases, number, sub, work)
        group = _group(letters, hardware, number, sub, edges, steady, work)
        if moved == NOWHERE:
            _first_step(letters, hardware, number, sub, group, work)
            continue
        times = np.where(among(1 << moved), alike(occurrences), 0)
        _add(letters, hardware, number, sub, group, times, phase, moved, work)
        _limit(number, sub, group, times, work)
    return phases


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
            sub = work.queue[number, 1 + index]
            state, sums = work.states[number, sub], work.sums[0]
            _forget(number, work)
            if (explain and number == 0) or not _total(letters, hardware, number, sub, work):
                work.phases[0] = _total_one_by_one(letters, hardware, number, sub, work)
            state.met, state.cycles = 0, sums.cycles
            state.active = sums.active / sums.occurrences if sums.occurrences else 0.0
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
        limit: those whose counts may be larger are left out.
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
        if not fault[0] and cut_tiles(letters, hardware, table, work) > limit:
            fault[0] = at.INEXACT
        if not fault[0]:
            _count_all(letters, hardware, table, explain, work)
            if not fault[0]:
                _cost(hardware, n, result, work)
        result.code[n] = fault[0]
