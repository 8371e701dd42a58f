"""The kernel: what mappings move, counted one after another by the rules of Timeloop (docs/timeloop.md), and what it costs.

Counts are float64, exact below 2**53; the model refuses problems beyond.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import Index, compiled, inlined, kernel_part
from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.rules import NONE, SIDE_BY_SIDE, judge, tile_words
from tilewright_costmodels.timeloop import flow, sharing
from tilewright_costmodels.timeloop.costs import cost
from tilewright_costmodels.timeloop.nest import Job, look_up, unfold
from tilewright_costmodels.timeloop.ragged.cuts import Pieces
from tilewright_costmodels.timeloop.ragged.words import measure


@compiled
def evaluate(job: Job, pieces: Pieces | None, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Count what every mapping moves, and say what the counts cost.

    Args:
        job: its counts are of `n` mappings, or of one: the last.
        pieces: where all tiles divide, None: that form of the kernel is compiled in a third of the time.
        valid: which mappings to look at; those that are not legal become False.
    """
    rules, mappings, scratch, nest, counts = job.rules, job.mappings, job.scratch, job.nest, job.counts
    trips, order, keep = mappings.trips, mappings.order, mappings.keep
    for n in range(len(valid)):
        row = n if len(counts.compute_cycles) > 1 else 0
        if n % SIDE_BY_SIDE == 0:
            judge(rules, job.slots, trips, mappings.tiles, order, keep, job.lax_fanout, n, valid, job.judged)
        if valid[n]:
            look_up(job.judged, n % SIDE_BY_SIDE, scratch)
            valid[n] = unfold(job, n, row)
        if valid[n]:
            sharing.make_room(job.accounts)
            steps = nest.loop[nest.level[len(job.hardware.level) - 1].end].outside
            ragged = pieces is not None and nest.ragged[0]
            if pieces is not None and ragged:
                instances = counts.instances[row]
                steps = measure(pieces, job.hardware, job.tensors, nest, scratch, mappings, n, instances, job.detailed)
            counts.compute_cycles[row] = steps * job.hardware.cycles_per_operation
            for tensor in range(len(job.tensors.whole)):
                if not ragged or job.detailed or job.tensors.whole[tensor].slides:
                    flow.divide_tensor(job, row, tensor)
                _count(job, pieces, ragged, n, row, tensor)
            energy_pj[n], cycles[n] = cost(job.hardware, counts, job.detailed, ragged, row)


@inlined
def _count(job: Job, pieces: Pieces | None, ragged: bool, n: int, row: int, tensor: int) -> None:
    """Reads, fills and updates of a tensor at every level, the innermost first."""
    whole, hardware, nest, actions = job.tensors.whole[tensor], job.hardware, job.nest, job.counts.actions
    levels, kept = len(hardware.level), n if len(job.mappings.keep) > 1 else 0
    # of true pieces, only what neighbours pass on is to be learnt from full ones
    full_too = job.detailed or not ragged
    # the innermost loop that moves the tensor, of those of the level and further out
    c = int(nest.level[levels - 1].end)
    if whole.slides or nest.level[levels - 1].children > 1.0:
        for each in range(c):
            loop = nest.loop[each]
            loop.shift = job.tensors.moves[tensor, loop.dimension].displacement * loop.step
    at, still, credited = -1, 0.0, 0.0
    content, keeps, left = 0.0, False, 1.0  # words that leave a level; whether it keeps the tensor; see below
    for number in range(levels):
        level, inside, part, inner_keeps, inner = Index(levels - 1 - number), content, left, keeps, number == 0
        children, end = nest.level[level].children, nest.level[level].end
        keeps = job.mappings.keep[kept, hardware.level[level].holds, tensor]
        if not (inner or inner_keeps):
            counted = actions[row, level + 1, tensor]
            counted.reads = counted.fills = counted.updates = 0.0
            if children == 1.0 and not (job.detailed or (ragged and keeps)):  # as often as the level inside
                continue
        while (
            (full_too or whole.slides)
            and not inner
            and c >= 0
            and (c >= end or not whole.moving >> nest.loop[c].dimension & 1)
        ):
            c -= 1
        passing = job.link_transfers and children > 1.0 and (inner or (whole.slides and c == end - 1))
        if ragged and not (keeps or inner_keeps or passing or job.detailed):
            continue
        deliveries, even, served, linked = 1.0, 0.0, 0.0, 0.0
        tangled, account = False, 0
        if full_too or passing:
            if children > 1.0:
                deliveries, tangled = flow.different_tiles(job, n, tensor, level)
                if tangled or job.detailed:
                    length = flow.describe(job, n, tensor, level, sharing.NO_SHIFT, not tangled)
                    account = sharing.sharing(hardware, length, job.accounts)
                    deliveries = float(job.accounts.pool[account])
            # compute has no register: every operation fetches its words
            words, tile, slides, overlap = nest.loop[end].outside, 1.0, False, 0.0
            if not inner:  # every step of loop c, and every restart of it, moves a whole tile
                words = nest.loop[c + 1].outside
                if inner_keeps or children > 1.0 or job.detailed:  # else only the ratio of counts matters
                    if inner_keeps:
                        tile = job.scratch.words[hardware.level[level + 1].holds, tensor]
                    else:
                        tile = tile_words(job.rules.terms, tensor, job.scratch.inside, hardware.level[level].stop)
                    actions[row, level + 1, tensor].tile_words = tile
                    words *= tile
                    if whole.slides and c >= 0:
                        slides = job.tensors.moves[tensor, nest.loop[c].dimension].together != 0
            if slides:
                if at != c:
                    at = c
                    still, credited = flow.revisits(job, c)
                overlap = flow.overlap_of(job, tensor, level, c)
                words -= tile * still + overlap * credited
            even = content = words * deliveries
            served = words * children
            if job.detailed:
                job.deliveries.sizes[tensor, level] = 0
            if passing and (inner or slides):
                passed, saved, linked = flow.pass_on(job, n, tensor, level, c, tile, overlap, deliveries)
                words, content, served = words - passed, content - saved, served - linked
            if job.detailed:
                flow.deliver(job, tensor, level, words, account)
        if pieces is not None and ragged:
            # the true words, of which neighbours pass on the part that they do where all tiles are full
            passed, full = 0.0, content
            left = 1.0 if inner or inner_keeps else left
            if passing:
                left, passed = content / even * left, linked / (served + linked)
                if not (inner or inner_keeps):
                    left /= 1.0 - passed  # what neighbours pass on, the level inside asks nobody for, either
            content = pieces.words[tensor, level].left * left
            if job.detailed:
                scale = content / full
                linked *= scale if inner or inner_keeps else 0.0
                for size in range(job.deliveries.sizes[tensor, level]):
                    each = job.deliveries.delivered[tensor, level, size]
                    each.accesses, each.far = each.accesses * scale, each.far * scale
            if inner_keeps:
                _access_pieces(job, pieces, row, level + 1, tensor, part, passed)
            if keeps and not whole.slides and (whole.is_output or job.detailed):
                actions[row, level, tensor].partition_words = pieces.words[tensor, level].own
        elif inner_keeps:
            peer = linked / job.counts.instances[row, level + 1]
            _access(job, row, level + 1, tensor, inside, served / children, peer)
        elif not inner:  # accessed as often as the level inside, in its own mix of deliveries
            factor = inside * children / served
            content, linked = content * factor, 0.0
            if job.detailed:
                for size in range(job.deliveries.sizes[tensor, level]):
                    job.deliveries.delivered[tensor, level, size].accesses *= factor
        if job.detailed:
            actions[row, level, tensor].links = linked
            _network(job, row, level, tensor, keeps)
    if pieces is not None and ragged:
        _access_pieces(job, pieces, row, NONE, tensor, left, 0.0)
    else:
        _access(job, row, NONE, tensor, content, 0.0, 0.0)


@kernel_part
def _access_pieces(job: Job, pieces: Pieces, row: int, level: int, tensor: int, left: float, passed: float) -> None:
    """The same of tiles that do not divide: averages over the instances, unrounded, and the words of the first one.

    Args:
        left: the part of the words that leave which neighbours further in do not pass on.
        passed: the part of the words that enter which neighbours pass on.
    """
    counted, words = job.counts.actions[row, level, tensor], pieces.words[tensor, level]
    entered, first_entered, own, first_own = words.entered, words.first_entered, words.own, words.first_own
    content, first = words.left * left, words.first_left * left
    counted.reads, counted.fills, counted.updates = content + entered * passed, entered, 0.0
    counted.most_read, counted.most_written = first + first_entered * passed, first_entered
    if job.tensors.whole[tensor].is_output:
        if job.tensors.whole[tensor].slides:
            own, first_own = counted.partition_words, counted.partition_words
        counted.reads, counted.fills = max(0.0, counted.reads - own), max(0.0, entered - own)
        counted.updates = content
        counted.most_read = max(0.0, counted.most_read - first_own)
        counted.most_written = max(0.0, first_entered - first_own) + first


@kernel_part
def _access(job: Job, row: int, level: int, tensor: int, content: float, share: float, peer: float) -> None:
    """Reads, fills and updates of a level that keeps the tensor.

    Args:
        content: words that leave one instance; `share`, `peer`: that the average one gets from outside, and from neighbours.
    """
    counted = job.counts.actions[row, level, tensor]
    counted.reads, counted.fills, counted.updates = np.floor(content + peer + 0.5), np.floor(share + peer), 0.0
    if job.tensors.whole[tensor].is_output:
        # the first partial sum of every word is written, not added; a box with holes promises more words than exist
        counted.reads = max(0.0, np.floor(content + peer - counted.partition_words + 0.5))
        counted.fills = max(0.0, np.floor(share + peer - counted.partition_words + 0.5))
        counted.updates = np.floor(content + 0.5)


@kernel_part
def _network(job: Job, row: int, level: int, tensor: int, keeps: bool) -> None:
    """Hops, routers and ingresses below one instance of a level (Timeloop's legacy network)."""
    counted = job.counts.actions[row, level, tensor]
    counted.hops = counted.routers = counted.ingresses = 0.0
    for size in range(job.deliveries.sizes[tensor, level]):
        each = job.deliveries.delivered[tensor, level, size]
        each.sent = np.floor(each.accesses + 0.5)
        if job.tensors.whole[tensor].is_output and job.hardware.level[level].in_dram:
            # DRAM cannot add: partial sums go down and come back
            each.sent = max(each.sent, 2.0 * each.sent - counted.partition_words) if keeps else 0.0
        if each.sent > 0.0:
            counted.hops += each.far
            counted.routers += np.trunc((1.0 + each.far // each.sent) * each.sent)
            counted.ingresses += each.sent
