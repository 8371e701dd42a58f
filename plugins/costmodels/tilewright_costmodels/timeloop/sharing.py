"""The children of one fanout on their grid: who shares a delivery, who gets words from a neighbour, how far they are.

Rules: Timeloop v3 (`nest-analysis`, `network-legacy`), as measured; see docs/timeloop.md. What was worked out once for
a way to unroll is kept: searches come back to the same few again and again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, Index, Records, integer, kernel_call, kernel_part, records, structure
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Floats, Ints
from tilewright_costmodels.timeloop.tables import Hardware, Tables

ONE = integer(1)
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
def _is_vertical(hardware: Hardware, loop: int) -> bool:
    """Of a loop in a key."""
    return bool(hardware.slot[Index((loop & BITS) >> 1)].vertical)


@kernel_call
def sharing(hardware: Hardware, accounts: Accounts, loops: int, b: int) -> int:
    """Where the account stands of how the children of mapping b, with so many `loops`, are served."""
    pool, mask = accounts.pool, len(accounts.table) - 1
    place, found = accounts.mixed[b] & mask, False
    account = accounts.table[place]
    while account >= 0 and not found:
        at = account - pool[account - 1]
        found = pool[at - 1] == accounts.children[0]
        for k in range(loops):
            loop, move = accounts.loops[k, b], accounts.moves[k, b]
            found &= (loop == 0) | ((pool[at] == loop) & (pool[at + 1] == move))
            at += 2 * (loop != 0)  # no branch that nobody can foresee
        found &= at == account - 1
        if not found:
            place = (place + 1) & mask
            account = accounts.table[place]
    if not found:
        at = start = accounts.state[0].used
        pool[at] = accounts.children[0]
        for k in range(loops):
            pool[at + 1], pool[at + 2] = accounts.loops[k, b], accounts.moves[k, b]
            at += 2 * (accounts.loops[k, b] != 0)
        pool[at + 1] = at + 1 - start
        account = accounts.table[place] = at + 2
        _count(hardware, account, NO_SHIFT, accounts)
    return int(account)


@kernel_call
def passing(hardware: Hardware, accounts: Accounts, account: int, shift: int) -> int:
    """Where the account stands of how the same children are served if neighbours pass on what they held one shift before; `account`
    if none has it."""
    pool = accounts.pool
    at = apart_of(accounts, account)
    number, last = at + 2, at + 2 + pool[at]
    while number < last and pool[number] != abs(shift):
        number += 1
    if pool[at] != UNKNOWN and number == last:
        return account
    found = pool[account + NEXT]
    while found and pool[found + SHIFT] != shift:
        found = pool[found + NEXT]
    if not found:
        found = accounts.state[0].used
        _count(hardware, account, shift, accounts)
        pool[found + NEXT], pool[account + NEXT] = pool[account + NEXT], found
    return int(found)


@kernel_part
def apart_of(accounts: Accounts, account: int) -> int:
    """Where in an account it is told how far neighbours lie apart; the bits stand next to it."""
    return int(account + HEAD + 2 * accounts.pool[account + SIZES])


@kernel_part
def mix(number: Any) -> Any:
    """Bits that look drawn, for a hash table, or a row of them; no product overflows."""
    low = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return low ^ (low >> 15)


@kernel_call
def _count(hardware: Hardware, account: int, shift: int, accounts: Accounts) -> None:
    """Write an account at `account`, of the unrolling before it; or of the same one at the end of the pool, with a shift.

    Args:
        shift: displacement of all tiles by which neighbours may pass on what they held before; NO_SHIFT: they do not.
    """
    pool, children, deliveries = accounts.pool, accounts.child, accounts.group
    length = pool[account - 1]
    key = pool[account - 1 - length :]
    at = account if shift == NO_SHIFT else accounts.state[0].used
    pool[at + LINKED] = pool[at + SIZES] = pool[at + NEXT] = 0
    pool[at + SHIFT] = shift
    accounts.state[0].used = at + HEAD
    count = across = separate = ONE
    children[0].offset = children[0].separate = 0
    for vertical in range(2):  # row-major order, from the fastest loop to the slowest; those along Y stand outside
        for k in range(length - 2, 0, -2):
            unicast, trips, move = key[k] & 1, key[k] >> PLACE, key[k + 1]
            if _is_vertical(hardware, key[k]) == vertical:
                for number in range(count, trips * count):
                    child, like, index = children[number], children[number % count], number // count
                    child.offset = like.offset + index * move
                    child.separate = like.separate + index * separate * unicast
                count *= trips
                if unicast:
                    separate *= trips
        if vertical == 0:
            across = count
    # Timeloop lays out the used loops in the physical width, and so wraps rows when they are not full
    level = hardware.level[Index(key[0] & BITS)]
    width, middle = max(level.width, across), (max(level.height, count // across) - 1) / 2
    pool[at + LINKED] = _link(count, width, shift, children)
    groups = pool[at + DELIVERED] = _group(count, accounts)
    if accounts.state[0].detailed:
        _measure(count, width, middle, accounts)
    for number in range(groups):
        alike = deliveries[deliveries[number].size]
        alike.alike += 1
        alike.hops_alike += deliveries[number].hops + deliveries[number].column
    for number in range(groups):
        size = deliveries[number].size
        alike = deliveries[size]
        if alike.alike:
            row = accounts.state[0].used
            pool[row], pool[row + 1], accounts.pool_hops[row] = size, alike.alike, alike.hops_alike
            alike.alike, alike.hops_alike = 0, 0.0
            pool[at + SIZES] += 1
            accounts.state[0].used = row + 2
    if shift == NO_SHIFT:
        row = accounts.state[0].used
        found, different = _near(hardware, length, key, pool[row + 2 :]), 0
        pool[row], pool[row + 1] = found, 0 if found >= 0 else -1
        for number in range(found):
            apart, before = pool[row + 2 + number], 0
            while before < different and pool[row + 2 + before] != apart:
                before += 1
            pool[row + 2 + before], pool[row + 1] = apart, pool[row + 1] | 1 << bit_of(apart)
            different = pool[row] = max(different, before + 1)
        accounts.state[0].used = row + 2 + different


@kernel_part
def bit_of(displacement: Any) -> Any:
    """A number below 64 that stands for a displacement, or a row of them."""
    return ((displacement & 0x7FFFFFFF) * 0x9E3779B1 >> 26) & 63


@kernel_part
def _near(hardware: Hardware, length: int, key: Ints, apart: Ints) -> int:
    """Write by how much the tiles of 4-neighbours may be displaced, either way; how many such numbers there are, or UNKNOWN.

    Of two children side by side, one loop counts on by one and all faster ones start over; so it is in the next row,
    with the loops along Y, if rows are full.
    """
    loops, found = length // 2, 0
    if loops > MOST_LOOPS:
        return UNKNOWN
    children, across, row, column = 1, 1, 0, 0
    for loop in range(loops, 0, -1):
        k = Index(2 * loop - 1)
        trips, move, along_y = key[k] >> PLACE, key[k + 1], _is_vertical(hardware, key[k])
        started = column if along_y else row  # the faster loops at their ends
        apart[found] = abs(move - started)
        found += 1
        ended = started + (trips - 1) * move
        row, column = (row, ended) if along_y else (ended, column)
        children, across = children * trips, across * (1 if along_y else trips)
    for loop in range(loops, 0, -1):
        k = Index(2 * loop - 1)  # from the end of a full row to the next one, side by side where it is wrapped
        if _is_vertical(hardware, key[k]):
            apart[found] = abs(key[k + 1] - row)
            found += 1
            row += ((key[k] >> PLACE) - 1) * key[k + 1]
    width = max(hardware.level[Index(key[0] & BITS)].width, across)
    if not across < width < children:
        return found
    # rows that wrap: one row down is `width` further, counted in the loops' trips, with every way to carry
    down, rest = 0, Index(width)
    for vertical in range(2):
        for loop in range(loops, 0, -1):
            k = Index(2 * loop - 1)
            if _is_vertical(hardware, key[k]) == vertical:
                down += rest % Index(key[k] >> PLACE) * key[k + 1]
                rest = Index(rest // Index(key[k] >> PLACE))
    for carries in range(1 << (loops - 1)):
        displacement, carry, left = down, 0, carries
        for vertical in range(2):
            for loop in range(loops, 0, -1):
                k = Index(2 * loop - 1)
                if _is_vertical(hardware, key[k]) == vertical:
                    over = left & 1
                    displacement += (carry - over * (key[k] >> PLACE)) * key[k + 1]
                    carry, left = over, left >> 1
        apart[found + carries] = abs(displacement)
    return found + (1 << (loops - 1))


@kernel_part
def _link(count: int, width: int, shift: int, children: Records) -> int:
    """Mark the children whose new words are those that a 4-neighbour was sent one shift ago; how many they are."""
    linked = 0
    for number in range(count):
        child, x = children[number], number % width
        child.linked = False
        if shift != NO_SHIFT:
            wanted = child.offset + shift
            child.linked = (
                (x > 0 and children[number - 1].offset == wanted)
                or (x < width - 1 and number + 1 < count and children[number + 1].offset == wanted)
                or (number >= width and children[number - width].offset == wanted)
                or (number + width < count and children[number + width].offset == wanted)
            )
            linked += child.linked
    return linked


@kernel_part
def _group(count: int, accounts: Accounts) -> int:
    """Number the groups of children that one delivery serves, and count their members; how many groups there are."""
    accounts.state[0].stamp += 1
    mask, stamp, groups = len(accounts.hashed) - 1, accounts.state[0].stamp, 0
    for number in range(count):
        child = accounts.child[number]
        child.group = -1
        if not child.linked:
            place = mix(mix(child.offset) ^ child.separate) & mask
            while accounts.hashed[place].stamp == stamp:
                other = accounts.child[accounts.group[accounts.hashed[place].group].first]
                if other.offset == child.offset and other.separate == child.separate:
                    break
                place = (place + 1) & mask
            taken = accounts.hashed[place]
            if taken.stamp != stamp:
                taken.stamp, taken.group = stamp, groups
                group = accounts.group[groups]
                group.first, group.size, group.column, group.hops = number, 0, 0, 0.0
                groups += 1
            child.group = taken.group
            accounts.group[child.group].size += 1
    return groups


@kernel_part
def _measure(count: int, width: int, middle: float, accounts: Accounts) -> None:
    """Hops of every group: along the row to the farthest column, then in every used column from the middle row to its
    ends."""
    for x in range(min(width, count)):
        for number in range(x, count, width):
            accounts.group[max(0, accounts.child[number].group)].lowest = -1
        for number in range(x, count, width):
            if accounts.child[number].group >= 0:
                group = accounts.group[accounts.child[number].group]
                if group.lowest < 0:
                    group.lowest = number // width
                group.highest = number // width
        for number in range(x, count, width):
            if accounts.child[number].group >= 0:
                group = accounts.group[accounts.child[number].group]
                if group.highest == number // width:
                    group.column = x
                    group.hops += max(0.0, middle - group.lowest)
                    group.hops += max(0.0, group.highest - middle)
