"""Where the loops of a mapping of ours stand among directives: the levels, their letters, and which loop gives a tile.

Loops in time before a spatial unrolling and the unrolling itself are one level, each letter once. What a PE does
inside its L1 tile is no directive: MAESTRO only counts its operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, integer
from tilewright.mapspace.batch import Bools, Ints, Positions
from tilewright.notations.directives.table import NOWHERE, Letters, Table

(
    FINE,
    ILLEGAL,
    UNICAST,
    BYPASS_L2,
    BYPASS_L1,
    UNEVEN,
    STEPPED_WINDOW,
    STRIDED_WINDOW,
    REPEATED,
    LEVELS,
    FOLD,
    PIECES,
) = map(integer, range(12))
"""Why a mapping has no directives; the numbers that go with it are an entry or a letter, a tile, trips and a tile."""


class Nests(NamedTuple):
    """Mappings over one skeleton. Shapes: n mappings, E entries, D dimensions, T tensors, L letters."""

    letter: Ints
    """[D]: the letter that a dimension plays."""
    whole: Ints
    """[L]: sizes of the problem, outputs for Y and X; 1 for letters that it has not."""
    idle: Ints
    """Letters for the SpatialMap of a level without an unrolling, best first: those that do not step there are free."""
    last_resort: int
    """The letter for it if only Y and X step there and none is free."""
    l2: Bools
    """[E]: the entry may hold in L2."""
    l1: Bools
    """[E]: in L1."""
    temporal: Ints
    """[n, E, D]: as in `MappingBatch`, and so are the following."""
    spatial: Ints
    order: Positions
    spatial_order: Positions
    """Of no mappings where the problem's order stands."""
    keep: Bools
    unicast: Bools
    """Of no mappings where nothing is sent separately."""


class Scratch(NamedTuple):
    """Room for what is worked out of one mapping. Shapes: V levels, L letters."""

    tiles: Ints
    """[V, L]: that letters take in a level; 0: the one of the level outside."""
    tile: Ints
    """[L]: the running one."""
    stepping: Ints
    """[V]: the letters of a level's loops in time, as bits."""
    folded: Ints
    """[V]: the tile of the loop in time over the letter that is unrolled."""
    blocks: Ints
    """[2 * E]: of every entry the dimensions with a loop in time, and those with one in space, as bits."""


def scratch_of(nests: Nests, table: Table) -> Scratch:
    levels, letters = table.size.shape[1:]
    return Scratch(
        tiles=np.zeros((levels, letters), dtype=np.int64),
        tile=np.zeros(letters, dtype=np.int64),
        stepping=np.zeros(levels, dtype=np.int64),
        folded=np.zeros(levels, dtype=np.int64),
        blocks=np.zeros(2 * nests.temporal.shape[1], dtype=np.int64),
    )


@compiled
def write_rows(letters: Letters, nests: Nests, legal: Bools, start: int, table: Table, scratch: Scratch) -> None:
    """The directives of as many mappings as the table has rows, from number `start` on; of each that is not `legal` or has
    none the fault (`table.fault`)."""
    most, count = table.size.shape[1], len(letters.sizes)
    entries, dimensions, tensors = nests.temporal.shape[1], nests.temporal.shape[2], nests.keep.shape[2]
    tiles, tile, stepping, folded = scratch.tiles, scratch.tile, scratch.stepping, scratch.folded
    blocks = scratch.blocks
    slides = letters.slides
    for row in range(len(table.levels)):
        n = start + row
        fault, orders, unrolled, clusters = table.fault[row], table.order[row], table.unrolled[row], table.clusters[row]
        fault[:] = 0
        if n >= len(legal) or not legal[n]:
            fault[0] = ILLEGAL
            continue

        temporal, spatial = nests.temporal[n], nests.spatial[n]
        first, last = NOWHERE, NOWHERE  # entries that hold in L1
        for tensor in range(tensors):
            in_l2 = in_l1 = False
            for entry in range(entries):
                if nests.keep[n, entry, tensor]:
                    if nests.l2[entry]:
                        in_l2 = True
                    if nests.l1[entry]:
                        in_l1 = True
                        first = entry if first == NOWHERE else min(first, entry)
                        last = max(last, entry)
            if not in_l2:
                fault[0] = BYPASS_L2
            elif not in_l1 and fault[0] == 0:
                fault[0] = BYPASS_L1
        for entry in range(entries):  # the dimensions that a block of loops takes more than one step for
            steps = across = 0
            for d in range(dimensions):
                if temporal[entry, d] < spatial[max(entry, 1) - 1, d] and entry:
                    steps |= 1 << d
                if spatial[entry, d] < temporal[entry, d]:
                    across |= 1 << d
            blocks[2 * entry], blocks[2 * entry + 1] = steps, across
        outside, lanes = 0, 1  # loops in space outside L1's tile, and what those inside come to
        for entry in range(entries):
            if not blocks[2 * entry + 1]:
                continue
            for tensor in range(tensors):
                if len(nests.unicast) and nests.unicast[n, entry, tensor]:
                    fault[0], fault[1] = UNICAST, entry
            for d in range(dimensions):
                if blocks[2 * entry + 1] >> d & 1 and entry < last:
                    outside += 1
                elif blocks[2 * entry + 1] >> d & 1:
                    lanes *= -(-temporal[entry, d] // spatial[entry, d])
        table.lanes[row] = lanes

        level = placed = 0
        orders[:] = NOWHERE
        unrolled[:] = NOWHERE
        clusters[:] = 1
        stepping[:] = 0
        tiles[:] = 0
        for block in range(2 * last + 1):
            entry, in_space, left = block // 2, block % 2 == 1, blocks[block]
            for place in range(dimensions):
                if not left or fault[0]:
                    break
                d = place
                if not in_space:
                    d = nests.order[n, entry, place]
                elif len(nests.spatial_order):
                    d = nests.spatial_order[n, entry, place]
                if not left >> d & 1:
                    continue
                left &= ~(1 << d)
                now = spatial[entry, d] if in_space else temporal[entry, d]
                letter = nests.letter[d]
                partner, mapped = slides[letter], unrolled[level]
                fault[1] = letter
                if first < entry:
                    fault[0] = UNEVEN
                elif partner != NOWHERE and not in_space:
                    fault[0] = STEPPED_WINDOW
                elif partner != NOWHERE and letters.strides[partner] != 1:
                    fault[0] = STRIDED_WINDOW
                taken = mapped != NOWHERE and (
                    outside > 0 or stepping[level] >> letter & 1 or letter == mapped or letter == slides[mapped]
                )
                if taken or (partner != NOWHERE and stepping[level] >> partner & 1):
                    if level + 1 == most:
                        fault[0] = LEVELS
                        continue
                    level, placed = level + 1, 0
                if in_space:
                    unrolled[level], clusters[level] = letter, -(-temporal[entry, d] // now)
                    folded[level] = tiles[level, letter]
                    outside -= 1
                elif not stepping[level] >> letter & 1:
                    orders[level, placed] = letter
                    stepping[level] |= 1 << letter
                    placed += 1
                elif orders[level, placed - 1] != letter:
                    fault[0] = REPEATED
                tiles[level, letter] = now

        table.levels[row] = level + 1
        for letter in range(count):
            tile[letter] = nests.whole[letter]
        for level in range(table.levels[row]):
            order, mapped, diagonal = orders[level], unrolled[level], NOWHERE
            placed = 0
            while placed < count and order[placed] != NOWHERE:
                placed += 1
            if mapped == NOWHERE:  # a level needs a SpatialMap: with one sub-cluster it is a loop like any other
                mapped = nests.last_resort
                for place in range(placed - 1, -1, -1):
                    if letters.windows[order[place]] == NOWHERE:
                        mapped = order[place]
                for letter in nests.idle[::-1]:
                    if not stepping[level] >> letter & 1:
                        mapped = letter
            else:
                diagonal = slides[mapped]
                now, trips = tiles[level, mapped], clusters[level]
                if folded[level] and folded[level] != now * trips:
                    fault[0], fault[1], fault[2], fault[3], fault[4] = FOLD, mapped, folded[level], trips, now
                elif diagonal != NOWHERE and tile[mapped] != now * trips:
                    fault[0], fault[1], fault[2], fault[3], fault[4] = PIECES, mapped, tile[mapped], trips, now
                if fault[0]:
                    break
            for letter in (diagonal, mapped):
                if letter != NOWHERE and not stepping[level] >> letter & 1:
                    order[placed] = letter
                    placed += 1
            unrolled[level] = mapped if diagonal == NOWHERE else diagonal
            table.pair[row, level] = NOWHERE if diagonal == NOWHERE else mapped
            for letter in range(count):
                if tiles[level, letter]:
                    tile[letter] = tiles[level, letter]
            for letter in order[:placed]:
                size = offset = tile[letter]
                window = letters.windows[letter]
                if window != NOWHERE:
                    size = (tile[letter] - 1) * letters.strides[letter] + tile[window]
                    offset = tile[window] if letter == diagonal else tile[letter] * letters.strides[letter]
                table.size[row, level, letter], table.offset[row, level, letter] = size, offset
