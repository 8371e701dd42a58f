"""Tiles of directives, and the states of directives in a sub-problem.

A TemporalMap of size 4 and offset 3 over a dimension of 11, as a row of `TILE`:

    first [0 .. 3]    steady [3 .. 6]   steady [6 .. 9]   edge [9, 10]

    full   offset   static_size   steps   part   new   new_part
    4      3        11            2       2      3     1

`steps` is (11 - 4) // 3 = 2. The edge tile has 11 - 3 * 3 = 2 elements; 3 - (4 - 2) = 1 is new.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import floats, kernel_part, load8, pack_bits, product, unpack_bits
from tilewright.mapspace.batch import Ints
from tilewright_costmodels.maestro.tables import DIVISIBLE, FILTER, FINE, INPUT, MOVES, AnalysisScratch, Hardware
from tilewright_notations.directives.table import NOWHERE, Letters, Table


@kernel_part
def last_fold(size: int, full: int, offset: int, clusters: int) -> tuple[int, int, int]:
    """Return the folds of a spatial dimension beyond the first one.

    Returns:
        Number of full folds after the first. Size left for the last fold. Number of sub-clusters
        with a full tile in it (1 if there are none).
    """
    folds = ((size - full) // offset + 1) // clusters - 1
    rest = size - (folds + 1) * offset * clusters
    return folds, rest, 1 if rest < full else (rest - full) // offset + 1


@kernel_part
def cut_tiles(dimensions: Letters, hardware: Hardware, table: Table, scratch: AnalysisScratch) -> float:
    """Write the tiles of all levels, from the nominal sizes of their dimensions.

    Returns:
        An upper bound on all counts and cycles: the number of steps, times the maximum that one
            step computes or sends. Infinity if counts are too large to be divided exactly.
    """
    steps_of_all = most_elements = 1.0
    for level in range(table.levels[0]):
        info, tile = scratch.levels[level], scratch.tiles[level]
        spatial, pair, clusters = table.unrolled[level], table.pair[level], table.clusters[level]
        info.spatial, info.second_spatial, info.sub_clusters = spatial, pair, clusters
        info.spatial_dims = 1 << spatial if pair == NOWHERE else 1 << spatial | 1 << pair
        info.lanes = table.lanes[0] if level + 1 == table.levels[0] else 0
        full, offset = load8(table.size[level]), load8(table.offset[level])
        static_size = largest = load8(dimensions.sizes)
        if level:
            outer = scratch.tiles[level - 1]
            static_size, largest = load8(outer.full), np.maximum(load8(outer.full), load8(outer.part))
            static_size = np.minimum(static_size, load8(outer.static_size))
        steps = np.where(full < static_size, static_size - full, 0) // offset
        rest = static_size - (steps + 1) * offset
        rest = np.where(rest < 0, static_size, rest)
        part = np.where((full <= static_size) & (steps * offset + full == static_size), full, rest)
        tile.full[:] = full
        tile.offset[:] = offset
        tile.static_size[:] = static_size
        tile.steps[:] = steps
        tile.part[:] = part
        tile.new[:] = np.where(full < static_size, np.maximum(np.minimum(full, offset), 1), 1)
        tile.new_part[:] = np.maximum(offset - (full - rest), 0)
        outputs, part_outputs = full, part
        for row in range(len(dimensions.pairs)):
            dimension, window = dimensions.pairs[row, 0], dimensions.pairs[row, 1]
            mask = unpack_bits(1 << dimension)
            outputs = np.where(mask, tile.full[dimension] - tile.full[window] + 1, outputs)
            part_outputs = np.where(mask, tile.part[dimension] - tile.part[window] + 1, part_outputs)
        tile.outputs[:] = outputs
        tile.part_outputs[:] = part_outputs
        most_elements = max(most_elements, clusters * product(floats(np.maximum(np.maximum(full, part), 1))))
        steps_of_all *= product(
            floats(np.where(full < largest, np.where(largest <= static_size, steps + 2, largest + 1), 1))
        )
        info.edge_sub_clusters = 1
        size, tile_size, distance = tile.static_size[spatial], tile.full[spatial], tile.offset[spatial]
        if size > tile_size + distance * (clusters - 1):
            _, _, info.edge_sub_clusters = last_fold(size, tile_size, distance, clusters)
        elif size > tile_size:  # a partial tile is counted only if all tiles fit in one fold, as in MAESTRO
            further = tile.steps[spatial]
            info.edge_sub_clusters = further + 1 + (distance * further + tile_size < size)
    most_of_one: float = most_elements + (hardware.noc_latency + 1.0) * table.levels[0]
    return 2.0 * steps_of_all * most_of_one if most_of_one < DIVISIBLE else np.inf


@kernel_part
def find_states(dimensions: Letters, order: Ints, level: int, sub: int, scratch: AnalysisScratch) -> None:
    """Write the states of a level's directives in a sub-problem.

    Args:
        order: dimensions of the level, outermost first.
    """
    state, info, error = scratch.states[level, sub], scratch.levels[level], scratch.errors[level, sub]
    tile = scratch.tiles[level]
    full, offset, actual_size = load8(tile.full), load8(tile.offset), load8(dimensions.sizes)
    if level:
        outer = scratch.tiles[level - 1]
        actual_size = np.where(unpack_bits(sub), load8(outer.part), load8(outer.full))
    temporal = ~info.spatial_dims
    times = np.where(full < actual_size, actual_size - full, 0) // offset
    tile.steady_times[:] = times
    tile.actual_size[:] = actual_size
    moving = pack_bits(full < actual_size) & temporal
    init_edge = pack_bits(actual_size < full) & temporal
    unrolled = pack_bits(actual_size <= full) & temporal
    edges, partial_last = pack_bits((full < actual_size) & (times * offset + full < actual_size)) & temporal, 0
    stuck = pack_bits((full < actual_size) & (load8(tile.static_size) <= full)) & temporal
    extents = np.where(actual_size < full, load8(tile.part), full)
    state.input_tile = product(np.where(unpack_bits(dimensions.tensors[INPUT] & temporal), extents, 1))
    state.filter_tile = product(np.where(unpack_bits(dimensions.tensors[FILTER] & temporal), extents, 1))
    for dimension in (info.spatial, info.second_spatial):
        if dimension == NOWHERE:
            continue
        bit, clusters, size = 1 << dimension, info.sub_clusters, tile.actual_size[dimension]
        covered = tile.full[dimension] + tile.offset[dimension] * (clusters - 1)
        tile.steady_times[dimension] = 0
        if size > covered:
            folds, rest, whole_tiles = last_fold(size, tile.full[dimension], tile.offset[dimension], clusters)
            tile.steady_times[dimension] = folds
            moving |= bit
            if covered + folds * tile.offset[dimension] * clusters != size:
                edges |= bit
                if (whole_tiles - 1) * tile.offset[dimension] + tile.full[dimension] < rest:
                    partial_last |= bit
        else:
            unrolled |= bit
            init_edge |= bit if size < covered else 0
    movers, outside, error[0] = 0, 0, FINE
    for index in range(len(order)):
        dimension = order[index]
        outside |= 1 << dimension
        tile.inside[dimension] = ~outside
        scratch.movers[level, sub, movers].dimension = dimension
        scratch.movers[level, sub, movers].steady_times = tile.steady_times[dimension]
        movers += moving >> dimension & 1
        if stuck >> dimension & 1:
            error[0], error[1], error[2], error[3] = MOVES, level, dimension, tile.actual_size[dimension]
    state.init_edge = init_edge
    state.unrolled = unrolled
    state.edges = edges
    state.partial_last = partial_last
    state.movers = movers
    state.cycles = 0
