"""Multicast: how the sub-clusters of one fanout are served, computed once per unrolling and cached.

An *unrolling* is the list of spatial loops of one level, with the shift of the tile per trip. Searches repeat few of
them, so a hash table maps each one to its *delivery pattern*. The pattern states which sub-clusters one delivery
serves, which of them a neighbour serves, and how many hops the words travel.

Rules: Timeloop v3 (`nest-analysis`, `network-legacy`), as measured; see docs/timeloop.md.

A fanout of 4 sub-clusters, unrolled over n x 2 and m x 2, with a tensor A [m, k]. Its tile shifts by s per trip of m.

    sub-cluster    n, m    shift    delivery
    0              0, 0    0        0
    1              1, 0    0        0           the same tile as sub-cluster 0
    2              0, 1    s        1
    3              1, 1    s        1

The pattern is 2 deliveries of one size: 2 sub-clusters per delivery, 2 such deliveries. If A may not be multicast, each
sub-cluster has a unicast index of its own, and there are 4 deliveries to 1 sub-cluster each.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import (
    LANES,
    Index,
    Records,
    inlined,
    integer,
    kernel_call,
    kernel_part,
    passed_by_pointer,
    prefetch,
    records,
)
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Floats, Ints
from tilewright_costmodels.timeloop.tables import Hardware, Tables

DeliveryPattern: TypeAlias = int
"""Address of a delivery pattern in `FanoutCache.pool`. Read it with `deliveries_per_word` to `neighbour_bits`."""
NO_SHIFT = integer(-(2**63))
"""Shift of a pattern in which no neighbour forwards words."""
POOL = 2**19
"""Minimum of the cached numbers: 8 MB, enough for a search of convolutions on 32 x 32 units."""
MAX_SPARE, MAX_RESERVE = 2**21, 2**24
"""Maximum of the numbers cached above those of one mapping, and of those of one mapping: less than 1 GB."""
FIELD_BITS = 16
"""Bits of the level in `FanoutCache.fanout`, and of the slot and the unicast flag in a packed loop."""
FIELD_MASK = integer((1 << FIELD_BITS) - 1)
MAX_LOOPS = 6
"""Maximum number of loops of a fanout for which the shifts between neighbours are listed."""
UNKNOWN = integer(-1)
MAX_NEIGHBOUR_SHIFTS = 2 * MAX_LOOPS + 2 ** (MAX_LOOPS - 1)
ONE = integer(1)

_DELIVERIES, _FORWARDED, _SIZES, _NEXT, _SHIFT, _HEADER = map(integer, range(6))
"""Layout of a delivery pattern in the pool: header fields, and the number of them.

After the header, each size of deliveries has two numbers: sub-clusters per delivery, and number of deliveries. A
pattern without forwarding then lists the shifts between neighbours: how many (or UNKNOWN), their bits, the shifts.
"""
_SINGLE = (1, 0, 1, 0, 0, 1, 1)
"""Pattern of a fanout with one sub-cluster, at the start of the pool."""


@passed_by_pointer
class FanoutCache(NamedTuple):
    """Cache of delivery patterns. Shapes: C sub-clusters, U spatial loops of a level, B mappings in SIMD lanes.

    The pool holds per unrolling its key, the length of the key, and its pattern without forwarding. The key is `fanout`
    and, for every loop, the packed loop and its shift. Patterns of the same unrolling with forwarding form a linked list.
    """

    fanout: Ints
    """[1]: fanout at hand: the level, and from bit `FIELD_BITS` on the tensor."""
    loops: Ints
    """[U, B]: packed spatial loops of the mappings at hand (see `pack_loop`); 0: no loop."""
    shifts: Ints
    """[U, B]: shift of the tile per trip of each loop."""
    hashes: Ints
    """[B]: hash values of the unrollings."""
    table: NDArray[np.int32]
    """Hash table of patterns without forwarding; -1: free."""
    pool: Ints
    pool_hops: Floats
    """Hops of all deliveries of one size, at the address of that size in the pool."""
    state: Records
    """[1]: used numbers of the pool (`used`); numbers that one tensor may add at one level (`reserve`); current stamp;
    whether hops are counted (`detailed`)."""
    subcluster: Records
    """[C]: shift of its tile; unicast index, equal for sub-clusters that may share a delivery; whether a neighbour
    serves it; its delivery (-1: none)."""
    group: Records
    """[C + 1]: per delivery its first sub-cluster, number of members, last column, lowest and highest row in a column, and hops. Per
    size, the number of deliveries and their hops."""
    hashed: Records
    """Hash table of deliveries. An entry is taken if its stamp is the current one."""


@passed_by_pointer
class Deliveries(NamedTuple):
    """Deliveries below one level. Shapes: T tensors, L levels, G sizes of deliveries, B mappings in SIMD lanes."""

    sizes: Ints
    """[B]: number of different sizes, of the tensor and level at hand."""
    multicast: Ints
    """[G, B]: sub-clusters per delivery."""
    scatter: Ints
    """[G, B]: deliveries of that size per word."""
    accesses: Floats
    """[G, B]: words that the parent reads or updates."""
    hops: Floats
    """[G, B]: hops of these words."""
    first_scatter: Floats
    """[B]: deliveries of the first size of the parent's pattern, per word."""
    first_hops: Floats
    """[B]: hops of these deliveries, per word."""
    noted: Ints
    """[B]: number of noted deliveries. The first is of the words from the parent, the others are of forwarded words."""
    words: Floats
    """[B, note]: words of each noted delivery."""
    pattern: Ints
    """[B, note]: delivery pattern of these words."""
    reported_sizes: Ints
    """[T, L]: number of sizes, of the first mapping of the last group."""
    reported: Records
    """[T, L, G]: its deliveries: multicast, scatter, hops, and words that the network counts."""


def deliveries_of(tables: Tables, detailed: bool) -> Deliveries:
    """Return empty deliveries. `detailed`: with space for all sizes of deliveries."""
    levels, tensors, _ = tables.shape
    notes = _max_loops(tables)
    sizes = notes * _max_sizes(tables) if detailed else 1
    return Deliveries(
        sizes=np.zeros(LANES, np.int64),
        multicast=np.ones((sizes, LANES), np.int64),
        scatter=np.ones((sizes, LANES), np.int64),
        accesses=np.zeros((sizes, LANES)),
        hops=np.zeros((sizes, LANES)),
        first_scatter=np.ones(LANES),
        first_hops=np.zeros(LANES),
        noted=np.zeros(LANES, np.int64),
        words=np.zeros((LANES, notes)),
        pattern=np.zeros((LANES, notes), np.int64),
        reported_sizes=np.zeros((tensors, levels), np.int64),
        reported=records((tensors, levels, sizes), multicast=float, scatter=float, hops=float, sent=float),
    )


def fanout_cache_of(tables: Tables, detailed: bool) -> FanoutCache:
    """Return an empty cache. `detailed`: count hops.

    Raises:
        NotConformableError: the cache would need gigabytes.
    """
    levels, _, dims = tables.shape
    loops = _max_loops(tables)
    unrolled = max(1, dims * int((~tables.hardware.slot["temporal"]).sum()))
    headers = 10  # of the key, of the pattern and of the list of shifts, with one to spare
    reserve = LANES * loops * (2 * unrolled + 2 * _max_sizes(tables) + headers + MAX_NEIGHBOUR_SHIFTS)
    if reserve > MAX_RESERVE:
        message = (
            f"{levels} levels, {loops} loops and {tables.max_subclusters:,} sub-clusters need "
            f"{reserve:,} cached numbers; expected at most {MAX_RESERVE:,}"
        )
        raise NotConformableError("cost model timeloop", (Reason(code="size", where="mapping", message=message),))
    pool = np.zeros(reserve + min(reserve, MAX_SPARE) + POOL, np.int64)
    pool[: len(_SINGLE)] = _SINGLE
    state = records(1, used=int, reserve=int, stamp=int, detailed=bool)
    state[0] = len(_SINGLE), reserve, 0, detailed
    integral = dict.fromkeys("first members column lowest highest equal".split(), int)
    return FanoutCache(
        fanout=np.zeros(1, np.int64),
        loops=np.zeros((unrolled, LANES), np.int64),
        shifts=np.zeros((unrolled, LANES), np.int64),
        hashes=np.zeros(LANES, np.int64),
        table=np.full(1 << (len(pool) // 8).bit_length(), -1, np.int32),
        pool=pool,
        pool_hops=np.zeros(len(pool)),
        state=state,
        subcluster=records(tables.max_subclusters, shift=int, unicast=int, forwarded=bool, group=int),
        group=records(tables.max_subclusters + 1, **integral, hops=float, equal_hops=float),
        hashed=records(1 << (2 * tables.max_subclusters).bit_length(), group=int, stamp=int),
    )


def _max_loops(tables: Tables) -> int:
    """Return an upper bound on the different shifts of a tile, and so on noted deliveries of one level."""
    return tables.shape[2] * len(tables.hardware.slot) + 2


def _max_sizes(tables: Tables) -> int:
    """Return the maximum number of different sizes of deliveries that together serve one fanout."""
    return math.isqrt(2 * tables.max_subclusters) + 1


@kernel_part
def make_room(cache: FanoutCache) -> None:
    """Empty the cache if the patterns of the next tensor and level might not fit."""
    state = cache.state[0]
    if state.used + state.reserve > len(cache.pool):
        state.used = len(_SINGLE)
        for row in range(len(cache.table)):
            cache.table[row] = -1


# Reading a pattern


@kernel_part
def deliveries_per_word(cache: FanoutCache, pattern: DeliveryPattern) -> Any:
    """Return the number of deliveries per word that the parent makes."""
    return cache.pool[pattern + _DELIVERIES]


@kernel_part
def forwarded_subclusters(cache: FanoutCache, pattern: DeliveryPattern) -> Any:
    """Return the number of sub-clusters that a neighbour serves."""
    return cache.pool[pattern + _FORWARDED]


@kernel_part
def size_count(cache: FanoutCache, pattern: DeliveryPattern) -> Any:
    """Return the number of different sizes of deliveries."""
    return cache.pool[pattern + _SIZES]


@kernel_part
def multicast(cache: FanoutCache, pattern: DeliveryPattern, size: int) -> Any:
    """Return the number of sub-clusters that a delivery of the given size index serves."""
    return cache.pool[_address_of_size(pattern, size)]


@kernel_part
def scatter(cache: FanoutCache, pattern: DeliveryPattern, size: int) -> Any:
    """Return the number of deliveries of that size per word."""
    return cache.pool[_address_of_size(pattern, size) + 1]


@kernel_part
def hops(cache: FanoutCache, pattern: DeliveryPattern, size: int) -> Any:
    """Return the hops of all deliveries of that size, per word."""
    return cache.pool_hops[_address_of_size(pattern, size)]


@kernel_part
def neighbour_bits(cache: FanoutCache, pattern: DeliveryPattern) -> Any:
    """Return the set of `bit_of` all shifts between neighbours, of a pattern without forwarding."""
    return cache.pool[_address_of_shifts(cache, pattern) + 1]


@kernel_part
def _address_of_size(pattern: DeliveryPattern, size: int) -> Any:
    return pattern + _HEADER + 2 * size


@kernel_part
def _address_of_shifts(cache: FanoutCache, pattern: DeliveryPattern) -> Any:
    return _address_of_size(pattern, cache.pool[pattern + _SIZES])


# Finding a pattern


@kernel_part
def pack_fanout(level: int, tensor: int) -> Any:
    """Return the number that `FanoutCache.fanout` holds."""
    return tensor << FIELD_BITS | level


@kernel_part
def pack_loop(trips: Any, slot: int, unicast: Any) -> Any:
    """Return spatial loops, or one lane vector of them, as numbers. `unicast`: 0 or 1."""
    return (trips << FIELD_BITS) | (unicast | 2 * slot)


@kernel_part
def _trips(loop: int) -> Any:
    return loop >> FIELD_BITS


@kernel_part
def _is_vertical(hardware: Hardware, loop: int) -> bool:
    """Return whether a packed loop unrolls along Y."""
    return bool(hardware.slot[Index((loop & FIELD_MASK) >> 1)].vertical)


@kernel_part
def hash_bits(number: Any) -> Any:
    """Return well-mixed bits of a number, or of a lane vector. No product overflows."""
    low = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return low ^ (low >> 15)


@kernel_part
def bit_of(shift: Any) -> Any:
    """Return the bit, 0 to 63, that represents an absolute shift, or a lane vector of them."""
    return ((shift & 0x7FFFFFFF) * 0x9E3779B1 >> 26) & 63


@kernel_part
def prefetch_pattern(cache: FanoutCache, b: int) -> None:
    """Prefetch the pool entry that `find_pattern` reads first for lane `b`."""
    prefetch(cache.pool[max(cache.table[cache.hashes[b] & (len(cache.table) - 1)], 0) :])


@inlined
def find_pattern(hardware: Hardware, cache: FanoutCache, loops: int, b: int) -> DeliveryPattern:
    """Return the pattern without forwarding of the mapping in lane `b`, whose unrolling has at most `loops` loops."""
    pool, mask = cache.pool, len(cache.table) - 1
    row, is_known = cache.hashes[b] & mask, False
    pattern = cache.table[row]
    while pattern >= 0 and not is_known:
        at = pattern - pool[pattern - 1]
        is_known = pool[at - 1] == cache.fanout[0]
        for k in range(loops):
            loop, shift = cache.loops[k, b], cache.shifts[k, b]
            is_known &= (loop == 0) | ((pool[at] == loop) & (pool[at + 1] == shift))
            at += 2 * (loop != 0)  # without a branch, because no processor predicts it
        is_known &= at == pattern - 1
        if not is_known:
            row = (row + 1) & mask
            pattern = cache.table[row]
    if not is_known:
        at = start = cache.state[0].used
        pool[at] = cache.fanout[0]
        for k in range(loops):
            pool[at + 1], pool[at + 2] = cache.loops[k, b], cache.shifts[k, b]
            at += 2 * (cache.loops[k, b] != 0)
        pool[at + 1] = at + 1 - start
        pattern = cache.table[row] = at + 2
        _write_pattern(hardware, pattern, NO_SHIFT, cache)
    return int(pattern)


@inlined
def find_forwarding_pattern(
    hardware: Hardware, cache: FanoutCache, pattern: DeliveryPattern, shift: int
) -> DeliveryPattern:
    """Return the pattern of the same unrolling in which neighbours forward the words they held one shift ago.

    Args:
        pattern: the pattern without forwarding. It is returned if no neighbour holds the words.
        shift: by which all tiles have moved since.
    """
    pool = cache.pool
    at = _address_of_shifts(cache, pattern)
    listed, last = at + 2, at + 2 + pool[at]
    while listed < last and pool[listed] != abs(shift):
        listed += 1
    if pool[at] != UNKNOWN and listed == last:
        return pattern
    address = pool[pattern + _NEXT]
    while address and pool[address + _SHIFT] != shift:
        address = pool[address + _NEXT]
    if not address:
        address = cache.state[0].used
        _write_pattern(hardware, pattern, shift, cache)
        pool[address + _NEXT], pool[pattern + _NEXT] = pool[pattern + _NEXT], address
    return int(address)


# Computing a pattern


@kernel_call
def _write_pattern(hardware: Hardware, pattern: DeliveryPattern, shift: int, cache: FanoutCache) -> None:
    """Write a pattern of the unrolling whose key precedes `pattern`.

    Args:
        pattern: the pattern without forwarding, which is written if `shift` is NO_SHIFT.
        shift: by which all tiles move before neighbours forward words. That pattern is appended to the pool.
    """
    pool, subclusters, groups = cache.pool, cache.subcluster, cache.group
    length = pool[pattern - 1]
    key = pool[pattern - 1 - length :]
    at = pattern if shift == NO_SHIFT else cache.state[0].used
    pool[at + _FORWARDED] = pool[at + _SIZES] = pool[at + _NEXT] = 0
    pool[at + _SHIFT] = shift
    cache.state[0].used = at + _HEADER
    count = columns = unicasts = ONE
    subclusters[0].shift = subclusters[0].unicast = 0
    for vertical in range(2):  # row-major order, fastest loop first; loops along Y are outside
        for k in range(length - 2, 0, -2):
            unicast, trips, move = key[k] & 1, _trips(key[k]), key[k + 1]
            if _is_vertical(hardware, key[k]) == vertical:
                for number in range(count, trips * count):
                    subcluster, first_trip, trip = subclusters[number], subclusters[number % count], number // count
                    subcluster.shift = first_trip.shift + trip * move
                    subcluster.unicast = first_trip.unicast + trip * unicasts * unicast
                count *= trips
                if unicast:
                    unicasts *= trips
        if vertical == 0:
            columns = count
    # Timeloop lays the used loops out in the physical width, and so wraps rows that are not full
    level = hardware.level[Index(key[0] & FIELD_MASK)]
    width, middle = max(level.width, columns), (max(level.height, count // columns) - 1) / 2
    pool[at + _FORWARDED] = _mark_forwarded(count, width, shift, subclusters)
    deliveries = pool[at + _DELIVERIES] = _group_deliveries(count, cache)
    if cache.state[0].detailed:
        _count_hops(count, width, middle, cache)
    for number in range(deliveries):
        equal = groups[groups[number].members]
        equal.equal += 1
        equal.equal_hops += groups[number].hops + groups[number].column
    for number in range(deliveries):
        size = groups[number].members
        equal = groups[size]
        if equal.equal:
            row = cache.state[0].used
            pool[row], pool[row + 1], cache.pool_hops[row] = size, equal.equal, equal.equal_hops
            equal.equal, equal.equal_hops = 0, 0.0
            pool[at + _SIZES] += 1
            cache.state[0].used = row + 2
    if shift == NO_SHIFT:
        _write_neighbour_shifts(hardware, length, key, cache)


@kernel_part
def _write_neighbour_shifts(hardware: Hardware, length: int, key: Ints, cache: FanoutCache) -> None:
    """Append the different shifts between neighbours to the pool: how many, their bits, and the shifts."""
    pool, row = cache.pool, cache.state[0].used
    count, different = _list_neighbour_shifts(hardware, length, key, pool[row + 2 :]), 0
    pool[row], pool[row + 1] = count, 0 if count >= 0 else -1
    for number in range(count):
        shift, before = pool[row + 2 + number], 0
        while before < different and pool[row + 2 + before] != shift:
            before += 1
        pool[row + 2 + before], pool[row + 1] = shift, pool[row + 1] | 1 << bit_of(shift)
        different = pool[row] = max(different, before + 1)
    cache.state[0].used = row + 2 + different


@kernel_part
def _list_neighbour_shifts(hardware: Hardware, length: int, key: Ints, shifts: Ints) -> int:
    """Write the absolute shifts between the tiles of 4-neighbours. Return how many there are, or UNKNOWN.

    From one sub-cluster to the next in its row, one loop advances and all faster loops restart. With full rows, the
    loops along Y do the same from one row to the next.
    """
    loops, shift_count = length // 2, 0
    if loops > MAX_LOOPS:
        return UNKNOWN
    count, columns, row_end, column_end = 1, 1, 0, 0
    for loop in range(loops, 0, -1):
        k = Index(2 * loop - 1)
        trips, move, along_y = _trips(key[k]), key[k + 1], _is_vertical(hardware, key[k])
        restarted = column_end if along_y else row_end  # shift of the faster loops at their last trips
        shifts[shift_count] = abs(move - restarted)
        shift_count += 1
        ended = restarted + (trips - 1) * move
        row_end, column_end = (row_end, ended) if along_y else (ended, column_end)
        count, columns = count * trips, columns * (1 if along_y else trips)
    for loop in range(loops, 0, -1):
        k = Index(2 * loop - 1)  # from the end of a full row to the next row, adjacent where rows wrap
        if _is_vertical(hardware, key[k]):
            shifts[shift_count] = abs(key[k + 1] - row_end)
            shift_count += 1
            row_end += (_trips(key[k]) - 1) * key[k + 1]
    width = max(hardware.level[Index(key[0] & FIELD_MASK)].width, columns)
    if not columns < width < count:
        return shift_count
    # rows wrap: the next row is `width` sub-clusters further, in the mixed radix of the trips, for all carries
    down, remainder = 0, Index(width)
    for vertical in range(2):
        for loop in range(loops, 0, -1):
            k = Index(2 * loop - 1)
            if _is_vertical(hardware, key[k]) == vertical:
                down += remainder % Index(_trips(key[k])) * key[k + 1]
                remainder = Index(remainder // Index(_trips(key[k])))
    for carries in range(1 << (loops - 1)):
        shift, carry, left = down, 0, carries
        for vertical in range(2):
            for loop in range(loops, 0, -1):
                k = Index(2 * loop - 1)
                if _is_vertical(hardware, key[k]) == vertical:
                    over = left & 1
                    shift += (carry - over * _trips(key[k])) * key[k + 1]
                    carry, left = over, left >> 1
        shifts[shift_count + carries] = abs(shift)
    return shift_count + (1 << (loops - 1))


@kernel_part
def _mark_forwarded(count: int, width: int, shift: int, subclusters: Records) -> int:
    """Mark the sub-clusters whose new words a 4-neighbour received one shift ago. Return how many there are."""
    forwarded = 0
    for number in range(count):
        subcluster, x = subclusters[number], number % width
        subcluster.forwarded = False
        if shift != NO_SHIFT:
            held = subcluster.shift + shift
            subcluster.forwarded = (
                (x > 0 and subclusters[number - 1].shift == held)
                or (x < width - 1 and number + 1 < count and subclusters[number + 1].shift == held)
                or (number >= width and subclusters[number - width].shift == held)
                or (number + width < count and subclusters[number + width].shift == held)
            )
            forwarded += subcluster.forwarded
    return forwarded


@kernel_part
def _group_deliveries(count: int, cache: FanoutCache) -> int:
    """Group the sub-clusters that one delivery serves, and count the members. Return the number of groups."""
    cache.state[0].stamp += 1
    mask, stamp, groups = len(cache.hashed) - 1, cache.state[0].stamp, 0
    for number in range(count):
        subcluster = cache.subcluster[number]
        subcluster.group = -1
        if not subcluster.forwarded:
            row = hash_bits(hash_bits(subcluster.shift) ^ subcluster.unicast) & mask
            while cache.hashed[row].stamp == stamp:
                other = cache.subcluster[cache.group[cache.hashed[row].group].first]
                if other.shift == subcluster.shift and other.unicast == subcluster.unicast:
                    break
                row = (row + 1) & mask
            entry = cache.hashed[row]
            if entry.stamp != stamp:
                entry.stamp, entry.group = stamp, groups
                group = cache.group[groups]
                group.first, group.members, group.column, group.hops = number, 0, 0, 0.0
                groups += 1
            subcluster.group = entry.group
            cache.group[subcluster.group].members += 1
    return groups


@kernel_part
def _count_hops(count: int, width: int, middle: float, cache: FanoutCache) -> None:
    """Count the hops of every group.

    A delivery travels along the row to the last column, then in every used column from the middle row to the ends.
    """
    for x in range(min(width, count)):
        for number in range(x, count, width):
            cache.group[max(0, cache.subcluster[number].group)].lowest = -1
        for number in range(x, count, width):
            if cache.subcluster[number].group >= 0:
                group = cache.group[cache.subcluster[number].group]
                if group.lowest < 0:
                    group.lowest = number // width
                group.highest = number // width
        for number in range(x, count, width):
            if cache.subcluster[number].group >= 0:
                group = cache.group[cache.subcluster[number].group]
                if group.highest == number // width:
                    group.column = x
                    group.hops += max(0.0, middle - group.lowest)
                    group.hops += max(0.0, group.highest - middle)
