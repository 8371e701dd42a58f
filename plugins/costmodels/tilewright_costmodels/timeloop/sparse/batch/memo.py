"""Memo of what tiles hold: the kernel looks it up, and Python computes entries that are missing.

Probabilities that tiles of 1, 9 and 4 words of A, tensor 0, are empty (see the example of `tables`). A key is
(tensor, tile). This table has 4 rows, in the order in which keys came, and 8 places:

    place    0    1    2    3    4    5    6    7
    row      -    0    1    -    2    -    -    -

    row   key      value
    0     (0, 1)   0.75
    1     (0, 9)   0.0466
    2     (0, 4)   NaN        the kernel has added it, and Python has not computed it yet

The search for (0, 9) begins at place 9 & 7 = 1. That is the place of another key, so it goes on to place 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tilewright.compiled import LANES, kernel_part, lanes, passed_by_pointer, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints

MAX_ROWS = 2**20
"""Maximum number of entries; a full memo is cleared."""


@passed_by_pointer
class MemoTable(NamedTuple):
    """Hash table with open addressing. Shapes: H places, R rows, K integers per key, V values."""

    place: Ints
    """[H]: row of the key at the place; -1: none. H is a power of two, and at least 2 R."""
    keys: Ints
    """[R, K]."""
    values: Floats
    """[R, V]; NaN first where they are not computed yet."""
    used: Ints
    """[1]: number of keys."""


@kernel_part
def look_up(table: MemoTable, keys: Ints, wanted: Bools, rows: Ints, missing: Bools) -> None:
    """Write the row of each wanted key; -1 for others, and where values are still to be computed.

    Args:
        keys: [K, B].
        wanted: [B]; likewise `rows`, written, and `missing`, which becomes True where values are still to be computed.
    """
    rows[:] = places_of(table, keys)
    for b in range(LANES):
        row = find(table, keys, b, rows[b]) if wanted[b] else -1
        if row >= 0 and np.isnan(table.values[row, 0]):
            row = -1
        rows[b] = row
        missing[b] |= wanted[b] and row < 0


@kernel_part
def places_of(table: MemoTable, keys: Ints) -> Ints:
    """Return where the search for keys [K, B] begins, [B]."""
    number: Ints = splat16(0)
    for position in range(len(keys)):
        number = ((number & 0xFFFFFFFFFF) * 1000003) + lanes(keys[position])  # no overflow
    return (number ^ number >> 15 ^ number >> 30) & (len(table.place) - 1)


@kernel_part
def find(table: MemoTable, keys: Ints, b: int, at: int) -> int:
    """Return the row of a key. A key that is not in the table is added, if there is a row left; else the row is -1.

    Args:
        keys: [K, B]; that of lane `b` is looked up.
        at: its place, from `places_of`.
    """
    place, mask = table.place, len(table.place) - 1
    while place[at] >= 0:
        row, same = place[at], True
        for position in range(len(keys)):
            same &= table.keys[row, position] == keys[position, b]
        if same:
            return int(row)
        at = (at + 1) & mask
    row = table.used[0]
    if row == len(table.keys):
        return -1
    for position in range(len(keys)):
        table.keys[row, position] = keys[position, b]
    place[at] = row
    table.used[0] = row + 1
    return int(row)


class Memo:
    """A memo that grows.

    Args:
        compute: returns the values of a key.
    """

    def __init__(self, integers: int, values: int, compute: Callable[[Sequence[int]], Sequence[float]]) -> None:
        self.compute = compute
        self.table = _empty(1024, integers, values)
        self.computed = 0

    def fill(self) -> None:
        """Compute the values of keys that the kernel has added, and make room for as many again."""
        table, rows = self.table, int(self.table.used[0])
        for row in range(self.computed, rows):
            table.values[row] = self.compute(table.keys[row].tolist())
            assert not np.isnan(table.values[row, 0]), "the kernel would ask for it again"
        self.computed = rows
        if rows == len(table.keys):
            larger = rows * 2 if rows < MAX_ROWS else rows
            self.table = _empty(larger, table.keys.shape[1], table.values.shape[1])
            if larger > rows:
                for first in range(0, rows, LANES):
                    keys = np.resize(table.keys[first : first + LANES], (LANES, table.keys.shape[1])).T
                    for b, place in enumerate(places_of(self.table, keys).tolist()):
                        find(self.table, keys, b, place)
                self.table.values[:rows] = table.values
            self.computed = int(self.table.used[0])


def _empty(rows: int, integers: int, values: int) -> MemoTable:
    return MemoTable(
        np.full(2 * rows, -1, np.int64),
        np.zeros((rows, integers), np.int64),
        np.full((rows, values), np.nan),
        np.zeros(1, np.int64),
    )
