"""Kernel of the cost model: counts what mappings move, by Timeloop's rules, and computes energy and cycles.

`LANES` mappings are evaluated at a time, one in each SIMD lane. docs/timeloop.md states the rules.
Counts are float64, exact below 2**53; the model refuses larger problems.

The counts of the matrix product of `nest`, one row per tensor (`_count_tensor`). A PE is one of two, over k.

    tensor      tile     visits      into a PE    deliveries     DRAM reads     DRAM updates
    A [m, k]    2 x 2    2           8            2              16             0
    B [k, n]    2 x 1    8           16           2              32             0
    Z [m, n]    2 x 1    8           16           1              0              16

A: each visit brings 4 words, 8 in all. The PEs have different k, so DRAM reads 8 * 2 words. Z: both PEs have the same
tile, so their sums are added on the way, and DRAM updates 8 * 2 words once. No sum is read again, since none existed.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, compiled, inlined, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.rules.legality_kernel import TripBatch, check_trips
from tilewright.mapspace.rules.scratch import fetch, words_of
from tilewright.mapspace.rules.tables import NONE
from tilewright_costmodels.timeloop import tile_reuse
from tilewright_costmodels.timeloop.costs import cost
from tilewright_costmodels.timeloop.multicast import make_room
from tilewright_costmodels.timeloop.nest import KernelInput, build_nest
from tilewright_costmodels.timeloop.ragged.tables import Pieces
from tilewright_costmodels.timeloop.ragged.traffic import count_ragged_traffic


@compiled
def evaluate(inputs: KernelInput, pieces: Pieces | None, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Count the words that every mapping moves, and write energies and cycles.

    Args:
        inputs: its counts have one group per `LANES` mappings, or a single group for the last ones.
        pieces: None if all tiles divide. That variant of the kernel compiles in a third of the time.
        valid: [n], mappings to evaluate. Illegal ones become False.
        energy_pj: [n], written for valid mappings.
        cycles: [n], likewise.
    """
    mappings, nest, counts = inputs.mappings, inputs.nest, inputs.counts
    for first in range(0, len(valid), LANES):
        group, count = first // LANES if len(counts.ragged) > 1 else 0, min(LANES, len(valid) - first)
        batch = TripBatch(mappings.trips, mappings.tiles, mappings.order, mappings.keep)
        check_trips(inputs.rules, inputs.slots, batch, inputs.lax_fanout, first, valid, inputs.scratch)
        any_live = False
        for b in range(LANES):
            nest.live[b] = b < count and valid[first + b]
            any_live |= nest.live[b]
        if any_live:
            build_nest(inputs, group, pieces is not None)
            counts.compute_cycles[group][:] = lanes(nest.trips_outside[nest.loop_start[len(nest.loop_start) - 1]])
            if pieces is not None:
                for b in range(count):
                    if counts.ragged[group, b]:
                        counts.compute_cycles[group, b] = count_ragged_traffic(inputs, pieces, first + b, b, group)
            steps = lanes(counts.compute_cycles[group])
            counts.compute_cycles[group][:] = steps * inputs.hardware.cycles_per_operation
            for tensor in range(len(inputs.tensors.info)):
                if inputs.detailed or inputs.tensors.info[tensor].is_output:
                    tile_reuse.partition_output(inputs, group, tensor)
                _count_tensor(inputs, pieces, first, group, tensor)
            energy, spent_cycles = cost(inputs.hardware, counts, inputs.detailed, inputs.reported, group)
            nest.energy_pj[:], nest.cycles[:] = energy, spent_cycles
        for b in range(count):
            valid[first + b] &= nest.live[b]
            if nest.live[b]:
                energy_pj[first + b], cycles[first + b] = nest.energy_pj[b], nest.cycles[b]


@inlined
def _count_tensor(inputs: KernelInput, pieces: Pieces | None, first: int, group: int, tensor: int) -> None:
    """Count the reads, fills and updates of one tensor at every level, innermost first.

    At each step, `level` is the parent and `inner` variables describe the next level inside, or compute.
    """
    info, hardware, nest, counts = inputs.tensors.info[tensor], inputs.hardware, inputs.nest, inputs.counts
    levels, live, ragged = len(hardware.level), lanes(nest.live), lanes(counts.ragged[group])
    linked_units = inputs.link_transfers and np.any(lanes(nest.subclusters[levels - 1]) > 1.0)
    tile_reuse.follow_tile(inputs, tensor, bool(info.may_overlap or linked_units))
    if inputs.reported:
        counts.tile_words[group, 0, tensor][:] = splat16(info.words)
    # `content`: accesses to a level from inside, in words per instance; `unforwarded`: fraction of
    # them that no neighbour forwards
    content = splat16(0.0)
    keeps = splat16(False)
    unforwarded = splat16(1.0)
    for number in range(levels):
        next_mapping = first + LANES + tensor * levels + number  # prefetch one mapping of the next group
        fetch(inputs.mappings.trips, next_mapping)
        fetch(inputs.mappings.order, next_mapping)
        level = levels - 1 - number
        at_compute = number == 0
        inner_content = content
        inner_unforwarded = unforwarded
        inner_keeps = keeps
        here, subclusters = hardware.level[level], lanes(nest.subclusters[level])
        iterations = lanes(nest.trips_outside[nest.loop_start[here.stop]])  # of all temporal loops down to the level
        keeps = lanes(inputs.scratch.kept[here.holds, tensor])
        has_fanout = subclusters > 1.0
        counted = inner_keeps | at_compute  # a bypassed inner level only scales the accesses of its parent
        deliveries, shared_coordinate, windowed, may_forward = (
            splat16(1.0),
            splat16(False),
            splat16(False),
            splat16(False),
        )
        # compute has no register, so every operation fetches its words
        words, tile, overlap = iterations, splat16(1.0), splat16(0.0)
        if not at_compute:
            # every advance of the innermost relevant loop `c`, and every restart of it, moves a
            # whole tile
            tile = words_of(inputs.rules.terms, tensor, inputs.scratch.inside[here.stop])
            if inputs.reported:
                counts.tile_words[group, level + 1, tensor][:] = tile
            words = lanes(nest.visits[level]) * tile
            windowed = (lanes(nest.c_dimension[level]) & info.windowed_bits) != 0
            if info.may_overlap and np.any(windowed & (counted | has_fanout | inputs.detailed)):
                stays, credited = tile_reuse.revisits(inputs, tensor, level)
                overlap = np.where(windowed, tile_reuse.tile_overlap(inputs, tensor, level), 0.0)
                words = words - np.where(windowed, tile * stays + overlap * credited, 0.0)
        if np.any(has_fanout & live):
            make_room(inputs.cache)
            deliveries, shared_coordinate = tile_reuse.count_different_tiles(inputs, first, tensor, level)
            if inputs.link_transfers and hardware.may_link[level, tensor] and (at_compute or info.may_overlap):
                innermost = lanes(nest.visits[level]) == iterations
                may_forward = live & has_fanout & (at_compute | (windowed & innermost))
        # with ragged tiles, full tiles are counted only to learn the fraction that neighbours
        # forward
        needs_lookup = may_forward | (live & has_fanout & (inputs.detailed | (shared_coordinate & ~ragged)))
        if np.any(needs_lookup):
            deliveries = tile_reuse.look_up_deliveries(
                inputs, first, tensor, level, needs_lookup, ~(shared_coordinate | may_forward), deliveries
            )
        sent, received, linked = words * deliveries, words * subclusters, splat16(0.0)
        accesses = sent  # accesses of the parent, before forwarding
        if np.any(may_forward):
            forwarded, saved, linked = tile_reuse.count_forwarded(
                inputs, level, at_compute, may_forward, tile, overlap, deliveries
            )
            words, accesses, received = words - forwarded, sent - saved, received - linked
        # the parent serves the accesses of a bypassed inner level in its own delivery mix
        factor = np.where(counted, 1.0, inner_content * subclusters / received)
        content = np.where(counted | has_fanout, accesses * factor, inner_content)
        if pieces is not None and np.any(ragged):
            # exact words of ragged tiles, reduced by the fraction that neighbours forward with full
            # tiles
            forwarded_fraction = np.where(may_forward, linked / (received + linked), 0.0)
            fraction = np.where(counted, 1.0, unforwarded)
            fraction = np.where(may_forward, accesses / sent * fraction, fraction)
            # forwarded words are not requested from the bypassed level either
            fraction = np.where(may_forward & ~counted, fraction / (1.0 - forwarded_fraction), fraction)
            unforwarded = np.where(
                ragged & (keeps | inner_keeps | may_forward | inputs.detailed), fraction, unforwarded
            )
            content = np.where(ragged, lanes(pieces.sent[tensor, level]) * unforwarded, content)
            factor = np.where(ragged, content / accesses, factor)
            linked = np.where(ragged, linked * factor, linked)
            if not info.may_overlap and (info.is_output or inputs.detailed):
                partition = lanes(pieces.partition[tensor, level])
                partition_of_full_tiles = lanes(counts.partition_words[group, level, tensor])
                counts.partition_words[group, level, tensor][:] = np.where(
                    ragged & keeps, partition, partition_of_full_tiles
                )
            if not at_compute:
                _write_ragged_accesses(
                    inputs, pieces, group, level + 1, tensor, inner_keeps, inner_unforwarded, forwarded_fraction
                )
        if not at_compute:
            peer = linked / lanes(counts.instances[group, level + 1])
            _write_accesses(
                inputs, pieces, group, level + 1, tensor, inner_keeps, inner_content, received / subclusters, peer
            )
        if inputs.detailed:
            counts.links[group, level, tensor][:] = np.where(
                counted & _has_source(inputs, tensor, level + 1), linked, 0.0
            )
            _count_network(inputs, group, level, tensor, words, factor)
    if pieces is not None:
        _write_ragged_accesses(inputs, pieces, group, NONE, tensor, keeps, unforwarded, splat16(0.0))
    _write_accesses(inputs, pieces, group, NONE, tensor, keeps, content, splat16(0.0), splat16(0.0))


@kernel_part
def _has_source(inputs: KernelInput, tensor: int, level: int) -> Bools:
    """Return whether a level outside `level` keeps the tensor, [B].

    The outermost level that keeps a tensor is its backing store: nothing fills it.
    """
    has_source = splat16(False)
    for outer in range(level):
        has_source = has_source | lanes(inputs.scratch.kept[inputs.hardware.level[outer].holds, tensor])
    return has_source


@kernel_part
def _write_ragged_accesses(
    inputs: KernelInput,
    pieces: Pieces,
    group: int,
    level: int,
    tensor: int,
    keeps: Bools,
    unforwarded: Floats,
    forwarded: Floats,
) -> None:
    """Write reads, fills and updates of a level where tiles do not divide.

    They are averages over the instances, unrounded. The busiest instance, which sets the cycles, is the first one.

    Args:
        unforwarded: fraction of the accesses from inside that neighbours at inner levels do not forward.
        forwarded: fraction of the received words that neighbours forward.
    """
    info, counts = inputs.tensors.info[tensor], inputs.counts
    content = lanes(pieces.sent[tensor, level]) * unforwarded
    first_content = lanes(pieces.first_sent[tensor, level]) * unforwarded
    has_source = _has_source(inputs, tensor, level)
    entered = np.where(has_source, lanes(pieces.received[tensor, level]), 0.0)
    first_entered = np.where(has_source, lanes(pieces.first_received[tensor, level]), 0.0)
    reads, fills, updates = content + entered * forwarded, entered, splat16(0.0)
    busiest_reads, busiest_writes = first_content + first_entered * forwarded, first_entered
    if info.is_output:
        partition = lanes(pieces.partition[tensor, level])
        first_partition = lanes(pieces.first_partition[tensor, level])
        if info.may_overlap:
            partition = first_partition = lanes(counts.partition_words[group, level, tensor])
        reads, updates = np.maximum(reads - partition, 0.0), content
        busiest_reads = np.maximum(busiest_reads - first_partition, 0.0)
        if not inputs.hardware.first_fills:
            fills = np.maximum(entered - partition, 0.0)
            busiest_writes = np.maximum(first_entered - first_partition, 0.0)
        busiest_writes = busiest_writes + first_content
    counts.reads[group, level, tensor][:], counts.fills[group, level, tensor][:] = reads, fills
    counts.updates[group, level, tensor][:] = updates
    counts.busiest_reads[group, level, tensor][:] = np.where(keeps, busiest_reads, 0.0)
    counts.busiest_writes[group, level, tensor][:] = np.where(keeps, busiest_writes, 0.0)


@kernel_part
def _write_accesses(
    inputs: KernelInput,
    pieces: Pieces | None,
    group: int,
    level: int,
    tensor: int,
    keeps: Bools,
    content: Floats,
    received: Floats,
    peer: Floats,
) -> None:
    """Write reads, fills and updates of a level where tiles divide, rounded as Timeloop rounds.

    Where tiles do not divide, the values of `_write_ragged_accesses` stay.

    Args:
        content: accesses from inside, in words per instance.
        received: average words that one instance receives from its parent.
        peer: average words that one instance receives from neighbours.
    """
    counts = inputs.counts
    has_source = _has_source(inputs, tensor, level)
    received, peer = np.where(has_source, received, 0.0), np.where(has_source, peer, 0.0)
    reads, fills, updates = np.floor(content + peer + 0.5), np.floor(received + peer), splat16(0.0)
    if inputs.tensors.info[tensor].is_output:
        # first-read elision: the first partial sum of a word is written, not added. A box with
        # holes contains more words than exist, hence the maximum
        partition = lanes(counts.partition_words[group, level, tensor])
        reads = np.maximum(np.floor(content + peer - partition + 0.5), 0.0)
        if not inputs.hardware.first_fills:
            fills = np.maximum(np.floor(received + peer - partition + 0.5), 0.0)
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
def _count_network(inputs: KernelInput, group: int, level: int, tensor: int, words: Floats, factor: Floats) -> None:
    """Count hops, routers and ingresses of the network below one instance of a level (Timeloop's legacy network).

    Args:
        words: words that the parent delivers; noted forwarded words are added.
        factor: accesses after bypass over accesses before.
    """
    counts, deliveries = inputs.counts, inputs.deliveries
    below, ragged = inputs.hardware.level[level], lanes(counts.ragged[group])
    rows, sizes = tile_reuse.sort_deliveries(inputs, level, words), lanes(deliveries.sizes)
    has_source = _has_source(inputs, tensor, level + 1)
    hops, routers, ingresses = splat16(0.0), splat16(0.0), splat16(0.0)
    for row in range(rows):
        hops_of_row = lanes(deliveries.hops[row]) * np.where(ragged, factor, 1.0)
        sent = np.floor(lanes(deliveries.accesses[row]) * factor + 0.5)
        if inputs.tensors.info[tensor].is_output and below.in_dram:
            # DRAM cannot add, so partial sums go down and come back
            read_back = 2.0 * sent - lanes(counts.partition_words[group, level, tensor])
            sent = np.where(lanes(inputs.scratch.kept[below.holds, tensor]), np.maximum(sent, read_back), 0.0)
        used = (row < sizes) & (sent > 0.0) & has_source
        hops = hops + np.where(used, hops_of_row, 0.0)
        routed = 1.0 + np.floor(hops_of_row / np.where(used, sent, 1.0))
        routers = routers + np.where(used, np.floor(routed * sent), 0.0)
        ingresses = ingresses + np.where(used, sent, 0.0)
        if inputs.reported:
            deliveries.hops[row][:], deliveries.accesses[row][:] = hops_of_row, sent
    counts.hops[group, level, tensor][:], counts.routers[group, level, tensor][:] = hops, routers
    counts.ingresses[group, level, tensor][:] = ingresses
    if inputs.reported:
        deliveries.reported_sizes[tensor, level] = deliveries.sizes[0]
        for row in range(deliveries.sizes[0]):
            row_report = deliveries.reported[tensor, level, row]
            row_report.multicast, row_report.scatter = deliveries.multicast[row, 0], deliveries.scatter[row, 0]
            row_report.hops, row_report.sent = deliveries.hops[row, 0], deliveries.accesses[row, 0]
