"""The kernel: what mappings move, counted one after another by the rules of Timeloop (docs/timeloop.md), and what it costs.

Counts are float64, exact below 2**53; the model refuses problems beyond.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.rules import LEGAL, NONE, judge, tile_words
from tilewright_costmodels.timeloop import costs, flow, sharing, tables
from tilewright_costmodels.timeloop.costs import cost
from tilewright_costmodels.timeloop.nest import DIMENSION, OUTSIDE, SHIFT, STEP, Job, unfold


@compiled
def evaluate(job: Job, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Count what every mapping moves, and say what the counts cost.

    Args:
        job: its counts are of `n` mappings, or of one: the last.
        valid: which mappings to look at; those that are not legal become False.
    """
    rules, mappings, scratch, nest, counts = job.rules, job.mappings, job.scratch, job.nest, job.counts
    trips, order, keep = mappings.trips, mappings.order, mappings.keep
    levels = len(nest.children)
    for n in range(len(valid)):
        row = n if len(counts.compute_cycles) > 1 else 0
        if valid[n]:
            valid[n] = judge(rules, job.slots, trips, order, keep, job.lax_fanout, n, scratch) == LEGAL
        if valid[n]:
            valid[n] = unfold(job, n, row)
        if valid[n]:
            sharing.make_room(job.accounts)
            counts.compute_cycles[row] = nest.trips[nest.end[levels, 0], OUTSIDE] * job.hardware.cycles_per_operation
            for tensor in range(len(job.tensors.whole)):
                flow.divide_tensor(job, row, tensor)
                _count(job, n, row, tensor)
            energy_pj[n], cycles[n] = cost(job.hardware, counts, job.detailed, row)


@kernel_part
def _count(job: Job, n: int, row: int, tensor: int) -> None:
    """Reads, fills and updates of a tensor at every level, the innermost first."""
    tensors, hardware, nest, actions = job.tensors, job.hardware, job.nest, job.counts.actions
    levels, moving = len(nest.children), tensors.moving[tensor]
    kept = n if len(job.mappings.keep) > 1 else 0
    sliding = tensors.whole[tensor, tables.SLIDING] > 0.0
    c = nest.end[levels, 0]  # the innermost loop that moves the tensor, of those of the level and further out
    if sliding or nest.children[levels - 1] > 1.0:
        for loop in range(c):
            shift = tensors.by_dimension[tensor, nest.loop[loop, DIMENSION], tables.DISPLACEMENT]
            nest.move[loop, SHIFT] = shift * nest.move[loop, STEP]
    at, still, credited = -1, 0.0, 0.0
    content, keeps = 0.0, False  # words that leave a level; whether it keeps the tensor
    for level in range(levels - 1, -1, -1):
        inside, inner_keeps, inner = content, keeps, level == levels - 1
        children, end = nest.children[level], nest.end[level + 1, 0]
        keeps = job.mappings.keep[kept, hardware.level[level, tables.HOLDS], tensor]
        deliveries, tangled, account = 1.0, False, 0
        if children > 1.0:
            deliveries, tangled = flow.different_tiles(job, n, tensor, level)
            if tangled or job.detailed:
                length = flow.describe(job, n, tensor, level, sharing.NO_SHIFT, not tangled)
                account = sharing.sharing(hardware, length, job.accounts)
                deliveries = float(job.accounts.pool[account])
        # compute has no register: every operation fetches its words
        words, tile, slides, overlap = nest.trips[end, OUTSIDE], 1.0, False, 0.0
        if not inner:  # every step of loop c, and every restart of it, moves a whole tile
            while c >= 0 and (c >= end or not moving >> nest.loop[c, DIMENSION] & 1):
                c -= 1
            words = nest.trips[c + 1, OUTSIDE]
            if inner_keeps or children > 1.0 or job.detailed:  # else only the ratio of counts matters
                if inner_keeps:
                    tile = job.scratch.words[hardware.level[level + 1, tables.HOLDS], tensor]
                else:
                    tile = tile_words(job.rules.terms, tensor, job.scratch.inside, hardware.level[level, tables.STOP])
                actions[row, level + 1, tensor, costs.TILE_WORDS] = tile
                words *= tile
                if sliding and c >= 0:
                    slides = tensors.by_dimension[tensor, nest.loop[c, DIMENSION], tables.TOGETHER] != 0
        if slides:
            if at != c:
                at = c
                still, credited = flow.revisits(job, c)
            overlap = flow.overlap_of(job, tensor, level, c)
            words -= tile * still + overlap * credited
        content, served, linked = words * deliveries, words * children, 0.0
        if job.detailed:
            job.deliveries.sizes[tensor, level] = 0
        if job.link_transfers and children > 1.0 and (inner or (slides and c == end - 1)):
            passed, saved, linked = flow.pass_on(job, n, tensor, level, c, tile, overlap, deliveries)
            words, content, served = words - passed, content - saved, served - linked
        if job.detailed:
            flow.deliver(job, tensor, level, words, account)
        if inner_keeps:
            peer = linked / job.counts.instances[row, level + 1]
            _access(job, row, level + 1, tensor, inside, served / children, peer)
        elif not inner:  # accessed as often as the level inside, in its own mix of deliveries
            factor = inside * children / served
            content, linked = content * factor, 0.0
            if job.detailed:
                for size in range(job.deliveries.sizes[tensor, level]):
                    job.deliveries.delivered[tensor, level, size, sharing.ACCESSES] *= factor
            for action in (costs.READS, costs.FILLS, costs.UPDATES):
                actions[row, level + 1, tensor, action] = 0.0
        if job.detailed:
            actions[row, level, tensor, costs.LINKS] = linked
            _network(job, row, level, tensor, keeps)
    _access(job, row, NONE, tensor, content, 0.0, 0.0)


@kernel_part
def _access(job: Job, row: int, level: int, tensor: int, content: float, share: float, peer: float) -> None:
    """Reads, fills and updates of a level that keeps the tensor.

    Args:
        content: words that leave one instance; `share`, `peer`: that the average one gets from outside, and from neighbours.
    """
    actions = job.counts.actions
    reads, fills, updates = np.floor(content + peer + 0.5), np.floor(share + peer), 0.0
    if job.tensors.whole[tensor, tables.OUTPUT] > 0.0:
        # the first partial sum of every word is written, not added; a box with holes promises more words than exist
        part = actions[row, level, tensor, costs.PARTITION_WORDS]
        reads = max(0.0, np.floor(content + peer - part + 0.5))
        fills = max(0.0, np.floor(share + peer - part + 0.5))
        updates = np.floor(content + 0.5)
    actions[row, level, tensor, costs.READS] = reads
    actions[row, level, tensor, costs.FILLS] = fills
    actions[row, level, tensor, costs.UPDATES] = updates


@kernel_part
def _network(job: Job, row: int, level: int, tensor: int, keeps: bool) -> None:
    """Hops, routers and ingresses below one instance of a level (Timeloop's legacy network)."""
    actions, delivered = job.counts.actions, job.deliveries.delivered
    hops = routers = ingresses = 0.0
    for size in range(job.deliveries.sizes[tensor, level]):
        accesses = np.floor(delivered[tensor, level, size, sharing.ACCESSES] + 0.5)
        if job.tensors.whole[tensor, tables.OUTPUT] > 0.0 and job.hardware.noc[level, tables.IN_DRAM] > 0.0:
            # DRAM cannot add: partial sums go down and come back
            part = actions[row, level, tensor, costs.PARTITION_WORDS]
            accesses = max(accesses, 2.0 * accesses - part) if keeps else 0.0
        delivered[tensor, level, size, sharing.SENT] = accesses
        if accesses > 0.0:
            far = delivered[tensor, level, size, sharing.FAR]
            hops += far
            routers += np.trunc((1.0 + far // accesses) * accesses)
            ingresses += accesses
    actions[row, level, tensor, costs.HOPS] = hops
    actions[row, level, tensor, costs.ROUTERS] = routers
    actions[row, level, tensor, costs.INGRESSES] = ingresses
