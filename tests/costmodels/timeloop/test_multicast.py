"""Delivery patterns, against an enumeration of the sub-clusters of a fanout."""

from collections import Counter
from itertools import product
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.compiled import interpreted
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop import multicast
from tilewright_costmodels.timeloop.model import TimeloopModel

SPACE = tw.space("quickflow_convs/VIII", "eyeriss")
KERNEL = TimeloopModel(TimeloopOptions()).dense(SPACE.problem, SPACE.architecture).kernel(SPACE.skeleton, SPACE.slots)
assert KERNEL is not None
HARDWARE, CACHE = KERNEL.tables.hardware, multicast.fanout_cache_of(KERNEL.tables, True)
LEVEL = next(
    number
    for number, level in enumerate(HARDWARE.level)
    if sum(not slot.temporal for slot in HARDWARE.slot[level.start : level.stop]) == 2
)
SLOTS = [s for s in range(HARDWARE.level[LEVEL].start, HARDWARE.level[LEVEL].stop) if not HARDWARE.slot[s].temporal]


class Loop(NamedTuple):
    """A spatial loop."""

    slot: int
    trips: int
    shift: int
    unicast: bool


loops = st.lists(
    st.builds(Loop, st.sampled_from(SLOTS), st.integers(2, 3), st.integers(0, 4), st.booleans()), min_size=1, max_size=4
).map(lambda drawn: sorted(drawn, key=lambda loop: loop.slot))


def find(drawn: list[Loop]) -> int:
    """Return the pattern of an unrolling."""
    interpreted(multicast.make_room)(CACHE)
    CACHE.fanout[0], CACHE.hashes[0] = LEVEL, hash(tuple(drawn)) & 0xFFFF
    for k, loop in enumerate(drawn):
        CACHE.loops[k, 0] = interpreted(multicast.pack_loop)(loop.trips, loop.slot, int(loop.unicast))
        CACHE.shifts[k, 0] = loop.shift
    return interpreted(multicast.find_pattern)(HARDWARE, CACHE, len(drawn), 0)  # type: ignore[no-any-return]


def enumerate_subclusters(drawn: list[Loop]) -> list[tuple[int, tuple[int, ...]]]:
    """Return shift and unicast trips of every sub-cluster, in row-major order."""
    vertical = [loop for loop in drawn if HARDWARE.slot[loop.slot].vertical]
    ordered = vertical + [loop for loop in drawn if loop not in vertical]
    trips = product(*(range(loop.trips) for loop in ordered))
    return [
        (
            sum(trip * loop.shift for trip, loop in zip(each, ordered, strict=True)),
            tuple(trip for trip, loop in zip(each, ordered, strict=True) if loop.unicast),
        )
        for each in trips
    ]


def width_of(drawn: list[Loop]) -> int:
    """Return the number of columns in which sub-clusters are laid out."""
    columns = 1
    for loop in drawn:
        columns *= 1 if HARDWARE.slot[loop.slot].vertical else loop.trips
    return max(int(HARDWARE.level[LEVEL].width), columns)


def sizes(pattern: int) -> Counter[int]:
    """Return sub-clusters per delivery -> number of deliveries, as the pattern states it."""
    count = interpreted(multicast.size_count)(CACHE, pattern)
    multicast_of, scatter_of = interpreted(multicast.multicast), interpreted(multicast.scatter)
    return Counter({multicast_of(CACHE, pattern, i): scatter_of(CACHE, pattern, i) for i in range(count)})


@given(loops)
def test_sub_clusters_with_equal_tiles_share_a_delivery(drawn: list[Loop]) -> None:
    groups = Counter(enumerate_subclusters(drawn))

    pattern = find(drawn)
    assert interpreted(multicast.deliveries_per_word)(CACHE, pattern) == len(groups)
    assert interpreted(multicast.forwarded_subclusters)(CACHE, pattern) == 0
    assert sizes(pattern) == Counter(groups.values())
    assert find(drawn) == pattern


@given(loops, st.integers(-6, 6))
@example([Loop(SLOTS[0], 2, 3, False), Loop(SLOTS[1], 3, 4, True)], 1)  # full rows
@example(
    [
        Loop(SLOTS[0], 3, 3, False),
        Loop(SLOTS[0], 3, 0, False),
        Loop(SLOTS[1], 3, 1, False),
        Loop(SLOTS[1], 3, 0, True),
    ],
    2,
)  # rows that wrap
def test_neighbours_forward_what_they_held_one_shift_ago(drawn: list[Loop], shift: int) -> None:
    tiles, width = enumerate_subclusters(drawn), width_of(drawn)
    remaining: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for number, tile in enumerate(tiles):
        x = number % width
        adjacent = [number - 1] * (x > 0) + [number + 1] * (x < width - 1) + [number - width, number + width]
        held = [tiles[other][0] for other in adjacent if 0 <= other < len(tiles)]
        remaining[tile] += tile[0] + shift not in held

    groups = Counter({tile: count for tile, count in remaining.items() if count})
    pattern = find(drawn)
    forwarding = interpreted(multicast.find_forwarding_pattern)(HARDWARE, CACHE, pattern, shift)
    assert interpreted(multicast.deliveries_per_word)(CACHE, forwarding) == len(groups)
    assert interpreted(multicast.forwarded_subclusters)(CACHE, forwarding) == len(tiles) - groups.total()
    assert sizes(forwarding) == Counter(groups.values())
    if forwarding != pattern:
        bits = int(interpreted(multicast.neighbour_bits)(CACHE, pattern))
        assert bits >> int(interpreted(multicast.bit_of)(abs(shift))) & 1
