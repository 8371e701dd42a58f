"""The tiles of directives, and what they do on a sub-problem."""

from __future__ import annotations

from tilewright.compiled import kernel_part
from tilewright.mapspace.batch import Ints
from tilewright.notations.directives.table import NOWHERE, Letters, Table
from tilewright_costmodels.maestro.work import FILTER, FINE, INPUT, MOVES, Hardware, Work


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
    cycles exceeds: all steps, times what one can compute or send."""
    steps_of_all = most_elements = 1.0
    for number in range(table.levels[0]):
        level = work.levels[number]
        spatial, pair, clusters = table.unrolled[number], table.pair[number], table.clusters[number]
        level.spatial, level.pair, level.clusters = spatial, pair, clusters
        level.along = 1 << spatial if pair == NOWHERE else 1 << spatial | 1 << pair
        level.lanes = table.lanes[0] if number + 1 == table.levels[0] else 0
        elements = float(clusters)
        for letter in range(len(letters.sizes)):
            tile = work.tiles[number, letter]
            full, offset = table.size[number, letter], table.offset[number, letter]
            cut = most = letters.sizes[letter]
            if number:
                outer = work.tiles[number - 1, letter]
                cut, most = min(outer.full, outer.cut), max(outer.full, outer.part)
            steps = (cut - full) // offset if full < cut else 0
            rest = cut - (steps + 1) * offset
            rest = cut if rest < 0 else rest
            part = full if full <= cut and steps * offset + full == cut else rest
            tile.full, tile.offset, tile.cut, tile.steps, tile.part = full, offset, cut, steps, part
            tile.fresh = max(min(full, offset), 1) if full < cut else 1
            tile.fresh_part = max(offset - (full - rest), 0)
            tile.outputs, tile.part_outputs = full, part
            window = letters.windows[letter]
            if window != NOWHERE:  # which comes before in the alphabet
                sliding = work.tiles[number, window]
                tile.outputs, tile.part_outputs = full - sliding.full + 1, part - sliding.part + 1
            elements *= max(full, part, 1)
            if full < most:
                steps_of_all *= steps + 2 if most <= cut else most + 1
        most_elements = max(most_elements, elements)
        tile = work.tiles[number, spatial]
        level.edge_clusters = 1
        if tile.cut > tile.full + tile.offset * (clusters - 1):
            _, _, level.edge_clusters = last_fold(tile.cut, tile.full, tile.offset, clusters)
        elif tile.cut > tile.full:  # a partial one is counted only if all fit in one fold
            level.edge_clusters = tile.steps + 1 + (tile.offset * tile.steps + tile.full < tile.cut)
    most_of_one: float = most_elements + (hardware.noc_latency + 1.0) * table.levels[0]
    return 2.0 * steps_of_all * most_of_one


@kernel_part
def find_states(letters: Letters, order: Ints, number: int, sub: int, work: Work) -> None:
    """What the directives of a level, whose letters stand in this order, do on a sub-problem."""
    state, level, fault = work.states[number, sub], work.levels[number], work.faults[number, sub]
    short = unrolled = edges = partial = movers = outside = 0
    input_tile = filter_tile = 1
    fault[0], along, clusters = FINE, level.along, level.clusters
    inputs, filters = letters.tensors[INPUT], letters.tensors[FILTER]
    for place in range(len(order)):
        letter = order[place]
        tile = work.tiles[number, letter]
        full, offset, cut = tile.full, tile.offset, letters.sizes[letter]
        if number:
            outer = work.tiles[number - 1, letter]
            cut = outer.part if sub >> letter & 1 else outer.full
        bit = 1 << letter
        outside |= bit
        tile.inside = ~outside
        if along & bit:
            covered = full + offset * (clusters - 1)
            steps = 0
            if cut > covered:
                steps, rest, whole = last_fold(cut, full, offset, clusters)
                if covered + steps * offset * clusters != cut:
                    edges |= bit
                    if (whole - 1) * offset + full < rest:
                        partial |= bit
        else:
            covered = full
            steps = tile.steps if cut == tile.cut else max(cut - full, 0) // offset
            if full < cut:
                if steps * offset + full < cut:
                    edges |= bit
                if tile.cut <= full:
                    fault[0], fault[1], fault[2], fault[3] = MOVES, number, letter, cut
            extent = tile.part if cut < full else full
            input_tile *= extent if inputs & bit else 1
            filter_tile *= extent if filters & bit else 1
        work.movers[number, sub, movers].letter, work.movers[number, sub, movers].times = letter, steps
        movers += covered < cut
        unrolled |= bit if cut <= covered else 0
        short |= bit if cut < covered else 0
    state.short, state.unrolled, state.edges, state.partial, state.movers = short, unrolled, edges, partial, movers
    state.input_tile, state.filter_tile, state.cycles = input_tile, filter_tile, 0
