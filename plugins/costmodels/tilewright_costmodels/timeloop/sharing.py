"""The children of one fanout on their grid: who shares a delivery, who gets words from a neighbour, how far they are.

Rules: Timeloop v3 (`nest-analysis`, `network-legacy`), as measured; see docs/timeloop.md. What was worked out once for
a way to unroll is kept: searches come back to the same few again and again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, integer, kernel_part
from tilewright.mapspace.batch import Floats, Ints
from tilewright_costmodels.timeloop.tables import HEIGHT, VERTICAL, WIDTH, Hardware, Tables

MULTICAST, SCATTER, ACCESSES, FAR, SENT = range(5)
"""Columns of `Deliveries.delivered`: children per delivery; deliveries of that size side by side; words that the parent
handles, their hops, and as many as the network counts."""
USED, MOST, STAMP, DETAILED = range(4)
"""Places in `Accounts.fill`: numbers of the pool in use; numbers that one mapping may add; the current stamp; whether hops
are counted."""
OFFSET, SEPARATE, LINKED, GROUP = range(4)
"""Columns of `Accounts.child`: displacement of its tile; equal for children that may share a delivery; whether a
neighbour serves it; its delivery (-1: none)."""
FIRST, SIZE, COLUMN, LOWEST, HIGHEST, ALIKE = range(6)
"""Columns of `Accounts.group`, the deliveries: the first child; how many; the farthest column; the lowest and highest row in
a column. ALIKE: by size, how many deliveries are of that size."""
NO_SHIFT = integer(-(2**63))
"""No neighbour has the words."""
POOL = 2**19
"""Numbers that are kept at least, 8 MB: what a search of convolutions on 32 x 32 units comes back to."""
ALONE = (1, 0, 1, 1, 1)
"""The account of an only child, at the beginning of the pool."""


class Deliveries(NamedTuple):
    """What is delivered below every level. Shapes: T tensors, L levels, G sizes of deliveries at most."""

    sizes: Ints
    """[T, L]: rows in use."""
    delivered: Floats
    """[T, L, G, 5]."""


class Accounts(NamedTuple):
    """What is known of ways to unroll. Shapes: C children at most.

    An account in `pool` reads: deliveries per word, children that a neighbour serves, number of sizes, and for each
    size MULTICAST and SCATTER; their hops stand in `pool_hops`.
    """

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


def deliveries_of(tables: Tables, detailed: bool) -> Deliveries:
    """Room for mappings of these tables; `detailed`: for all sizes of deliveries."""
    levels, tensors, dims = tables.shape
    loops = dims * len(tables.hardware.slot) + 2
    return Deliveries(
        sizes=np.zeros((tensors, levels), np.int64),
        delivered=np.zeros((tensors, levels, loops * _sizes(tables) if detailed else 1, 5)),
    )


def accounts_of(tables: Tables, detailed: bool) -> Accounts:
    """Nothing known yet. `detailed`: hops are counted."""
    levels, tensors, dims = tables.shape
    loops = dims * len(tables.hardware.slot) + 2
    unrolled = max(1, dims * int((tables.hardware.slot[:, VERTICAL] >= 0).sum()))
    most = tensors * levels * loops * (3 * unrolled + 2 * _sizes(tables) + 8)
    pool = np.zeros(2 * most + POOL, np.int64)
    pool[: len(ALONE)] = ALONE
    return Accounts(
        key=np.zeros(3 * unrolled + 3, np.int64),
        table=np.full(1 << (len(pool) // 4).bit_length(), -1, np.int64),
        pool=pool,
        pool_hops=np.zeros(len(pool)),
        fill=np.array([len(ALONE), most, 0, detailed], np.int64),
        child=np.zeros((tables.children, 4), np.int64),
        group=np.zeros((tables.children + 1, 6), np.int64),
        hops=np.zeros((tables.children + 1, 2)),
        hashed=np.zeros((1 << (2 * tables.children).bit_length(), 2), np.int64),
    )


def _sizes(tables: Tables) -> int:
    """Different sizes that deliveries to all children of a parent can have, at most."""
    return math.isqrt(2 * tables.children) + 1


@kernel_part
def make_room(accounts: Accounts) -> None:
    """Forget what is known where it might not hold what the next mapping adds."""
    if accounts.fill[USED] + accounts.fill[MOST] > len(accounts.pool):
        accounts.fill[USED] = len(ALONE)
        for place in range(len(accounts.table)):
            accounts.table[place] = -1


@kernel_part
def _near(hardware: Hardware, length: int, key: Ints) -> bool:
    """Whether two 4-neighbours may lie one shift of the key apart; if not, no neighbour has words to pass on.

    Of two children side by side, one loop counts on by one and all faster ones start over; so it is in the next row,
    with the loops along Y, if rows are full.
    """
    shift, children, across, found = key[2], 1, 1, False
    for vertical in range(2):
        started = 0  # the faster loops at their ends
        for k in range(length - 3, 2, -3):
            if hardware.slot[key[k] // 2, VERTICAL] == vertical:
                found |= key[k + 2] - started == shift or started - key[k + 2] == shift
                started += (key[k + 1] - 1) * key[k + 2]
                children *= key[k + 1]
        across = children if vertical == 0 else across
        if vertical == 0:
            row = started
    for k in range(length - 3, 2, -3):  # from the end of a full row to the next one, side by side where it is wrapped
        if hardware.slot[key[k] // 2, VERTICAL] == 1:
            found |= key[k + 2] - row == shift or row - key[k + 2] == shift
            row += (key[k + 1] - 1) * key[k + 2]
    width = max(hardware.level[key[0], WIDTH], across)
    if found or not across < width < children:
        return found
    # rows that wrap: one row down is `width` further, counted in the loops' trips, with every way to carry
    loops = (length - 3) // 3
    for carries in range(1 << (loops - 1)):
        rest, displacement, carry, digit = width, 0, 0, 0
        for vertical in range(2):
            for k in range(length - 3, 2, -3):
                if hardware.slot[key[k] // 2, VERTICAL] == vertical:
                    over = carries >> digit & 1
                    displacement += (rest % key[k + 1] + carry - over * key[k + 1]) * key[k + 2]
                    rest, carry, digit = rest // key[k + 1], over, digit + 1
        found |= displacement == shift or displacement == -shift
    return found


@compiled
def sharing(hardware: Hardware, length: int, accounts: Accounts) -> int:
    """Where in the pool the account stands of how the children of the unrolling in `key` are served."""
    key, pool = accounts.key, accounts.pool
    mixed = 0
    for k in range(length):
        mixed = _mix(mixed ^ key[k])
    mask = len(accounts.table) - 1
    place, found = mixed & mask, False
    at = accounts.table[place]
    while at >= 0 and not found:
        found = pool[at] == length
        k = 0
        while found and k < length:
            found = pool[at + 1 + k] == key[k]
            k += 1
        if not found:
            place = (place + 1) & mask
            at = accounts.table[place]
    if not found:
        at = accounts.fill[USED]
        accounts.table[place] = at
        _count(hardware, length, accounts)
    return int(at + 1 + length)


@kernel_part
def _mix(number: int) -> int:
    """Bits that look drawn, for a hash table; no product overflows."""
    low = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return low ^ (low >> 15)


@compiled
def _count(hardware: Hardware, length: int, accounts: Accounts) -> None:
    """Write the unrolling in `key`, and its account, at the end of the pool."""
    at = accounts.fill[USED]
    accounts.pool[at] = length
    for k in range(length):
        accounts.pool[at + 1 + k] = accounts.key[k]
    accounts.fill[USED] = at + 1 + length
    if accounts.key[2] != NO_SHIFT and not _near(hardware, length, accounts.key):
        at = accounts.fill[USED]
        accounts.pool[at] = accounts.pool[at + 1] = accounts.pool[at + 2] = 0
        accounts.fill[USED] = at + 3
        return
    children = across = separate = 1
    level = accounts.key[0]
    accounts.child[0, OFFSET] = accounts.child[0, SEPARATE] = 0
    for vertical in range(2):  # row-major order, from the fastest loop to the slowest; those along Y stand outside
        for k in range(length - 3, 2, -3):
            slot, unicast = accounts.key[k] // 2, accounts.key[k] % 2
            if hardware.slot[slot, VERTICAL] == vertical:
                trips, move = accounts.key[k + 1], accounts.key[k + 2]
                for index in range(1, trips):
                    for child in range(children):
                        accounts.child[index * children + child, OFFSET] = accounts.child[child, OFFSET] + index * move
                        accounts.child[index * children + child, SEPARATE] = (
                            accounts.child[child, SEPARATE] + index * separate * unicast
                        )
                children *= trips
                if unicast:
                    separate *= trips
        if vertical == 0:
            across = children
    # Timeloop lays out the used loops in the physical width, and so wraps rows when they are not full
    width = max(hardware.level[level, WIDTH], across)
    middle = (max(hardware.level[level, HEIGHT], children // across) - 1) / 2
    linked = _link(children, width, accounts.key[2], accounts)
    at = accounts.fill[USED]
    groups = _group(children, accounts)
    if accounts.fill[DETAILED]:
        _measure(children, groups, width, middle, accounts)
    accounts.pool[at], accounts.pool[at + 1] = groups, linked
    rows = 0
    for group in range(groups):
        accounts.group[accounts.group[group, SIZE], ALIKE] += 1
        accounts.hops[accounts.group[group, SIZE], 1] += accounts.hops[group, 0] + accounts.group[group, COLUMN]
    for group in range(groups):
        size = accounts.group[group, SIZE]
        if accounts.group[size, ALIKE]:
            row = at + 3 + 2 * rows
            accounts.pool[row], accounts.pool[row + 1] = size, accounts.group[size, ALIKE]
            accounts.pool_hops[row] = accounts.hops[size, 1]
            accounts.group[size, ALIKE] = 0
            accounts.hops[size, 1] = 0.0
            rows += 1
    accounts.pool[at + 2] = rows
    accounts.fill[USED] = at + 3 + 2 * rows


@kernel_part
def _link(children: int, width: int, shift: int, accounts: Accounts) -> int:
    """Mark the children whose new words are those that a 4-neighbour was sent one shift ago; how many they are."""
    linked = 0
    for child in range(children):
        accounts.child[child, LINKED] = False
        if shift != NO_SHIFT:
            x, wanted = child % width, accounts.child[child, OFFSET] + shift
            accounts.child[child, LINKED] = (
                (x > 0 and accounts.child[child - 1, OFFSET] == wanted)
                or (x < width - 1 and child + 1 < children and accounts.child[child + 1, OFFSET] == wanted)
                or (child >= width and accounts.child[child - width, OFFSET] == wanted)
                or (child + width < children and accounts.child[child + width, OFFSET] == wanted)
            )
            linked += accounts.child[child, LINKED]
    return linked


@kernel_part
def _group(children: int, accounts: Accounts) -> int:
    """Number the groups of children that one delivery serves, and count their members; how many groups there are."""
    accounts.fill[STAMP] += 1
    mask = len(accounts.hashed) - 1
    groups = 0
    for child in range(children):
        accounts.child[child, GROUP] = -1
        if accounts.child[child, LINKED]:
            continue
        place = _mix(_mix(accounts.child[child, OFFSET]) ^ accounts.child[child, SEPARATE]) & mask
        while accounts.hashed[place, 1] == accounts.fill[STAMP]:
            other = accounts.group[accounts.hashed[place, 0], FIRST]
            if (
                accounts.child[other, OFFSET] == accounts.child[child, OFFSET]
                and accounts.child[other, SEPARATE] == accounts.child[child, SEPARATE]
            ):
                break
            place = (place + 1) & mask
        if accounts.hashed[place, 1] != accounts.fill[STAMP]:
            accounts.hashed[place, 1] = accounts.fill[STAMP]
            accounts.hashed[place, 0] = groups
            accounts.group[groups, FIRST] = child
            accounts.group[groups, SIZE] = accounts.group[groups, COLUMN] = 0
            accounts.hops[groups, 0] = 0.0
            groups += 1
        group = accounts.hashed[place, 0]
        accounts.child[child, GROUP] = group
        accounts.group[group, SIZE] += 1
    return groups


@kernel_part
def _measure(children: int, groups: int, width: int, middle: float, accounts: Accounts) -> None:
    """Hops of every group: along the row to the farthest column, then in every used column from the middle row to its
    ends."""
    for x in range(min(width, children)):
        for child in range(x, children, width):
            if accounts.child[child, GROUP] >= 0:
                accounts.group[accounts.child[child, GROUP], LOWEST] = -1
        for child in range(x, children, width):
            group = accounts.child[child, GROUP]
            if group >= 0:
                if accounts.group[group, LOWEST] < 0:
                    accounts.group[group, LOWEST] = child // width
                accounts.group[group, HIGHEST] = child // width
        for child in range(x, children, width):
            group = accounts.child[child, GROUP]
            if group >= 0 and accounts.group[group, HIGHEST] == child // width:
                accounts.group[group, COLUMN] = x
                accounts.hops[group, 0] += max(0.0, middle - accounts.group[group, LOWEST])
                accounts.hops[group, 0] += max(0.0, accounts.group[group, HIGHEST] - middle)
