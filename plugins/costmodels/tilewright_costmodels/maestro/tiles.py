"""The tiles of the directives of a row, and what they do on a sub-problem."""

from __future__ import annotations

from tilewright.compiled import kernel_part
from tilewright.notations.directives.table import NOWHERE, Letters, Table
from tilewright_costmodels.maestro import at
from tilewright_costmodels.maestro.work import FILTER, FINE, INPUT, MOVES, Work


@kernel_part
def last_fold(cut: int, full: int, offset: int, clusters: int) -> tuple[int, int, int]:
    """Of a letter in space beyond one fold: full folds after the first, what the last one has left, and sub-clusters with
    a whole tile in it (1 if none)."""
    folds = ((cut - full) // offset + 1) // clusters - 1
    rest = cut - (folds + 1) * offset * clusters
    return folds, rest, 1 if rest < full else (rest - full) // offset + 1


@kernel_part
def cut_tiles(letters: Letters, table: Table, row: int, work: Work) -> None:
    """The tiles of all levels, against the nominal sizes of their letters."""
    count = len(letters.sizes)
    for level in range(table.levels[row]):
        tiles, about = work.tiles[level], work.about[level]
        spatial, pair, clusters = table.unrolled[row, level], table.pair[row, level], table.clusters[row, level]
        about[at.SPATIAL], about[at.PAIR], about[at.CLUSTERS] = spatial, pair, clusters
        about[at.LANES] = table.lanes[row] if level + 1 == table.levels[row] else 0
        about[at.ALONG] = 1 << spatial if pair == NOWHERE else 1 << spatial | 1 << pair
        inside = 0
        for place in range(count - 1, -1, -1):
            letter = table.order[row, level, place]
            full, offset = table.size[row, level, letter], table.offset[row, level, letter]
            cut = (
                min(work.tiles[level - 1, at.FULL, letter], work.tiles[level - 1, at.CUT, letter])
                if level
                else letters.sizes[letter]
            )
            tiles[at.FULL, letter], tiles[at.OFFSET, letter], tiles[at.CUT, letter] = full, offset, cut
            tiles[at.ORDER, place], tiles[at.INSIDE, letter] = letter, inside
            inside |= 1 << letter
            steps = (cut - full) // offset if full < cut else 0
            rest = cut - (steps + 1) * offset
            rest = cut if rest < 0 else rest
            tiles[at.PART, letter] = full if full <= cut and steps * offset + full == cut else rest
            tiles[at.FRESH_PART, letter] = max(offset - (full - rest), 0)
        full, offset, cut = tiles[at.FULL, spatial], tiles[at.OFFSET, spatial], tiles[at.CUT, spatial]
        whole = 1
        if cut > full + offset * (clusters - 1):
            _, _, whole = last_fold(cut, full, offset, clusters)
        elif cut > full:
            whole = (cut - full) // offset + 1
            whole += offset * (whole - 1) + full < cut  # a partial one is counted only if all fit in one fold
        about[at.EDGE_CLUSTERS] = whole


@kernel_part
def find_states(letters: Letters, level: int, sub: int, work: Work) -> None:
    """What the directives of a level do on a sub-problem."""
    state, steady, tiles, about = work.states[level, sub], work.steady[level, sub], work.tiles[level], work.about[level]
    short = unrolled = edges = partial = 0
    input_tile = filter_tile = 1
    state[at.FAULT], state[at.CYCLES] = FINE, 0
    for letter in range(len(letters.sizes)):
        full, offset, cut = tiles[at.FULL, letter], tiles[at.OFFSET, letter], letters.sizes[letter]
        if level:
            cut = work.tiles[level - 1, at.PART if sub >> letter & 1 else at.FULL, letter]
        bit, in_space = 1 << letter, about[at.ALONG] >> letter & 1
        covered = full + offset * (about[at.CLUSTERS] - 1) if in_space else full
        steps = 0
        if cut <= covered:
            unrolled |= bit
            if cut < covered:
                short |= bit
        elif in_space:
            steps, rest, whole = last_fold(cut, full, offset, about[at.CLUSTERS])
            if covered + steps * offset * about[at.CLUSTERS] != cut:
                edges |= bit
                if (whole - 1) * offset + full < rest:
                    partial |= bit
        else:
            steps = (cut - full) // offset
            if steps * offset + full < cut:
                edges |= bit
            if tiles[at.CUT, letter] <= full:
                state[at.FAULT], state[at.FAULT + 1], state[at.FAULT + 2], state[at.FAULT + 3] = (
                    MOVES,
                    level,
                    letter,
                    cut,
                )
        steady[letter] = steps
        if not in_space:
            tile = tiles[at.PART, letter] if short & bit else full
            if letters.tensors[INPUT] & bit:
                input_tile *= tile
            if letters.tensors[FILTER] & bit:
                filter_tile *= tile
    state[at.SHORT], state[at.UNROLLED], state[at.EDGES], state[at.PARTIAL] = short, unrolled, edges, partial
    state[at.INPUT_TILE], state[at.FILTER_TILE] = input_tile, filter_tile
