"""Words that move where tiles do not divide, counted exactly from the pieces.

Dimensions are cut independently. A count of steps, instances or words is therefore a product over dimensions, or over
the few that share a coordinate, of results of `count_pieces`. Consider a tensor that moves between a memory and the
nearest one inside that keeps it. Let `c` be the innermost temporal loop that moves its tile. The words that move are
those of all tiles, with the temporal loops down to c free, less two terms:

  1. For each loop p outside c, the tiles that stay in place when p advances: neither p nor a loop inside p moves them.
  2. The overlap with the previous tile, where it is credited (see `tile_reuse`). The previous tile is that of the second
     trips of all loops inside, as Timeloop visits them. It has its own size, so a short one leaves fewer words (SECOND).
     If none of these loops advances, it is that of term 1; if only some do, nothing is credited.

Spatial loops are free if all instances are counted, and at zero for the first instance, which is
the busiest. They are also at zero where sub-clusters share deliveries, because the first
sub-cluster receives every word that the others receive.

A matrix [9, 3] whose tiles are 4 x 3 words. Loops outside: over the tiles of 4, then over an irrelevant dimension of 5.

    words of all different tiles     4 * 3 + 4 * 3 + 1 * 3 = 27     (`_distinct_words`)
    how often each is sent           1                              (`_repetitions`): the loop of 5 is inside `c`

With the loop of 5 outside, each tile is sent 5 times. If the loop over tiles had one trip, its tile would stay in place
when the loop of 5 advances. Then `_staying_words` would take 4 of the 5 times off.

An operand stays in an idle sub-cluster. An output leaves it when the tile of the outer memory moves on. Therefore an
output stays only if no relevant loop outside that memory advances, even if the sub-cluster is idle.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import Index, Records, integer, kernel_call, kernel_part, truth
from tilewright_costmodels.timeloop.nest import KernelInput
from tilewright_costmodels.timeloop.ragged.regular import count_pieces, cut_mapping, last_free, mode_of
from tilewright_costmodels.timeloop.ragged.tables import (
    ADVANCE,
    BEFORE,
    NO_INDEX,
    PLAIN,
    SECOND,
    UNMOVED,
    Movement,
    Pieces,
    Query,
    Selection,
)
from tilewright_costmodels.timeloop.ragged.windows import deduplicated_fraction, window_words
from tilewright_costmodels.timeloop.tables import Tensors
from tilewright_costmodels.timeloop.tile_reuse import is_unicast

YES, NO = truth(True), truth(False)
OWN_COORDINATE = integer(1)
"""Value of `Tensors.projection.group` of a dimension with a coordinate of its own."""


@kernel_call
def count_ragged_traffic(inputs: KernelInput, pieces: Pieces, n: int, b: int, group: int) -> float:
    """Count the instances of every level, and the words of every tensor that leave, enter and stay in each level.

    Results are for the average and for the first instance (see `Pieces.sent` to `Pieces.first_partition`).

    Args:
        n: index of the mapping.
        b: its lane.

    Returns:
        Number of temporal steps.
    """
    hardware, tensors, mappings, instances = inputs.hardware, inputs.tensors, inputs.mappings, inputs.counts.instances
    levels, dims, subclusters = Index(len(hardware.level)), len(pieces.totals), inputs.nest.subclusters
    cut_mapping(pieces, hardware, inputs.scratch, b)
    iterations = steps = 1.0
    for d in range(dims):
        iterations = iterations * inputs.rules.sizes[d]
        steps = steps * pieces.cut[pieces.first_cut[levels, d]].temporal_count
    for level in range(levels):
        instances[group, level, b] = 1.0 if level == 0 else instances[group, level - 1, b]
        if level > 0 and subclusters[level - 1, b] > 1.0:
            instances[group, level, b] = 1.0
            for d in range(dims):
                instances[group, level, b] *= pieces.cut[pieces.first_cut[level, d]].spatial_count
    if len(mappings.unicast) > 0:
        for tensor in range(len(tensors.info)):
            for s in range(len(hardware.slot)):
                pieces.unicast[tensor, s] = is_unicast(inputs, n, tensor, s)
    for number_of_tensor in range(len(tensors.info)):
        tensor, inner, lanes_below = Index(number_of_tensor), levels, 1.0  # compute units below an instance
        pieces.received[tensor, 0, b] = pieces.first_received[tensor, 0, b] = 0.0
        for number in range(levels):
            level = outer = Index(levels - 1 - number)
            lanes_below *= subclusters[level, b]
            keeps = inputs.scratch.kept[hardware.level[level].holds, tensor, b]
            while outer > 0 and not inputs.scratch.kept[hardware.level[outer].holds, tensor, b]:
                outer = Index(outer - 1)
            has_source = inputs.scratch.kept[hardware.level[outer].holds, tensor, b]
            if keeps or (inputs.detailed and has_source):
                # if no bandwidth can bind, the average instance replaces the first one
                suffices = instances[group, level, b] == 1.0
                suffices |= not inputs.detailed and lanes_below <= hardware.unthrottled_units[level, tensor]
                pieces.average_suffices[tensor, level] = suffices
                if inner == levels and lanes_below == 1.0:  # every iteration reads its word
                    pieces.sent[tensor, level, b] = iterations / instances[group, level, b]
                    pieces.first_sent[tensor, level, b] = pieces.sent[tensor, level, b] if suffices else steps
                    if inputs.detailed or tensors.info[tensor].is_output:
                        _count_between(inputs, pieces, group, b, tensor, level, inner, outer, True)
                else:
                    _count_between(inputs, pieces, group, b, tensor, level, inner, outer, False)
            if keeps:
                inner = level
    return steps


@kernel_part
def _count_between(
    inputs: KernelInput,
    pieces: Pieces,
    group: int,
    b: int,
    tensor: int,
    level: int,
    inner: int,
    outer: int,
    sent_known: bool,
) -> None:
    """Count the words between a level and the nearest level inside it that keeps the tensor.

    Args:
        inner: that level; the number of levels: compute.
        outer: the nearest level, from `level` outwards, that keeps the tensor.
        sent_known: the words that leave are already written, and nothing enters.
    """
    tensors, loops, loop_end = inputs.tensors, pieces.loop, pieces.loop_end
    levels, info, projection = Index(len(loop_end)), tensors.info[tensor], tensors.projection[tensor]
    instances = inputs.counts.instances[group, level, b]
    c = int(loop_end[inner - 1]) - 1  # innermost loop that moves the tile
    while inner < levels and c >= 0 and not info.relevant_bits >> loops[Index(c)].dimension & 1:
        c -= 1
    may_stay = inner < levels and c >= 0  # some tile may stay in place, or overlap with the previous one
    if may_stay:
        may_stay = projection[loops[Index(c)].dimension].windowed != 0 or pieces.can_stay[Index(c)]
    entering, windows = min(inner, levels - 1), 0
    for number in range(info.relevant_dims if info.groups > 2 else 0):
        d = tensors.dims[tensor, number]
        for k in range(
            pieces.first_cut[level, d], pieces.first_cut[inner, d] if projection[d].group > OWN_COORDINATE else 0
        ):
            windows += not pieces.cut[k].temporal
    may_repeat = windows > 1  # sub-clusters may have equal boxes although relevant loops differ
    only_instance = info.plain and instances == 1.0  # a single instance is responsible for every word
    partition = info.iterations
    has_partition = level == outer and (info.is_output or inputs.detailed) and not (only_instance or info.may_overlap)
    keeps_from = outer if info.is_output else inner
    if not sent_known:
        movement = Movement(tensor, inner, keeps_from, YES, level)
        sent, received = _moved_words(pieces, tensors, movement, c, may_stay)
        if may_repeat:
            sent *= deduplicated_fraction(pieces, tensors, movement)
        pieces.sent[tensor, level, b] = sent / instances
        if inner < levels:
            pieces.received[tensor, entering, b] = received / inputs.counts.instances[group, inner, b]
    if has_partition and info.plain:  # equal parts of the tensor on average
        parts = 1.0
        for number in range(info.relevant_dims):
            parts *= pieces.cut[pieces.first_cut[level, tensors.dims[tensor, number]]].spatial_count
        partition = info.iterations / parts
    elif has_partition:
        movement = Movement(tensor, level, keeps_from, YES, levels)
        partition, _ = _moved_words(pieces, tensors, movement, NO_INDEX, NO)
        partition /= instances
    first_partition = pieces.first_partition[tensor, level, b]
    if level == outer:  # first instance
        if not (sent_known or pieces.average_suffices[tensor, level]):
            movement = Movement(tensor, inner, keeps_from, NO, level)
            first_sent, _ = _moved_words(pieces, tensors, movement, c, may_stay)
            if may_repeat:
                first_sent *= deduplicated_fraction(pieces, tensors, movement)
            pieces.first_sent[tensor, level, b] = first_sent
        if inner < levels and not pieces.average_suffices[tensor, entering]:
            movement = Movement(tensor, inner, keeps_from, NO, levels)
            _, first_received = _moved_words(pieces, tensors, movement, c, may_stay)
            pieces.first_received[tensor, entering, b] = first_received
        if has_partition and not pieces.average_suffices[tensor, level]:
            movement = Movement(tensor, level, keeps_from, NO, levels)
            first_partition, _ = _moved_words(pieces, tensors, movement, NO_INDEX, NO)
    if pieces.average_suffices[tensor, level]:
        pieces.first_sent[tensor, level, b], first_partition = pieces.sent[tensor, level, b], partition
    if inner < levels and pieces.average_suffices[tensor, entering]:
        pieces.first_received[tensor, entering, b] = pieces.received[tensor, entering, b]
    pieces.partition[tensor, level, b], pieces.first_partition[tensor, level, b] = partition, first_partition


@kernel_call
def _moved_words(pieces: Pieces, tensors: Tensors, movement: Movement, c: int, may_stay: bool) -> tuple[float, float]:
    """Return (words sent, words received) of all tiles of a movement, less those that stay in place.

    A delivery counts once in the words sent, and once per receiver in the words received.

    Args:
        c: innermost loop that moves the tile.
        may_stay: some tiles may stay in place or overlap.
    """
    everything = Selection(PLAIN, len(pieces.can_stay), NO_INDEX, NO, NO_INDEX, 0.0)
    words = _distinct_words(pieces, tensors, movement, everything)
    times_sent, times_received = _repetitions(pieces, tensors, movement, c + 1, NO_INDEX)
    words_sent, words_received = words * times_sent, words * times_received
    if may_stay:
        staying_sent, staying_received = _staying_words(pieces, tensors, movement, c, times_sent, times_received)
        words_sent, words_received = words_sent - staying_sent, words_received - staying_received
    return words_sent, words_received


@kernel_call
def _staying_words(
    pieces: Pieces, tensors: Tensors, movement: Movement, c: int, times_sent: float, times_received: float
) -> tuple[float, float]:
    """Return (words sent, words received) of the tiles that stay in place, and of credited overlaps.

    Args:
        c: innermost loop that moves the tile.
        times_sent: how often each different tile is sent.
        times_received: how often each different tile is received.
    """
    tensor = movement.tensor
    info, projection, loops = tensors.info[tensor], tensors.projection[tensor], pieces.loop
    staying_sent, staying_received, relevant_passed, unmoved, overlaps = 0.0, 0.0, 0, True, False
    step_sum = c_advance = 0  # shift by one step of all loops inside p, undone when p advances; shift by one step of c
    group = projection[loops[Index(c)].dimension].group
    c_overlaps = False  # whether tiles one step of c apart may overlap
    p = c + 1
    while p > 0 and (unmoved or overlaps):
        p -= 1
        loop = loops[Index(p)]
        d = loop.dimension
        advancing: int = np.int64(d)  # type: ignore[assignment]  # that of NO_INDEX: functions are compiled once
        mode, unmoved_only, dimension, step = ADVANCE, False, NO_INDEX, 0.0
        step_shift = int(projection[d].displacement * loop.step)
        shift, step_sum = step_shift - step_sum, step_sum + step_shift
        is_windowed, is_relevant, counts = projection[d].windowed != 0, info.relevant_bits >> d & 1, True
        credited = p != c and overlaps and (shift == 0 or (shift == c_advance and c_overlaps))
        credited &= pieces.regular[d] or not relevant_passed >> d & 1
        if p == c:
            c_advance, overlaps = shift, is_windowed
            c_overlaps = counts = is_windowed and _may_overlap(pieces, projection, movement.stop, d, float(loop.step))
            mode, dimension, step = BEFORE, int(d), float(loop.step)
        elif unmoved and not is_relevant:
            unmoved_only = True
        elif unmoved and is_windowed and not relevant_passed >> d & 1:
            mode, unmoved_only, dimension, step = BEFORE, True, int(d), float(loop.step)
        else:
            counts = False
        if is_relevant:
            relevant_passed |= 1 << d
            unmoved &= pieces.can_stay[Index(p)]
            # steps of c do not undo shifts along other coordinates
            overlaps &= projection[d].group == group
        for way in range(2):  # tiles that no loop inside moved; those that all loops inside moved
            if counts if way == 0 else credited:
                if way > 0:
                    mode, unmoved_only, dimension, step = SECOND, False, NO_INDEX, 0.0
                    if shift != 0:
                        dimension, step = int(loops[Index(c)].dimension), float(loops[Index(c)].step)
                selection = Selection(mode, p, advancing, unmoved_only, dimension, step)
                words = _distinct_words(pieces, tensors, movement, selection)
                if words < 0.0:  # some loop inside always advances, for all further p as well
                    unmoved = False
                elif words > 0.0:
                    if p != c:  # p advances, so the other dimensions repeat as often as outside p
                        times_sent, times_received = _repetitions(pieces, tensors, movement, p, advancing)
                    staying_sent = staying_sent + words * times_sent
                    staying_received = staying_received + words * times_received
    return staying_sent, staying_received


@kernel_part
def _may_overlap(pieces: Pieces, projection: Records, stop: int, d: int, step: float) -> bool:
    """Return whether a tile outside the level `stop` may overlap with itself `step` iterations of a dimension later."""
    of_d, reach = projection[d], 1.0
    for other in range(len(projection)):
        if projection[other].group == of_d.group:
            reach += projection[other].coefficient * (pieces.cut[pieces.first_cut[stop, other]].full - 1.0)
    return not of_d.one_coordinate or reach > of_d.coefficient * step


@kernel_part
def _distinct_words(pieces: Pieces, tensors: Tensors, movement: Movement, selection: Selection) -> float:
    """Return the words of all different tiles of a selection; -1 if some dimension always advances."""
    tensor, stop, all_instances = movement.tensor, movement.stop, movement.all_instances
    limit, shifted = selection.limit, selection.shifted
    info, projection = tensors.info[tensor], tensors.projection[tensor]
    no_overlap = info.plain or stop == len(pieces.first_cut) - 1  # of any two boxes
    if selection.mode == PLAIN and all_instances and no_overlap:
        return float(info.iterations)
    product, count_of_group, rest_of_group, smallest_side = 1.0, 1.0, 0.0, 1.0
    window_group = projection[Index(shifted)].group if shifted >= 0 else NO_INDEX
    for number in range(info.relevant_dims):
        d = tensors.dims[tensor, number]
        of_d, last = projection[d], pieces.first_cut[stop, d]
        if (
            all_instances and of_d.group != window_group and pieces.cut[last].last_temporal < limit
        ):  # the pieces add up to the dimension
            count, iterations = pieces.cut[last].count, pieces.cut[pieces.first_cut[0, d]].full
        else:
            mode_of_d, shift = mode_of(d, selection), selection.shift if d == shifted else 0.0
            query = Query(movement, mode_of_d, limit, YES)
            count, iterations, smallest = count_pieces(pieces, query, d, last, NO)
            if mode_of_d == UNMOVED and count == 0.0:
                return -1.0
            iterations -= shift * count
            smallest_side += of_d.coefficient * (smallest - 1.0 - shift)
        # along one coordinate the side of a box is a sum, so sums suffice if no side is negative
        rest_of_group = rest_of_group * count + of_d.coefficient * (iterations - count) * count_of_group
        count_of_group *= count
        if of_d.ends_group:
            one_box = selection.mode != SECOND or of_d.group == OWN_COORDINATE
            if of_d.one_coordinate and one_box and smallest_side >= 0.0:
                product *= count_of_group + rest_of_group
            elif count_of_group > 0.0:
                product *= window_words(pieces, tensors, movement, selection, of_d.group)
            else:
                product = 0.0
            count_of_group, rest_of_group, smallest_side = 1.0, 0.0, 1.0
    return product


@kernel_part
def _repetitions(
    pieces: Pieces, tensors: Tensors, movement: Movement, limit: int, advancing: int
) -> tuple[float, float]:
    """Return (how often each different tile is sent, how often it is received).

    Temporal loops of irrelevant dimensions outside loop `limit` are free. The loop of dimension
    `advancing` advances there.
    """
    tensor, stop, all_instances, shared_from = (
        movement.tensor,
        movement.stop,
        movement.all_instances,
        movement.shared_from,
    )
    unshared = Index(len(pieces.first_cut) - 1) if all_instances else shared_from
    to_each = Movement(tensor, stop, movement.keeps_from, all_instances, unshared)
    sent, received = 1.0, 1.0
    for number in range(tensors.info[tensor].relevant_dims, tensors.info[tensor].iterated_dims):
        d = tensors.dims[tensor, number]
        last = free_end = pieces.first_cut[stop, d]
        mode = ADVANCE if d == advancing else PLAIN
        spatial_end = pieces.cut[last].spatial_end
        count = pieces.cut[last].spatial_count
        if limit > 0:  # some temporal loop is free, so all cuts up to `free_end` are
            free_end = last_free(pieces, last, limit)
            count = pieces.cut[free_end].count
        if not all_instances or mode != PLAIN or spatial_end > free_end:  # otherwise all further cuts are at zero
            count, _, _ = count_pieces(pieces, Query(to_each, mode, limit, NO), d, last, NO)
        received *= count
        if all_instances and spatial_end > pieces.first_cut[shared_from, d]:
            count, _, _ = count_pieces(pieces, Query(movement, mode, limit, NO), d, last, NO)
        sent *= count
    return sent, received
