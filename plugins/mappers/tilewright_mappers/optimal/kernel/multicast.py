"""Multicast by open unrollings: bounds per tensor, and over all tensors (Lemmas 7 and 12).

Two open slots can still be unrolled over N, which is irrelevant to A; N has 8 tiles left.

    slot    sub-clusters that are unused    largest divisor of 8 that fits
    0       6                               4
    1       3                               2

So one delivery of a word of A serves at most min(4 * 2, 8) = 8 sub-clusters (`max_unrolled`, Lemma 7). A demand of
64 words then needs at least 64 / 8 = 8 deliveries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.state import USED, subclusters_along
from tilewright_mappers.optimal.kernel.structures import (
    CostFunction,
    OuterContext,
    ProblemArrays,
    SearchContext,
    StateRows,
)
from tilewright_mappers.optimal.kernel.subclusters import max_equal_tiles

MAX_EXACT = 2.0**53
MAX_JOINT = 256.0
"""Maximum sub-clusters for which the largest divisor of several slots together is searched."""
BISECTIONS = 12
"""Bisections towards the best point of the contention bound; any point gives a valid bound."""


class PartialBound(NamedTuple):
    """Lower bounds of a state before the outer transfers of Lemma 12. The kernel makes it."""

    units: float
    """Maximum sub-clusters that open slots can still use."""
    energy: float
    """pJ without leakage."""
    counted: float
    """Part of `energy` that `OuterContext.outer_pj` contains, too."""
    cycles: float
    leak: float
    """pJ per cycle."""


@kernel_part
def usable_fanout(context: SearchContext, outer: OuterContext, states: StateRows, i: int, s: int) -> float:
    """Return the maximum sub-clusters that a spatial slot can still use."""
    problem, scratch = context.problem, context.scratch
    able = 1.0
    for d in range(len(problem.sizes)):
        if outer.open_trips[s, d]:
            able *= scratch.tiles[d]
    return _largest_fitting(problem, _unused(context, outer, states, i, s), able)


@kernel_part
def max_unrolled(context: SearchContext, t: int, most: float) -> float:
    """Return the maximum sub-clusters that all open slots can use together (Lemma 7).

    Args:
        t: only unrollings count that may leave the tile of this tensor equal; -1: all.
        most: product of the maxima of all slots.
    """
    problem, scratch, able, windows = context.problem, context.scratch, 1.0, False
    for d in range(len(problem.sizes)):
        window = t >= 0 and problem.window_index[t, d] >= 0
        if t < 0 or window or not problem.relevant[t, d]:
            able *= scratch.open_tiles[d]
            windows |= window and scratch.open_tiles[d] > 1.0
    if windows or most > MAX_JOINT:
        return min(most, able)
    return _largest_fitting(problem, most, able)


@kernel_part
def max_output_copies(context: SearchContext, outer: OuterContext, states: StateRows, i: int, t: int) -> float:
    """Return the maximum number of copies of an output that unrollings over irrelevant dimensions make (Lemma 6)."""
    problem, scratch, most = context.problem, context.scratch, 1.0
    for s in range(len(outer.slot_index)):
        able = 1.0
        for d in range(len(problem.sizes)):
            able *= scratch.tiles[d] if outer.open_trips[s, d] and not problem.relevant[t, d] else 1.0
        if able > 1.0 and outer.slot_index[s] > -2:
            most *= _largest_fitting(problem, _unused(context, outer, states, i, s), able)
    return max_unrolled(context, t, most)


@kernel_call
def copies_split_bound(
    context: SearchContext,
    outer: OuterContext,
    t: int,
    energy: float,
    cycles: float,
    operations: float,
    credit: float,
    leak: float,
) -> float:
    """Return the bound of Lemma 12 that splits by the number of copies of output t.

    Args:
        energy: pJ without the first-read credit of the output.
        operations: cycles of all operations on one sub-cluster.
        credit: pJ per copy.
    """
    problem, costs, scratch, best = context.problem, context.costs, context.scratch, np.inf
    irrelevant = relevant = most = 1.0
    for d in range(len(problem.sizes)):
        irrelevant *= 1.0 if problem.relevant[t, d] else scratch.open_tiles[d]
        relevant *= scratch.open_tiles[d] if problem.relevant[t, d] else 1.0
    for s in range(len(outer.slot_index)):
        most *= scratch.usable[s] if outer.slot_index[s] > -2 else 1.0
    smaller = 1.0
    while smaller <= scratch.copies[t] and smaller * smaller <= irrelevant:
        if irrelevant % smaller == 0.0:  # divisors come in pairs
            for copies in (smaller, irrelevant / smaller):
                if copies <= scratch.copies[t]:
                    units = copies * _largest_fitting(problem, np.floor(most / copies), relevant)
                    value = objective(costs, energy - copies * credit, max(cycles, operations / units), leak)
                    best = min(best, value)
        smaller += 1.0
    return float(best)


@kernel_part
def _largest_fitting(problem: ProblemArrays, most: float, able: float) -> float:
    """Return the largest divisor of `able` up to `most`; with ragged tiles the smaller of both."""
    if problem.ragged or able > MAX_EXACT:
        return min(most, able)
    number, whole = int(min(most, able)), int(able)
    while whole % number:
        number -= 1
    return float(number)


@kernel_call
def max_multicast_factor(
    context: SearchContext, outer: OuterContext, states: StateRows, i: int, t: int, s: int, windows: bool
) -> float:
    """Return the maximum multicast factor of a tensor in a spatial slot (Lemma 7).

    Args:
        windows: count unrollings of windows only.
    """
    problem, scratch = context.problem, context.scratch
    result = able = 1.0
    for d in range(len(problem.sizes)):
        if outer.may_multicast[t, s, d] and outer.open_trips[s, d] and (problem.relevant[t, d] or not windows):
            able *= scratch.tiles[d]
            result *= (
                scratch.tiles[d] if problem.window_index[t, d] < 0 or not outer.bounded_by_equal_tiles[t, s] else 1.0
            )
    if outer.bounded_by_equal_tiles[t, s]:
        for d in range(len(problem.sizes)):
            first = problem.window_index[t, d] >= 0
            for e in range(d):
                first &= problem.window_index[t, e] != problem.window_index[t, d]
            if first:
                result *= _along_window(context, outer, states, i, t, s, problem.window_index[t, d])
    return min(_largest_fitting(problem, _unused(context, outer, states, i, s), able), result)


@kernel_part
def _along_window(
    context: SearchContext, outer: OuterContext, states: StateRows, i: int, t: int, s: int, r: int
) -> float:
    """Return by which factor equal tiles along window r may still grow (Lemma 8).

    All unrollings that are open count, in this slot and in the other slots of its fanout.
    """
    problem, scratch = context.problem, context.scratch
    for e in range(len(problem.sizes)):
        used, able = 1.0, False
        if outer.slot_index[s] >= 0:
            used = subclusters_along(context, states, i, e, len(problem.sizes))
        for other in range(s, len(outer.slot_index)):
            able |= outer.slot_index[other] > -2 and outer.open_trips[other, e]
        scratch.along[e], scratch.within[e] = used * scratch.tiles[e] if able else used, used
    most = max_equal_tiles(context, states, i, t, r)
    for e in range(len(problem.sizes)):
        scratch.along[e] = scratch.within[e]
    return float(most / max_equal_tiles(context, states, i, t, r))


@kernel_part
def words_delivered(
    context: SearchContext, outer: OuterContext, t: int, units: float, factor: float
) -> tuple[float, float, float]:
    """Return a lower bound on the words that the next memory delivers (Lemma 7).

    Args:
        factor: multicast factor.

    Returns:
        Words delivered.
        Words read again, for outputs.
        Negative slope of their energy in the logarithm of `factor`; the energy is convex in it.
    """
    problem, scratch = context.problem, context.scratch
    refetch = scratch.refetch_factor[t] / factor
    demand = scratch.base_demand[t] * max(1.0, refetch)
    falls = refetch > 1.0 and demand > outer.compulsory_values[t]
    demand, read = max(demand, outer.compulsory_values[t]), 0.0
    slope = demand * (outer.update_pj[t] if problem.output[t] else outer.read_pj[t])
    if problem.output[t]:
        copies = scratch.copies[t]
        if not problem.windowed_output[t]:
            copies = min(max(1.0, refetch), copies)
        first = problem.values[t] * (1.0 if outer.next_is_outermost[t] else copies)
        read = max(0.0, demand - first)
        if read > 0.0:
            follows = not (outer.next_is_outermost[t] or problem.windowed_output[t]) and refetch <= copies
            slope += (read if follows else demand) * outer.read_pj[t]
    return demand, read, slope if falls else 0.0


@kernel_call
def multicast_split_bound(
    context: SearchContext,
    outer: OuterContext,
    partial: PartialBound,
    row: int,
    code: int,
    window_multicast: float,
    other_multicast: float,
) -> float:
    """Return the bound of Lemma 12 that splits by the multicast factor of the tensor `outer.multicast_tensor`.

    Args:
        partial: the bound without this table.
        row: set of stationary tensors, second index of `outer.outer_pj`.
        code: shape, third index of `outer.outer_pj`.
        window_multicast: further multicast in the same fanout.
        other_multicast: multicast in other fanouts.
    """
    costs, scratch = context.costs, context.scratch
    t, best = outer.multicast_tensor, np.inf
    energy = partial.energy - _energy(context, outer, t, partial.units, scratch.multicast_factor[t])
    for k in range(len(outer.multicast_factors)):
        outer_pj = outer.outer_pj[k, row, code]
        if outer_pj < np.inf:
            factor = min(
                scratch.multicast_factor[t],
                outer.multicast_factors[k] * min(window_multicast, outer.window_multicast[k]) * other_multicast,
            )
            added = _energy(context, outer, t, partial.units, factor) + max(0.0, outer_pj - partial.counted)
            tensor_cycles = (
                scratch.base_demand[t] * max(1.0, scratch.refetch_factor[t] / factor) * scratch.cycles_per_value[t]
            )
            cycles = max(partial.cycles, tensor_cycles)
            best = min(best, objective(costs, energy + added, cycles, partial.leak))
    return float(best)


@kernel_part
def objective(costs: CostFunction, energy: float, cycles: float, leak: float) -> float:
    """Return the objective; inf if there are too many cycles (Lemma 16).

    Args:
        energy: pJ without leakage.
        cycles: not rounded yet.
        leak: pJ per cycle.
    """
    if costs.whole_cycles:
        cycles = np.ceil(cycles * (1.0 - 1e-9))
    if cycles * (1.0 - 1e-9) > costs.max_cycles:
        return np.inf
    return product(costs.energy_power, costs.cycle_power, energy + cycles * leak, cycles)


@kernel_part
def product(energy_power: int, cycle_power: int, energy: float, cycles: float) -> float:
    """Return energy to one power times cycles to another; powers below 0 count as 0."""
    result = 1.0
    for _ in range(energy_power):
        result *= energy
    for _ in range(cycle_power):
        result *= cycles
    return result


@kernel_call
def contention_bound(
    context: SearchContext, outer: OuterContext, units: float, cycles: float, worth: float, time: float
) -> float:
    """Return the contention bound of Lemma 12.

    This is the cost above the one that tensors would have if each had the fanouts alone.

    Tangents at a point give a lower bound, which `_gain` minimises per slot. The point is the best
    one if every unrolling served one tensor, and no memory took longer than `cycles`.

    Args:
        worth: derivative of the objective by energy.
        time: derivative of the objective by cycles.
    """
    problem, scratch = context.problem, context.scratch
    budget = _log_budget(context, outer)
    total, needed, high = _find_point(context, outer, units, cycles, worth, time, budget)
    if total <= budget * (1.0 + 1e-9) + 1e-12:
        return 0.0
    result, weight_left = 0.0, 1.0  # weight of the cycles that is left for further tensors
    for t in range(len(problem.output)):
        scratch.slope[t] = 0.0
        if scratch.max_log_factor[t] > 0.0:
            minimum = scratch.min_log_factor[t]
            guess = min(scratch.max_log_factor[t], max(minimum, scratch.log_slope[t] - high))
            factor = np.exp(guess)
            result -= worth * _energy(context, outer, t, units, scratch.multicast_factor[t])
            result += worth * _energy(context, outer, t, units, factor)
            scratch.slope[t] = worth * words_delivered(context, outer, t, units, factor)[2]
            if minimum > 0.0 and guess < minimum + 1e-9 and weight_left > 0.0:
                deliveries = scratch.base_demand[t] * scratch.refetch_factor[t] / factor
                tensor_cycles, weight = deliveries * scratch.cycles_per_value[t], weight_left
                if needed <= budget:
                    weight = min(weight_left, max(0.0, np.exp(high) - scratch.slope[t]) / (time * tensor_cycles))
                result += weight * time * (tensor_cycles + scratch.other_cycles[t] - cycles)
                scratch.slope[t] += weight * time * tensor_cycles
                weight_left -= weight
            result += scratch.slope[t] * guess
    for s in range(len(outer.slot_index)):
        if outer.slot_index[s] > -2:
            result -= _gain(context, outer, s)
    return max(0.0, result)


@kernel_part
def _log_budget(context: SearchContext, outer: OuterContext) -> float:
    """Return the logarithm of the sub-clusters that open unrollings can multicast to."""
    problem, scratch, budget = context.problem, context.scratch, 0.0
    for d in range(len(problem.sizes)):
        scratch.log_tiles[d] = np.log(scratch.tiles[d])
    for s in range(len(outer.slot_index)):
        if outer.slot_index[s] > -2:
            able = 0.0
            for d in range(len(problem.sizes)):
                serves = False
                for t in range(len(problem.output)):
                    serves |= outer.may_multicast[t, s, d]
                able += scratch.log_tiles[d] if serves and outer.open_trips[s, d] else 0.0
            budget += min(np.log(scratch.usable[s]), able)
    return float(budget)


@kernel_part
def _find_point(
    context: SearchContext,
    outer: OuterContext,
    units: float,
    cycles: float,
    worth: float,
    time: float,
    budget: float,
) -> tuple[float, float, float]:
    """Find a point for the tangents: logarithms of multicast factors that sum up to the budget.

    Writes the range of each tensor's logarithm, and the logarithm of its slope at the maximum.

    Returns:
        The sum of the maxima; the sum of the minima; the logarithm of the common slope.
    """
    scratch, tensors, total, needed = context.scratch, len(context.problem.output), 0.0, 0.0
    low, high, slow = np.inf, -np.inf, 0
    for t in range(tensors):
        scratch.max_log_factor[t] = scratch.min_log_factor[t] = 0.0
        repeated = scratch.refetch_factor[t] > 1.0 and scratch.multicast_factor[t] > 1.0
        if not context.problem.unmodelled[t] and repeated:
            most = np.log(min(scratch.multicast_factor[t], scratch.refetch_factor[t]))
            slope = worth * words_delivered(context, outer, t, units, np.exp(0.999 * most))[2]
            scratch.max_log_factor[t] = most
            scratch.log_slope[t] = (np.log(slope) if slope > 0.0 else -700.0) + 0.999 * most
            if time > 0.0 and scratch.cycles_per_value[t] > 0.0:
                longest = scratch.base_demand[t] * scratch.refetch_factor[t] * scratch.cycles_per_value[t]
                least = np.log(longest / max(cycles - scratch.other_cycles[t], 1e-9 * cycles))
                scratch.min_log_factor[t] = min(most, max(0.0, least))
            total, needed = total + most, needed + scratch.min_log_factor[t]
            slow += scratch.min_log_factor[t] > 0.0
            low, high = min(low, scratch.log_slope[t] - most), max(high, scratch.log_slope[t])
    if total <= budget * (1.0 + 1e-9) + 1e-12:
        return total, needed, high
    if needed > budget:  # the slowest memory takes longer in any case
        less = (needed - budget) / slow
        for t in range(tensors):
            scratch.min_log_factor[t] = max(0.0, scratch.min_log_factor[t] - less)
    for _ in range(BISECTIONS):
        level, taken = (low + high) / 2.0, 0.0
        for t in range(tensors):
            if scratch.max_log_factor[t] > 0.0:
                chosen = max(scratch.min_log_factor[t], scratch.log_slope[t] - level)
                taken += min(scratch.max_log_factor[t], chosen)
        if taken > budget:
            low = level
        else:
            high = level
    return total, needed, high


@kernel_part
def _energy(context: SearchContext, outer: OuterContext, t: int, units: float, factor: float) -> float:
    """Return the pJ of the words that the next memory delivers, given the multicast factor."""
    problem = context.problem
    demand, read, _ = words_delivered(context, outer, t, units, factor)
    if problem.output[t]:
        return float(demand * outer.update_pj[t] + read * outer.read_pj[t])
    return float(demand * outer.read_pj[t])


@kernel_part
def _gain(context: SearchContext, outer: OuterContext, s: int) -> float:
    """Return the maximum reduction by unrollings in a slot: a fractional knapsack over the slopes."""
    problem, scratch = context.problem, context.scratch
    dims = len(problem.sizes)
    for d in range(dims):
        scratch.gain[d] = 0.0
        for t in range(len(problem.output)):
            if outer.may_multicast[t, s, d] and scratch.slope[t] > 0.0:
                part = 1.0
                if problem.window_index[t, d] >= 0 and outer.bounded_by_equal_tiles[t, s] and outer.slot_index[s] < 0:
                    # equal tiles: of d dimensions of a window, the longest unrolling does not count
                    some = 0.0
                    for e in range(dims):
                        same = problem.window_index[t, e] == problem.window_index[t, d]
                        some += 1.0 if same and outer.open_trips[s, e] else 0.0
                    part = (some - 1.0) / some if some > 0.0 else 0.0
                scratch.gain[d] += scratch.slope[t] * part
    left, result = np.log(scratch.usable[s]), 0.0
    for _ in range(dims):
        best = -1
        for d in range(dims):
            if outer.open_trips[s, d] and scratch.gain[d] > 0.0 and (best < 0 or scratch.gain[d] > scratch.gain[best]):
                best = d
        if best < 0 or left <= 0.0:
            break
        taken = min(left, scratch.log_tiles[best])
        result += taken * scratch.gain[best]
        left -= taken
        scratch.gain[best] = 0.0
    return float(result)


@kernel_part
def _unused(context: SearchContext, outer: OuterContext, states: StateRows, i: int, s: int) -> float:
    """Return the sub-clusters of a spatial slot that are not used yet."""
    integers = states.integers
    if outer.slot_index[s] >= 0:
        return float(outer.max_used[s] // integers[i, USED + outer.slot_index[s]])
    return float(outer.max_used[s])
