"""How the dimensions of one mapping are cut, and room for what is counted of their pieces.

A piece of n cut into pieces of t gives floor(n / t) of t, and one of n mod t where that is not 0; so at every boundary a
dimension has few different sizes: a full one and a rest where all tiles but the first divide one another, as in map spaces;
any number where a file says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import Index, Records, integer, records
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_costmodels.timeloop.tables import Tables

NOWHERE = integer(-1)
"""No place, no dimension."""
PLAIN, ADVANCE, BEFORE, QUIET = map(integer, range(4))
"""Which pieces `pieces.walk` counts. ADVANCE: those to which the loop at `limit` advances; BEFORE: the sizes of those before them;
QUIET: those for which no loop of the dimension turns at `limit` or further inside."""


class Pieces(NamedTuple):
    """The pieces of one mapping. Shapes: D dimensions, S slots, Y sizes at most, T tensors, L levels."""

    cut: Records
    """[D, S + 1]: cuts that are not trivial, outermost first: the slot; the place in the nest; whether it steps in time; trips over a
    full piece, and whether it divides that (`exact`); pieces that it makes of the rest: full ones (`part`), and another rest (`more`,
    1 or 0); whether it makes no more than one full piece of some size (`calm`), so that its loop may not turn; the trip at hand.
    Of the pieces before it, all cuts being free: the size of full ones and of the rest (0: there is none); how many are full
    (`whole`), and how many there are (`many`); the place of the last loop in time that made them (-1: none), and the cuts up to the
    last one in space (`spread`)."""
    cuts: Ints
    """[S + 1, D]: cuts in the slots before a slot."""
    chain: Bools
    """[D]: whether all cuts but the first divide full pieces. The others have `size`."""
    size: Records
    """[D, S + 1, Y]: sizes of pieces before a cut, the full one first: iterations; full pieces that the cut makes of it; which
    of the sizes after the cut the rest has (-1: there is none)."""
    sizes: Ints
    """[D, S + 1]: how many."""
    weight: Floats
    """[2, Y]: pieces of each size, before and after a cut."""
    pair: Floats
    """[2, Y, Y + 1]: the same for pairs of pieces; the last column: there is no second one."""
    apart: Bools
    """[S]: of a loop in space, whether sub-clusters that differ in it share nothing of the tensor at hand."""
    share: Records
    """[D, Y]: what `walk` found: iterations, and how many pieces have so many."""
    shares: Records
    """[D]: how many sizes; pieces in all; their iterations, and those of the least one; the one at hand."""
    words: Records
    """[T, L]: see `words.measure`."""
    seen: Records
    """[places]: hash table of boxes; a place is taken if its stamp is the current one."""
    stamp: Ints
    """[1]: the current one."""


def pieces_of(tables: Tables) -> Pieces:
    """Room for mappings of these tables."""
    levels, tensors, dims = tables.shape
    slots = len(tables.hardware.slot)
    most = slots + 2
    made = dict.fromkeys("trips part more full rest whole many".split(), float)
    words = dict.fromkeys("left entered own first_left first_entered first_own".split(), float)
    return Pieces(
        cut=records(
            (dims, slots + 1),
            slot=Index,
            place=int,
            latest=int,
            spread=int,
            trip=int,
            steps=bool,
            exact=bool,
            calm=bool,
            **made,
        ),
        cuts=np.zeros((slots + 1, dims), np.int64),
        chain=np.zeros(dims, np.bool_),
        size=records((dims, slots + 1, most), iterations=float, full=float, rest=int),
        sizes=np.zeros((dims, slots + 1), np.int64),
        weight=np.zeros((2, most)),
        pair=np.zeros((2, most, most + 1)),
        apart=np.zeros(slots, np.bool_),
        share=records((dims, most), iterations=float, count=float),
        shares=records(dims, number=int, count=float, iterations=float, least=float, at=int),
        words=records((tensors, levels), **words, even=bool),
        seen=records(1 << (2 * tables.children).bit_length(), first=int, last=int, separate=int, stamp=int),
        stamp=np.zeros(1, np.int64),
    )
