"""Work of the sub-clusters of a level in one phase: operations, and elements sent down and up.

A phase is one state per directive. Work and egress depend only on the dimensions at their edge.
Ingress also depends on the dimension that moved last.

A level of 3 sub-clusters, whose last one has an edge tile (`sum_over_clusters`):

    sub-cluster     0         1         2
    elements        first     other     last

With first = 6, other = 4 and last = 2 that is 6 + 1 * 4 + 2 = 12. `other` and `last` leave out what a sub-cluster shares
with its neighbour.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from tilewright.compiled import kernel_part, load8, product, splat8, unpack_bits
from tilewright.mapspace.batch import Ints
from tilewright_costmodels.maestro.tables import INPUT, OUTPUT, AnalysisScratch, PhaseGroup
from tilewright_notations.directives.table import NOWHERE, Letters

Number = TypeVar("Number", int, Ints)


@kernel_part
def clusters_at_work(level: int, sub: int, edges: int, scratch: AnalysisScratch) -> tuple[int, bool, bool]:
    """Return the sub-clusters of the phases in which `edges` are at their edge.

    Returns:
        Number at work, whether some spatial dimension is at an edge, whether the last sub-cluster
        has an edge tile. The later spatial dimension decides that, as in MAESTRO.
    """
    state, info = scratch.states[level, sub], scratch.levels[level]
    init_edge, second_spatial = (state.init_edge | edges) & info.spatial_dims, info.second_spatial
    if not init_edge:
        return info.sub_clusters, False, False
    later = second_spatial if second_spatial != NOWHERE and init_edge >> second_spatial & 1 else info.spatial
    partial_last = state.partial_last >> later & 1 == 1 if edges >> later & 1 else True
    return info.edge_sub_clusters, True, partial_last


@kernel_part
def inner_subproblems(level: int, sub: int, edges: int, at_work: int, scratch: AnalysisScratch) -> tuple[int, int]:
    """Return the next level's sub-problem of the last sub-cluster at work, and that of the others."""
    state, info = scratch.states[level, sub], scratch.levels[level]
    init_edge = state.init_edge | edges
    if at_work == 1:
        return init_edge, init_edge
    partial_last = (state.partial_last if edges >> info.spatial & 1 else state.init_edge) >> info.spatial & 1
    others = init_edge & ~info.spatial_dims
    return init_edge if partial_last else others, others


@kernel_part
def sum_over_clusters(at_work: int, partial_last: bool, first: Number, other: Number, last: Number) -> Number:
    """Return the sum over sub-clusters of numbers, or of lane vectors."""
    if at_work <= 1:
        return first
    total = first + max(at_work - partial_last - 1, 0) * other
    return total + last if partial_last else total


@kernel_part
def count_work(
    dimensions: Letters, level: int, sub: int, edges: int, steady: int, scratch: AnalysisScratch
) -> tuple[int, bool, int, int, int]:
    """Return the first fields of a `PhaseGroup`, for phases in which `edges` are at their edge.

    Args:
        steady: dimensions in their steady state. It matters for spatial ones if there are two.
    """
    state, info = scratch.states[level, sub], scratch.levels[level]
    at_work, init_edge, partial_last = clusters_at_work(level, sub, edges, scratch)
    spatial_dims, up, tiles = info.spatial_dims, dimensions.tensors[OUTPUT], scratch.tiles[level]
    extents = np.where(unpack_bits(state.init_edge | edges), load8(tiles.part_outputs), load8(tiles.outputs))
    tile = product(
        np.where(unpack_bits(up & ~spatial_dims), extents, 1)
    )  # elements of the output along temporal dimensions
    sums = product(
        np.where(unpack_bits(up | spatial_dims), 1, extents)
    )  # operations per output element along temporal dimensions
    first = first_up = last = other_up = last_up = 1  # along spatial dimensions: operations, and elements of the output
    for dimension in (info.spatial, info.second_spatial):
        if dimension == NOWHERE:
            continue
        size, part, fresh_part = tiles.outputs[dimension], tiles.part_outputs[dimension], tiles.new_part[dimension]
        if dimensions.windows[dimension] != NOWHERE:
            fresh_part = min(tiles.offset[dimension], part)
        cut = fresh_part if (edges | steady) >> dimension & 1 else part
        if init_edge and at_work == 1:
            if edges >> dimension & 1:
                size = tiles.part[dimension]  # MAESTRO takes the input's part even for output columns
            elif partial_last:
                size = cut
        first *= size
        last *= cut
        if up >> dimension & 1:
            first_up *= size
            other_up *= min(tiles.full[dimension], tiles.offset[dimension])
            last_up *= fresh_part
    critical_macs = tile * sums * first
    macs = tile * sums * sum_over_clusters(at_work, partial_last, first, first, last)
    egress = tile * sum_over_clusters(at_work, partial_last, first_up, other_up, last_up) if up & spatial_dims else tile
    return at_work, partial_last, critical_macs, macs, egress


@kernel_part
def _spatial_elements(
    mask: int, init_edge: int, shared: Ints, level: int, group: PhaseGroup, scratch: AnalysisScratch
) -> Ints:
    """Return the elements of a tensor that all sub-clusters at work receive, along spatial dimensions, [L].

    Args:
        mask: dimensions of the tensor.
        init_edge: dimensions whose last tile may be an edge tile.
        shared: dimensions along which only new elements are sent, [L].
    """
    info, tiles = scratch.levels[level], scratch.tiles[level]
    first = other = last = splat8(1)
    for dimension in (info.spatial, info.second_spatial):
        if dimension == NOWHERE or not mask >> dimension & 1:
            continue
        full = part = tiles.full[dimension]
        if group.partial_last and init_edge >> dimension & 1:
            part = tiles.part[dimension]
        is_shared = (shared >> dimension & 1) == 1
        first = first * (part if group.at_work == 1 else full)
        other = other * np.where(is_shared, min(full, tiles.offset[dimension]), full)
        last = last * np.where(is_shared, tiles.new_part[dimension], part)
    return sum_over_clusters(group.at_work, group.partial_last, first, other, last)


@kernel_part
def first_ingress(
    dimensions: Letters, tensor: int, level: int, sub: int, group: PhaseGroup, scratch: AnalysisScratch
) -> int:
    """Return the elements of an input sent down in the very first step."""
    state, mask = scratch.states[level, sub], dimensions.tensors[tensor]
    tile: int = state.input_tile if tensor == INPUT else state.filter_tile
    if mask & scratch.levels[level].spatial_dims:
        tile *= _spatial_elements(mask, state.init_edge, splat8(0), level, group, scratch)[0]
    return tile


@kernel_part
def ingress_by_mover(
    dimensions: Letters, tensor: int, level: int, sub: int, group: PhaseGroup, scratch: AnalysisScratch
) -> Ints:
    """Return the elements of an input sent down in the phases of a group, by the dimension that moved last, [L]."""
    state, info, tiles = scratch.states[level, sub], scratch.levels[level], scratch.tiles[level]
    mask = dimensions.tensors[tensor]
    inside: Ints = load8(tiles.inside)
    no_restart = (inside & (mask & ~state.unrolled)) == 0  # no loop inside restarts
    tile: int = state.input_tile if tensor == INPUT else state.filter_tile
    sent = np.where(no_restart & unpack_bits(~info.spatial_dims), tile // load8(tiles.full) * load8(tiles.new), tile)
    if mask & info.spatial_dims:
        shared = np.where(no_restart, inside | load8(dimensions.bit), inside)
        sent = sent * _spatial_elements(mask, mask, shared, level, group, scratch)
    return np.where(unpack_bits(mask), sent, 0)


@kernel_part
def moving_pair(level: int, sub: int, scratch: AnalysisScratch) -> int:
    """Return the dimensions that move, of two spatial ones: their steady states must be distinguished."""
    state, info, movers, pair = scratch.states[level, sub], scratch.levels[level], scratch.movers[level, sub], 0
    if info.second_spatial != NOWHERE:
        for index in range(state.movers):
            if movers[index].steady_times:
                pair |= info.spatial_dims & 1 << movers[index].dimension
    return pair


@kernel_part
def occurrences_by_mover(
    level: int, sub: int, edges: int, steady: int, other: int, scratch: AnalysisScratch
) -> tuple[Ints, Ints]:
    """Return how often phases with the same edges occur, by the dimension that moved last, [L].

    Args:
        other: of a moving pair, the dimensions that are not in their steady state.

    Returns:
        Total occurrences over all states of the outer dimensions, and occurrences of the most frequent phase.
    """
    state, movers, tiles = scratch.states[level, sub], scratch.movers[level, sub], scratch.tiles[level]
    times = commonest = splat8(0)
    outside = all_outside = 1
    for index in range(state.movers):
        dimension = movers[index].dimension
        moves = 1 if edges >> dimension & 1 else movers[index].steady_times
        if not moves or other >> dimension & 1:
            continue
        all_outside *= moves
        if not (edges | steady) & tiles.inside[dimension]:
            times = np.where(unpack_bits(1 << dimension), outside * moves, times)
            commonest = np.where(unpack_bits(1 << dimension), all_outside, commonest)
        outside *= moves if (edges | steady) >> dimension & 1 else moves + 1
    return times, commonest


@kernel_part
def count_phases(level: int, sub: int, scratch: AnalysisScratch) -> int:
    """Return the number of phases of a level."""
    state, movers, phases = scratch.states[level, sub], scratch.movers[level, sub], 1
    for index in range(state.movers):
        phases *= 1 + (movers[index].steady_times > 0) + (state.edges >> movers[index].dimension & 1)
    return phases


@kernel_part
def phase_at(phase: int, phases: int, level: int, sub: int, scratch: AnalysisScratch) -> tuple[int, int, int, int]:
    """Return one phase, in MAESTRO's order.

    Returns:
        Dimensions at their edge, dimensions in their steady state, dimension that moved last, number of occurrences.
    """
    state, movers = scratch.states[level, sub], scratch.movers[level, sub]
    edges, steady, moved, occurrences = 0, 0, NOWHERE, 1
    for index in range(state.movers):
        dimension, times = movers[index].dimension, movers[index].steady_times
        states = 1 + (times > 0) + (state.edges >> dimension & 1)
        phases //= states
        which = -(-phase // phases) % states
        if which:
            moved = dimension
            if which == 1 and times > 0:
                steady |= 1 << dimension
                occurrences *= times
            else:
                edges |= 1 << dimension
    return edges, steady, moved, occurrences
