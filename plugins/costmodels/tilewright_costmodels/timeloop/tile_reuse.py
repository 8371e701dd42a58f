"""How often the words of one tensor move between a storage level and the next, in closed form.

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upwards in binary, each step
shifts a tile by one of as many vectors as there are loops. Let `c` be the innermost loop that moves the tile. A step of
`c` follows a step in the same direction, or a tile without overlap. Its overlap with the previous tile is therefore
always credited. A step of an outer loop is credited only if it shifts the tile by the same vector.

Tests check this closed form against a literal walk.

A convolution with 8 outputs and 3 weights. The loop `c` makes 4 steps of 2 outputs, so a tile has 2 + 3 - 1 = 4 inputs:

    step of c    tile         new
    0            [0 .. 3]     4
    1            [2 .. 5]     2      2 words overlap with the previous tile
    2            [4 .. 7]     2
    3            [6 .. 9]     2

The words that move are visits * tile - credited * overlap = 4 * 4 - 3 * 2 = 10.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, inlined, integers, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import words_of
from tilewright_costmodels.timeloop import multicast
from tilewright_costmodels.timeloop.nest import KernelInput


@kernel_part
def partition_output(inputs: KernelInput, group: int, tensor: int) -> None:
    """Write the part of an output, in words, that one instance of each level is responsible for."""
    hardware = inputs.hardware
    scratch = inputs.scratch
    terms = inputs.rules.terms
    counts = inputs.counts
    nest = inputs.nest
    partition = splat16(inputs.tensors.info[tensor].words)
    for level in range(len(hardware.level)):
        outer = hardware.level[max(0, level - 1)]
        if level > 0 and np.any(lanes(nest.subclusters[level - 1]) > 1.0):
            # the ratio of two levels' parts is that of one tile to the union of the tiles of all
            # sub-clusters
            union, side = splat16(1.0), splat16(1.0)
            for t in range(terms.start[tensor], terms.start[tensor + 1]):
                term = terms.term[t]
                tile = lanes(scratch.inside[hardware.level[level].start, term.dimension])
                for s in range(outer.start, outer.stop):
                    if not hardware.slot[s].temporal:
                        tile = tile * lanes(scratch.trips[s, term.dimension])
                side = side + float(term.coefficient) * (tile - 1.0)
                if term.last:
                    union, side = union * side, splat16(1.0)
            words = words_of(terms, tensor, scratch.inside[hardware.level[level].start])
            beyond_exact, divided = partition * words >= 2.0**53, np.floor(partition * words / union)
            if np.any(beyond_exact):
                nest.selected[:] = beyond_exact
                nest.words[:] = partition
                nest.forwarded[:] = words
                nest.saved[:] = union
                for b in range(LANES):
                    if nest.selected[b]:
                        nest.words[b] = _multiply_divide(nest.words[b], nest.forwarded[b], nest.saved[b])
                divided = np.where(beyond_exact, lanes(nest.words), divided)
            partition = divided
        counts.partition_words[group, level, tensor][:] = partition


@kernel_call
def _multiply_divide(multiplicand: float, multiplier: float, divisor: float) -> float:
    """Return floor(multiplicand x multiplier / divisor), exact for any size of the product.

    It multiplies bit by bit, and divides in between.
    """
    bit = 1.0
    while bit * 2.0 <= multiplier:
        bit *= 2.0
    result = remainder = 0.0
    while bit >= 1.0:
        result, remainder = result * 2.0, remainder * 2.0
        if multiplier >= bit:
            multiplier -= bit
            result += np.floor(multiplicand / divisor)
            remainder += multiplicand % divisor
        result += np.floor(remainder / divisor)
        remainder = remainder % divisor
        bit /= 2.0
    return result


@kernel_part
def follow_tile(inputs: KernelInput, tensor: int, with_shift: bool) -> None:
    """Find the innermost relevant temporal loop `c`, as every level sees it.

    Args:
        with_shift: also compute how far the loops shift the tile.
    """
    hardware, nest, inside, info = inputs.hardware, inputs.nest, inputs.scratch.inside, inputs.tensors.info[tensor]
    visits, sweeps, c_dimension = splat16(1.0), splat16(1.0), splat16(0)
    c_stride, c_shift, step_sum = splat16(0.0), splat16(0), splat16(0)
    for number in range(len(hardware.level)):
        level = hardware.level[number]
        for s in range(level.start, level.stop):
            if with_shift and nest.loop_start[s] < nest.loop_start[s + 1]:
                for position in range(info.relevant_dims):
                    d = inputs.tensors.dims[tensor, position]
                    nest.step[d][:] = (
                        integers(lanes(inside[s + 1, d])) * inputs.tensors.projection[tensor, d].displacement
                    )
            for p in range(nest.loop_start[s], nest.loop_start[s + 1]):
                dimension = lanes(nest.dimension[p])
                relevant = (dimension & info.relevant_bits) != 0
                visits = np.where(relevant, lanes(nest.trips_outside[p + 1]), visits)
                if with_shift:
                    sweeps = np.where(relevant, lanes(nest.trips_outside[p]), sweeps)
                    c_dimension = np.where(relevant, dimension, c_dimension)
                    step = splat16(0)
                    for position in range(info.relevant_dims):
                        d = inputs.tensors.dims[tensor, position]
                        is_d = dimension == 1 << np.int64(d)
                        step = np.where(is_d, lanes(nest.step[d]), step)
                        c_stride = np.where(is_d, lanes(inside[s + 1, d]), c_stride)
                    c_shift = np.where(relevant, step, c_shift)
                    step_sum = step_sum + step
                    nest.advance_sum[p][:] = step_sum + step
        nest.visits[number][:] = visits
        if with_shift:
            nest.sweeps[number][:] = sweeps
            nest.c_dimension[number][:] = c_dimension
            nest.c_stride[number][:] = c_stride
            nest.c_shift[number][:], nest.step_sum[number][:] = c_shift, step_sum


@kernel_part
def _unicast_lanes(inputs: KernelInput, first: int, tensor: int, slot: int) -> Ints:
    """Return `is_unicast` of the mappings in all lanes, [B]: 0 or 1."""
    if len(inputs.mappings.unicast) == 0:
        return splat16(0 if inputs.hardware.may_share[slot, tensor] else 1)
    for b in range(LANES):
        inputs.nest.shift[b] = is_unicast(inputs, min(first + b, len(inputs.mappings.unicast) - 1), tensor, slot)
    return lanes(inputs.nest.shift)


@kernel_part
def is_unicast(inputs: KernelInput, n: int, tensor: int, slot: int) -> bool:
    """Return whether sub-clusters that differ in a loop of the slot are served separately."""
    unicast = inputs.mappings.unicast
    sent = len(unicast) > 0 and unicast[n, inputs.hardware.slot[slot].entry, tensor]
    return bool(sent or not inputs.hardware.may_share[slot, tensor])


@kernel_part
def count_different_tiles(inputs: KernelInput, first: int, tensor: int, level: int) -> tuple[Floats, Bools]:
    """Return (different tiles of one parent's sub-clusters, whether two spatial loops move one coordinate), [B].

    The number of different tiles is the number of deliveries per word and visit. If two spatial
    loops move one coordinate, it is only an upper bound, and `multicast` must compute it.
    """
    info, here, trips = inputs.tensors.info[tensor], inputs.hardware.level[level], inputs.scratch.trips
    different, unrolled_coordinates, repeated = splat16(1.0), splat16(1), splat16(0)
    for s in range(here.start, here.stop):
        slot = inputs.hardware.slot[s]
        if not slot.temporal:
            used, tiles = lanes(inputs.scratch.used[slot.entry]), splat16(1.0)
            for position in range(info.relevant_dims):
                d = inputs.tensors.dims[tensor, position]
                unrolled, coordinates = lanes(trips[s, d]), inputs.tensors.projection[tensor, d].windowed
                tiles = tiles * unrolled
                if coordinates:
                    is_unrolled = unrolled > 1.0
                    repeated = repeated | np.where(is_unrolled, unrolled_coordinates & coordinates, 0)
                    unrolled_coordinates = unrolled_coordinates | np.where(is_unrolled, coordinates, 0)
            different = different * np.where(_unicast_lanes(inputs, first, tensor, s) != 0, used, tiles)
    return different, repeated != 0


@kernel_part
def revisits(inputs: KernelInput, tensor: int, level: int) -> tuple[Floats, Floats]:
    """Return how often the tile stays in place, and how often the overlap with the previous tile is credited, [B].

    Overlap is credited at every step of `c`, and when an outer loop shifts the tile by the same vector.
    """
    nest, relevant_bits = inputs.nest, inputs.tensors.info[tensor].relevant_bits
    step_sum = lanes(nest.step_sum[level])  # when loop p advances, the steps of all loops inside it are undone
    c_advance = step_sum + lanes(nest.c_shift[level])
    stays, credited = splat16(0.0), splat16(0.0)
    for p in range(nest.loop_start[inputs.hardware.level[level].stop]):
        advance, relevant = lanes(nest.advance_sum[p]), (lanes(nest.dimension[p]) & relevant_bits) != 0
        advances = lanes(nest.trips_outside[p + 1]) - lanes(nest.trips_outside[p])
        stays = stays + np.where(relevant & (advance == step_sum), advances, 0.0)
        credited = credited + np.where(relevant & (advance == c_advance), advances, 0.0)
    return stays, credited


@kernel_part
def tile_overlap(inputs: KernelInput, tensor: int, level: int) -> Floats:
    """Return the words that the next level's tile shares with itself one step of `c` later, [B]."""
    terms, nest = inputs.rules.terms, inputs.nest
    inside_row = inputs.hardware.level[level].stop
    c_dimension = lanes(nest.c_dimension[level])
    c_stride = lanes(nest.c_stride[level])
    volume, side = splat16(1.0), splat16(1.0)
    for t in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[t]
        moved = np.where(c_dimension == 1 << np.int64(term.dimension), c_stride, 0.0)
        side = side + float(term.coefficient) * (lanes(inputs.scratch.inside[inside_row, term.dimension]) - 1.0 - moved)
        if term.last:
            volume, side = volume * np.maximum(side, 0.0), splat16(1.0)
    return volume


@inlined
def count_forwarded(
    inputs: KernelInput,
    level: int,
    at_compute: bool,
    may_forward: Bools,
    tile: Floats,
    overlap: Floats,
    deliveries: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return the words that neighbours forward, the deliveries that the parent saves, and the words received, [B].

    A neighbour's tile is a shifted copy of the new words only if its previous step moved as many words.

    Args:
        at_compute: sub-clusters are compute units. They keep nothing, so every step moves a whole tile, and a neighbour
            holds it even if its previous step moved nothing. Otherwise `c` is the innermost of all loops.
        may_forward: lanes to look at, [B].
        tile: words of a tile.
        overlap: words that it shares with the previous tile.
        deliveries: deliveries per word without forwarding.
    """
    nest = inputs.nest
    nest.forwarded[:] = nest.saved[:] = nest.received[:] = splat16(0.0)
    nest.deliveries[:] = deliveries
    step_sum, usual_shift = lanes(nest.step_sum[level]), splat16(0)
    visits, new_words, usual_words = lanes(nest.visits[level]), tile - overlap, splat16(0.0)
    further_trips = visits / lanes(nest.sweeps[level]) - 1.0
    if not at_compute:
        usual_shift = lanes(nest.c_shift[level])
        usual_words = np.where(
            overlap == 0.0, further_trips * new_words, 0.0
        )  # words that arrive with the shift of `c`, over all its sweeps
    for p in range(nest.loop_start[inputs.hardware.level[level].stop] - 1, -1, -1):
        trips_outside = lanes(nest.trips_outside[p + 1])
        shift, advances = lanes(nest.advance_sum[p]) - step_sum, trips_outside - lanes(nest.trips_outside[p])
        is_usual, words = shift == usual_shift, advances * tile
        if at_compute:
            usual_words = usual_words + np.where(is_usual, words, 0.0)
            words = np.where(is_usual, 0.0, words)
        else:
            # of loops outside `c` only
            counted = (trips_outside < visits) & (shift != 0) & (is_usual | (overlap == 0.0))
            usual_words = usual_words + np.where(counted, advances * further_trips * new_words, 0.0)
            words = np.where(counted, np.where(is_usual, advances * new_words, words), 0.0)
        _look_up_forwarding(inputs, may_forward & (words > 0.0), words, shift)
    _look_up_forwarding(inputs, may_forward & (usual_words > 0.0), usual_words, usual_shift)
    return lanes(nest.forwarded), lanes(nest.saved), lanes(nest.received)


@inlined
def look_up_deliveries(
    inputs: KernelInput, first: int, tensor: int, level: int, selected: Bools, any_shift: Bools, deliveries: Floats
) -> Floats:
    """Return the deliveries per word and visit, [B], and write the shifts between neighbours.

    Args:
        selected: lanes to look up.
        any_shift: see `_describe_fanout`.
        deliveries: result for the other lanes.
    """
    loops = _describe_fanout(inputs, first, tensor, level, any_shift)
    inputs.nest.selected[:], inputs.nest.deliveries[:] = selected, deliveries
    _look_up_patterns(inputs, loops)
    return lanes(inputs.nest.deliveries)


@kernel_call
def _look_up_patterns(inputs: KernelInput, loops: int) -> None:
    nest, cache = inputs.nest, inputs.cache
    for b in range(LANES):
        if nest.selected[b]:
            multicast.prefetch_pattern(cache, b)
    for b in range(LANES):
        if nest.selected[b]:
            nest.pattern[b] = pattern = multicast.find_pattern(inputs.hardware, cache, loops, b)
            nest.deliveries[b] = multicast.deliveries_per_word(cache, pattern)
            nest.neighbour_bits[b] = multicast.neighbour_bits(cache, pattern)
            if inputs.detailed:
                deliveries, scatter = inputs.deliveries, multicast.scatter(cache, pattern, 0)
                deliveries.pattern[b, 0], deliveries.noted[b] = pattern, 1
                deliveries.sizes[b] = multicast.size_count(cache, pattern)
                deliveries.multicast[0, b], deliveries.scatter[0, b] = multicast.multicast(cache, pattern, 0), scatter
                deliveries.first_scatter[b], deliveries.first_hops[b] = scatter, multicast.hops(cache, pattern, 0)


@kernel_part
def _look_up_forwarding(inputs: KernelInput, selected: Bools, words: Floats, shift: Ints) -> None:
    """Add the words that neighbours hold, in the selected lanes."""
    if np.any(selected):
        nest = inputs.nest
        possible = selected & ((lanes(nest.neighbour_bits) >> multicast.bit_of(np.maximum(shift, 0 - shift)) & 1) != 0)
        if np.any(possible):
            nest.selected[:], nest.words[:], nest.shift[:] = possible, words, shift
            _look_up_forwarding_patterns(inputs)


@kernel_call
def _look_up_forwarding_patterns(inputs: KernelInput) -> None:
    nest, cache = inputs.nest, inputs.cache
    for b in range(LANES):
        if nest.selected[b]:
            pattern = multicast.find_forwarding_pattern(inputs.hardware, cache, nest.pattern[b], nest.shift[b])
            deliveries_left = float(multicast.deliveries_per_word(cache, pattern))
            linked = float(multicast.forwarded_subclusters(cache, pattern))
            if linked > 0.0 and deliveries_left < nest.deliveries[b]:
                words = nest.words[b]
                nest.forwarded[b] += words
                nest.saved[b] += words * (nest.deliveries[b] - deliveries_left)
                nest.received[b] += words * linked
                if inputs.detailed:
                    note_delivery(inputs, b, words, pattern)


@kernel_part
def _describe_fanout(inputs: KernelInput, first: int, tensor: int, level: int, any_shift: Bools) -> int:
    """Write the spatial loops of a level to the cache, for all lanes. Return the number of rows.

    Args:
        any_shift: lanes in which no two spatial loops move one coordinate. Only whether a loop shifts the tile matters
            there, so shifts are replaced by canonical ones, and more unrollings are found in the cache.
    """
    cache, here = inputs.cache, inputs.hardware.level[level]
    cache.fanout[0] = fanout = multicast.pack_fanout(level, tensor)
    loops, hash_value, next_shift = 0, splat16(fanout), splat16(1)
    for s in range(here.start, here.stop):
        slot, loop_dims = inputs.hardware.slot[s], inputs.nest.loop_dims[s]
        if not slot.temporal and loop_dims:
            unicast = _unicast_lanes(inputs, first, tensor, s)
            for position in range(inputs.scratch.trips.shape[1]):
                if slot.ordered or loop_dims >> position & 1:
                    trips, shift = _loop_at(inputs, tensor, s, position)
                    numbered, iterates = any_shift & (shift != 0), trips > 1
                    shift = np.where(numbered, next_shift, shift)
                    next_shift = np.where(numbered, next_shift * trips, next_shift)
                    loop = np.where(iterates, multicast.pack_loop(trips, s, unicast), 0)
                    cache.loops[loops][:], cache.shifts[loops][:] = loop, shift
                    hash_value = np.where(
                        iterates, multicast.hash_bits(hash_value ^ loop ^ (shift * 0x9E3779B1)), hash_value
                    )
                    loops += 1
    cache.hashes[:] = hash_value
    return loops


@kernel_part
def _loop_at(inputs: KernelInput, tensor: int, s: int, position: int) -> tuple[Ints, Ints]:
    """Return (trips, shift per trip) of the loops at one position of a slot, [B].

    If the slot has an order, the mappings decide which dimension is at the position.
    """
    slot = inputs.hardware.slot[s]
    if not slot.ordered:
        return _loop(inputs, tensor, s, position)
    dimension, trips, shift = lanes(inputs.scratch.order[slot.order, position]), splat16(1), splat16(0)
    for d in range(inputs.scratch.trips.shape[1]):
        if inputs.nest.loop_dims[s] >> d & 1:
            trips_of_d, shift_of_d = _loop(inputs, tensor, s, d)
            trips, shift = np.where(dimension == d, trips_of_d, trips), np.where(dimension == d, shift_of_d, shift)
    return trips, shift


@kernel_part
def _loop(inputs: KernelInput, tensor: int, s: int, d: int) -> tuple[Ints, Ints]:
    """Return (trips, shift per trip) of the loops along one dimension, [B]."""
    iterations = integers(lanes(inputs.scratch.inside[s + 1, d]))
    return integers(lanes(inputs.scratch.trips[s, d])), iterations * inputs.tensors.projection[tensor, d].displacement


@kernel_part
def note_delivery(inputs: KernelInput, b: int, words: float, pattern: int) -> None:
    """Note words of the mapping in lane `b`, delivered by a pattern."""
    deliveries = inputs.deliveries
    at = deliveries.noted[b]
    deliveries.words[b, at], deliveries.pattern[b, at] = words, pattern
    deliveries.noted[b] = at + 1


@kernel_part
def sort_deliveries(inputs: KernelInput, level: int, words: Floats) -> int:
    """Sort the noted deliveries and those of `words` from the parent by size. Return the number of rows."""
    deliveries = inputs.deliveries
    single = (
        lanes(inputs.nest.subclusters[level]) == 1.0
    )  # a single sub-cluster receives each word directly, without hops
    needs_sorting = lanes(inputs.nest.live) & ~single & ((lanes(deliveries.sizes) > 1) | (lanes(deliveries.noted) > 1))
    deliveries.sizes[:] = np.where(~needs_sorting & (single | (words != 0.0)), splat16(1), 0)
    deliveries.multicast[0][:] = np.where(single, 1, lanes(deliveries.multicast[0]))
    deliveries.scatter[0][:] = np.where(single, 1, lanes(deliveries.scatter[0]))
    deliveries.accesses[0][:] = words * np.where(single, 1.0, lanes(deliveries.first_scatter))
    deliveries.hops[0][:] = words * np.where(single, 0.0, lanes(deliveries.first_hops))
    if not np.any(needs_sorting):
        return 1
    inputs.nest.selected[:], inputs.nest.words[:] = needs_sorting, words
    return _sort_lanes(inputs)


@kernel_call
def _sort_lanes(inputs: KernelInput) -> int:
    deliveries, rows = inputs.deliveries, 1
    for b in range(LANES):
        if inputs.nest.selected[b]:
            for number in range(1, deliveries.noted[b]):
                _add_delivery(inputs, b, deliveries.words[b, number], deliveries.pattern[b, number])
            _add_delivery(inputs, b, inputs.nest.words[b], deliveries.pattern[b, 0])
            rows = max(rows, deliveries.sizes[b])
    return rows


@kernel_part
def _add_delivery(inputs: KernelInput, b: int, words: float, pattern: int) -> None:
    """Add `words`, sent by a multicast pattern, to the accesses and hops of mapping `b`, per group of sub-clusters."""
    deliveries, cache = inputs.deliveries, inputs.cache
    if words == 0.0:
        return
    for size in range(multicast.size_count(cache, pattern)):
        served, scatter = multicast.multicast(cache, pattern, size), multicast.scatter(cache, pattern, size)
        row, rows = 0, deliveries.sizes[b]
        while row < rows and (deliveries.multicast[row, b] != served or deliveries.scatter[row, b] != scatter):
            row += 1
        if row == rows:
            deliveries.sizes[b] += 1
            deliveries.multicast[row, b], deliveries.scatter[row, b] = served, scatter
            deliveries.accesses[row, b] = deliveries.hops[row, b] = 0.0
        deliveries.accesses[row, b] += words * scatter
        deliveries.hops[row, b] += words * multicast.hops(cache, pattern, size)
