"""Lower bounds on the cost of all completions of a state.

State 58 of the worked example in docs/optimal.md has no loop left, so its bound is the cost of its completion:

    operations            64 * 3 = 192 pJ
    committed             640
    DRAM                  (16 + 32 + 16 + 16) * 100 = 8000     words of A, B and Z read, and of Z updated
    first-read credit     -(64 + 16 * 100) = -1664

192 + 640 + 8000 - 1664 = 7168. For other states, no term is above that of any completion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import inlined, kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.multicast import (
    PartialBound,
    contention_bound,
    copies_split_bound,
    max_multicast_factor,
    max_output_copies,
    max_unrolled,
    multicast_split_bound,
    objective,
    product,
    usable_fanout,
    words_delivered,
)
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    COMMITTED,
    CYCLES,
    FIRST_READ_CREDIT,
    FIRST_TENSOR,
    LEAK,
    MIN_DEFERRED,
    MIN_DEMAND,
    PER_TENSOR,
    SHAPE_CODE,
    extent,
    max_spared,
    status_of,
    tile_count,
    total_tile_count,
    union_words,
)
from tilewright_mappers.optimal.kernel.structures import (
    SLIDING,
    STATIONARY,
    OuterContext,
    ProblemArrays,
    SearchContext,
    StateRows,
)

MIN_CREDIT = 1e-3
"""Minimum share of the first-read credit in the energy for which the bound splits by copies."""


class TileCounts(NamedTuple):
    """Tiles of the loops that are still open, as one tensor sees them. The kernel makes it."""

    relevant: float
    """Tiles along relevant dimensions without a window."""
    irrelevant: float
    windowed: float
    """Tiles along dimensions of windows."""
    refetch: float
    """Factor *i* of Lemma 6: how often a tile is fetched again.

    It counts all irrelevant dimensions. For a stationary tensor, it counts those that move another stationary one
    (Lemma 11)."""


@inlined
def bound(context: SearchContext, outer: OuterContext, states: StateRows, i: int) -> float:
    """Return a lower bound on the objective; inf if capacity or the cycle limit is exceeded.

    The bound is the minimum over all sets of stationary tensors that one loop can move next (Lemma
    11). Above the cutoff it need not be tight.
    """
    problem, scratch, cutoff = context.problem, context.scratch, context.cutoff
    numbers, integers = states.numbers, states.integers
    dims, stationary, outside = len(problem.sizes), 0, 1.0
    for t in range(len(problem.output)):
        stationary |= 1 << t if status_of(integers, i, t) == STATIONARY and not problem.unmodelled[t] else 0
    result, dearer = _bound(context, outer, states, i, stationary, 0)
    if result > cutoff or problem.ragged or dearer == 0:
        return result
    for d in range(dims):
        outside *= scratch.tiles[d] if _moved_by(problem, stationary, d) else 1.0
    for s in range(len(outer.slot_index)):
        outside /= scratch.usable[s] if outer.slot_index[s] > -2 else 1.0
    least = np.inf if outside > 1.0 else result
    for d in range(dims):
        moved = _moved_by(problem, stationary, d) if scratch.tiles[d] > 1.0 else 0
        for e in range(d):
            moved = 0 if scratch.tiles[e] > 1.0 and _moved_by(problem, stationary, e) == moved else moved
        if moved and least > max(result, numbers[i, BOUND]):
            value = result
            if moved & dearer:
                value, _ = _bound(context, outer, states, i, stationary, moved)
            least = min(least, value)
    return max(result, least) if least < np.inf else result


@kernel_part
def _moved_by(problem: ProblemArrays, stationary: int, d: int) -> int:
    """Return the tensors that a loop over d moves, as bits."""
    result = 0
    for t in range(len(problem.output)):
        result |= stationary & (1 << t) if problem.relevant[t, d] else 0
    return result


@kernel_call
def _bound(
    context: SearchContext, outer: OuterContext, states: StateRows, i: int, stationary: int, moved: int
) -> tuple[float, int]:
    """Return a lower bound if the next loop moves certain tensors; and those it may make dearer.

    Args:
        stationary: stationary tensors, as bits.
        moved: those that are no longer stationary; 0 if all still are.
    """
    problem, costs, scratch = context.problem, context.costs, context.scratch
    numbers, integers = states.numbers, states.integers
    tiles = total_tile_count(context, states, i)
    units, cycles = _compute_cycles(context, outer, states, i, tiles)
    operations, copied = cycles * units, -1
    cycles = max(cycles, outer.compulsory_cycles)
    energy = costs.compute_pj + numbers[i, COMMITTED]
    row, counted, window_multicast, other_multicast, dearer = 0, 0.0, 1.0, 1.0, 0
    for t in range(len(problem.output)):
        if problem.unmodelled[t]:
            continue
        at, status = FIRST_TENSOR + PER_TENSOR * t, status_of(integers, i, t)
        is_stationary = status == STATIONARY and not moved >> t & 1
        relevant, irrelevant, windowed, refetch = _tile_counts(context, t, status, stationary)
        dearer |= (refetch > 1.0) << t if is_stationary else 0
        refetch = 1.0 if is_stationary else refetch
        counts = TileCounts(relevant, irrelevant, windowed, refetch)
        _add_port_words(context, outer, states, i, t, tiles, units, counts)
        # a tensor slides along one window; loops over other windows bring whole tiles
        whole_tiles = windowed * _slides(context, states, i, t, status) if windowed > 1.0 else 1.0
        repetition = max(1.0, whole_tiles * refetch / (units if outer.may_forward[t] else 1.0))
        scratch.base_demand[t] = numbers[i, at + MIN_DEMAND] / (irrelevant * windowed)
        scratch.refetch_factor[t] = whole_tiles * refetch
        scratch.copies[t] = min(irrelevant * windowed, units)
        if problem.output[t] and not problem.windowed_output[t]:
            scratch.copies[t] = min(irrelevant, max_output_copies(context, outer, states, i, t))
        scratch.multicast_factor[t], along_windows, elsewhere = _multicast(context, outer, states, i, t)
        window_multicast, other_multicast = window_multicast * along_windows, other_multicast * elsewhere
        demand, read_again, _ = words_delivered(context, outer, t, units, scratch.multicast_factor[t])
        cycles = max(cycles, demand * _cycles_per_value(context, outer, t))
        if outer.row_weight[t] and is_stationary:
            row += outer.row_weight[t]
            counted += (read_again if problem.output[t] else demand) * (outer.read_pj[t] + outer.enters_pj[t])
            counted += demand * outer.update_pj[t] if problem.output[t] else 0.0
        if problem.output[t]:  # first reads are credited once per copy
            energy -= numbers[i, at + FIRST_READ_CREDIT] * scratch.copies[t]
            copied = t if copied < 0 and not problem.windowed_output[t] else copied
            energy += read_again * outer.read_pj[t] + demand * outer.update_pj[t]
        else:
            energy += demand * outer.read_pj[t]
        compulsory = union_words(context, states, i, t) if outer.has_inner_storage[t] else problem.min_distinct[t]
        counted += outer.counted_pj[t] * compulsory
        deferred = numbers[i, at + MIN_DEFERRED] / (irrelevant * windowed)
        energy += deferred * repetition + outer.compulsory_pj[t] * compulsory
        _add_outermost_words(context, outer, t, demand, read_again, compulsory)
    cycles = _port_cycles(context, outer, cycles)
    leak, code, split_bound = numbers[i, LEAK], integers[i, SHAPE_CODE], 0.0
    if len(outer.outer_pj):
        outer_pj = np.inf
        for k in range(len(outer.outer_pj)):
            outer_pj = min(outer_pj, outer.outer_pj[k, row, code])
        if outer_pj == np.inf:  # no larger tile fits
            return np.inf, 0
        if outer.multicast_tensor >= 0:
            partial = PartialBound(units, energy, counted, cycles, leak)
            split_bound = multicast_split_bound(context, outer, partial, row, code, window_multicast, other_multicast)
        energy += max(0.0, outer_pj - counted)
    result = objective(costs, energy, cycles, leak)
    if copied >= 0 and costs.energy and costs.cycles and not problem.ragged and result <= context.cutoff:
        credit, copies = numbers[i, FIRST_TENSOR + PER_TENSOR * copied + FIRST_READ_CREDIT], scratch.copies[copied]
        if copies > 1.0 and credit * copies > MIN_CREDIT * energy:
            energy_without = energy + credit * copies
            result = copies_split_bound(context, outer, copied, energy_without, cycles, operations, credit, leak)
    if max(result, split_bound) <= context.cutoff:
        for t in range(len(problem.output)):
            # the table of outer transfers already accounts for multicast of these tensors
            if outer.row_weight[t] and status_of(integers, i, t) == STATIONARY and not moved >> t & 1:
                scratch.multicast_factor[t] = 1.0
        result += _contention(context, outer, units, energy, cycles, leak)
    return float(max(result, split_bound)), dearer


@kernel_part
def _compute_cycles(
    context: SearchContext, outer: OuterContext, states: StateRows, i: int, tiles: float
) -> tuple[float, float]:
    """Return the usable sub-clusters, and the cycles of the operations on them (Lemma 11).

    Writes tile counts, usable sub-clusters per slot, and the words so far per port. Clears the words of memories.
    """
    problem, layout, scratch, numbers = context.problem, context.layout, context.scratch, states.numbers
    units, cycles = 1.0, numbers[i, CYCLES]
    for d in range(len(problem.sizes)):
        scratch.tiles[d], scratch.open_tiles[d] = tile_count(context, states, i, d), 1.0
        cycles *= scratch.tiles[d] - 1.0 + numbers[i, layout.last_steps + d] if problem.ragged else scratch.tiles[d]
    for s in range(len(outer.slot_index)):
        if outer.slot_index[s] > -2:
            scratch.usable[s] = usable_fanout(context, outer, states, i, s)
            units *= scratch.usable[s]
            for d in range(len(problem.sizes)):
                if outer.open_trips[s, d]:
                    scratch.open_tiles[d] = scratch.tiles[d]
    units = max_unrolled(context, -1, min(units, tiles))
    for port in range(layout.deferred_words[0] - layout.port):
        scratch.port_words[port] = numbers[i, layout.port + port] / units
    for memory in range(len(scratch.memory_reads)):
        scratch.memory_reads[memory] = scratch.memory_writes[memory] = 0.0
    return units, cycles / units


@kernel_part
def _tile_counts(context: SearchContext, t: int, status: int, stationary: int) -> TileCounts:
    """Return the number of tiles of the outer loops, as a tensor sees them."""
    problem, scratch = context.problem, context.scratch
    relevant = irrelevant = windowed = refetch = 1.0
    for d in range(len(problem.sizes)):
        if not problem.relevant[t, d]:
            irrelevant *= scratch.tiles[d]
            if status != STATIONARY or _moved_by(problem, stationary, d):
                refetch *= scratch.tiles[d]
        elif problem.window_index[t, d] < 0:
            relevant *= scratch.tiles[d]
        else:
            windowed *= scratch.tiles[d]
    return TileCounts(relevant, irrelevant, windowed, refetch)


@kernel_part
def _add_port_words(
    context: SearchContext,
    outer: OuterContext,
    states: StateRows,
    i: int,
    t: int,
    tiles: float,
    units: float,
    counts: TileCounts,
) -> None:
    """Add the deferred words of a tensor to its ports, less the first reads (Lemmas 6 and 11)."""
    relevant, _, windowed, refetch = counts
    problem, layout, scratch, numbers = context.problem, context.layout, context.scratch, states.numbers
    # neighbours may still forward words of windows
    repetition = max(1.0, relevant * refetch / units) if windowed == 1.0 or not outer.may_forward[t] else 0.0
    for p in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
        port, words, credit = layout.port_of[p], numbers[i, p], 0.0
        if problem.output[t]:
            credit = numbers[i, p - layout.deferred_words[t] + layout.first_reads[t]]
        if words == 0.0 and credit == 0.0:
            continue
        words, credit = words / tiles, credit if problem.windowed_output[t] else credit / relevant
        scratch.port_words[port] -= credit if problem.windowed_output[t] else 0.0
        words -= 0.0 if problem.windowed_output[t] else credit
        scratch.port_words[port] += words * (repetition if words > 0.0 else tiles / units)


@inlined
def _multicast(
    context: SearchContext, outer: OuterContext, states: StateRows, i: int, t: int
) -> tuple[float, float, float]:
    """Return the maximum multicast factor of a tensor in all open slots (Lemma 7).

    For the tensor whose factor the table distinguishes, also return the factor along windows of
    that fanout, and the factor in other fanouts; else 1.
    """
    factor = along_windows = elsewhere = 1.0
    for s in range(len(outer.slot_index)):
        if outer.slot_index[s] > -2:
            factor *= max_multicast_factor(context, outer, states, i, t, s, False)
            if t == outer.multicast_tensor and outer.multicast_slots[s]:
                along_windows *= max_multicast_factor(context, outer, states, i, t, s, True)
            elif t == outer.multicast_tensor:
                elsewhere *= max_multicast_factor(context, outer, states, i, t, s, False)
    return max_unrolled(context, t, factor), along_windows, elsewhere


@kernel_part
def _cycles_per_value(context: SearchContext, outer: OuterContext, t: int) -> float:
    """Return the cycles per value that all instances of the next memory deliver (Lemma 11)."""
    scratch, instances = context.scratch, 1.0
    for s in range(len(outer.slot_index)):
        if outer.outside_storage[t, s]:
            instances *= scratch.usable[s]
    scratch.cycles_per_value[t] = outer.cycles_per_value[t] / instances
    return float(scratch.cycles_per_value[t])


@kernel_part
def _add_outermost_words(
    context: SearchContext, outer: OuterContext, t: int, demand: float, read_again: float, compulsory: float
) -> None:
    """Add the words of a tensor that the outermost memory reads or writes (Lemmas 7 and 10)."""
    problem, scratch, memory = context.problem, context.scratch, outer.outermost_memory[t]
    is_next = outer.next_is_outermost[t]
    words = (demand if is_next else compulsory * outer.outermost_delivers[t]) * outer.outermost_words[t]
    if problem.output[t]:
        scratch.memory_reads[memory] += read_again * outer.outermost_words[t] if is_next else 0.0
        scratch.memory_writes[memory] += words
    else:
        scratch.memory_reads[memory] += words
    scratch.other_cycles[t] = words if is_next else 0.0


@kernel_part
def _port_cycles(context: SearchContext, outer: OuterContext, cycles: float) -> float:
    """Return the maximum of `cycles` and the cycles of all ports and outermost memories (Lemma 11).

    Writes the cycles that the outermost memory needs for other tensors than each.
    """
    problem, costs, scratch = context.problem, context.costs, context.scratch
    for port in range(len(costs.bandwidth)):
        cycles = max(cycles, scratch.port_words[port] / costs.bandwidth[port])
    for t in range(len(problem.output)):
        if outer.next_is_outermost[t] and not problem.unmodelled[t]:
            memory, words = outer.outermost_memory[t], scratch.other_cycles[t]
            moved = scratch.memory_writes[memory] if problem.output[t] else scratch.memory_reads[memory]
            bandwidth = outer.write_bandwidth[memory] if problem.output[t] else outer.read_bandwidth[memory]
            if bandwidth == outer.shared_bandwidth[memory]:
                moved = scratch.memory_reads[memory] + scratch.memory_writes[memory]
            scratch.other_cycles[t] = max(0.0, (moved - words) / bandwidth)
    for memory in range(len(scratch.memory_reads)):
        cycles = max(cycles, scratch.memory_reads[memory] / outer.read_bandwidth[memory])
        cycles = max(cycles, scratch.memory_writes[memory] / outer.write_bandwidth[memory])
        moved = scratch.memory_reads[memory] + scratch.memory_writes[memory]
        cycles = max(cycles, moved / outer.shared_bandwidth[memory])
        scratch.memory_reads[memory] = 0.0
    return cycles


@inlined
def _contention(
    context: SearchContext, outer: OuterContext, units: float, energy: float, cycles: float, leak: float
) -> float:
    """Return the contention bound, given lower bounds of energy and cycles (Lemma 12)."""
    costs = context.costs
    if costs.whole_cycles:
        cycles = np.ceil(cycles * (1.0 - 1e-9))
    energy += cycles * leak
    # derivatives of the objective by energy and by cycles
    worth = costs.energy_power * product(costs.energy_power - 1, costs.cycle_power, energy, cycles)
    time = costs.cycle_power * product(costs.energy_power, costs.cycle_power - 1, energy, cycles)
    time += worth * leak
    return float(contention_bound(context, outer, units, cycles, worth, time))


@kernel_part
def _slides(context: SearchContext, states: StateRows, i: int, t: int, status: int) -> float:
    """Return the minimum fraction of tiles that loops over windows bring (Lemma 9)."""
    problem, layout, scratch = context.problem, context.layout, context.scratch
    numbers, integers = states.numbers, states.integers
    dims, least = len(problem.sizes), 1.0
    for d in range(dims):
        r, loops = problem.window_index[t, d], 1.0
        for e in range(dims):
            loops *= scratch.tiles[e] if r >= 0 and problem.window_index[t, e] == r else 1.0
        if r >= 0 and status == SLIDING and r == integers[i, layout.window + t]:
            least = min(least, max(1.0 / loops, 1.0 - max_spared(context, states, i, t)))
        elif r >= 0 and status == STATIONARY and scratch.tiles[d] > 1.0:
            shift, side = (
                extent(context, states, i, d) * problem.coefficient[t, d],
                numbers[i, layout.window_side + r],
            )
            # all steps of the first loop except its first
            steps = 0.5 if scratch.tiles[d] % 2.0 == 0.0 else 2.0 / 3.0
            least = min(least, 1.0 / loops + steps * min(1.0, shift / max(1.0, side)))
    return least
