"""The children of one fanout on their grid: who shares a delivery, who gets words from a neighbour, how far they are.

Rules: Timeloop v3 (`nest-analysis`, `network-legacy`), as measured; see docs/timeloop.md. What was worked out once for
a way to unroll is kept: searches come back to the same few again and again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, inlined, integer
from tilewright.mapspace.batch import Floats, Ints
from tilewright_costmodels.timeloop.tables import (
    DISPLACEMENT,
    ENTRY,
    HEIGHT,
    SHARED,
    UNICAST,
    VERTICAL,
    WIDTH,
    Hardware,
    Mappings,
    Tables,
    Tensors,
)

DIMENSION, STEP, UNROLLED, SLOT = range(4)
"""Columns of `Sharing.unroll`; STEP: iterations of the dimension from one child to the next; UNROLLED: trips."""
MULTICAST, SCATTER = range(2)
"""Columns of `Sharing.delivered`: children per delivery; deliveries of that size side by side."""
ACCESSES, FAR, SENT = range(3)
"""Columns of `Sharing.words`: words that the parent handles, their hops, and as many as the network counts."""
USED, MOST, STAMP = range(3)
"""Places in `Sharing.fill`: numbers of the pool in use; numbers that one mapping may add; the current stamp."""
OFFSET, SEPARATE, LINKED, GROUP = range(4)
"""Columns of `Sharing.child`: displacement of its tile; equal for children that may share a delivery; whether a
neighbour serves it; its delivery (-1: none)."""
FIRST, SIZE, COLUMN, LOWEST, HIGHEST, ALIKE = range(6)
"""Columns of `Sharing.group`, the deliveries: the first child; how many; the farthest column; the lowest and highest row in
a column. ALIKE: by size, how many deliveries are of that size."""
NO_SHIFT = integer(-(2**63))
"""No neighbour has the words."""
NO_BITS, THREE = integer(0), integer(3)
POOL = 2**17
"""Numbers that are kept at least."""


class Sharing(NamedTuple):
    """How the mapping at hand unrolls, and what is known of such unrollings. Shapes: U unrolled loops at most, L levels,
    T tensors, C children at most, G sizes of deliveries at most.

    An account in `pool` reads: deliveries per word, children that a neighbour serves, number of sizes, and for each
    size MULTICAST and SCATTER; their hops stand in `pool_hops`.
    """

    unroll: Ints
    """[U, 4]: non-unit spatial loops, outermost first."""
    end: Ints
    """[L + 1]: unrolled loops of the levels outside."""
    sizes: Ints
    """[T, L]: rows in use of the tables that follow, of what is delivered below a level."""
    delivered: Ints
    """[T, L, G, 2]."""
    words: Floats
    """[T, L, G, 3]."""
    key: Ints
    table: Ints
    """Hash table of the places of keys in the pool; -1: free."""
    pool: Ints
    pool_hops: Floats
    fill: Ints
    child: Ints
    """[C, 4]."""
    group: Ints
    """[C + 1, 6]."""
    hops: Floats
    """[C + 1, 2]: of the delivery; by size, of all deliveries of that size."""
    hashed: Ints
    """[places, 2]: hash table of deliveries: number and stamp; a place is taken if its stamp is the current one."""


def sharing_of(tables: Tables, detailed: bool) -> Sharing:
    """Room for mappings of these tables; `detailed`: for all sizes of deliveries."""
    levels, tensors, dims = tables.shape
    unrolled = max(1, dims * sum(slot.spatial for slot in tables.slots))
    loops = dims * len(tables.slots) + 2
    sizes = math.isqrt(2 * tables.children) + 1
    rows = (tensors, levels, loops * sizes if detailed else 1)
    most = tensors * levels * loops * (3 * unrolled + 2 * sizes + 8)
    pool = 2 * most + POOL
    return Sharing(
        unroll=np.zeros((unrolled, 4), np.int64),
        end=np.zeros(levels + 1, np.int64),
        sizes=np.zeros((tensors, levels), np.int64),
        delivered=np.zeros((*rows, 2), np.int64),
        words=np.zeros((*rows, 3)),
        key=np.zeros(3 * unrolled + 3, np.int64),
        table=np.full(1 << (pool // 4).bit_length(), -1, np.int64),
        pool=np.zeros(pool, np.int64),
        pool_hops=np.zeros(pool),
        fill=np.array([0, most, 0], np.int64),
        child=np.zeros((tables.children, 4), np.int64),
        group=np.zeros((tables.children + 1, 6), np.int64),
        hops=np.zeros((tables.children + 1, 2)),
        hashed=np.zeros((1 << (2 * tables.children).bit_length(), 2), np.int64),
    )


@inlined
def is_unicast(hardware: Hardware, mappings: Mappings, n: int, tensor: int, slot: int) -> bool:
    """Whether children that differ in a loop of the slot are each served separately."""
    kept = n if len(mappings.keep) > 1 else 0
    shared, sent = hardware.slot[slot, SHARED + tensor], mappings.keep[kept, hardware.slot[slot, ENTRY], tensor]
    return bool(shared == 0 or sent & UNICAST)


@inlined
def make_room(share: Sharing) -> None:
    """Forget what is known where it might not hold what the next mapping adds."""
    if share.fill[USED] + share.fill[MOST] > len(share.pool):
        share.fill[USED] = 0
        for place in range(len(share.table)):
            share.table[place] = -1


@compiled
def sharing(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    n: int,
    tensor: int,
    level: int,
    shift: int,
    share: Sharing,
) -> int:
    """Where in the pool the account stands of how the children of a level are served.

    Args:
        shift: displacement of all tiles by which neighbours may pass on what they held before; NO_SHIFT: they do not.
    """
    share.key[0], share.key[1], share.key[2] = level, tensor, shift
    length = THREE
    for u in range(share.end[level], share.end[level + 1]):
        slot = share.unroll[u, SLOT]
        share.key[length] = 2 * slot + is_unicast(hardware, mappings, n, tensor, slot)
        share.key[length + 1] = share.unroll[u, UNROLLED]
        share.key[length + 2] = (
            tensors.by_dimension[tensor, share.unroll[u, DIMENSION], DISPLACEMENT] * share.unroll[u, STEP]
        )
        length += 3
    mixed = NO_BITS
    for k in range(length):
        mixed = _mix(mixed ^ share.key[k])
    mask = len(share.table) - 1
    place = mixed & mask
    while share.table[place] >= 0:
        at = share.table[place]
        same = share.pool[at] == length
        k = 0
        while same and k < length:
            same = share.pool[at + 1 + k] == share.key[k]
            k += 1
        if same:
            return int(at + 1 + length)
        place = (place + 1) & mask
    at = share.fill[USED]
    share.table[place] = at
    share.pool[at] = length
    for k in range(length):
        share.pool[at + 1 + k] = share.key[k]
    share.fill[USED] = at + 1 + length
    _count(hardware, level, length, share)
    return int(at + 1 + length)


@inlined
def _mix(number: int) -> int:
    """Bits that look drawn, for a hash table; no product overflows."""
    low = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return low ^ (low >> 15)


@compiled
def _count(hardware: Hardware, level: int, length: int, share: Sharing) -> None:
    """Write the account of the unrolling in `key` at the end of the pool."""
    children = across = apart = 1
    share.child[0, OFFSET] = share.child[0, SEPARATE] = 0
    for vertical in range(2):  # row-major order, from the fastest loop to the slowest; those along Y stand outside
        for k in range(length - 3, 2, -3):
            slot, unicast = share.key[k] // 2, share.key[k] % 2
            if hardware.slot[slot, VERTICAL] == vertical:
                trips, move = share.key[k + 1], share.key[k + 2]
                for index in range(1, trips):
                    for child in range(children):
                        share.child[index * children + child, OFFSET] = share.child[child, OFFSET] + index * move
                        share.child[index * children + child, SEPARATE] = (
                            share.child[child, SEPARATE] + index * apart * unicast
                        )
                children *= trips
                if unicast:
                    apart *= trips
        if vertical == 0:
            across = children
    # Timeloop lays out the used loops in the physical width, and so wraps rows when they are not full
    width = max(hardware.level[level, WIDTH], across)
    middle = (max(hardware.level[level, HEIGHT], children // across) - 1) / 2
    linked = _link(children, width, share.key[2], share)
    groups = _group(children, share)
    if length > 3:
        _measure(children, groups, width, middle, share)
    at = share.fill[USED]
    share.pool[at], share.pool[at + 1] = groups, linked
    rows = 0
    for group in range(groups):
        share.group[share.group[group, SIZE], ALIKE] += 1
        share.hops[share.group[group, SIZE], 1] += share.hops[group, 0] + share.group[group, COLUMN]
    for group in range(groups):
        size = share.group[group, SIZE]
        if share.group[size, ALIKE]:
            row = at + 3 + 2 * rows
            share.pool[row], share.pool[row + 1] = size, share.group[size, ALIKE]
            share.pool_hops[row] = share.hops[size, 1]
            share.group[size, ALIKE] = 0
            share.hops[size, 1] = 0.0
            rows += 1
    share.pool[at + 2] = rows
    share.fill[USED] = at + 3 + 2 * rows


@compiled
def _link(children: int, width: int, shift: int, share: Sharing) -> int:
    """Mark the children whose new words are those that a 4-neighbour was sent one shift ago; how many they are."""
    linked = 0
    for child in range(children):
        share.child[child, LINKED] = False
        if shift != NO_SHIFT:
            x, wanted = child % width, share.child[child, OFFSET] + shift
            share.child[child, LINKED] = (
                (x > 0 and share.child[child - 1, OFFSET] == wanted)
                or (x < width - 1 and child + 1 < children and share.child[child + 1, OFFSET] == wanted)
                or (child >= width and share.child[child - width, OFFSET] == wanted)
                or (child + width < children and share.child[child + width, OFFSET] == wanted)
            )
            linked += share.child[child, LINKED]
    return linked


@compiled
def _group(children: int, share: Sharing) -> int:
    """Number the groups of children that one delivery serves, and count their members; how many groups there are."""
    share.fill[STAMP] += 1
    mask = len(share.hashed) - 1
    groups = 0
    for child in range(children):
        share.child[child, GROUP] = -1
        if share.child[child, LINKED]:
            continue
        place = _mix(_mix(share.child[child, OFFSET]) ^ share.child[child, SEPARATE]) & mask
        while share.hashed[place, 1] == share.fill[STAMP]:
            other = share.group[share.hashed[place, 0], FIRST]
            if (
                share.child[other, OFFSET] == share.child[child, OFFSET]
                and share.child[other, SEPARATE] == share.child[child, SEPARATE]
            ):
                break
            place = (place + 1) & mask
        if share.hashed[place, 1] != share.fill[STAMP]:
            share.hashed[place, 1] = share.fill[STAMP]
            share.hashed[place, 0] = groups
            share.group[groups, FIRST] = child
            share.group[groups, SIZE] = share.group[groups, COLUMN] = 0
            share.hops[groups, 0] = 0.0
            groups += 1
        group = share.hashed[place, 0]
        share.child[child, GROUP] = group
        share.group[group, SIZE] += 1
    return groups


@compiled
def _measure(children: int, groups: int, width: int, middle: float, share: Sharing) -> None:
    """Hops of every group: along the row to the farthest column, then in every used column from the middle row to its
    ends."""
    for x in range(min(width, children)):
        for child in range(x, children, width):
            if share.child[child, GROUP] >= 0:
                share.group[share.child[child, GROUP], LOWEST] = -1
        for child in range(x, children, width):
            group = share.child[child, GROUP]
            if group >= 0:
                if share.group[group, LOWEST] < 0:
                    share.group[group, LOWEST] = child // width
                share.group[group, HIGHEST] = child // width
        for child in range(x, children, width):
            group = share.child[child, GROUP]
            if group >= 0 and share.group[group, HIGHEST] == child // width:
                share.group[group, COLUMN] = x
                share.hops[group, 0] += max(0.0, middle - share.group[group, LOWEST])
                share.hops[group, 0] += max(0.0, share.group[group, HIGHEST] - middle)


@compiled
def deliver(tensor: int, level: int, words: float, account: int, share: Sharing) -> None:
    """Add words, each delivered as an account says, to what is delivered below a level."""
    if words == 0.0:
        return
    for number in range(share.pool[account + 2]):
        at = account + 3 + 2 * number
        multicast, scatter = share.pool[at], share.pool[at + 1]
        row = 0
        while row < share.sizes[tensor, level] and (
            share.delivered[tensor, level, row, MULTICAST] != multicast
            or share.delivered[tensor, level, row, SCATTER] != scatter
        ):
            row += 1
        if row == share.sizes[tensor, level]:
            share.sizes[tensor, level] += 1
            share.delivered[tensor, level, row, MULTICAST] = multicast
            share.delivered[tensor, level, row, SCATTER] = scatter
            share.words[tensor, level, row, ACCESSES] = share.words[tensor, level, row, FAR] = 0.0
        share.words[tensor, level, row, ACCESSES] += words * scatter
        share.words[tensor, level, row, FAR] += words * share.pool_hops[at]
