"""What is known of ways to unroll: how the children of one fanout are served, worked out once (see `sharing`).

Searches come back to the same few again and again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, Records, integer, kernel_part, records, structure
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Floats, Ints
from tilewright_costmodels.timeloop.tables import Tables

NO_SHIFT = integer(-(2**63))
"""No neighbour has the words."""
POOL = 2**19
"""Numbers that are kept at least, 8 MB: what a search of convolutions on 32 x 32 units comes back to."""
MOST_SPARE, MOST = 2**21, 2**24
"""Numbers beside those of one mapping, and of one mapping: with all that grows with them less than a gigabyte."""
PLACE = 16
"""Bits of a level, and of a slot."""
BITS = integer((1 << PLACE) - 1)
MOST_LOOPS = 6
"""Loops of one fanout of which it is worked out how far neighbours lie apart."""
UNKNOWN = integer(-1)
APART = 2 * MOST_LOOPS + 2 ** (MOST_LOOPS - 1)
"""Displacements of neighbours, at most."""
DELIVERED, LINKED, SIZES, NEXT, SHIFT, HEAD = map(integer, range(6))
"""Of an account: deliveries per word, children that a neighbour serves, number of sizes; where the next account of the same
children stands, 0: there is none; by how much it was that all tiles moved; and how many numbers these are."""
ALONE = (1, 0, 1, 0, 0, 1, 1)
"""The account of an only child, at the beginning of the pool."""


@structure
class Deliveries(NamedTuple):
    """What is delivered below a level. Shapes: T tensors, L levels, G sizes of deliveries at most, B mappings side by side."""

    sizes: Ints
    """[B]: how many, of the tensor and the level at hand."""
    multicast: Ints
    """[G, B]: children per delivery."""
    scatter: Ints
    """[G, B]: deliveries of that size side by side."""
    accesses: Floats
    """[G, B]: words that the parent handles."""
    far: Floats
    """[G, B]: their hops."""
    each: Floats
    """[B]: of the first size that the account of the parent's words tells: deliveries side by side, and their hops."""
    hops: Floats
    noted: Ints
    """[B]: how often words are to be delivered; [B, number]: how many, and what account says how: first the words that come from the
    parent, and then what neighbours pass on."""
    words: Floats
    account: Ints
    told: Ints
    """[T, L]: of the last group's first mapping, how many sizes there are; [T, L, G]: the same of each, and as many words as the
    network counts."""
    delivered: Records


@structure
class Accounts(NamedTuple):
    """What is known of ways to unroll. Shapes: C children at most.

    In `pool` stand, of every way to unroll: `children`, and `loops` and `moves` of all its loops in turn; how many numbers these are; and
    the account of how the children are served if neighbours pass nothing on: HEAD numbers, and for each size of deliveries the
    children per delivery and deliveries side by side; their hops stand in `pool_hops`. It goes on with how many different displacements
    the tiles of 4-neighbours may have, either way, or UNKNOWN; with the bits of them all; and with what they are. Elsewhere
    stand the accounts of the same children where neighbours pass on what they held one shift before.
    """

    children: Ints
    """[1]: of what children it is at the moment: the level, and in the bits from `PLACE` on the tensor."""
    loops: Ints
    """[U, B]: of mappings side by side, how these are unrolled: the slot and whether children are served separately, in the bits
    from `PLACE` on the trips; 0: no loop."""
    moves: Ints
    """[U, B]: how far one of these trips displaces a tile."""
    mixed: Ints
    """[B]: where to begin to look in the hash table."""
    table: NDArray[np.int32]
    """Hash table of the places of accounts in the pool; -1: free."""
    pool: Ints
    pool_hops: Floats
    state: Records
    """[1]: numbers of the pool in use; numbers that one tensor of mappings side by side may add at a level; the current stamp;
    whether hops are counted."""
    child: Records
    """[C]: displacement of its tile; `separate`: equal for children that may share a delivery; whether a neighbour serves it;
    its delivery (-1: none)."""
    group: Records
    """[C + 1]: of a delivery, the first child; how many; the farthest column; the lowest and highest row in a column; hops.
    By size, how many deliveries are of that size, and hops of them all."""
    hashed: Records
    """[places]: hash table of deliveries; a place is taken if its stamp is the current one."""


def deliveries_of(tables: Tables, detailed: bool) -> Deliveries:
    """Room for mappings of these tables; `detailed`: for all sizes of deliveries."""
    levels, tensors, dims = tables.shape
    loops = dims * len(tables.hardware.slot) + 2
    sizes = loops * _sizes(tables) if detailed else 1
    fields = dict.fromkeys("multicast scatter far sent".split(), float)
    return Deliveries(
        sizes=np.zeros(LANES, np.int64),
        multicast=np.ones((sizes, LANES), np.int64),
        scatter=np.ones((sizes, LANES), np.int64),
        accesses=np.zeros((sizes, LANES)),
        far=np.zeros((sizes, LANES)),
        each=np.ones(LANES),
        hops=np.zeros(LANES),
        noted=np.zeros(LANES, np.int64),
        words=np.zeros((LANES, loops)),
        account=np.zeros((LANES, loops), np.int64),
        told=np.zeros((tensors, levels), np.int64),
        delivered=records((tensors, levels, sizes), **fields),
    )


def accounts_of(tables: Tables, detailed: bool) -> Accounts:
    """Nothing known yet. `detailed`: hops are counted. Raises NotConformableError: it would take gigabytes."""
    levels, _, dims = tables.shape
    loops = dims * len(tables.hardware.slot) + 2
    unrolled = max(1, dims * int((~tables.hardware.slot["steps"]).sum()))
    most = LANES * loops * (2 * unrolled + 2 * _sizes(tables) + 10 + APART)
    if most > MOST:
        told = (
            f"{levels} levels, {loops} loops and {tables.children:,} sub-clusters give more numbers than are remembered"
        )
        raise NotConformableError("cost model timeloop", (Reason(code="size", where="mapping", message=told),))
    pool = np.zeros(most + min(most, MOST_SPARE) + POOL, np.int64)
    pool[: len(ALONE)] = ALONE
    state = records(1, used=int, most=int, stamp=int, detailed=bool)
    state[0] = len(ALONE), most, 0, detailed
    whole = dict.fromkeys("first size column lowest highest alike".split(), int)
    return Accounts(
        children=np.zeros(1, np.int64),
        loops=np.zeros((unrolled, LANES), np.int64),
        moves=np.zeros((unrolled, LANES), np.int64),
        mixed=np.zeros(LANES, np.int64),
        table=np.full(1 << (len(pool) // 8).bit_length(), -1, np.int32),
        pool=pool,
        pool_hops=np.zeros(len(pool)),
        state=state,
        child=records(tables.children, offset=int, separate=int, linked=bool, group=int),
        group=records(tables.children + 1, **whole, hops=float, hops_alike=float),
        hashed=records(1 << (2 * tables.children).bit_length(), group=int, stamp=int),
    )


def _sizes(tables: Tables) -> int:
    """Different sizes that deliveries to all children of a parent can have, at most."""
    return math.isqrt(2 * tables.children) + 1


@kernel_part
def make_room(accounts: Accounts) -> None:
    """Forget what is known where it might not hold what is added next."""
    state = accounts.state[0]
    if state.used + state.most > len(accounts.pool):
        state.used = len(ALONE)
        for place in range(len(accounts.table)):
            accounts.table[place] = -1


@kernel_part
def apart_of(accounts: Accounts, account: int) -> int:
    """Where in an account it is told how far neighbours lie apart; the bits stand next to it."""
    return int(account + HEAD + 2 * accounts.pool[account + SIZES])
