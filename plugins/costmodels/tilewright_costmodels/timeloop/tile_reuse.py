"""Parts of the kernel: how the words of one tensor move between a storage level and the next, in closed form, for mappings side
by side.

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upward in binary, each step
shifts a tile by one of as many vectors as there are loops, so the walk has a closed form: with `c` the innermost loop
that moves the tile, a step of `c` always follows a step that left no other direction behind, so its overlap with the
tile before is always credited; a step of an outer loop is credited only if it happens to shift by the same vector.
The tests hold this to a literal walk.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, every, integers, kernel_call, kernel_part, lanes
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import words_of
from tilewright_costmodels.timeloop import multicast
from tilewright_costmodels.timeloop.nest import KernelInput


@kernel_part
def partition_output(inputs: KernelInput, group: int, tensor: int) -> None:
    """The part of an output, in words, that one instance of each level answers for."""
    hardware = inputs.hardware
    scratch = inputs.scratch
    terms = inputs.rules.terms
    counts = inputs.counts
    nest = inputs.nest
    partition = every(inputs.tensors.info[tensor].words)
    for level in range(len(hardware.level)):
        outer = hardware.level[max(0, level - 1)]
        if level > 0 and np.any(lanes(nest.subclusters[level - 1]) > 1.0):
            # the next part is to this one as a tile is to what all children of a parent hold together
            union, side = every(1.0), every(1.0)
            for t in range(terms.start[tensor], terms.start[tensor + 1]):
                term = terms.term[t]
                tile = lanes(scratch.inside[hardware.level[level].start, term.dimension])
                for s in range(outer.start, outer.stop):
                    if not hardware.slot[s].temporal:
                        tile = tile * lanes(scratch.trips[s, term.dimension])
                side = side + float(term.coefficient) * (tile - 1.0)
                if term.last:
                    union, side = union * side, every(1.0)
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
    """part x words / whole, rounded down; exact, however large the product: multiplied bit by bit, and divided as it goes."""
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
    """Find the innermost loop that moves the tensor's tile, as every level sees it; `with_shift`: and how far."""
    hardware, nest, inside, info = inputs.hardware, inputs.nest, inputs.scratch.inside, inputs.tensors.info[tensor]
    visits, sweeps, c_dimension = every(1.0), every(1.0), every(0)
    c_stride, c_shift, step_sum = every(0.0), every(0), every(0)
    for number in range(len(hardware.level)):
        level = hardware.level[number]
        for s in range(level.start, level.stop):
            if with_shift and nest.loop_start[s] < nest.loop_start[s + 1]:
                for each in range(info.relevant_dims):
                    d = inputs.tensors.dims[tensor, each]
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
                    step = every(0)
                    for each in range(info.relevant_dims):
                        d = inputs.tensors.dims[tensor, each]
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
    """`is_unicast` of mappings side by side, [B]: 0 or 1."""
    if len(inputs.mappings.unicast) == 0:
        return every(0 if inputs.hardware.may_share[slot, tensor] else 1)
    for b in range(LANES):
        inputs.nest.shift[b] = is_unicast(inputs, min(first + b, len(inputs.mappings.unicast) - 1), tensor, slot)
    return lanes(inputs.nest.shift)


@kernel_part
def is_unicast(inputs: KernelInput, n: int, tensor: int, slot: int) -> bool:
    """Whether children that differ in a loop of the slot are each served separately."""
    unicast = inputs.mappings.unicast
    sent = len(unicast) > 0 and unicast[n, inputs.hardware.slot[slot].entry, tensor]
    return bool(sent or not inputs.hardware.may_share[slot, tensor])


@kernel_part
def count_different_tiles(inputs: KernelInput, first: int, tensor: int, level: int) -> tuple[Floats, Bools]:
    """Different tiles among the children of one parent: deliveries per word and visit; and whether two unrolled loops move
    one coordinate, so that only `sharing` can tell."""
    info, here, trips = inputs.tensors.info[tensor], inputs.hardware.level[level], inputs.scratch.trips
    different, unrolled_coordinates, repeated = every(1.0), every(1), every(0)
    for s in range(here.start, here.stop):
        slot = inputs.hardware.slot[s]
        if not slot.temporal:
            used, tiles = lanes(inputs.scratch.used[slot.entry]), every(1.0)
            for each in range(info.relevant_dims):
                d = inputs.tensors.dims[tensor, each]
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
    """How often, `c` being the innermost loop that moves the tensor, its tile stays where it is, and how often its overlap
    with the tile before is credited: at every step of c, and when an outer loop shifts it by the same."""
    nest, relevant_bits = inputs.nest, inputs.tensors.info[tensor].relevant_bits
    step_sum = lanes(nest.step_sum[level])  # the steps of all loops inside p are undone when p advances
    c_advance = step_sum + lanes(nest.c_shift[level])
    stays, credited = every(0.0), every(0.0)
    for p in range(nest.loop_start[inputs.hardware.level[level].stop]):
        advance, relevant = lanes(nest.advance_sum[p]), (lanes(nest.dimension[p]) & relevant_bits) != 0
        advances = lanes(nest.trips_outside[p + 1]) - lanes(nest.trips_outside[p])
        stays = stays + np.where(relevant & (advance == step_sum), advances, 0.0)
        credited = credited + np.where(relevant & (advance == c_advance), advances, 0.0)
    return stays, credited


@kernel_part
def tile_overlap(inputs: KernelInput, tensor: int, level: int) -> Floats:
    """Words that the next level's tile shares with itself one step further of the innermost loop that moves it."""
    terms, nest = inputs.rules.terms, inputs.nest
    inside_row = inputs.hardware.level[level].stop
    c_dimension = lanes(nest.c_dimension[level])
    c_stride = lanes(nest.c_stride[level])
    volume, side = every(1.0), every(1.0)
    for t in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[t]
        moved = np.where(c_dimension == 1 << np.int64(term.dimension), c_stride, 0.0)
        side = side + float(term.coefficient) * (lanes(inputs.scratch.inside[inside_row, term.dimension]) - 1.0 - moved)
        if term.last:
            volume, side = volume * np.maximum(side, 0.0), every(1.0)
    return volume


@kernel_part
def count_forwarded(
    inputs: KernelInput,
    level: int,
    at_compute: bool,
    may_forward: Bools,
    tile: Floats,
    overlap: Floats,
    deliveries: Floats,
) -> tuple[Floats, Floats, Floats]:
    """What neighbours pass on: words; deliveries of the parent that they save; receipts.

    The words that a neighbour holds are a shifted copy only where the step before moved as many of them.

    Args:
        inner: the children are compute units. They keep nothing, so that every step moves a whole tile, and a neighbour has it
            even where the step moved none of them. Else `c`, which moves the tile, is the innermost loop of all.
    """
    nest = inputs.nest
    nest.forwarded[:] = nest.saved[:] = nest.received[:] = every(0.0)
    nest.deliveries[:] = deliveries
    step_sum, usual_shift = lanes(nest.step_sum[level]), every(0)
    visits, new_words, usual_words = lanes(nest.visits[level]), tile - overlap, every(0.0)
    further_trips = visits / lanes(nest.sweeps[level]) - 1.0
    if not at_compute:
        usual_shift = lanes(nest.c_shift[level])
        usual_words = np.where(
            overlap == 0.0, further_trips * new_words, 0.0
        )  # words that arrive by the usual shift, in the end
    for p in range(nest.loop_start[inputs.hardware.level[level].stop] - 1, -1, -1):
        trips_outside = lanes(nest.trips_outside[p + 1])
        shift, advances = lanes(nest.advance_sum[p]) - step_sum, trips_outside - lanes(nest.trips_outside[p])
        is_usual, words = shift == usual_shift, advances * tile
        if at_compute:
            usual_words = usual_words + np.where(is_usual, words, 0.0)
            words = np.where(is_usual, 0.0, words)
        else:
            # outside of c
            counted = (trips_outside < visits) & (shift != 0) & (is_usual | (overlap == 0.0))
            usual_words = usual_words + np.where(counted, advances * further_trips * new_words, 0.0)
            words = np.where(counted, np.where(is_usual, advances * new_words, words), 0.0)
        _look_up_forwarding(inputs, may_forward & (words > 0.0), words, shift)
    _look_up_forwarding(inputs, may_forward & (usual_words > 0.0), usual_words, usual_shift)
    return lanes(nest.forwarded), lanes(nest.saved), lanes(nest.received)


@kernel_part
def look_up_deliveries(
    inputs: KernelInput, first: int, tensor: int, level: int, selected: Bools, any_shift: Bools, deliveries: Floats
) -> Floats:
    """Deliveries per word and visit, looked up where it is wanted, with how far neighbours lie apart; `any_shift`: as `_describe_fanout` says."""
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
    """Whether neighbours have the words, where it is wanted."""
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
    """Write how the children of a level are unrolled, side by side; of how many loops.

    Args:
        plain: it does not matter how far a loop moves tiles, since no two unrolled ones move one coordinate.
    """
    cache, here = inputs.cache, inputs.hardware.level[level]
    cache.fanout[0] = fanout = multicast.pack_fanout(level, tensor)
    loops, hash_value, next_shift = 0, every(fanout), every(1)
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
    """Trips of the loops at a position of a slot, and by how much one trip displaces the tile, [B]; of which dimension they are, the
    mappings' order says, if the slot has one."""
    slot = inputs.hardware.slot[s]
    if not slot.ordered:
        return _loop(inputs, tensor, s, position)
    dimension, trips, shift = lanes(inputs.scratch.order[slot.order, position]), every(1), every(0)
    for d in range(inputs.scratch.trips.shape[1]):
        if inputs.nest.loop_dims[s] >> d & 1:
            trips_of_d, shift_of_d = _loop(inputs, tensor, s, d)
            trips, shift = np.where(dimension == d, trips_of_d, trips), np.where(dimension == d, shift_of_d, shift)
    return trips, shift


@kernel_part
def _loop(inputs: KernelInput, tensor: int, s: int, d: int) -> tuple[Ints, Ints]:
    """The same along a dimension."""
    iterations = integers(lanes(inputs.scratch.inside[s + 1, d]))
    return integers(lanes(inputs.scratch.trips[s, d])), iterations * inputs.tensors.projection[tensor, d].displacement


@kernel_part
def note_delivery(inputs: KernelInput, b: int, words: float, pattern: int) -> None:
    """Note words of a mapping, each to be delivered as an account says."""
    deliveries = inputs.deliveries
    at = deliveries.noted[b]
    deliveries.words[b, at], deliveries.pattern[b, at] = words, pattern
    deliveries.noted[b] = at + 1


@kernel_part
def sort_deliveries(inputs: KernelInput, level: int, words: Floats) -> int:
    """Sort what is delivered below a level by size: what neighbours pass on, and then the rest, so many words; how many sizes
    there are at most."""
    deliveries = inputs.deliveries
    single = lanes(inputs.nest.subclusters[level]) == 1.0  # to whom every word comes by itself, and from nowhere far
    needs_sorting = lanes(inputs.nest.live) & ~single & ((lanes(deliveries.sizes) > 1) | (lanes(deliveries.noted) > 1))
    deliveries.sizes[:] = np.where(~needs_sorting & (single | (words != 0.0)), every(1), 0)
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
    """Add words, each delivered as an account says."""
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
