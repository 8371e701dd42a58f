"""Lower bounds on the cost of all completions of a state."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.shares import leave, objective, room, share_fanouts, share_one, spare_of
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    CODE,
    CREDIT,
    CYCLES,
    EACH,
    FIRST,
    LEAK,
    LEAST_OWED,
    LEAST_PENDING,
    SETTLED,
    TILES,
    covered,
    extent,
    left_of,
    status_of,
    tiles_left,
)
from tilewright_mappers.optimal.kernel.tables import SLIDING, STILL, Ahead, Costing, Layout, Shape, Work


@kernel_call
def bound(
    shape: Shape,
    layout: Layout,
    ahead: Ahead,
    costing: Costing,
    limit: float,
    numbers: Floats,
    integers: Ints,
    i: int,
    work: Work,
) -> float:
    """Return a lower bound on the objective; inf if capacity or the cycle limit is exceeded.

    The bound is the minimum over all sets of stationary tensors that one loop can move next (Lemma
    11). Above the cutoff it need not be tight.
    """
    dims, still, outside = len(shape.sizes), 0, 1.0
    for t in range(len(shape.output)):
        still |= 1 << t if status_of(integers, i, t) == STILL and not shape.odd[t] else 0
    result, dearer = _bound(shape, layout, ahead, costing, limit, numbers, integers, i, still, 0, work)
    if result > limit or shape.ragged or dearer == 0:
        return result
    for d in range(dims):
        outside *= work.rest[d] if _moved(shape, still, d) else 1.0
    for s in range(len(ahead.slots)):
        outside /= work.room[s] if ahead.slots[s] > -2 else 1.0
    least = np.inf if outside > 1.0 else result
    for d in range(dims):
        moved = _moved(shape, still, d) if work.rest[d] > 1.0 else 0
        for e in range(d):
            moved = 0 if work.rest[e] > 1.0 and _moved(shape, still, e) == moved else moved
        if moved and least > max(result, numbers[i, BOUND]):
            value = result
            if moved & dearer:
                value, _ = _bound(shape, layout, ahead, costing, limit, numbers, integers, i, still, moved, work)
            least = min(least, value)
    return max(result, least) if least < np.inf else result


@kernel_part
def _moved(shape: Shape, still: int, d: int) -> int:
    """Return the tensors that a loop over d moves, as bits."""
    result = 0
    for t in range(len(shape.output)):
        result |= still & (1 << t) if shape.moves[t, d] else 0
    return result


@kernel_call
def _bound(
    shape: Shape,
    layout: Layout,
    ahead: Ahead,
    costing: Costing,
    limit: float,
    numbers: Floats,
    integers: Ints,
    i: int,
    still: int,
    moved: int,
    work: Work,
) -> tuple[float, int]:
    """Return a lower bound if the next loop moves certain tensors; and those it may make dearer.

    Args:
        still: stationary tensors, as bits.
        moved: those that are no longer stationary; 0 if all still are.
    """
    dims, tensors, ports = len(shape.sizes), len(shape.output), layout.pending[0] - layout.port
    left, outside = tiles_left(shape, layout, integers, i), 1.0
    cycles = numbers[i, CYCLES]
    for d in range(dims):
        work.rest[d] = left_of(shape, layout, integers, i, d)
        cycles *= work.rest[d] - 1.0 + numbers[i, layout.last + d] if shape.ragged else work.rest[d]
    for s in range(len(ahead.slots)):
        if ahead.slots[s] > -2:
            work.room[s] = room(shape, layout, ahead, integers, i, s, work)
            outside *= work.room[s]
    outside = min(outside, left)
    cycles /= outside
    for port in range(ports):
        work.ports[port] = numbers[i, layout.port + port] / outside
    energy = costing.compute_pj + numbers[i, SETTLED]
    row, counted, across, further, dearer = 0, 0.0, 1.0, 1.0, 0
    for memory in range(len(work.words)):
        work.words[memory] = work.written[memory] = 0.0
    for t in range(tensors):
        if shape.odd[t]:
            continue
        at, status = FIRST + EACH * t, status_of(integers, i, t)
        stays = status == STILL and not moved >> t & 1
        moving = other = windows = again = 1.0
        for d in range(dims):
            if not shape.moves[t, d]:
                other *= work.rest[d]
                if status != STILL or _moved(shape, still, d):
                    again *= work.rest[d]
            elif shape.rank[t, d] < 0:
                moving *= work.rest[d]
            else:
                windows *= work.rest[d]
        dearer |= (again > 1.0) << t if stays else 0
        again = 1.0 if stays else again
        # neighbours may still forward words of windows
        settles = max(1.0, moving * again / outside) if windows == 1.0 or not ahead.passes[t] else 0.0
        for p in range(layout.pending[t], layout.pending[t + 1]):
            port, words, credit = layout.through[p], numbers[i, p], 0.0
            if shape.output[t]:
                credit = numbers[i, p - layout.pending[t] + layout.credit[t]]
            if words == 0.0 and credit == 0.0:
                continue
            words, credit = words / left, credit if shape.vague[t] else credit / moving
            work.ports[port] -= credit if shape.vague[t] else 0.0
            words -= 0.0 if shape.vague[t] else credit
            work.ports[port] += words * (settles if words > 0.0 else left / outside)
        # a tensor slides along one window; loops over other windows bring whole tiles
        whole_tiles = windows * _slides(shape, layout, numbers, integers, i, t, status, work) if windows > 1.0 else 1.0
        sharing = 1.0
        for s in range(len(ahead.slots)):  # multicast in open slots (Lemma 7)
            if ahead.slots[s] > -2:
                sharing *= spare_of(shape, layout, ahead, integers, i, t, s, False, work)
                if t == ahead.direct and ahead.split[s]:
                    across *= spare_of(shape, layout, ahead, integers, i, t, s, True, work)
                elif t == ahead.direct:
                    further *= spare_of(shape, layout, ahead, integers, i, t, s, False, work)
        work.once[t], work.again[t] = (
            numbers[i, at + LEAST_OWED] / (other * windows),
            whole_tiles * again,
        )
        work.spare[t], work.copies[t] = sharing, min(other * windows, outside)
        owed, again_read, _ = leave(shape, ahead, t, outside, sharing, work)
        instances = 1.0
        for s in range(len(ahead.slots)):
            if ahead.beyond[t, s]:
                instances *= work.room[s]
        work.cycles[t] = ahead.cycles[t] / instances
        cycles = max(cycles, owed * work.cycles[t])
        if ahead.row[t] and stays:
            row += ahead.row[t]
            counted += (again_read if shape.output[t] else owed) * (ahead.read_pj[t] + ahead.enters_pj[t])
            counted += owed * ahead.update_pj[t] if shape.output[t] else 0.0
        if shape.output[t]:  # first reads are credited once per copy
            energy -= numbers[i, at + CREDIT] * work.copies[t]
            work.words[ahead.memory[t]] += again_read * ahead.words[t] if ahead.last[t] else 0.0
            energy += again_read * ahead.read_pj[t] + owed * ahead.update_pj[t]
        else:
            energy += owed * ahead.read_pj[t]
        settled = max(1.0, whole_tiles * again / (outside if ahead.passes[t] else 1.0))
        least = covered(shape, layout, integers, i, t) if ahead.between[t] else shape.least[t]
        counted += ahead.counted[t] * least
        energy += numbers[i, at + LEAST_PENDING] / (other * windows) * settled + ahead.rest_pj[t] * least
        words = (owed if ahead.last[t] else least * ahead.compulsory[t]) * ahead.words[t]
        if shape.output[t]:
            work.written[ahead.memory[t]] += words
        else:
            work.words[ahead.memory[t]] += words
        work.beside[t] = words if ahead.last[t] else 0.0
    for port in range(ports):
        cycles = max(cycles, work.ports[port] / costing.bandwidth[port])
    for t in range(tensors):
        if ahead.last[t] and not shape.odd[t]:  # the outermost memory serves other tensors, too
            memory = ahead.memory[t]
            if shape.output[t]:
                work.beside[t] = max(0.0, (work.written[memory] - work.beside[t]) / ahead.write_bandwidth[memory])
            else:
                work.beside[t] = max(0.0, (work.words[memory] - work.beside[t]) / ahead.read_bandwidth[memory])
    for memory in range(len(work.words)):
        cycles = max(cycles, work.words[memory] / ahead.read_bandwidth[memory])
        cycles = max(cycles, work.written[memory] / ahead.write_bandwidth[memory])
        work.words[memory] = 0.0
    told_apart = 0.0
    if len(ahead.outer):
        outer = np.inf
        for share in range(len(ahead.outer)):
            outer = min(outer, ahead.outer[share, row, integers[i, CODE]])
        if outer == np.inf:  # no larger tile fits
            return np.inf, 0
        if ahead.direct >= 0:
            told_apart = share_one(
                shape,
                ahead,
                costing,
                row,
                integers[i, CODE],
                outside,
                energy,
                counted,
                cycles,
                numbers[i, LEAK],
                across,
                further,
                work,
            )
        energy += max(0.0, outer - counted)
    result = objective(costing, energy, cycles, numbers[i, LEAK])
    if costing.whole:
        cycles = np.ceil(cycles * (1.0 - 1e-9))
    energy += cycles * numbers[i, LEAK]
    if max(result, told_apart) <= limit:
        for t in range(tensors):
            if (
                ahead.row[t] and status_of(integers, i, t) == STILL and not moved >> t & 1
            ):  # the table already accounts for multicast of these tensors
                work.spare[t] = 1.0
        # derivatives of the objective by energy and by cycles
        worth = cycles if costing.product else (1.0 if costing.energy else 0.0)
        time = energy if costing.product else (0.0 if costing.energy else 1.0)
        time += worth * numbers[i, LEAK]
        result += share_fanouts(shape, ahead, outside, cycles, worth, time, work)
    return float(max(result, told_apart)), dearer


@kernel_part
def _slides(
    shape: Shape, layout: Layout, numbers: Floats, integers: Ints, i: int, t: int, status: int, work: Work
) -> float:
    """Return the minimum fraction of tiles that loops over windows bring (Lemma 9)."""
    dims, least = len(shape.sizes), 1.0
    for d in range(dims):
        r, loops = shape.rank[t, d], 1.0
        for e in range(dims):
            loops *= work.rest[e] if r >= 0 and shape.rank[t, e] == r else 1.0
        if r >= 0 and status == SLIDING and r == integers[i, layout.window + t]:
            least = min(least, max(1.0 / loops, 1.0 - 1.0 / numbers[i, FIRST + EACH * t + TILES]))
        elif r >= 0 and status == STILL and work.rest[d] > 1.0:
            shift, side = extent(shape, layout, integers, i, d) * shape.coefficient[t, d], numbers[i, layout.side + r]
            # all steps of the first loop except its first
            steps = 0.5 if work.rest[d] % 2.0 == 0.0 else 2.0 / 3.0
            least = min(least, 1.0 / loops + steps * min(1.0, shift / max(1.0, side)))
    return least
