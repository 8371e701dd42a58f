"""Where the loops of a mapping of ours stand among directives: the levels, their letters, and which loop gives a tile.

Loops in time before a spatial unrolling and the unrolling itself are one level, each letter once. What a PE does
inside its L1 tile is no directive: MAESTRO only counts its operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, integer, kernel_part
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
    """[n, E, D]: tile sizes, and `spatial` likewise; of no mappings where `trips` are given."""
    spatial: Ints
    trips: Ints
    """[n, slot, D]; of no mappings where tile sizes are given."""
    slots: Ints
    """[E, 2]: the slot of an entry in time and the one in space; NOWHERE: it has none."""
    order: Positions
    """[n, block, D]: as in `MappingBatch`."""
    blocks: Ints
    """[E]: the block of an entry's loops in time; NOWHERE: the problem's order stands."""
    spatial_order: Positions
    """[n, E, D]; of no mappings where the problem's order stands."""
    keep: Bools
    """[n, E, T]; of one mapping where all keep the same."""
    unicast: Bools
    """[n, E, T]; of no mappings where nothing is sent separately."""


class Scratch(NamedTuple):
    """Room for one mapping. Shapes: E entries, D dimensions, V levels, L letters."""

    temporal: Ints
    """[E, D]: its tile sizes, and `spatial` likewise."""
    spatial: Ints
    loops: Ints
    """[E, 2]: dimensions with a loop in time and those with one in space, as bits."""
    tiles: Ints
    """[V, L]: that letters take in a level; 0: the one of the level outside."""
    tile: Ints
    """[L]: the running one."""
    stepping: Ints
    """[V]: the letters of a level's loops in time, as bits."""
    folded: Ints
    """[V]: the tile of the loop in time over the letter that is unrolled."""


def scratch_of(nests: Nests, table: Table) -> Scratch:
    """Room for any mapping of the nests."""
    (levels, letters), entries, dimensions = table.size.shape[1:], len(nests.l1), len(nests.letter)
    return Scratch(
        temporal=np.zeros((entries, dimensions), dtype=np.int64),
        spatial=np.zeros((entries, dimensions), dtype=np.int64),
        loops=np.zeros((entries, 2), dtype=np.int64),
        tiles=np.zeros((levels, letters), dtype=np.int64),
        tile=np.zeros(letters, dtype=np.int64),
        stepping=np.zeros(levels, dtype=np.int64),
        folded=np.zeros(levels, dtype=np.int64),
    )


@kernel_part
def _take(nests: Nests, n: int, scratch: Scratch) -> None:
    """Tile sizes of a mapping, and where it has loops of more than one step."""
    temporal, spatial, dimensions = scratch.temporal, scratch.spatial, len(nests.letter)
    for d in range(dimensions):
        tile = 1
        for entry in range(len(nests.l1) - 1, -1, -1):
            if len(nests.trips):
                spatial[entry, d] = tile
                tile *= nests.trips[n, nests.slots[entry, 1], d] if nests.slots[entry, 1] != NOWHERE else 1
                temporal[entry, d] = tile
                tile *= nests.trips[n, nests.slots[entry, 0], d] if nests.slots[entry, 0] != NOWHERE else 1
            else:
                temporal[entry, d], spatial[entry, d] = nests.temporal[n, entry, d], nests.spatial[n, entry, d]
    for entry in range(len(nests.l1)):
        steps = unrolled = 0
        for d in range(dimensions):
            if entry and temporal[entry, d] < spatial[entry - 1, d]:
                steps |= 1 << d
            if spatial[entry, d] < temporal[entry, d]:
                unrolled |= 1 << d
        scratch.loops[entry, 0], scratch.loops[entry, 1] = steps, unrolled


@kernel_part
def _held_in_l1(nests: Nests, n: int, fault: Ints) -> tuple[int, int]:
    """First and last entry that holds in L1. Every tensor must go through both buffers."""
    row = n if len(nests.keep) > 1 else 0
    first, last = NOWHERE, NOWHERE
    for tensor in range(nests.keep.shape[2]):
        in_l2 = in_l1 = False
        for entry in range(len(nests.l1)):
            if nests.keep[row, entry, tensor]:
                in_l2 |= nests.l2[entry]
                if nests.l1[entry]:
                    in_l1 = True
                    first = entry if first == NOWHERE else min(first, entry)
                    last = max(last, entry)
        if not in_l2:
            fault[0] = BYPASS_L2
        elif not in_l1 and fault[0] == FINE:
            fault[0] = BYPASS_L1
    return first, last


@kernel_part
def _lanes(nests: Nests, n: int, last: int, fault: Ints, scratch: Scratch) -> tuple[int, int]:
    """Loops in space outside L1's tile, and what those inside it come to."""
    outside, lanes = 0, 1
    for entry in range(len(nests.l1)):
        unrolled = scratch.loops[entry, 1]
        if not unrolled:
            continue
        for tensor in range(nests.unicast.shape[2]):
            if len(nests.unicast) and nests.unicast[n, entry, tensor]:
                fault[0], fault[1] = UNICAST, entry
        for d in range(len(nests.letter)):
            if unrolled >> d & 1 and entry < last:
                outside += 1
            elif unrolled >> d & 1:
                lanes *= -(-scratch.temporal[entry, d] // scratch.spatial[entry, d])
    return outside, lanes


@kernel_part
def _place(letters: Letters, nests: Nests, n: int, row: int, table: Table, scratch: Scratch) -> None:
    """The levels of a mapping: their letters, and the tiles that the loops give them."""
    fault, orders, unrolled, clusters = table.fault[row], table.order[row], table.unrolled[row], table.clusters[row]
    tiles, stepping = scratch.tiles, scratch.stepping
    first, last = _held_in_l1(nests, n, fault)
    outside, table.lanes[row] = _lanes(nests, n, last, fault, scratch)
    orders[:] = NOWHERE
    unrolled[:] = NOWHERE
    clusters[:] = 1
    stepping[:] = 0
    tiles[:] = 0
    level = placed = 0
    for turn in range(2 * last + 1):
        entry, in_space = turn // 2, turn % 2
        left, block = scratch.loops[entry, in_space], nests.blocks[entry]
        for place in range(len(nests.letter)):
            if not left or fault[0]:
                break
            d = place
            if in_space and len(nests.spatial_order):
                d = nests.spatial_order[n, entry, place]
            elif not in_space and block != NOWHERE:
                d = nests.order[n, block, place]
            if not left >> d & 1:
                continue
            left &= ~(1 << d)
            letter = nests.letter[d]
            partner, mapped = letters.slides[letter], unrolled[level]
            fault[1] = letter
            if first < entry:
                fault[0] = UNEVEN
            elif partner != NOWHERE and not in_space:
                fault[0] = STEPPED_WINDOW
            elif partner != NOWHERE and letters.strides[partner] != 1:
                fault[0] = STRIDED_WINDOW
            taken = mapped != NOWHERE and (
                outside > 0 or stepping[level] >> letter & 1 or letter == mapped or letter == letters.slides[mapped]
            )
            if taken or (partner != NOWHERE and stepping[level] >> partner & 1):
                if level + 1 == len(unrolled):
                    fault[0] = LEVELS
                    break
                level, placed = level + 1, 0
            tile = scratch.spatial[entry, d] if in_space else scratch.temporal[entry, d]
            if in_space:
                unrolled[level], clusters[level] = letter, -(-scratch.temporal[entry, d] // tile)
                scratch.folded[level] = tiles[level, letter]
                outside -= 1
            elif not stepping[level] >> letter & 1:
                orders[level, placed] = letter
                stepping[level] |= 1 << letter
                placed += 1
            elif orders[level, placed - 1] != letter:
                fault[0] = REPEATED
            tiles[level, letter] = tile
    table.levels[row] = level + 1


@kernel_part
def _idle(letters: Letters, nests: Nests, order: Ints, stepping: int) -> int:
    """The letter of a SpatialMap with one sub-cluster, which is a loop like any other: every level needs one."""
    mapped = nests.last_resort
    for letter in order[::-1]:
        if letter != NOWHERE and letters.windows[letter] == NOWHERE:
            mapped = letter
    for letter in nests.idle[::-1]:
        if not stepping >> letter & 1:
            mapped = letter
    return mapped


@kernel_part
def _measure(letters: Letters, nests: Nests, row: int, table: Table, scratch: Scratch) -> None:
    """Sizes and offsets of the directives, of inputs for Y and X."""
    fault, tiles, tile, count = table.fault[row], scratch.tiles, scratch.tile, len(letters.sizes)
    for letter in range(count):
        tile[letter] = nests.whole[letter]
    for level in range(table.levels[row]):
        order, stepping = table.order[row, level], scratch.stepping[level]
        mapped, pair = table.unrolled[row, level], NOWHERE
        if mapped == NOWHERE:
            mapped = _idle(letters, nests, order, stepping)
        else:
            now, trips, folded = tiles[level, mapped], table.clusters[row, level], scratch.folded[level]
            if folded and folded != now * trips:  # a letter steps and is unrolled: the steps must be full folds
                fault[0], fault[1], fault[2], fault[3], fault[4] = FOLD, mapped, folded, trips, now
            if letters.slides[mapped] != NOWHERE:  # a diagonal: its pieces must be equal
                pair, mapped = mapped, letters.slides[mapped]
                if tile[pair] != now * trips and not fault[0]:
                    fault[0], fault[1], fault[2], fault[3], fault[4] = PIECES, pair, tile[pair], trips, now
            if fault[0]:
                break
        table.unrolled[row, level], table.pair[row, level] = mapped, pair
        placed = 0
        while placed < count and order[placed] != NOWHERE:
            placed += 1
        for letter in (mapped, pair):
            if letter != NOWHERE and not stepping >> letter & 1:
                order[placed] = letter
                placed += 1
        for letter in range(count):
            if tiles[level, letter]:
                tile[letter] = tiles[level, letter]
        for place in range(placed):
            letter = order[place]
            size = offset = tile[letter]
            window = letters.windows[letter]
            if window != NOWHERE:
                size = (tile[letter] - 1) * letters.strides[letter] + tile[window]
                offset = tile[window] if pair == window else tile[letter] * letters.strides[letter]
            table.size[row, level, letter], table.offset[row, level, letter] = size, offset


@compiled
def write_rows(letters: Letters, nests: Nests, legal: Bools, start: int, table: Table, scratch: Scratch) -> None:
    """The directives of as many mappings as the table has rows, from number `start` on; of each that is not `legal` or has
    none the fault (`table.fault`)."""
    for row in range(len(table.levels)):
        n = start + row
        table.fault[row, :] = FINE
        if n >= len(legal) or not legal[n]:
            table.fault[row, 0] = ILLEGAL
            continue
        _take(nests, n, scratch)
        _place(letters, nests, n, row, table, scratch)
        if not table.fault[row, 0]:
            _measure(letters, nests, row, table, scratch)
