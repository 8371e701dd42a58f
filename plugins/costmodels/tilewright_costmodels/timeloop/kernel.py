"""The kernel: what mappings move, counted side by side by the rules of Timeloop (docs/timeloop.md), and what it costs.

Counts are float64, exact below 2**53; the model refuses problems beyond.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, compiled, every, inlined, kernel_part, lanes
from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.rules.judge import judge
from tilewright.mapspace.rules.scratch import fetch, words_of
from tilewright.mapspace.rules.tables import NONE
from tilewright_costmodels.timeloop import flow
from tilewright_costmodels.timeloop.accounts import make_room
from tilewright_costmodels.timeloop.costs import cost
from tilewright_costmodels.timeloop.nest import Job, unfold
from tilewright_costmodels.timeloop.ragged.cuts import Pieces
from tilewright_costmodels.timeloop.ragged.words import measure


@compiled
def evaluate(job: Job, pieces: Pieces | None, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Count what every mapping moves, and say what the counts cost.

    Args:
        job: its counts are of all mappings, or of `LANES` of them: the last ones.
        pieces: where all tiles divide, None: that form of the kernel is compiled in a third of the time.
        valid: which mappings to look at; those that are not legal become False.
    """
    mappings, nest, counts = job.mappings, job.nest, job.counts
    order, keep = mappings.order, mappings.keep
    for first in range(0, len(valid), LANES):
        group, count = first // LANES if len(counts.ragged) > 1 else 0, min(LANES, len(valid) - first)
        judge(
            job.rules, job.slots, mappings.trips, mappings.tiles, order, keep, job.lax_fanout, first, valid, job.scratch
        )
        some = False
        for b in range(LANES):
            nest.live[b] = b < count and valid[first + b]
            some |= nest.live[b]
        if some:
            unfold(job, group, pieces is not None)
            counts.compute_cycles[group][:] = lanes(nest.outside[nest.place[len(nest.place) - 1]])
            if pieces is not None:
                for b in range(count):
                    if counts.ragged[group, b]:
                        counts.compute_cycles[group, b] = measure(job, pieces, first + b, b, group)
            steps = lanes(counts.compute_cycles[group])
            counts.compute_cycles[group][:] = steps * job.hardware.cycles_per_operation
            for tensor in range(len(job.tensors.whole)):
                if job.detailed or job.tensors.whole[tensor].is_output:
                    flow.divide_tensor(job, group, tensor)
                _count(job, pieces, first, group, tensor)
            energy, taken = cost(job.hardware, counts, job.detailed, job.reported, group)
            nest.amount[:], nest.saved[:] = energy, taken
        for b in range(count):
            valid[first + b] &= nest.live[b]
            if nest.live[b]:
                energy_pj[first + b], cycles[first + b] = nest.amount[b], nest.saved[b]


@inlined
def _count(job: Job, pieces: Pieces | None, first: int, group: int, tensor: int) -> None:
    """Reads, fills and updates of a tensor at every level, the innermost first."""
    whole, hardware, nest, counts = job.tensors.whole[tensor], job.hardware, job.nest, job.counts
    levels, live, ragged = len(hardware.level), lanes(nest.live), lanes(counts.ragged[group])
    linked_units = job.link_transfers and np.any(lanes(nest.children[levels - 1]) > 1.0)
    flow.follow(job, tensor, bool(whole.slides or linked_units))
    if job.reported:
        counts.tile_words[group, 0, tensor][:] = every(whole.words)
    content, keeps, left = every(0.0), every(False), every(1.0)  # words that leave a level; whether it keeps the tensor
    for number in range(levels):
        ahead = first + LANES + tensor * levels + number  # one mapping of the next group
        fetch(job.mappings.trips, ahead)
        fetch(job.mappings.order, ahead)
        level, inner, inside, part, inner_keeps = levels - 1 - number, number == 0, content, left, keeps
        here, children = hardware.level[level], lanes(nest.children[level])
        loops = lanes(nest.outside[nest.place[here.stop]])  # iterations of all loops down to the level
        keeps = lanes(job.scratch.kept[here.holds, tensor])
        fans = children > 1.0
        exact = inner_keeps | inner  # elsewhere, only the ratio of counts matters
        deliveries, tangled, slides, passing = every(1.0), every(False), every(False), every(False)
        # compute has no register: every operation fetches its words
        words, tile, overlap = loops, every(1.0), every(0.0)
        if not inner:
            # every step of the innermost loop that moves the tile, and every restart of it, moves a whole one
            tile = words_of(job.rules.terms, tensor, job.scratch.inside[here.stop])
            if job.reported:
                counts.tile_words[group, level + 1, tensor][:] = tile
            words = lanes(nest.visits[level]) * tile
            slides = (lanes(nest.mover[level]) & whole.sliding) != 0
            if whole.slides and np.any(slides & (exact | fans | job.detailed)):
                still, credited = flow.revisits(job, tensor, level)
                overlap = np.where(slides, flow.overlap_of(job, tensor, level), 0.0)
                words = words - np.where(slides, tile * still + overlap * credited, 0.0)
        if np.any(fans & live):
            make_room(job.accounts)
            deliveries, tangled = flow.different_tiles(job, first, tensor, level)
            if job.link_transfers and (inner or whole.slides):
                innermost = lanes(nest.visits[level]) == loops
                passing = live & fans & (inner | (slides & innermost))
        # of true pieces, only what neighbours pass on is to be learnt from full ones
        shared = passing | (live & fans & (job.detailed | (tangled & ~ragged)))
        if np.any(shared):
            deliveries = flow.share(job, first, tensor, level, shared, ~(tangled | passing), deliveries)
        even, served, linked = words * deliveries, words * children, every(0.0)
        given = even  # words that leave
        if np.any(passing):
            passed, saved, linked = flow.pass_on(job, level, inner, passing, tile, overlap, deliveries)
            words, given, served = words - passed, even - saved, served - linked
        # accessed as often as the level inside, in its own mix of deliveries, if that does not keep the tensor
        factor = np.where(exact, 1.0, inside * children / served)
        content = np.where(exact | fans, given * factor, inside)
        if pieces is not None and np.any(ragged):
            # the true words, of which neighbours pass on the part that they do where all tiles are full
            gone, so = np.where(passing, linked / (served + linked), 0.0), np.where(exact, 1.0, left)
            so = np.where(passing, given / even * so, so)
            # what neighbours pass on, the level inside asks nobody for, either
            so = np.where(passing & ~exact, so / (1.0 - gone), so)
            left = np.where(ragged & (keeps | inner_keeps | passing | job.detailed), so, left)
            content = np.where(ragged, lanes(pieces.left[tensor, level]) * left, content)
            factor = np.where(ragged, content / given, factor)
            linked = np.where(ragged, linked * factor, linked)
            if not whole.slides and (whole.is_output or job.detailed):
                own, answered = lanes(pieces.own[tensor, level]), lanes(counts.partition_words[group, level, tensor])
                counts.partition_words[group, level, tensor][:] = np.where(ragged & keeps, own, answered)
            if not inner:
                _access_pieces(job, pieces, group, level + 1, tensor, inner_keeps, part, gone)
        if not inner:
            peer = linked / lanes(counts.instances[group, level + 1])
            _access(job, pieces, group, level + 1, tensor, inner_keeps, inside, served / children, peer)
        if job.detailed:
            counts.links[group, level, tensor][:] = np.where(exact, linked, 0.0)
            _network(job, group, level, tensor, words, factor)
    if pieces is not None:
        _access_pieces(job, pieces, group, NONE, tensor, keeps, left, every(0.0))
    _access(job, pieces, group, NONE, tensor, keeps, content, every(0.0), every(0.0))


@kernel_part
def _access_pieces(
    job: Job, pieces: Pieces, group: int, level: int, tensor: int, keeps: Bools, left: Floats, passed: Floats
) -> None:
    """Reads, fills and updates of a level that keeps the tensor, where tiles do not divide: averages over the instances, unrounded,
    and the words of the first one.

    Args:
        left: the part of the words that leave which neighbours further in do not pass on.
        passed: the part of the words that enter which neighbours pass on.
    """
    whole, counts = job.tensors.whole[tensor], job.counts
    content = lanes(pieces.left[tensor, level]) * left
    first = lanes(pieces.first_left[tensor, level]) * left
    entered, first_entered = lanes(pieces.entered[tensor, level]), lanes(pieces.first_entered[tensor, level])
    reads, fills, updates = content + entered * passed, entered, every(0.0)
    most_read, most_written = first + first_entered * passed, first_entered
    if whole.is_output:
        own, first_own = lanes(pieces.own[tensor, level]), lanes(pieces.first_own[tensor, level])
        if whole.slides:
            own = first_own = lanes(counts.partition_words[group, level, tensor])
        reads, fills, updates = np.maximum(reads - own, 0.0), np.maximum(entered - own, 0.0), content
        most_read = np.maximum(most_read - first_own, 0.0)
        most_written = np.maximum(first_entered - first_own, 0.0) + first
    counts.reads[group, level, tensor][:], counts.fills[group, level, tensor][:] = reads, fills
    counts.updates[group, level, tensor][:] = updates
    counts.most_read[group, level, tensor][:] = np.where(keeps, most_read, 0.0)
    counts.most_written[group, level, tensor][:] = np.where(keeps, most_written, 0.0)


@kernel_part
def _access(
    job: Job,
    pieces: Pieces | None,
    group: int,
    level: int,
    tensor: int,
    keeps: Bools,
    content: Floats,
    share: Floats,
    peer: Floats,
) -> None:
    """The same where they do, rounded; what `_access_pieces` wrote stays.

    Args:
        content: words that leave one instance; `share`, `peer`: that the average one gets from outside, and from neighbours.
    """
    counts = job.counts
    reads, fills, updates = np.floor(content + peer + 0.5), np.floor(share + peer), every(0.0)
    if job.tensors.whole[tensor].is_output:
        # the first partial sum of every word is written, not added; a box with holes promises more words than exist
        own = lanes(counts.partition_words[group, level, tensor])
        reads = np.maximum(np.floor(content + peer - own + 0.5), 0.0)
        fills = np.maximum(np.floor(share + peer - own + 0.5), 0.0)
        updates = np.floor(content + 0.5)
    if pieces is not None:
        ragged = lanes(counts.ragged[group])
        reads = np.where(ragged, lanes(counts.reads[group, level, tensor]), reads)
        fills = np.where(ragged, lanes(counts.fills[group, level, tensor]), fills)
        updates = np.where(ragged, lanes(counts.updates[group, level, tensor]), updates)
    counts.reads[group, level, tensor][:] = np.where(keeps, reads, 0.0)
    counts.fills[group, level, tensor][:] = np.where(keeps, fills, 0.0)
    counts.updates[group, level, tensor][:] = np.where(keeps, updates, 0.0)


@kernel_part
def _network(job: Job, group: int, level: int, tensor: int, words: Floats, factor: Floats) -> None:
    """Hops, routers and ingresses below one instance of a level (Timeloop's legacy network), of so many words and what neighbours
    pass on, so many times."""
    counts, deliveries = job.counts, job.deliveries
    below, ragged = job.hardware.level[level], lanes(counts.ragged[group])
    rows, sizes = flow.deliver(job, level, words), lanes(deliveries.sizes)
    hops, routers, ingresses = every(0.0), every(0.0), every(0.0)
    for row in range(rows):
        far = lanes(deliveries.far[row]) * np.where(ragged, factor, 1.0)
        sent = np.floor(lanes(deliveries.accesses[row]) * factor + 0.5)
        if job.tensors.whole[tensor].is_output and below.in_dram:
            # DRAM cannot add: partial sums go down and come back
            again = 2.0 * sent - lanes(counts.partition_words[group, level, tensor])
            sent = np.where(lanes(job.scratch.kept[below.holds, tensor]), np.maximum(sent, again), 0.0)
        some = (row < sizes) & (sent > 0.0)
        hops = hops + np.where(some, far, 0.0)
        routed = 1.0 + np.floor(far / np.where(some, sent, 1.0))
        routers = routers + np.where(some, np.floor(routed * sent), 0.0)
        ingresses = ingresses + np.where(some, sent, 0.0)
        if job.reported:
            deliveries.far[row][:], deliveries.accesses[row][:] = far, sent
    counts.hops[group, level, tensor][:], counts.routers[group, level, tensor][:] = hops, routers
    counts.ingresses[group, level, tensor][:] = ingresses
    if job.reported:
        deliveries.told[tensor, level] = deliveries.sizes[0]
        for row in range(deliveries.sizes[0]):
            told = deliveries.delivered[tensor, level, row]
            told.multicast, told.scatter = deliveries.multicast[row, 0], deliveries.scatter[row, 0]
            told.far, told.sent = deliveries.far[row, 0], deliveries.accesses[row, 0]
