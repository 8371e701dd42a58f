"""Tables of one mapping whose tiles do not divide: its cuts and the sizes of its pieces.

A *cut* is one loop of a dimension: it cuts each *piece* outside it into tiles. A piece of n iterations is cut into
floor(n / t) tiles of t, and a remainder of n mod t unless that is 0. A dimension is *regular* if all tiles but the
first divide one another, as in map spaces. Then a boundary has two sizes at most: full pieces and one remainder. Files
may specify any tiles; such a dimension can have any number of sizes.

A regular dimension of 9 iterations. Cut 0 makes tiles of 4, cut 1 tiles of 2 of them; both are temporal loops.

    outside cut 0    [0  1  2  3  4  5  6  7  8]          a remainder of 9: the whole dimension
    outside cut 1    [0  1  2  3] [4  5  6  7] [8]        2 full pieces of 4, a remainder of 1
    inside cut 1     [0  1][2  3] [4  5][6  7] [8]        4 full pieces of 2, a remainder of 1

`Pieces.cut` has a row per cut, and one more for the pieces inside the last cut:

    row   trips   full   full_count   remainder   count   remainder_full   remainder_partial
    0     3       9      0            9           1       2                1
    1     2       4      2            1           3       0                1
    2     -       2      4            1           5       -                -

Row 1, for instance: 9 // 4 = 2 full pieces of 4 and one of 9 - 2 * 4 = 1, so 3 pieces. Cut 1 makes two tiles of each
full piece. Of the remainder it makes 4 - 2 * 2 = 0 full tiles, and one that is shorter.

These pieces inside cut 1 count, if `limit` is the loop of cut 1 (see the modes):

    PLAIN            [0  1]       [4  5]       [8]        the loop is at zero: only its first trips
    BEFORE           [0  1]       [4  5]
    ADVANCE                [2  3]       [6  7]
    UNMOVED                                    [8]        the loop has one trip here
    SECOND                 [2  3]       [6  7]            the loop is at its second trip
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, Index, Records, integer, passed_by_pointer, records
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_costmodels.timeloop.tables import Tables

NO_INDEX = integer(-1)
"""Index of a missing loop or dimension."""
PLAIN, ADVANCE, BEFORE, UNMOVED, SECOND = map(integer, range(5))
"""Modes of `Query`.

PLAIN counts all pieces. ADVANCE counts those to which the loop `limit` advances, BEFORE the pieces before them. UNMOVED
counts pieces for which no loop of the dimension, from `limit` inwards, advances. SECOND counts those for which all of
these loops do, at their second trips."""


class Movement(NamedTuple):
    """Tiles of one tensor that move, and the instances that count. Kernels make it."""

    tensor: int
    stop: int
    """The tiles are those outside the cuts of this level: what one memory of the level keeps."""
    keeps_from: int
    """With UNMOVED, loops outside this level must not advance, even for pieces that inner cuts do not have."""
    all_instances: bool
    """Count all instances, not the first one only: spatial loops outside the level `shared_from` are free."""
    shared_from: int
    """From this level inwards, a spatial loop is free if it moves the tensor or its slot is unicast."""


class Selection(NamedTuple):
    """Which tiles of a movement count: those of one advance of a temporal loop, or all. Kernels make it."""

    mode: int
    """PLAIN: all loops that move the tensor are free. ADVANCE: those outside the loop `limit` are free, and it
    advances. BEFORE: the tiles that precede those of ADVANCE. SECOND: the same, if all loops inside `limit` that move
    the tensor precede it with their second trips (see `traffic`)."""
    limit: int
    """Row of the loop in `Pieces.loop`; with PLAIN, more than all rows."""
    dimension: int
    """Dimension of that loop (NO_INDEX: none)."""
    unmoved_only: bool
    """Count only tiles for which no loop inside `limit` that moves the tensor advances."""
    shifted: int
    """Count only words that a tile shares with the next one, `shift` iterations of this dimension later (NO_INDEX: 0)."""
    shift: float
    """How many iterations later."""


class Query(NamedTuple):
    """Which pieces of one dimension `count_pieces` counts. Kernels make it."""

    movement: Movement
    mode: int
    """PLAIN, ADVANCE, BEFORE, UNMOVED or SECOND."""
    limit: int
    """Temporal loops outside this one are free, those inside it at zero; `mode` decides about the loop itself."""
    relevant: bool
    """The dimension moves the tensor."""


@passed_by_pointer
class Pieces(NamedTuple):
    """Pieces of one mapping. Shapes: D dimensions, S slots, Y sizes, T tensors, L levels, B mappings in SIMD lanes."""

    cut: Records
    """[D (S + 1)]: cuts with more than one trip, dimension by dimension, outermost first.

    `slot`; `temporal`; `loop`: row in `loop` of a temporal cut; `trips` over a full piece; `trip`: the trip at hand.
    `remainder_full`, `remainder_partial`: full pieces and remainders (0 or 1) that it cuts from the remainder.

    The other fields are about the pieces outside the cut, over all trips. `full`: iterations of a full piece.
    `remainder`: iterations of the remainder (0: none). `full_count`: number of full pieces. `count`: number of pieces.
    `last_temporal`: the last temporal loop that cut them (-1: none). `spatial_end`: the cut after the last spatial one.
    `spatial_count`: their number over all instances, at the first temporal trips. `temporal_count`: their number in the
    first instance, over all steps. `spatial_full`, `temporal_full`: full ones of these."""
    first_cut: NDArray[np.uint32]
    """[L + 1, D]: first cut at the level or inside it."""
    can_stay: Bools
    """Per temporal loop, whether it makes at most one full piece of some size, and so may not advance."""
    regular: Bools
    """[D]: whether all cuts but the first divide full pieces. Other dimensions use `size`."""
    size: Records
    """[D (S + 1), Y]: sizes of the pieces outside a cut, the full one first. `iterations`; `full`: full pieces that the
    cut yields; `remainder`: index of the size of its remainder after the cut (-1: none)."""
    size_count: Ints
    """[D (S + 1)]: number of sizes."""
    weight: Floats
    """[2, Y]: number of pieces of each size, outside and inside a cut."""
    pair: Floats
    """[2, Y, Y + 1]: number of pairs of consecutive pieces; last column: no second piece."""
    unicast: Bools
    """[T, S]: whether a spatial slot serves sub-clusters separately."""
    results: Records
    """[D, Y]: result of `count_pieces`: iterations of each size, and number of pieces; `next`: iterations of the piece at
    the first trips of the next step, at least, with SECOND."""
    totals: Records
    """[D]: number of sizes; number of pieces; their iterations, and those of the smallest piece;
    index of the size at hand."""
    sent: Floats
    """[T, L, B]: words that leave a level inwards, each delivery once, averaged over the instances (see `traffic`)."""
    received: Floats
    """[T, L, B]: words that enter a level."""
    partition: Floats
    """[T, L, B]: words of an output that an instance is responsible for."""
    first_sent: Floats
    """[T, L, B]: words that leave the first instance. This and the next two fields are of the first instance."""
    first_received: Floats
    first_partition: Floats
    average_suffices: Bools
    """[T, L]: no bandwidth can bind, so the average instance replaces the first one."""
    loop: Records
    """Temporal loops, outermost first: dimension, and iterations per trip."""
    loop_end: NDArray[np.uint32]
    """[L]: number of temporal loops at the level or outside it."""
    seen: Records
    """Hash table of boxes. An entry is taken if its stamp is the current one."""
    stamp: Ints
    """[1]: current stamp."""


def pieces_of(tables: Tables) -> Pieces:
    """Return empty tables. The outermost piece of each dimension is one remainder: the whole dimension."""
    levels, tensors, dims = tables.shape
    slots = len(tables.hardware.slot)
    max_sizes = slots + 2
    floats = dict.fromkeys(
        (
            "trips remainder_full remainder_partial full remainder full_count count "
            "spatial_count spatial_full temporal_count temporal_full"
        ).split(),
        float,
    )
    traffic = {
        name: np.zeros((tensors, levels, LANES))
        for name in "sent received partition first_sent first_received first_partition".split()
    }
    integral = dict.fromkeys(("slot", "spatial_end"), Index) | dict.fromkeys("loop last_temporal trip".split(), int)
    cut = records((slots + 1) * dims, **integral, temporal=bool, **floats)
    first_cut = np.zeros((levels + 1, dims), Index)
    first_cut[0] = range(0, len(cut), slots + 1)
    whole = cut[:: slots + 1]  # one remainder: the whole dimension
    whole["full"] = whole["remainder"] = tables.rules.sizes
    whole["count"] = whole["spatial_count"] = whole["temporal_count"] = 1.0
    whole["last_temporal"], whole["spatial_end"] = NO_INDEX, first_cut[0]
    rows = records((dims, max_sizes), iterations=float, count=float, next=float)
    totals = records(dims, sizes=int, count=float, iterations=float, smallest=float, current=int)
    rows["iterations"][:, 0] = rows["count"][:, 0] = totals["sizes"] = 1  # dimensions with one iteration keep this
    return Pieces(
        cut=cut,
        first_cut=first_cut,
        can_stay=np.zeros(slots * dims + 1, np.bool_),
        regular=np.zeros(dims, np.bool_),
        size=records((len(cut), max_sizes), iterations=float, full=float, remainder=int),
        size_count=np.zeros(len(cut), np.int64),
        weight=np.zeros((2, max_sizes)),
        pair=np.zeros((2, max_sizes, max_sizes + 1)),
        unicast=np.zeros((tensors, slots), np.bool_),
        results=rows,
        totals=totals,
        average_suffices=np.zeros((tensors, levels), np.bool_),
        loop=records(slots * dims + 1, dimension=Index, step=int),
        loop_end=np.zeros(levels, Index),
        **traffic,
        seen=records(1 << (2 * tables.max_subclusters).bit_length(), first=int, last=int, unicast_trip=int, stamp=int),
        stamp=np.zeros(1, np.int64),
    )
