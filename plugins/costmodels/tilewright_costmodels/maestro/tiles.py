"""The tiles of directives, and what they do on a sub-problem."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import among, bits, eight, floats, kernel_part, product
from tilewright.mapspace.batch import Ints
from tilewright.notations.directives.table import NOWHERE, Letters, Table
from tilewright_costmodels.maestro.work import DIVISIBLE, FILTER, FINE, INPUT, MOVES, Hardware, Work


@kernel_part
def last_fold(cut: int, full: int, offset: int, clusters: int) -> tuple[int, int, int]:
    """Of a letter in space beyond one fold: full folds after the first, what the last one has left, and sub-clusters with
    a whole tile in it (1 if none)."""
    folds = ((cut - full) // offset + 1) // clusters - 1
    rest = cut - (folds + 1) * offset * clusters
    return folds, rest, 1 if rest < full else (rest - full) // offset + 1


@kernel_part
def cut_tiles(letters: Letters, hardware: Hardware, table: Table, work: Work) -> float:
    """The tiles of all levels, against the nominal sizes of their letters. Gives a number that no count and no number of
    cycles exceeds: all steps, times what one can compute or send; infinity where the latter cannot be divided exactly."""
    steps_of_all = most_elements = 1.0
    for number in range(table.levels[0]):
        level, tile = work.levels[number], work.tiles[number]
        spatial, pair, clusters = table.unrolled[number], table.pair[number], table.clusters[number]
        level.spatial, level.pair, level.clusters = spatial, pair, clusters
        level.along = 1 << spatial if pair == NOWHERE else 1 << spatial | 1 << pair
        level.lanes = table.lanes[0] if number + 1 == table.levels[0] else 0
        full, offset = eight(table.size[number]), eight(table.offset[number])
        cut = most = eight(letters.sizes)
        if number:
            outer = work.tiles[number - 1]
            cut, most = eight(outer.full), np.maximum(eight(outer.full), eight(outer.part))
            cut = np.minimum(cut, eight(outer.cut))
        steps = np.where(full < cut, cut - full, 0) // offset
        rest = cut - (steps + 1) * offset
        rest = np.where(rest < 0, cut, rest)
        part = np.where((full <= cut) & (steps * offset + full == cut), full, rest)
        tile.full[:] = full
        tile.offset[:] = offset
        tile.cut[:] = cut
        tile.steps[:] = steps
        tile.part[:] = part
        tile.fresh[:] = np.where(full < cut, np.maximum(np.minimum(full, offset), 1), 1)
        tile.fresh_part[:] = np.maximum(offset - (full - rest), 0)
        outputs, part_outputs = full, part
        for each in range(len(letters.pairs)):
            letter, window = letters.pairs[each, 0], letters.pairs[each, 1]
            this = among(1 << letter)
            outputs = np.where(this, tile.full[letter] - tile.full[window] + 1, outputs)
            part_outputs = np.where(this, tile.part[letter] - tile.part[window] + 1, part_outputs)
        tile.outputs[:] = outputs
        tile.part_outputs[:] = part_outputs
        most_elements = max(most_elements, clusters * product(floats(np.maximum(np.maximum(full, part), 1))))
        steps_of_all *= product(floats(np.where(full < most, np.where(most <= cut, steps + 2, most + 1), 1)))
        level.edge_clusters = 1
        all_of_it, whole, apart = tile.cut[spatial], tile.full[spatial], tile.offset[spatial]
        if all_of_it > whole + apart * (clusters - 1):
            _, _, level.edge_clusters = last_fold(all_of_it, whole, apart, clusters)
        elif all_of_it > whole:  # a partial one is counted only if all fit in one fold
            further = tile.steps[spatial]
            level.edge_clusters = further + 1 + (apart * further + whole < all_of_it)
    most_of_one: float = most_elements + (hardware.noc_latency + 1.0) * table.levels[0]
    return 2.0 * steps_of_all * most_of_one if most_of_one < DIVISIBLE else np.inf


@kernel_part
def find_states(letters: Letters, order: Ints, number: int, sub: int, work: Work) -> None:
    """What the directives of a level, whose letters stand in this order, do on a sub-problem."""
    state, level, fault = work.states[number, sub], work.levels[number], work.faults[number, sub]
    tile = work.tiles[number]
    full, offset, cut = eight(tile.full), eight(tile.offset), eight(letters.sizes)
    if number:
        outer = work.tiles[number - 1]
        cut = np.where(among(sub), eight(outer.part), eight(outer.full))
    in_time = ~level.along
    times = np.where(full < cut, cut - full, 0) // offset
    tile.times[:] = times
    tile.within[:] = cut
    moving, short, unrolled = bits(full < cut) & in_time, bits(cut < full) & in_time, bits(cut <= full) & in_time
    edges, partial = bits((full < cut) & (times * offset + full < cut)) & in_time, 0
    stuck = bits((full < cut) & (eight(tile.cut) <= full)) & in_time
    extents = np.where(cut < full, eight(tile.part), full)
    state.input_tile = product(np.where(among(letters.tensors[INPUT] & in_time), extents, 1))
    state.filter_tile = product(np.where(among(letters.tensors[FILTER] & in_time), extents, 1))
    for letter in (level.spatial, level.pair):
        if letter == NOWHERE:
            continue
        bit, clusters, all_of_it = 1 << letter, level.clusters, tile.within[letter]
        covered = tile.full[letter] + tile.offset[letter] * (clusters - 1)
        tile.times[letter] = 0
        if all_of_it > covered:
            folds, rest, whole = last_fold(all_of_it, tile.full[letter], tile.offset[letter], clusters)
            tile.times[letter] = folds
            moving |= bit
            if covered + folds * tile.offset[letter] * clusters != all_of_it:
                edges |= bit
                if (whole - 1) * tile.offset[letter] + tile.full[letter] < rest:
                    partial |= bit
        else:
            unrolled |= bit
            short |= bit if all_of_it < covered else 0
    movers, outside, fault[0] = 0, 0, FINE
    for place in range(len(order)):
        letter = order[place]
        outside |= 1 << letter
        tile.inside[letter] = ~outside
        work.movers[number, sub, movers].letter, work.movers[number, sub, movers].times = letter, tile.times[letter]
        movers += moving >> letter & 1
        if stuck >> letter & 1:
            fault[0], fault[1], fault[2], fault[3] = MOVES, number, letter, tile.within[letter]
    state.short, state.unrolled, state.edges, state.partial, state.movers = short, unrolled, edges, partial, movers
    state.cycles = 0
