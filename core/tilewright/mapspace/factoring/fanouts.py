"""Remaining fanouts: how much of a fanout is left while dimensions are unrolled in sequence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tilewright.mapspace.skeleton import Slot


class RemainingFanout(NamedTuple):
    """Remaining use of a fanout.

    The use may still grow by a factor up to `most`, and use must still grow by a factor above
    `lacking`. Two partial unrollings with equal remaining fanout have the same continuations.
    """

    most: int
    lacking: int

    @property
    def enough(self) -> bool:
        return self.lacking == 0


class FanoutUse(NamedTuple):
    """Interval of trip counts, `first` to `last`, that leave the same remaining fanout `remaining`."""

    first: int
    last: int
    remaining: RemainingFanout


def remaining_fanout(slot: Slot) -> RemainingFanout:
    """Return the remaining fanout of an unused slot, limited to what its bounds allow."""
    return RemainingFanout(min(slot.most or 1, math.prod(slot.highest)), slot.least - 1)


def tighten_single_dimension_fanouts(slots: Sequence[Slot], sizes: Sequence[int]) -> tuple[list[Slot], list[int]]:
    """Return equivalent slots, and the indices of the fanouts that several dimensions can use.

    If only one dimension can be unrolled over a fanout, bounds on its trips replace the fanout's.
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
def fanout_uses(fanout: RemainingFanout) -> tuple[FanoutUse, ...]:
    """Return the intervals of trips that a dimension may unroll over the remaining fanout."""

    def uses() -> Iterator[FanoutUse]:
        first = 1
        while first <= fanout.most:
            most, lacking = fanout.most // first, fanout.lacking // first
            last = min(fanout.most // most, fanout.lacking // lacking if lacking else fanout.most)
            yield FanoutUse(first, last, RemainingFanout(most, lacking))
            first = last + 1

    return tuple(uses())


@cache
def reachable_fanouts(fanout: RemainingFanout) -> tuple[RemainingFanout, ...]:
    """Return all remaining fanouts that can follow, including the given one."""
    return tuple(sorted({use.remaining for use in fanout_uses(fanout)}))
