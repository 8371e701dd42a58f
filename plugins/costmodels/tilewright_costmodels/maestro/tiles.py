"""Tiles of a level, and the states its directives are in on a sub-problem."""

from __future__ import annotations

from tilewright.compiled import compiled
from tilewright.notations.directives.table import NOWHERE, Letters, Table
from tilewright_costmodels.maestro.work import (
    CLUSTERS,
    EDGE_CLUSTERS,
    EDGES,
    FRESH,
    FRESH_PART,
    FULL,
    IN_SPACE,
    MET,
    MOVES,
    PAIR,
    PART,
    PARTIAL,
    SHORT,
    SPLIT,
    UNROLLED,
    Work,
)


@compiled
def _folds(cut: int, size: int, offset: int, clusters: int) -> tuple[int, int, int]:
    """Of a split beyond one fold: full folds after the first, what the last one has left, and sub-clusters with a whole
    tile in it (1 if none)."""
    folds = ((cut - size) // offset + 1) // clusters - 1
    rest = cut - (folds + 1) * offset * clusters
    return folds, rest, 1 if rest < size else (rest - size) // offset + 1


@compiled
def cut_tiles(letters: Letters, table: Table, row: int, level: int, work: Work) -> None:
    """The tiles of a level against its nominal sizes."""
    count = len(letters.sizes)
    size, offset, whole = table.size[row, level], table.offset[row, level], work.nominal[level]
    inputs, results, about = work.inputs[level], work.results[level], work.levels[level]
    split, pair, clusters = table.split[row, level], table.pair[row, level], table.clusters[row, level]
    about[IN_SPACE] = 1 << split if pair == NOWHERE else 1 << split | 1 << pair
    about[SPLIT], about[PAIR], about[CLUSTERS] = split, pair, clusters
    placed = 0
    for place in range(count - 1, -1, -1):
        work.inside[level, table.order[row, level, place]] = placed
        placed |= 1 << table.order[row, level, place]
    for letter in range(count):
        full, step = size[letter], offset[letter]
        whole[letter] = (
            letters.sizes[letter]
            if level == 0
            else min(work.inputs[level - 1, FULL, letter], work.nominal[level - 1, letter])
        )
        cut = whole[letter]
        steps = (cut - full) // step if full < cut else 0
        rest = cut - (steps + 1) * step
        if rest < 0:
            rest = cut
        ragged = steps * step + full < cut or full > cut
        still = cut <= full and not about[IN_SPACE] >> letter & 1
        inputs[FULL, letter] = results[FULL, letter] = full
        inputs[PART, letter] = results[PART, letter] = rest if ragged else full
        inputs[FRESH, letter] = results[FRESH, letter] = 0 if still else min(full, step)
        inputs[FRESH_PART, letter] = results[FRESH_PART, letter] = max(step - (full - rest), 0)
    for letter in range(count):
        window = letters.windows[letter]
        if window != NOWHERE:
            results[FULL, letter] -= inputs[FULL, window] - 1
            results[PART, letter] -= inputs[PART, window] - 1
            results[FRESH, letter] = min(size[letter], offset[letter])
            results[FRESH_PART, letter] = min(offset[letter], results[PART, letter])
    full, step, cut = size[split], offset[split], whole[split]
    if cut > full + step * (clusters - 1):
        _, _, at_work = _folds(cut, full, step, clusters)
    elif cut <= full:
        at_work = 1
    else:
        at_work = (cut - full) // step + 1
        at_work += step * (at_work - 1) + full < cut
    about[EDGE_CLUSTERS] = at_work


@compiled
def find_states(letters: Letters, table: Table, row: int, level: int, sub: int, work: Work) -> None:
    """What the directives of a level do on a sub-problem."""
    state, steady, about = work.states[level, sub], work.steady[level, sub], work.levels[level]
    short = unrolled = edges = partial = 0
    work.fault[level, sub, 0] = 0
    for letter in range(len(letters.sizes)):
        full, step = table.size[row, level, letter], table.offset[row, level, letter]
        if level == 0:
            cut = letters.sizes[letter]
        else:
            cut = work.inputs[level - 1, PART if sub >> letter & 1 else FULL, letter]
        in_space = about[IN_SPACE] >> letter & 1
        covered = full + step * (about[CLUSTERS] - 1) if in_space else full
        steady[letter] = 0
        if cut <= covered:
            unrolled |= 1 << letter
            if cut < covered:
                short |= 1 << letter
        elif in_space:
            folds, rest, whole = _folds(cut, full, step, about[CLUSTERS])
            steady[letter] = folds
            if covered + folds * step * about[CLUSTERS] != cut:
                edges |= 1 << letter
                if (whole - 1) * step + full < rest:
                    partial |= 1 << letter
        else:
            steady[letter] = (cut - full) // step
            if steady[letter] * step + full < cut:
                edges |= 1 << letter
            if work.nominal[level, letter] <= full:
                fault = work.fault[level, sub]
                fault[0], fault[1], fault[2], fault[3] = MOVES, level, letter, cut
    state[MET], state[SHORT], state[UNROLLED], state[EDGES], state[PARTIAL] = row + 1, short, unrolled, edges, partial
