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

NOWHERE = integer(-1)
"""No place, no dimension."""
PLAIN, ADVANCE, BEFORE, QUIET = map(integer, range(4))
"""Which pieces `pieces.walk` counts. ADVANCE: those to which the loop at `limit` advances; BEFORE: the sizes of those before them;
QUIET: those for which no loop of the dimension turns at `limit` or further inside."""


@structure
class Pieces(NamedTuple):
    """The pieces of one mapping. Shapes: D dimensions, S slots, Y sizes at most, T tensors, L levels."""

    cut: Records
    """[D (S + 1)]: cuts that are not trivial, dimension by dimension, outermost first: the slot; of a loop in time, the place in
    `loop`; whether it steps in time; trips over a full piece; pieces that it makes of the rest: full ones (`part`), and another rest (`more`, 1 or
    0); the trip at hand.
    Of the pieces before it, all cuts being free: the size of full ones and of the rest (0: there is none); how many are full
    (`whole`), and how many there are (`many`); the place of the last loop in time that made them (-1: none), and the cuts up to the
    last one in space (`spread`). How many there are of the first one in time, for all instances (`lanes`), and of the first instance
    in all steps (`turns`); how many of these are full."""
    cuts: NDArray[np.uint32]
    """[L + 1, D]: of the loops of a level and of those further in, the first cut."""
    calm: Bools
    """[places]: whether a loop in time makes no more than one full piece of some size, so that it may not turn."""
    chain: Bools
    """[D]: whether all cuts but the first divide full pieces. The others have `size`."""
    size: Records
    """[D (S + 1), Y]: sizes of pieces before a cut, the full one first: iterations; full pieces that the cut makes of it; which
    of the sizes after the cut the rest has (-1: there is none)."""
    sizes: Ints
    """[D (S + 1)]: how many."""
    weight: Floats
    """[2, Y]: pieces of each size, before and after a cut."""
    pair: Floats
    """[2, Y, Y + 1]: the same for pairs of pieces; the last column: there is no second one."""
    apart: Bools
    """[T, S]: of a loop in space, whether sub-clusters that differ in it share nothing of the tensor."""
    share: Records
    """[D, Y]: what `walk` found: iterations, and how many pieces have so many."""
    shares: Records
    """[D]: how many sizes; pieces in all; their iterations, and those of the least one; the one at hand."""
    left: Floats
    """[T, L, B], as all to `first_own`: see `words.measure`."""
    entered: Floats
    own: Floats
    first_left: Floats
    first_entered: Floats
    first_own: Floats
    even: Bools
    """[T, L]: the average instance does for the first one, as no bandwidth can bind."""
    loop: Records
    """[K]: the loops in time, outermost first: dimension, and its iterations from one trip to the next."""
    end: NDArray[np.uint32]
    """[L]: the place after the last of them of a level and those further out."""
    seen: Records
    """[places]: hash table of boxes; a place is taken if its stamp is the current one."""
    stamp: Ints
    """[1]: the current one."""


def pieces_of(tables: Tables) -> Pieces:
    """Room for mappings of these tables."""
    levels, tensors, dims = tables.shape
    slots = len(tables.hardware.slot)
    most = slots + 2
    made = dict.fromkeys("trips part more full rest whole many lanes full_lanes turns full_turns".split(), float)
    words = {
        name: np.zeros((tensors, levels, LANES))
        for name in "left entered own first_left first_entered first_own".split()
    }
    kinds = dict.fromkeys(("slot", "spread"), Index) | dict.fromkeys("place latest trip".split(), int)
    cut = records((slots + 1) * dims, **kinds, steps=bool, **made)
    cuts = np.zeros((levels + 1, dims), Index)
    cuts[0] = range(0, len(cut), slots + 1)
    first = cut[:: slots + 1]  # one rest, which is the dimension
    first["full"] = first["rest"] = tables.rules.sizes
    first["many"] = first["lanes"] = first["turns"] = 1.0
    first["latest"], first["spread"] = NOWHERE, cuts[0]
    share = records((dims, most), iterations=float, count=float)
    shares = records(dims, number=int, count=float, iterations=float, least=float, at=int)
    share["iterations"][:, 0] = share["count"][:, 0] = shares["number"] = 1  # for good, where there is one iteration
    return Pieces(
        cut=cut,
        cuts=cuts,
        calm=np.zeros(slots * dims + 1, np.bool_),
        chain=np.zeros(dims, np.bool_),
        size=records((len(cut), most), iterations=float, full=float, rest=int),
        sizes=np.zeros(len(cut), np.int64),
        weight=np.zeros((2, most)),
        pair=np.zeros((2, most, most + 1)),
        apart=np.zeros((tensors, slots), np.bool_),
        share=share,
        shares=shares,
        even=np.zeros((tensors, levels), np.bool_),
        loop=records(slots * dims + 1, dimension=Index, step=int),
        end=np.zeros(levels, Index),
        **words,
        seen=records(1 << (2 * tables.children).bit_length(), first=int, last=int, separate=int, stamp=int),
        stamp=np.zeros(1, np.int64),
    )
