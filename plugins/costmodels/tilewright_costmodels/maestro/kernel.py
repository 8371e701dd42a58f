"""Kernel of MAESTRO's analysis, one dataflow at a time (docs/maestro.md states the rules).

It is plain Python on arrays of integers, compiled for 64 bits. Interpreted, it serves reading,
debugging, and counts beyond 64 bits (arrays of Python's integers).

No nest is walked. Each directive of a level is in its first step, its steady state or at its edge. Phases of a level
with the same edges are evaluated together, for all dimensions that may move last in SIMD lanes.

A level with the map of 11 in `tiles` and, outside it, another one that makes two whole tiles. Its phases, and how often
each occurs:

    outer map     first     steady     edge of the inner map
    first         1         2          1
    steady        1         2          1

Steady over steady occurs 1 * 2 = 2 times. All phases together are 2 * 4 = 8 steps. They form two groups (`PhaseGroup`):
those in which the inner map is at its edge, and the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.compiled import compiled, kernel_part, load8, product, splat8, total, unpack_bits
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.rules.scratch import fetch
from tilewright_costmodels.maestro import tables as at
from tilewright_costmodels.maestro.phases import (
    clusters_at_work,
    count_phases,
    count_work,
    first_ingress,
    ingress_by_mover,
    inner_subproblems,
    moving_pair,
    occurrences_by_mover,
    phase_at,
)
from tilewright_costmodels.maestro.tables import (
    FILTER,
    INPUT,
    L1,
    L2,
    NONE,
    ONCE,
    OUTPUT,
    AnalysisScratch,
    Hardware,
    PhaseGroup,
    Result,
)
from tilewright_costmodels.maestro.tiles import cut_tiles, find_states
from tilewright_notations.directives.nest import Nests, Scratch, write_directives
from tilewright_notations.directives.table import NOWHERE, Letters, Table, fill_in


@kernel_part
def _record_error(
    level: int, sub: int, code: int, where: int, about: int, value: int, scratch: AnalysisScratch
) -> None:
    """Record the first error of a sub-problem. `where`: level of the error."""
    error = scratch.errors[level, sub]
    if not error[0]:
        error[0], error[1], error[2], error[3] = code, where, about, value


@kernel_part
def _compute_delay(
    level: int, sub: int, edges: int, at_work: int, critical_macs: int, scratch: AnalysisScratch
) -> tuple[int, float]:
    """Return the cycles that a step computes, and the sub-clusters of the innermost level at work in it."""
    lanes = scratch.levels[level].lanes
    if lanes:
        return -(-critical_macs // lanes), float(at_work)
    last, others = inner_subproblems(level, sub, edges, at_work, scratch)
    cycles, active = max(0, scratch.states[level + 1, last].cycles), scratch.states[level + 1, last].active
    if at_work > 1:  # the slower one counts
        cycles = max(cycles, scratch.states[level + 1, others].cycles)
        active += (at_work - 1) * scratch.states[level + 1, others].active
    for inner in (last, others):
        error = scratch.errors[level + 1, inner]
        if error[0] and (inner == last or at_work > 1):
            _record_error(level, sub, error[0], error[1], error[2], error[3], scratch)
    if level == 0 and cycles <= 0:
        _record_error(level, sub, at.NO_WORK_INSIDE, level, NONE, NONE, scratch)
    return cycles, active


@kernel_part
def _transfer_delay(hardware: Hardware, elements: Any) -> Any:
    """Return the cycles of transferring elements, or a lane vector of them."""
    return hardware.noc_latency - (0 - elements) // hardware.noc_bandwidth - 1


@kernel_part
def _make_group(
    dimensions: Letters, hardware: Hardware, level: int, sub: int, edges: int, steady: int, scratch: AnalysisScratch
) -> PhaseGroup:
    """Return the work of the phases with these edges."""
    at_work, partial, critical_macs, macs, egress = count_work(dimensions, level, sub, edges, steady, scratch)
    compute, active = 0, 0.0
    if critical_macs > 0:
        compute, active = _compute_delay(level, sub, edges, at_work, critical_macs, scratch)
    return PhaseGroup(at_work, partial, critical_macs, macs, egress, _transfer_delay(hardware, egress), compute, active)


@kernel_part
def _require_l2(hardware: Hardware, input_sent: int, filter_sent: int, egress: int, scratch: AnalysisScratch) -> None:
    """Add the buffer that a step of the outermost level requires in L2, up to the first step that computes.

    A whole tile of L2 is loaded and stored behind each step, half of it hidden.
    """
    required, bandwidth = scratch.required[L2], hardware.offchip_bandwidth
    required[INPUT] += 2 * input_sent
    required[FILTER] += 2 * filter_sent
    required[OUTPUT] = 2 * egress
    scratch.sums[0].offchip = max(
        (required[INPUT] + required[FILTER]) // bandwidth // 2, required[OUTPUT] // bandwidth // 2
    )


@kernel_part
def _write_step(
    phase: int,
    occurrences: int,
    input_sent: int,
    filter_sent: int,
    ingress_delay: int,
    group: PhaseGroup,
    scratch: AnalysisScratch,
) -> None:
    """Write one phase, for one occurrence."""
    step = scratch.steps[phase]
    step.occurrences = occurrences
    step.input_sent = input_sent
    step.filter_sent = filter_sent
    step.egress = group.egress
    step.macs = group.macs
    step.ingress_delay = ingress_delay
    step.egress_delay = group.egress_delay
    step.compute_delay = group.compute_delay


@kernel_part
def _add_first_step(
    dimensions: Letters, hardware: Hardware, level: int, sub: int, group: PhaseGroup, scratch: AnalysisScratch
) -> None:
    """Add the very first step."""
    sums = scratch.sums[0]
    input_sent = first_ingress(dimensions, INPUT, level, sub, group, scratch)
    filter_sent = first_ingress(dimensions, FILTER, level, sub, group, scratch)
    ingress_delay = _transfer_delay(hardware, input_sent + filter_sent)
    _write_step(NONE, ONCE, input_sent, filter_sent, ingress_delay, group, scratch)
    sums.egress += group.egress
    sums.all_macs += group.macs
    if level == 0:
        _require_l2(hardware, input_sent, filter_sent, group.egress, scratch)
    if group.critical_macs > 0:
        cycles = group.compute_delay + ingress_delay
        sums.occurrences += 1
        sums.input_sent += input_sent
        sums.filter_sent += filter_sent
        sums.macs += group.macs
        sums.cycles += max(cycles, sums.offchip) if level == 0 else cycles
        sums.active += group.active_clusters


@kernel_part
def _add_steps(
    dimensions: Letters,
    hardware: Hardware,
    level: int,
    sub: int,
    group: PhaseGroup,
    times: Ints,
    phase: int,
    moved: int,
    scratch: AnalysisScratch,
) -> None:
    """Add the other steps of a group.

    Args:
        times: occurrences, by the dimension that moved last, [L].
        phase: index of the phase if it is evaluated alone, else 0.
        moved: the dimension that moved, in that case.
    """
    sums = scratch.sums[0]
    input_sent = ingress_by_mover(dimensions, INPUT, level, sub, group, scratch)
    filter_sent = ingress_by_mover(dimensions, FILTER, level, sub, group, scratch)
    ingress_delay, steps = _transfer_delay(hardware, input_sent + filter_sent), total(times)
    sums.egress += steps * group.egress
    sums.all_macs += steps * group.macs
    if phase:
        one = input_sent[moved], filter_sent[moved]
        _write_step(phase, steps, one[0], one[1], ingress_delay[moved], group, scratch)
        if level == 0 and not sums.occurrences:
            _require_l2(hardware, one[0], one[1], group.egress, scratch)
    if group.critical_macs > 0:
        cycles = np.maximum(ingress_delay, max(group.compute_delay, group.egress_delay))
        cycles = np.maximum(cycles, sums.offchip) if level == 0 else cycles
        sums.occurrences += steps
        sums.input_sent += total(times * input_sent)
        sums.filter_sent += total(times * filter_sent)
        sums.macs += steps * group.macs
        sums.cycles += total(times * cycles)
        sums.active += steps * group.active_clusters


@kernel_part
def _check_counters(level: int, sub: int, group: PhaseGroup, commonest: Ints, scratch: AnalysisScratch) -> None:
    """Record an error for phases that compute and occur too often.

    Args:
        commonest: occurrences of the most frequent phase, by the dimension that moved last, [L].
    """
    if group.critical_macs > 0 and np.any(commonest >= at.COUNTER_LIMIT):
        for index in range(scratch.states[level, sub].movers):
            occurrences = commonest[scratch.movers[level, sub, index].dimension]
            if occurrences >= at.COUNTER_LIMIT:
                _record_error(level, sub, at.OVERFLOW, level, NONE, occurrences, scratch)


@kernel_part
def _clear_sums(level: int, scratch: AnalysisScratch) -> None:
    """Set the sums of a level to zero."""
    sums = scratch.sums[0]
    sums.occurrences = sums.input_sent = sums.filter_sent = sums.macs = sums.cycles = sums.all_macs = sums.egress = 0
    sums.active = 0.0
    if level == 0:
        scratch.required[L2, :] = 0


@kernel_part
def _add_grouped_phases(
    dimensions: Letters, hardware: Hardware, level: int, sub: int, scratch: AnalysisScratch
) -> bool:
    """Add all steps of a level in a sub-problem, in groups. Return whether that was possible.

    It is impossible if the first step of the outermost level does no work, because later steps then
    add to the requirement.
    """
    state, pair, edges = scratch.states[level, sub], moving_pair(level, sub, scratch), NONE
    while True:  # all subsets of the edges, the empty one first
        steady = NONE
        while True:
            group = _make_group(dimensions, hardware, level, sub, edges, steady, scratch)
            if not edges | steady:
                if level == 0 and group.critical_macs <= 0:
                    return False
                _add_first_step(dimensions, hardware, level, sub, group, scratch)
            if state.movers:
                times, commonest = occurrences_by_mover(level, sub, edges, steady, pair & ~edges & ~steady, scratch)
                _add_steps(dimensions, hardware, level, sub, group, times, NONE, NOWHERE, scratch)
                _check_counters(level, sub, group, commonest, scratch)
            steady = steady - (pair & ~edges) & pair & ~edges
            if not steady:
                break
        edges = edges - state.edges & state.edges
        if not edges:
            return True


@kernel_part
def _add_phases_in_order(
    dimensions: Letters, hardware: Hardware, level: int, sub: int, scratch: AnalysisScratch
) -> int:
    """Add all steps in MAESTRO's order, and write them to `scratch.steps`. Return the number of phases."""
    phases = count_phases(level, sub, scratch)
    for phase in range(phases):
        edges, steady, moved, occurrences = phase_at(phase, phases, level, sub, scratch)
        group = _make_group(dimensions, hardware, level, sub, edges, steady, scratch)
        if moved == NOWHERE:
            _add_first_step(dimensions, hardware, level, sub, group, scratch)
            continue
        times = np.where(unpack_bits(1 << moved), splat8(occurrences), 0)
        _add_steps(dimensions, hardware, level, sub, group, times, phase, moved, scratch)
        _check_counters(level, sub, group, times, scratch)
    return phases


@kernel_part
def _enqueue(level: int, sub: int, scratch: AnalysisScratch) -> None:
    """Append a sub-problem to its level's queue, once."""
    if not scratch.states[level, sub].queued:
        scratch.states[level, sub].queued = 1
        scratch.queue[level, 0] += 1
        scratch.queue[level, scratch.queue[level, 0]] = sub


@kernel_part
def _enqueue_all(dimensions: Letters, order: Ints, levels: int, scratch: AnalysisScratch) -> None:
    """Enqueue the sub-problems of all levels, and write their states."""
    for level in range(levels):
        scratch.queue[level, 0] = 0
    _enqueue(NONE, NONE, scratch)
    for level in range(levels):
        for index in range(scratch.queue[level, 0]):
            sub = scratch.queue[level, 1 + index]
            find_states(dimensions, order[level], level, sub, scratch)
            edges, present = NONE, scratch.states[level, sub].edges
            while level + 1 < levels:
                at_work, _, _ = clusters_at_work(level, sub, edges, scratch)
                for inner in inner_subproblems(level, sub, edges, at_work, scratch):
                    _enqueue(level + 1, inner, scratch)
                edges = edges - present & present
                if not edges:
                    break


@kernel_part
def _write_counts(dimensions: Letters, hardware: Hardware, innermost: int, scratch: AnalysisScratch) -> None:
    """Write counts and requirements, from the sums of the outermost level."""
    counts, sums, held = scratch.counts, scratch.sums[0], hardware.held
    for tensor, sent in ((INPUT, sums.input_sent), (FILTER, sums.filter_sent)):
        counts[L2, tensor, at.READS], counts[L2, tensor, at.FILLS] = sent, held[tensor]
        counts[L1, tensor, at.READS], counts[L1, tensor, at.FILLS] = sums.macs, sent
    counts[L2, OUTPUT, at.READS], counts[L2, OUTPUT, at.UPDATES] = held[OUTPUT], sums.egress
    counts[L1, OUTPUT, at.READS] = counts[L1, OUTPUT, at.UPDATES] = sums.all_macs
    for tensor in range(3):
        elements = np.where(unpack_bits(dimensions.tensors[tensor]), load8(scratch.tiles[innermost].full), 1)
        scratch.required[L1, tensor] = 2 * product(elements)


@kernel_part
def _write_costs(hardware: Hardware, n: int, result: Result, scratch: AnalysisScratch) -> None:
    """Write energy and cycles, if the memories hold the requirement."""
    for memory in range(len(hardware.capacity)):
        required = 0
        for info in range(2):
            for tensor in range(3):
                required += scratch.required[info, tensor] if hardware.memory_index[info, tensor] == memory else 0
        if required > hardware.capacity[memory]:
            return
    energy = scratch.counts[L1, INPUT, at.READS] * hardware.energy_per_operation_pj
    for info in range(2):
        for tensor in range(3):
            for action in range(3):
                energy += scratch.counts[info, tensor, action] * hardware.energies[info, tensor, action]
    result.energy_pj[n], result.cycles[n] = energy, scratch.states[0, 0].cycles


@kernel_part
def _analyse_table(
    dimensions: Letters, hardware: Hardware, table: Table, explain: bool, scratch: AnalysisScratch
) -> None:
    """Analyse complete directives whose tiles are cut."""
    levels = table.levels[0]
    _enqueue_all(dimensions, table.order, levels, scratch)
    for level in range(levels - 1, -1, -1):
        for index in range(scratch.queue[level, 0]):
            sub = scratch.queue[level, 1 + index]
            state, sums = scratch.states[level, sub], scratch.sums[0]
            _clear_sums(level, scratch)
            if (explain and level == 0) or not _add_grouped_phases(dimensions, hardware, level, sub, scratch):
                scratch.phases[0] = _add_phases_in_order(dimensions, hardware, level, sub, scratch)
            state.queued, state.cycles = 0, sums.cycles
            state.active = sums.active / sums.occurrences if sums.occurrences else 0.0
    if not scratch.sums[0].occurrences:
        _record_error(NONE, NONE, at.IDLE, NONE, NONE, NONE, scratch)
    _write_counts(dimensions, hardware, levels - 1, scratch)


@compiled
def analyse_all(
    dimensions: Letters,
    hardware: Hardware,
    nests: Nests,
    nest_scratch: Scratch,
    table: Table,
    explain: bool,
    max_count: float,
    result: Result,
    scratch: AnalysisScratch,
) -> None:
    """Write MAESTRO's results for mappings, by way of their directives.

    Args:
        nests: the mappings. Without mappings, the complete directives in `table` are analysed.
        explain: also write the phases of the last mapping.
        max_count: mappings with possibly larger counts are skipped, with code BEYOND_INT64.
    """
    for n in range(len(result.code)):
        error = scratch.errors[0, 0]
        error[0] = at.FINE
        if len(nests.legal):
            fetch(nests.trips, n + 8)
            error[0] = at.UNTRANSLATED
            if nests.legal[n]:
                write_directives(dimensions, nests, n, table, nest_scratch)
                if not table.fault[0]:
                    fill_in(dimensions, table)
                    error[0] = at.FINE
        if not error[0] and cut_tiles(dimensions, hardware, table, scratch) > max_count:
            error[0] = at.BEYOND_INT64
        if not error[0]:
            _analyse_table(dimensions, hardware, table, explain, scratch)
            if not error[0]:
                _write_costs(hardware, n, result, scratch)
        result.code[n] = error[0]
