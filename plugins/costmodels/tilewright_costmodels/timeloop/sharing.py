"""The children of one fanout on their grid: who shares a delivery, who gets words from a neighbour, how far they are.

Rules: Timeloop v3 (`nest-analysis`, `network-legacy`), as measured; see docs/timeloop.md.
"""

from __future__ import annotations

from typing import Any

from tilewright.compiled import Index, Records, integer, kernel_call, kernel_part, soon
from tilewright.mapspace.batch import Ints
from tilewright_costmodels.timeloop.accounts import (
    BITS,
    DELIVERED,
    HEAD,
    LINKED,
    MOST_LOOPS,
    NEXT,
    NO_SHIFT,
    PLACE,
    SHIFT,
    SIZES,
    UNKNOWN,
    Accounts,
    apart_of,
)
from tilewright_costmodels.timeloop.tables import Hardware

ONE = integer(1)


@kernel_part
def _is_vertical(hardware: Hardware, loop: int) -> bool:
    """Of a loop in a key."""
    return bool(hardware.slot[Index((loop & BITS) >> 1)].vertical)


@kernel_part
def expect(accounts: Accounts, b: int) -> None:
    """Fetch from memory what `sharing` looks at first, while the same is done for other mappings."""
    soon(accounts.pool[max(accounts.table[accounts.mixed[b] & (len(accounts.table) - 1)], 0) :])


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
