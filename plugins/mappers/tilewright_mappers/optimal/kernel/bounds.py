"""Lower bounds on the cost of all completions of a state."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.multicast import (
    contention_bound,
    max_multicast_factor,
    multicast_split_bound,
    objective,
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
    TILE_EQUIVALENTS,
    extent,
    status_of,
    tile_count,
    total_tile_count,
    union_words,
)
from tilewright_mappers.optimal.kernel.structures import (
    SLIDING,
    STATIONARY,
    CostFunction,
    OuterContext,
    ProblemArrays,
    SearchScratch,
    StateLayout,
)


@kernel_call
def bound(
    problem: ProblemArrays,
    layout: StateLayout,
    outer: OuterContext,
    costs: CostFunction,
    cutoff: float,
    numbers: Floats,
    integers: Ints,
    i: int,
    scratch: SearchScratch,
) -> float:
    """Return a lower bound on the objective; inf if capacity or the cycle limit is exceeded.

    The bound is the minimum over all sets of stationary tensors that one loop can move next (Lemma
    11). Above the cutoff it need not be tight.
    """
    dims, stationary, outside = len(problem.sizes), 0, 1.0
    for t in range(len(problem.output)):
        stationary |= 1 << t if status_of(integers, i, t) == STATIONARY and not problem.unmodelled[t] else 0
    result, dearer = _bound(problem, layout, outer, costs, cutoff, numbers, integers, i, stationary, 0, scratch)
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
                value, _ = _bound(
                    problem, layout, outer, costs, cutoff, numbers, integers, i, stationary, moved, scratch
                )
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
    problem: ProblemArrays,
    layout: StateLayout,
    outer: OuterContext,
    costs: CostFunction,
    cutoff: float,
    numbers: Floats,
    integers: Ints,
    i: int,
    stationary: int,
    moved: int,
    scratch: SearchScratch,
) -> tuple[float, int]:
    """Return a lower bound if the next loop moves certain tensors; and those it may make dearer.

    Args:
        stationary: stationary tensors, as bits.
        moved: those that are no longer stationary; 0 if all still are.
    """
    dims, tensors, ports = len(problem.sizes), len(problem.output), layout.deferred_words[0] - layout.port
    tiles, outside = total_tile_count(problem, layout, integers, i), 1.0
    cycles = numbers[i, CYCLES]
    for d in range(dims):
        scratch.tiles[d] = tile_count(problem, layout, integers, i, d)
        cycles *= scratch.tiles[d] - 1.0 + numbers[i, layout.last_steps + d] if problem.ragged else scratch.tiles[d]
    for s in range(len(outer.slot_index)):
        if outer.slot_index[s] > -2:
            scratch.usable[s] = usable_fanout(problem, layout, outer, integers, i, s, scratch)
            outside *= scratch.usable[s]
    outside = min(outside, tiles)
    cycles /= outside
    for port in range(ports):
        scratch.port_words[port] = numbers[i, layout.port + port] / outside
    energy = costs.compute_pj + numbers[i, COMMITTED]
    row, counted, window_multicast, other_multicast, dearer = 0, 0.0, 1.0, 1.0, 0
    for memory in range(len(scratch.memory_reads)):
        scratch.memory_reads[memory] = scratch.memory_writes[memory] = 0.0
    for t in range(tensors):
        if problem.unmodelled[t]:
            continue
        at, status = FIRST_TENSOR + PER_TENSOR * t, status_of(integers, i, t)
        is_stationary = status == STATIONARY and not moved >> t & 1
        moving = other = windows = refetch = 1.0
        for d in range(dims):
            if not problem.relevant[t, d]:
                other *= scratch.tiles[d]
                if status != STATIONARY or _moved_by(problem, stationary, d):
                    refetch *= scratch.tiles[d]
            elif problem.window_index[t, d] < 0:
                moving *= scratch.tiles[d]
            else:
                windows *= scratch.tiles[d]
        dearer |= (refetch > 1.0) << t if is_stationary else 0
        refetch = 1.0 if is_stationary else refetch
        # neighbours may still forward words of windows
        port_repetition = max(1.0, moving * refetch / outside) if windows == 1.0 or not outer.may_forward[t] else 0.0
        for p in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
            port, words, credit = layout.port_of[p], numbers[i, p], 0.0
            if problem.output[t]:
                credit = numbers[i, p - layout.deferred_words[t] + layout.first_reads[t]]
            if words == 0.0 and credit == 0.0:
                continue
            words, credit = words / tiles, credit if problem.windowed_output[t] else credit / moving
            scratch.port_words[port] -= credit if problem.windowed_output[t] else 0.0
            words -= 0.0 if problem.windowed_output[t] else credit
            scratch.port_words[port] += words * (port_repetition if words > 0.0 else tiles / outside)
        # a tensor slides along one window; loops over other windows bring whole tiles
        whole_tiles = (
            windows * _slides(problem, layout, numbers, integers, i, t, status, scratch) if windows > 1.0 else 1.0
        )
        multicast_factor = 1.0
        for s in range(len(outer.slot_index)):  # multicast in open slots (Lemma 7)
            if outer.slot_index[s] > -2:
                multicast_factor *= max_multicast_factor(problem, layout, outer, integers, i, t, s, False, scratch)
                if t == outer.multicast_tensor and outer.multicast_slots[s]:
                    window_multicast *= max_multicast_factor(problem, layout, outer, integers, i, t, s, True, scratch)
                elif t == outer.multicast_tensor:
                    other_multicast *= max_multicast_factor(problem, layout, outer, integers, i, t, s, False, scratch)
        scratch.base_demand[t], scratch.refetch_factor[t] = (
            numbers[i, at + MIN_DEMAND] / (other * windows),
            whole_tiles * refetch,
        )
        scratch.multicast_factor[t], scratch.copies[t] = multicast_factor, min(other * windows, outside)
        demand, read_again, _ = words_delivered(problem, outer, t, outside, multicast_factor, scratch)
        instances = 1.0
        for s in range(len(outer.slot_index)):
            if outer.outside_storage[t, s]:
                instances *= scratch.usable[s]
        scratch.cycles_per_value[t] = outer.cycles_per_value[t] / instances
        cycles = max(cycles, demand * scratch.cycles_per_value[t])
        if outer.row_weight[t] and is_stationary:
            row += outer.row_weight[t]
            counted += (read_again if problem.output[t] else demand) * (outer.read_pj[t] + outer.enters_pj[t])
            counted += demand * outer.update_pj[t] if problem.output[t] else 0.0
        if problem.output[t]:  # first reads are credited once per copy
            energy -= numbers[i, at + FIRST_READ_CREDIT] * scratch.copies[t]
            scratch.memory_reads[outer.outermost_memory[t]] += (
                read_again * outer.outermost_words[t] if outer.next_is_outermost[t] else 0.0
            )
            energy += read_again * outer.read_pj[t] + demand * outer.update_pj[t]
        else:
            energy += demand * outer.read_pj[t]
        repetition = max(1.0, whole_tiles * refetch / (outside if outer.may_forward[t] else 1.0))
        compulsory = (
            union_words(problem, layout, integers, i, t) if outer.has_inner_storage[t] else problem.min_distinct[t]
        )
        counted += outer.counted_pj[t] * compulsory
        energy += numbers[i, at + MIN_DEFERRED] / (other * windows) * repetition + outer.compulsory_pj[t] * compulsory
        words = demand if outer.next_is_outermost[t] else compulsory * outer.outermost_delivers[t]
        words *= outer.outermost_words[t]
        if problem.output[t]:
            scratch.memory_writes[outer.outermost_memory[t]] += words
        else:
            scratch.memory_reads[outer.outermost_memory[t]] += words
        scratch.other_cycles[t] = words if outer.next_is_outermost[t] else 0.0
    for port in range(ports):
        cycles = max(cycles, scratch.port_words[port] / costs.bandwidth[port])
    for t in range(tensors):
        if outer.next_is_outermost[t] and not problem.unmodelled[t]:  # the outermost memory serves other tensors, too
            memory = outer.outermost_memory[t]
            if problem.output[t]:
                scratch.other_cycles[t] = max(
                    0.0, (scratch.memory_writes[memory] - scratch.other_cycles[t]) / outer.write_bandwidth[memory]
                )
            else:
                scratch.other_cycles[t] = max(
                    0.0, (scratch.memory_reads[memory] - scratch.other_cycles[t]) / outer.read_bandwidth[memory]
                )
    for memory in range(len(scratch.memory_reads)):
        cycles = max(cycles, scratch.memory_reads[memory] / outer.read_bandwidth[memory])
        cycles = max(cycles, scratch.memory_writes[memory] / outer.write_bandwidth[memory])
        scratch.memory_reads[memory] = 0.0
    split_bound = 0.0
    if len(outer.outer_pj):
        outer_pj = np.inf
        for k in range(len(outer.outer_pj)):
            outer_pj = min(outer_pj, outer.outer_pj[k, row, integers[i, SHAPE_CODE]])
        if outer_pj == np.inf:  # no larger tile fits
            return np.inf, 0
        if outer.multicast_tensor >= 0:
            split_bound = multicast_split_bound(
                problem,
                outer,
                costs,
                row,
                integers[i, SHAPE_CODE],
                outside,
                energy,
                counted,
                cycles,
                numbers[i, LEAK],
                window_multicast,
                other_multicast,
                scratch,
            )
        energy += max(0.0, outer_pj - counted)
    result = objective(costs, energy, cycles, numbers[i, LEAK])
    if costs.whole_cycles:
        cycles = np.ceil(cycles * (1.0 - 1e-9))
    energy += cycles * numbers[i, LEAK]
    if max(result, split_bound) <= cutoff:
        for t in range(tensors):
            if (
                outer.row_weight[t] and status_of(integers, i, t) == STATIONARY and not moved >> t & 1
            ):  # the table already accounts for multicast of these tensors
                scratch.multicast_factor[t] = 1.0
        # derivatives of the objective by energy and by cycles
        worth = cycles if costs.edp else (1.0 if costs.energy else 0.0)
        time = energy if costs.edp else (0.0 if costs.energy else 1.0)
        time += worth * numbers[i, LEAK]
        result += contention_bound(problem, outer, outside, cycles, worth, time, scratch)
    return float(max(result, split_bound)), dearer


@kernel_part
def _slides(
    problem: ProblemArrays,
    layout: StateLayout,
    numbers: Floats,
    integers: Ints,
    i: int,
    t: int,
    status: int,
    scratch: SearchScratch,
) -> float:
    """Return the minimum fraction of tiles that loops over windows bring (Lemma 9)."""
    dims, least = len(problem.sizes), 1.0
    for d in range(dims):
        r, loops = problem.window_index[t, d], 1.0
        for e in range(dims):
            loops *= scratch.tiles[e] if r >= 0 and problem.window_index[t, e] == r else 1.0
        if r >= 0 and status == SLIDING and r == integers[i, layout.window + t]:
            least = min(
                least, max(1.0 / loops, 1.0 - 1.0 / numbers[i, FIRST_TENSOR + PER_TENSOR * t + TILE_EQUIVALENTS])
            )
        elif r >= 0 and status == STATIONARY and scratch.tiles[d] > 1.0:
            shift, side = (
                extent(problem, layout, integers, i, d) * problem.coefficient[t, d],
                numbers[i, layout.window_side + r],
            )
            # all steps of the first loop except its first
            steps = 0.5 if scratch.tiles[d] % 2.0 == 0.0 else 2.0 / 3.0
            least = min(least, 1.0 / loops + steps * min(1.0, shift / max(1.0, side)))
    return least
