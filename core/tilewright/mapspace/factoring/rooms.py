"""Rooms: how far a fanout is used while one dimension after another is unrolled over it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tilewright.mapspace.skeleton import Slot


class Room(NamedTuple):
    """What of a fanout may still be used: by `most` times as many sub-clusters; and until `lacking` times as many, too few
    are. Two ways to have used it with the same room can go on in the same ways."""

    most: int
    lacking: int

    @property
    def enough(self) -> bool:
        return self.lacking == 0


class Share(NamedTuple):
    """`first` to `last` trips, each of which leaves this room."""

    first: int
    last: int
    room: Room


def room_of(slot: Slot) -> Room:
    """Of a fanout that is not used yet; what no trips can fill is left out."""
    return Room(min(slot.most or 1, math.prod(slot.highest)), slot.least - 1)


def settled(slots: Sequence[Slot], sizes: Sequence[int]) -> tuple[list[Slot], list[int]]:
    """Slots that allow the same; and which of them are fanouts that dimensions share.

    Where one dimension alone may be unrolled, bounds on its trips say all about the fanout.
    """
    result, shared = list(slots), []
    for index, slot in enumerate(slots):
        able = [dim for dim, size in enumerate(sizes) if min(size, slot.highest[dim]) > 1]
        others = [low for dim, low in enumerate(slot.lowest) if dim not in able]
        if slot.spatial and len(able) == 1 and max(others, default=1) == 1:
            lowest, highest = list(slot.lowest), list(slot.highest)
            lowest[able[0]] = max(lowest[able[0]], slot.least)
            highest[able[0]] = min(highest[able[0]], slot.most or 1)
            result[index] = replace(slot, lowest=tuple(lowest), highest=tuple(highest))
        elif slot.spatial:
            shared.append(index)
    return result, shared


@cache
def shares_of(room: Room) -> tuple[Share, ...]:
    """All that a dimension may take of it."""

    def shares() -> Iterator[Share]:
        first = 1
        while first <= room.most:
            most, lacking = room.most // first, room.lacking // first
            last = min(room.most // most, room.lacking // lacking if lacking else room.most)
            yield Share(first, last, Room(most, lacking))
            first = last + 1

    return tuple(shares())


@cache
def rooms_of(room: Room) -> tuple[Room, ...]:
    """The room itself and all that can become of it."""
    return tuple(sorted({each.room for each in shares_of(room)}))
