"""Multicast by open unrollings: bounds per tensor, and over all tensors (Lemmas 7 and 12)."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Ints
from tilewright_mappers.optimal.kernel.grid import alike
from tilewright_mappers.optimal.kernel.state import USED, used_along
from tilewright_mappers.optimal.kernel.tables import Ahead, Costing, Layout, Shape, Work

MOST_EXACT = 2.0**53
HALVINGS = 12
"""Bisections towards the best point of the contention bound; any point gives a valid bound."""


@kernel_part
def room(shape: Shape, layout: Layout, ahead: Ahead, integers: Ints, i: int, s: int, work: Work) -> float:
    """Return the maximum sub-clusters that a spatial slot can still use."""
    able = 1.0
    for d in range(len(shape.sizes)):
        if ahead.able[s, d]:
            able *= work.rest[d]
    return _fitting(shape, _most(layout, ahead, integers, i, s), able)


@kernel_part
def _fitting(shape: Shape, most: float, able: float) -> float:
    """Return the largest divisor of `able` up to `most`; with ragged tiles the smaller of both."""
    if shape.ragged or able > MOST_EXACT:
        return min(most, able)
    number, whole = int(min(most, able)), int(able)
    while whole % number:
        number -= 1
    return float(number)


@kernel_call
def spare_of(
    shape: Shape, layout: Layout, ahead: Ahead, integers: Ints, i: int, t: int, s: int, windows: bool, work: Work
) -> float:
    """Return the maximum multicast factor of a tensor in a spatial slot (Lemma 7).

    Args:
        windows: count unrollings of windows only.
    """
    result = able = 1.0
    for d in range(len(shape.sizes)):
        if ahead.near[t, s, d] and ahead.able[s, d] and (shape.moves[t, d] or not windows):
            able *= work.rest[d]
            result *= work.rest[d] if shape.rank[t, d] < 0 or not ahead.apart[t, s] else 1.0
    if ahead.apart[t, s]:
        for d in range(len(shape.sizes)):
            first = shape.rank[t, d] >= 0
            for e in range(d):
                first &= shape.rank[t, e] != shape.rank[t, d]
            if first:
                result *= _along_window(shape, layout, ahead, integers, i, t, s, shape.rank[t, d], work)
    return min(_fitting(shape, _most(layout, ahead, integers, i, s), able), result)


@kernel_part
def _along_window(
    shape: Shape, layout: Layout, ahead: Ahead, integers: Ints, i: int, t: int, s: int, r: int, work: Work
) -> float:
    """Return by which factor equal tiles along window r may still grow (Lemma 8).

    All unrollings that are open count, in this slot and in the other slots of its fanout.
    """
    for e in range(len(shape.sizes)):
        used, able = 1.0, False
        if ahead.slots[s] >= 0:
            used = used_along(layout, integers, i, e, len(shape.sizes))
        for other in range(s, len(ahead.slots)):
            able |= ahead.slots[other] > -2 and ahead.able[other, e]
        work.along[e], work.within[e] = used * work.rest[e] if able else used, used
    most = alike(shape, layout, integers, i, t, r, work)
    for e in range(len(shape.sizes)):
        work.along[e] = work.within[e]
    return float(most / alike(shape, layout, integers, i, t, r, work))


@kernel_part
def leave(shape: Shape, ahead: Ahead, t: int, outside: float, spare: float, work: Work) -> tuple[float, float, float]:
    """Return a lower bound on the words that the next memory delivers (Lemma 7).

    Args:
        spare: multicast factor.

    Returns:
        Words delivered; words read again, for outputs; the negative slope of their energy in the
        logarithm of `spare`, of which the energy is a convex function.
    """
    again = work.again[t] / spare
    owed = work.once[t] * max(1.0, again)
    falls = again > 1.0 and owed > ahead.distinct[t]
    owed, read = max(owed, ahead.distinct[t]), 0.0
    slope = owed * (ahead.update_pj[t] if shape.output[t] else ahead.read_pj[t])
    if shape.output[t]:
        copies = work.copies[t]
        if not shape.vague[t]:
            copies = min(max(1.0, again), outside)
        first = shape.whole[t] * (1.0 if ahead.last[t] else copies)
        read = max(0.0, owed - first)
        if read > 0.0:
            follows = not (ahead.last[t] or shape.vague[t]) and again <= outside
            slope += (read if follows else owed) * ahead.read_pj[t]
    return owed, read, slope if falls else 0.0


@kernel_call
def share_one(
    shape: Shape,
    ahead: Ahead,
    costing: Costing,
    row: int,
    code: int,
    outside: float,
    energy: float,
    counted: float,
    cycles: float,
    leak: float,
    windows: float,
    further: float,
    work: Work,
) -> float:
    """Return the bound of Lemma 12 that splits by the multicast factor of the tensor `ahead.direct`.

    Args:
        windows: further multicast in the same fanout.
        further: multicast in other fanouts.
    """
    t, best = ahead.direct, np.inf
    energy -= _energy(shape, ahead, t, outside, work.spare[t], work)
    for k in range(len(ahead.share)):
        outer = ahead.outer[k, row, code]
        if outer < np.inf:
            spare = min(work.spare[t], ahead.share[k] * min(windows, ahead.across[k]) * further)
            more = _energy(shape, ahead, t, outside, spare, work) + max(0.0, outer - counted)
            takes = work.once[t] * max(1.0, work.again[t] / spare) * work.cycles[t]
            best = min(best, objective(costing, energy + more, max(cycles, takes), leak))
    return float(best)


@kernel_part
def objective(costing: Costing, energy: float, cycles: float, leak: float) -> float:
    """Return the objective; inf if there are too many cycles (Lemma 16).

    Args:
        energy: pJ without leakage.
        cycles: not rounded yet.
        leak: pJ per cycle.
    """
    if costing.whole:
        cycles = np.ceil(cycles * (1.0 - 1e-9))
    if cycles * (1.0 - 1e-9) > costing.most_cycles:
        return np.inf
    energy += cycles * leak
    return float((energy if costing.energy else 1.0) * (cycles if costing.product or not costing.energy else 1.0))


@kernel_call
def share_fanouts(
    shape: Shape, ahead: Ahead, outside: float, cycles: float, worth: float, time: float, work: Work
) -> float:
    """Return the contention bound of Lemma 12.

    This is the cost above the one that tensors would have if each had the fanouts alone.

    Tangents at a point give a lower bound, which `_gain` minimises per slot. The point is the best
    one if every unrolling served one tensor, and no memory took longer than `cycles`.

    Args:
        worth: derivative of the objective by energy.
        time: derivative of the objective by cycles.
    """
    tensors, dims = len(shape.output), len(shape.sizes)
    budget = total = needed = 0.0
    for d in range(dims):
        work.log[d] = np.log(work.rest[d])
    for s in range(len(ahead.slots)):
        if ahead.slots[s] > -2:
            able = 0.0
            for d in range(dims):
                serves = False
                for t in range(tensors):
                    serves |= ahead.near[t, s, d]
                able += work.log[d] if serves and ahead.able[s, d] else 0.0
            budget += min(np.log(work.room[s]), able)
    low, high, slow = np.inf, -np.inf, 0
    for t in range(tensors):
        work.most[t] = work.need[t] = 0.0
        if not shape.odd[t] and work.again[t] > 1.0 and work.spare[t] > 1.0:
            work.most[t] = np.log(min(work.spare[t], work.again[t]))
            steep = leave(shape, ahead, t, outside, np.exp(0.999 * work.most[t]), work)[2]
            work.steep[t] = (np.log(worth * steep) if worth * steep > 0.0 else -700.0) + 0.999 * work.most[t]
            if time > 0.0 and work.cycles[t] > 0.0:
                longest = work.once[t] * work.again[t] * work.cycles[t]
                least = max(0.0, np.log(longest / max(cycles - work.beside[t], 1e-9 * cycles)))
                work.need[t] = min(work.most[t], least)
            total, needed, slow = total + work.most[t], needed + work.need[t], slow + (work.need[t] > 0.0)
            low, high = min(low, work.steep[t] - work.most[t]), max(high, work.steep[t])
    if total <= budget * (1.0 + 1e-9) + 1e-12:
        return 0.0
    if needed > budget:  # the slowest memory takes longer in any case
        less = (needed - budget) / slow
        for t in range(tensors):
            work.need[t] = max(0.0, work.need[t] - less)
    for _ in range(HALVINGS):
        level, taken = (low + high) / 2.0, 0.0
        for t in range(tensors):
            taken += min(work.most[t], max(work.need[t], work.steep[t] - level)) if work.most[t] > 0.0 else 0.0
        if taken > budget:
            low = level
        else:
            high = level
    result, left = 0.0, 1.0  # weight of the cycles that is left for further tensors
    for t in range(tensors):
        work.slope[t] = 0.0
        if work.most[t] > 0.0:
            guess = min(work.most[t], max(work.need[t], work.steep[t] - high))
            spare = np.exp(guess)
            result -= worth * _energy(shape, ahead, t, outside, work.spare[t], work)
            result += worth * _energy(shape, ahead, t, outside, spare, work)
            work.slope[t] = worth * leave(shape, ahead, t, outside, spare, work)[2]
            if work.need[t] > 0.0 and guess < work.need[t] + 1e-9 and left > 0.0:
                takes = work.once[t] * work.again[t] / spare * work.cycles[t]
                part = left if needed > budget else min(left, max(0.0, np.exp(high) - work.slope[t]) / (time * takes))
                result += part * time * (takes + work.beside[t] - cycles)
                work.slope[t] += part * time * takes
                left -= part
            result += work.slope[t] * guess
    for s in range(len(ahead.slots)):
        if ahead.slots[s] > -2:
            result -= _gain(shape, ahead, s, work)
    return max(0.0, result)


@kernel_part
def _energy(shape: Shape, ahead: Ahead, t: int, outside: float, spare: float, work: Work) -> float:
    owed, read, _ = leave(shape, ahead, t, outside, spare, work)
    if shape.output[t]:
        return float(owed * ahead.update_pj[t] + read * ahead.read_pj[t])
    return float(owed * ahead.read_pj[t])


@kernel_part
def _gain(shape: Shape, ahead: Ahead, s: int, work: Work) -> float:
    """Return the maximum reduction by unrollings in a slot: a fractional knapsack over the slopes."""
    dims = len(shape.sizes)
    for d in range(dims):
        work.gain[d] = 0.0
        for t in range(len(shape.output)):
            if ahead.near[t, s, d] and work.slope[t] > 0.0:
                part = 1.0
                if shape.rank[t, d] >= 0 and ahead.apart[t, s] and ahead.slots[s] < 0:
                    # equal tiles: of d dimensions of a window, the longest unrolling does not count
                    some = 0.0
                    for e in range(dims):
                        some += 1.0 if shape.rank[t, e] == shape.rank[t, d] and ahead.able[s, e] else 0.0
                    part = (some - 1.0) / some if some > 0.0 else 0.0
                work.gain[d] += work.slope[t] * part
    left, result = np.log(work.room[s]), 0.0
    for _ in range(dims):
        best = -1
        for d in range(dims):
            if ahead.able[s, d] and work.gain[d] > 0.0 and (best < 0 or work.gain[d] > work.gain[best]):
                best = d
        if best < 0 or left <= 0.0:
            break
        taken = min(left, work.log[best])
        result += taken * work.gain[best]
        left -= taken
        work.gain[best] = 0.0
    return float(result)


@kernel_part
def _most(layout: Layout, ahead: Ahead, integers: Ints, i: int, s: int) -> float:
    """Return the sub-clusters of a spatial slot that are not used yet."""
    if ahead.slots[s] >= 0:
        return float(ahead.most[s] // integers[i, USED + ahead.slots[s]])
    return float(ahead.most[s])
