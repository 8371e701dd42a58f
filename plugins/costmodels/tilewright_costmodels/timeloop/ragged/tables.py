"""How the dimensions of one mapping are cut, and room for what is counted of their pieces.

A piece of n cut into pieces of t gives floor(n / t) of t, and one of n mod t where that is not 0; so at every boundary a
dimension has few different sizes: a full one and a rest where all tiles but the first divide one another, as in map spaces;
any number where a file says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, Index, Records, integer, records, structure
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_costmodels.timeloop.tables import Tables

NO_INDEX = integer(-1)
"""No place, no dimension."""
PLAIN, ADVANCE, BEFORE, UNMOVED = map(integer, range(4))
"""Which pieces `pieces.walk` counts. ADVANCE: those to which the loop at `limit` advances; BEFORE: the sizes of those before them;
QUIET: those for which no loop of the dimension turns at `limit` or further inside."""


@structure
class Pieces(NamedTuple):
    """The pieces of one mapping. Shapes: D dimensions, S slots, Y sizes at most, T tensors, L levels."""

    cut: Records
    """[D (S + 1)]: cuts that are not trivial, dimension by dimension, outermost first: the slot; of a loop in time, the place in
    `loop`; whether it steps in time; trips over a full piece; pieces that it makes of the rest: full ones (`remainder_full`), and another rest (`remainder_partial`, 1 or
    0); the trip at hand.
    Of the pieces before it, all cuts being free: the size of full ones and of the rest (0: there is none); how many are full
    (`info`), and how many there are (`count`); the place of the last loop in time that made them (-1: none), and the cuts up to the
    last one in space (`spatial_end`). How many there are of the first one in time, for all instances (`spatial_count`), and of the first instance
    in all steps (`temporal_count`); how many of these are full."""
    first_cut: NDArray[np.uint32]
    """[L + 1, D]: of the loops of a level and of those further in, the first cut."""
    can_stay: Bools
    """[places]: whether a loop in time makes no more than one full piece of some size, so that it may not turn."""
    regular: Bools
    """[D]: whether all cuts but the first divide full pieces. The others have `size`."""
    size: Records
    """[D (S + 1), Y]: sizes of pieces before a cut, the full one first: iterations; full pieces that the cut makes of it; which
    of the sizes after the cut the rest has (-1: there is none)."""
    size_count: Ints
    """[D (S + 1)]: how many."""
    weight: Floats
    """[2, Y]: pieces of each size, before and after a cut."""
    pair: Floats
    """[2, Y, Y + 1]: the same for pairs of pieces; the last column: there is no second one."""
    unicast: Bools
    """[T, S]: of a loop in space, whether sub-clusters that differ in it share nothing of the tensor."""
    found: Records
    """[D, Y]: what `walk` found: iterations, and how many pieces have so many."""
    totals: Records
    """[D]: how many sizes; pieces in all; their iterations, and those of the least one; the one at hand."""
    sent: Floats
    """[T, L, B], as all to `first_partition`: see `words.measure`."""
    received: Floats
    partition: Floats
    first_sent: Floats
    first_received: Floats
    first_partition: Floats
    average_suffices: Bools
    """[T, L]: the average instance does for the first one, as no bandwidth can bind."""
    loop: Records
    """[K]: the loops in time, outermost first: dimension, and its iterations from one trip to the next."""
    loop_end: NDArray[np.uint32]
    """[L]: the place after the last of them of a level and those further out."""
    seen: Records
    """[places]: hash table of boxes; a place is taken if its stamp is the current one."""
    stamp: Ints
    """[1]: the current one."""


def pieces_of(tables: Tables) -> Pieces:
    """Room for mappings of these tables."""
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
    whole = cut[:: slots + 1]  # one rest, which is the dimension
    whole["full"] = whole["remainder"] = tables.rules.sizes
    whole["count"] = whole["spatial_count"] = whole["temporal_count"] = 1.0
    whole["last_temporal"], whole["spatial_end"] = NO_INDEX, first_cut[0]
    found = records((dims, max_sizes), iterations=float, count=float)
    totals = records(dims, sizes=int, count=float, iterations=float, smallest=float, current=int)
    found["iterations"][:, 0] = found["count"][:, 0] = totals["sizes"] = 1  # for good, where there is one iteration
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
        found=found,
        totals=totals,
        average_suffices=np.zeros((tensors, levels), np.bool_),
        loop=records(slots * dims + 1, dimension=Index, step=int),
        loop_end=np.zeros(levels, Index),
        **traffic,
        seen=records(1 << (2 * tables.max_subclusters).bit_length(), first=int, last=int, unicast_trip=int, stamp=int),
        stamp=np.zeros(1, np.int64),
    )
