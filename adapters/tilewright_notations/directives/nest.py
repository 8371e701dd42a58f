"""Translation of a loop nest to directives: levels, their letters, and the tile of each letter.

A level consists of temporal loops followed by one spatial unrolling, each letter once. Loops inside
a PE's L1 tile become no directive, because MAESTRO only counts their operations. A letter is the
index of a dimension of MAESTRO's layer.

A nest, as loops outside L1's tile (`_place`):

    slot    loop               level   tile
    0       K x 2              0       K: 4
    1       parallel C x 4     0       C: 2
    2       C x 2              1       C: 1

Slot 2 opens level 1, because level 0 unrolls C already. Level 0 is TemporalMap(4, 4) K, SpatialMap(2, 2) C, Cluster(4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import for_kernel, integer, kernel_part, load8, load_padded8, pack_bits, product, unpack_bits
from tilewright.mapspace.batch import Bools, Ints, Positions
from tilewright_notations.directives.table import NOWHERE, Letters, Table

(
    FINE,
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
    UNKNOWN,
) = map(integer, range(12))
"""Reasons why a mapping has no directives.

The values that complete a reason are an entry or a letter, a tile, trips and a tile.
"""


_LIST, _GRID, _CUBE = (for_kernel(np.zeros((0,) * axes, dtype=np.int64)) for axes in (1, 2, 3))
_ORDERS = for_kernel(np.zeros((0, 0, 0), dtype=np.int8))
_FLAG, _FLAGS = for_kernel(np.zeros(0, dtype=np.bool_)), for_kernel(np.zeros((0, 0, 0), dtype=np.bool_))


class Cast(NamedTuple):
    """Assignment of a problem's dimensions to letters. Shapes: D dimensions, L letters."""

    letter: Ints = _LIST
    """[D]: the letter of each dimension."""
    whole: Ints = _LIST
    """[L]: sizes of the problem, outputs for Y and X; 1 for letters that it lacks."""
    refused: Ints = _GRID
    """[2, L]: reason why a temporal (0) or spatial (1) loop over a letter is refused outside L1.

    FINE if such a loop is allowed.
    """
    idle: Ints = _LIST
    """Letters for the SpatialMap of a level without an unrolling, best first.

    A letter qualifies if the level does not step along it.
    """
    last_resort: int = NOWHERE
    """Letter for that SpatialMap if no letter of `idle` qualifies and only Y and X step there."""


class Nests(NamedTuple):
    """Mappings over one skeleton, possibly none.

    Shapes: n mappings, E entries, S slots, D dimensions, T tensors.
    """

    cast: Cast = Cast()
    legal: Bools = _FLAG
    """[n]: mappings to translate."""
    l2: Bools = _FLAG
    """[E]: whether the entry may keep tensors in L2."""
    l1: Bools = _FLAG
    """[E]: whether the entry may keep tensors in L1."""
    slots: Ints = _GRID
    """[S, 3]: slots, outermost first: entry, whether spatial, and index of the block of loop order.

    A block of NOWHERE means the problem's order, or for `spatial_order`.
    """
    trips: Ints = _CUBE
    """[n, S, D]: trips; empty if tile sizes are given."""
    temporal: Ints = _CUBE
    """[n, E, D]: temporal tile sizes, like `spatial`; empty if `trips` are given."""
    spatial: Ints = _CUBE
    order: Positions = _ORDERS
    """[n, block, D]: loop orders, as in `MappingBatch`."""
    spatial_order: Positions = _ORDERS
    """[n, E, D]: orders of spatial loops; empty if the problem's order applies."""
    keep: Bools = _FLAGS
    """[n, E, T]: kept tensors; n = 1 if all mappings keep the same."""
    unicast: Bools = _FLAGS
    """[n, E, T]: tensors sent separately; empty if there are none."""


class Scratch(NamedTuple):
    """Scratch arrays for one mapping.

    Shapes: V levels, L letters and as many dimensions; those that the problem lacks come last.
    """

    trips: Ints
    """[S, L]: trips of all loops, by dimension."""
    inside: Ints
    """[S + 1, L]: tiles at the outer boundary of each slot, by dimension.

    The last row holds the tiles inside the last slot.
    """
    looping: Ints
    """[S]: dimensions with a loop of more than one trip, as bits."""
    loops: Ints
    """[D]: loops of one slot, outermost first."""
    tiles: Ints
    """[V, L]: tiles inside the loops of each level."""
    stepping: Ints
    """[V]: letters of a level's temporal loops, as bits."""
    l1: Ints
    """[3]: reason if a tensor bypasses L2 or L1, then first and last storage entry of L1.

    The reason is UNKNOWN before the first mapping.
    """


def scratch_of(nests: Nests, table: Table) -> Scratch:
    """Return scratch arrays that fit any mapping of the nests."""
    (levels, letters), slots = table.size.shape, len(nests.slots)
    return Scratch(
        trips=np.ones((slots, letters), dtype=np.int64),
        inside=np.ones((slots + 1, letters), dtype=np.int64),
        looping=np.zeros(slots, dtype=np.int64),
        loops=np.zeros(letters, dtype=np.int64),
        tiles=np.zeros((levels, letters), dtype=np.int64),
        stepping=np.zeros(levels, dtype=np.int64),
        l1=np.full(3, UNKNOWN),
    )


@kernel_part
def _find_l1(nests: Nests, n: int, l1: Ints) -> None:
    """Compute `Scratch.l1`."""
    code, first, last = FINE, NOWHERE, NOWHERE
    for tensor in range(nests.keep.shape[2]):
        in_l2 = in_l1 = False
        for entry in range(len(nests.l1)):
            if nests.keep[n, entry, tensor]:
                in_l2 |= nests.l2[entry]
                if nests.l1[entry]:
                    in_l1 = True
                    first = entry if first == NOWHERE else min(first, entry)
                    last = max(last, entry)
        if not in_l2:
            code = BYPASS_L2
        elif not in_l1 and code == FINE:
            code = BYPASS_L1
    l1[0], l1[1], l1[2] = code, first, last


@kernel_part
def _lay_out(nests: Nests, n: int, scratch: Scratch) -> None:
    """Compute the trips of a mapping's loops, and the tiles inside them."""
    trips, inside = scratch.trips, scratch.inside
    if len(nests.trips):
        for slot in range(len(trips) - 1, -1, -1):
            here = load_padded8(nests.trips[n, slot])
            trips[slot][:] = here
            inside[slot][:] = load8(inside[slot + 1]) * here
            scratch.looping[slot] = pack_bits(here > 1)
        return
    outer = load_padded8(nests.temporal[n, 0])
    inside[0][:] = outer
    for slot in range(len(trips)):
        tiles = nests.spatial if nests.slots[slot, 1] else nests.temporal
        inner = load_padded8(tiles[n, nests.slots[slot, 0]])
        here = np.where(outer == inner, 1, (outer + inner - 1) // inner)
        trips[slot][:] = here
        inside[slot + 1][:] = inner
        scratch.looping[slot] = pack_bits(here > 1)
        outer = inner


@kernel_part
def _find_unrolled(nests: Nests, n: int, last: int, fault: Ints, scratch: Scratch) -> tuple[int, int]:
    """Return the last slot with spatial loops outside L1's tile, and the product of those inside.

    `last` is the last storage entry of L1.
    """
    last_unrolled, lanes = NOWHERE, 1
    for slot in range(len(nests.slots)):
        entry, in_space = nests.slots[slot, 0], nests.slots[slot, 1]
        if not in_space or not scratch.looping[slot]:
            continue
        if entry < last:
            last_unrolled = slot
        else:
            lanes *= product(load8(scratch.trips[slot]))
        for tensor in range(nests.unicast.shape[2]):
            if len(nests.unicast) and nests.unicast[n, entry, tensor]:
                fault[0], fault[1] = UNICAST, entry
    return last_unrolled, lanes


@kernel_part
def _list_loops(nests: Nests, n: int, slot: int, scratch: Scratch) -> int:
    """Write the loops of a slot into `scratch.loops` and return their number."""
    entry, block, looping, loops = nests.slots[slot, 0], nests.slots[slot, 2], scratch.looping[slot], scratch.loops
    count = 0
    if looping:
        for place in range(len(nests.cast.letter)):
            d = place
            if block != NOWHERE:
                d = nests.order[n, block, place]
            elif len(nests.spatial_order):
                d = nests.spatial_order[n, entry, place]
            loops[count] = d
            count += looping >> d & 1
    return count


@kernel_part
def _place(letters: Letters, nests: Nests, n: int, last_unrolled: int, table: Table, scratch: Scratch) -> None:
    """Assign the loops of a mapping to levels, and record the tiles inside them."""
    fault, order, tiles, l1 = table.fault, table.order, scratch.tiles, scratch.l1
    level = placed = stepping = unrolled = 0
    table.unrolled[0], table.clusters[0] = NOWHERE, 1
    for slot in range(len(nests.slots)):
        entry, in_space = nests.slots[slot, 0], nests.slots[slot, 1]
        if entry + in_space > l1[2]:  # inside the tile that L1 keeps
            continue
        for number in range(_list_loops(nests, n, slot, scratch)):
            d = scratch.loops[number]
            letter, trips, tile = nests.cast.letter[d], scratch.trips[slot, d], scratch.inside[slot + 1, d]
            slides = letters.slides[letter]
            pair = 1 << slides if slides != NOWHERE else 0
            fault[1] = letter
            if nests.cast.refused[in_space, letter] or l1[1] < entry:
                fault[0] = nests.cast.refused[in_space, letter] or UNEVEN
                return
            if stepping & pair or (unrolled and (slot <= last_unrolled or (stepping | unrolled) >> letter & 1)):
                if level + 1 == len(tiles):
                    fault[0] = LEVELS
                    return
                scratch.stepping[level] = stepping
                _end(order[level], placed)
                level, placed, stepping, unrolled = level + 1, 0, 0, 0
                table.unrolled[level], table.clusters[level] = NOWHERE, 1
            tiles[level, letter] = tile
            if in_space:
                table.unrolled[level], table.clusters[level] = letter, trips
                unrolled = 1 << letter | pair
                # a letter that both steps and is unrolled needs full folds; pieces of a diagonal
                # must be equal
                whole = scratch.inside[slot, d]
                if whole != tile * trips and (pair or stepping >> letter & 1):
                    fault[0], fault[2], fault[3], fault[4] = PIECES if pair else FOLD, whole, trips, tile
                    return
            elif not stepping >> letter & 1:
                order[level, placed] = letter
                stepping |= 1 << letter
                placed += 1
            elif order[level, placed - 1] != letter:
                fault[0] = REPEATED
                return
    scratch.stepping[level] = stepping
    _end(order[level], placed)
    table.levels[0] = level + 1


@kernel_part
def _end(order: Ints, placed: int) -> None:
    """Mark the positions from `placed` on as empty."""
    for place in range(placed, len(order)):
        order[place] = NOWHERE


@kernel_part
def _idle(letters: Letters, nests: Nests, order: Ints, stepping: int) -> int:
    """Return the letter for a SpatialMap over one sub-cluster.

    Such a map acts as a temporal loop. Every level needs a SpatialMap.
    """
    mapped = nests.cast.last_resort
    for letter in order[::-1]:
        if letter != NOWHERE and letters.windows[letter] == NOWHERE:
            mapped = letter
    for letter in nests.cast.idle[::-1]:
        if not stepping >> letter & 1:
            mapped = letter
    return mapped


@kernel_part
def _measure(letters: Letters, nests: Nests, table: Table, scratch: Scratch) -> None:
    """Compute sizes and offsets of the directives; those of Y and X are in inputs."""
    tiles = load8(nests.cast.whole)
    for level in range(table.levels[0]):
        order, tile, stepping = table.order[level], scratch.tiles[level], scratch.stepping[level]
        mapped, pair = table.unrolled[level], NOWHERE
        cut = stepping if mapped == NOWHERE else stepping | 1 << mapped
        tiles = np.where(unpack_bits(cut), load8(tile), tiles)
        tile[:] = tiles
        if mapped == NOWHERE:
            mapped = _idle(letters, nests, order, stepping)
        elif letters.slides[mapped] != NOWHERE:  # a diagonal
            pair, mapped = mapped, letters.slides[mapped]
        table.unrolled[level], table.pair[level] = mapped, pair
        placed = 0
        while placed < len(order) and order[placed] != NOWHERE:
            placed += 1
        for letter in (mapped, pair):
            if letter != NOWHERE and not stepping >> letter & 1:
                order[placed] = letter
                placed += 1
        sizes = offsets = tiles
        for row in range(len(letters.pairs)):
            letter, window = letters.pairs[row, 0], letters.pairs[row, 1]
            mask, stride = unpack_bits(1 << letter), letters.strides[letter]
            sizes = np.where(mask, (tile[letter] - 1) * stride + tile[window], sizes)
            offsets = np.where(mask, tile[window] if pair == window else tile[letter] * stride, offsets)
        table.size[level][:] = sizes
        table.offset[level][:] = offsets


@kernel_part
def write_directives(letters: Letters, nests: Nests, n: int, table: Table, scratch: Scratch) -> None:
    """Write the directives of mapping n, which is legal, or the reason why it has none.

    The directives are incomplete, as a user writes them. The reason is stored in `table.fault`.
    """
    fault, l1 = table.fault, scratch.l1
    if l1[0] == UNKNOWN or len(nests.keep) > 1:
        _find_l1(nests, n if len(nests.keep) > 1 else 0, l1)
    fault[0] = l1[0]
    if not fault[0]:
        _lay_out(nests, n, scratch)
        last_unrolled, table.lanes[0] = _find_unrolled(nests, n, l1[2], fault, scratch)
        if not fault[0]:
            _place(letters, nests, n, last_unrolled, table, scratch)
    if not fault[0]:
        _measure(letters, nests, table, scratch)
