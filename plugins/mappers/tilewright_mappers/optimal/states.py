"""Tables of the states of one stage, and their truncation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.state import BOUND, ROUNDED
from tilewright_mappers.optimal.kernel.tables import Bag, Layout

ROOM = 1 << 17
"""Minimum capacity of a table in states; wide searches use 2.5 times the width.

The operating system allocates pages on use.
"""
PART = 1 << 12
"""Rows moved per step of a compaction."""


@dataclass
class States:
    """States of one stage: numbers [n, ...] and integers [n, ...], with columns as in `Layout`."""

    numbers: Floats
    integers: Ints

    def __len__(self) -> int:
        return len(self.numbers)


class Bags:
    """Pool of state tables: a stage reads one and fills another.

    States are views of a table; they are valid until that table is filled again.
    """

    def __init__(self, layout: Layout, trips: tuple[int, ...], width: int) -> None:
        self.layout, self.dims = layout, trips[0]
        # the successors of one state always fit
        self.room = max(ROOM, 5 * width // 2) + math.prod(trips)
        self.bags: list[Bag] = []

    def empty(self, states: States, beside: Bag | None = None) -> Bag:
        """Return an empty table that contains neither these states nor those of `beside`."""
        others = (bag for bag in self.bags if beside is None or bag.made is not beside.made)
        free = (bag for bag in others if not np.may_share_memory(bag.numbers, states.numbers))
        bag = next(free, None) or self._another()
        chains = min(len(bag.heads), 1 << (4 * len(states) + 1024).bit_length())
        bag.heads[:chains], bag.made[:] = -1, 0
        return bag._replace(heads=bag.heads[:chains])

    def _another(self) -> Bag:
        room, layout = self.room, self.layout
        bag = Bag(
            open=np.zeros(self.dims, np.bool_),
            numbers=np.empty((room, layout.numbers)),
            integers=np.empty((room, layout.integers), np.int64),
            following=np.empty(room, np.int64),
            heads=np.empty(1 << room.bit_length(), np.int64),
            alive=np.empty(room, np.bool_),
            made=np.empty(3, np.int64),
            what=np.empty(room, np.int64),
        )
        self.bags.append(bag)
        return bag

    def leave_best(self, bag: Bag, width: int) -> float:
        """Truncate a table to at most `width` states, moved to its beginning.

        Returns:
            The lowest bound of a truncated state, inf if there is none.
        """
        rows, lost = np.flatnonzero(bag.alive[: bag.made[0]]), math.inf
        if len(rows) > width:
            # Half are the lowest bounds. Exactly counted states come next, because low bounds of
            # undercounted states are often far below their costs.
            bounds, counted = bag.numbers[rows, BOUND], bag.integers[rows, self.layout.flag] & ~ROUNDED == 0
            order = np.argsort(bounds, kind="stable")
            first, others = order[: width // 2], order[width // 2 :]
            order = np.concatenate([first, others[counted[others]], others[~counted[others]]])
            lost = float(bounds[order[width:]].min())
            rows = np.sort(rows[order[:width]])
        moved = np.flatnonzero(rows != np.arange(len(rows)))
        for start in range(int(moved[0]) if len(moved) else len(rows), len(rows), PART):
            some = rows[start : start + PART]
            for array in (bag.numbers, bag.integers, bag.what):
                array[start : start + len(some)] = array[some]
        bag.alive[: len(rows)], bag.heads[:], bag.made[0] = True, -1, len(rows)
        return lost
