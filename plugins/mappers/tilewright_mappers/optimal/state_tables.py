"""Tables of the states of one stage, and their truncation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright_mappers.optimal.kernel.state import BOUND, ROUNDED_FIRST_READS
from tilewright_mappers.optimal.kernel.structures import StateLayout, StateRows, StateTable

MIN_CAPACITY = 1 << 17
"""Minimum capacity of a table in states; wide searches use 2.5 times the width.

The operating system allocates pages on use.
"""
MAX_TABLES = 3
"""Maximum number of tables that a search needs at once: a block of loops has one more than other stages."""
OTHER_BYTES_PER_ROW = 33
"""Bytes of a row besides its numbers and integers: chain, two heads, decision, and whether it is alive."""
ROWS_PER_MOVE = 1 << 12
"""Rows moved per step of a compaction."""


@dataclass
class States:
    """States of one stage: numbers [n, ...] and integers [n, ...], with columns as in `StateLayout`."""

    numbers: Floats
    integers: Ints

    def __len__(self) -> int:
        return len(self.numbers)


class StateTables:
    """Pool of state tables: a stage reads one and fills another.

    States are views of a table; they are valid until that table is filled again.
    """

    def __init__(self, layout: StateLayout, trips: tuple[int, ...], width: int, most_bytes: int) -> None:
        self.layout, self.dims = layout, trips[0]
        self.row_bytes = 8 * (layout.numbers + layout.integers) + OTHER_BYTES_PER_ROW
        # the successors of one state always fit
        self.capacity = min(
            max(MIN_CAPACITY, 5 * width // 2) + math.prod(trips), most_bytes // (MAX_TABLES * self.row_bytes)
        )
        self.room = max(0, self.capacity - math.prod(trips)) * 4 // 5
        """Maximum number of states that a truncation leaves, for lack of memory; 0: no stage can be expanded."""
        self.short_of_memory = False
        """Whether a truncation left fewer states than the width."""
        self.tables: list[StateTable] = []
        self.filled: list[int] = []
        """Maximum number of states that each table ever had."""

    @property
    def bytes(self) -> int:
        """Bytes of all rows that were ever filled; the operating system gives no memory to others."""
        return self.row_bytes * sum(self.filled)

    def empty(self, states: States, other_than: StateTable | None = None) -> StateTable:
        """Return an empty table that contains neither these states nor those of `other_than`."""
        others = (table for table in self.tables if other_than is None or table.counters is not other_than.counters)
        free = (table for table in others if not np.may_share_memory(table.rows.numbers, states.numbers))
        table = next(free, None) or self._another()
        chains = min(len(table.chain_heads), 1 << (4 * len(states) + 1024).bit_length())
        table.chain_heads[:chains], table.counters[:] = -1, 0
        return table._replace(chain_heads=table.chain_heads[:chains])

    def _another(self) -> StateTable:
        """Add a table to the pool."""
        capacity, layout = self.capacity, self.layout
        table = StateTable(
            unrollable=np.zeros(self.dims, np.bool_),
            rows=StateRows(np.empty((capacity, layout.numbers)), np.empty((capacity, layout.integers), np.int64)),
            next_in_chain=np.empty(capacity, np.int64),
            chain_heads=np.empty(1 << capacity.bit_length(), np.int64),
            alive=np.empty(capacity, np.bool_),
            counters=np.empty(3, np.int64),
            decision_code=np.empty(capacity, np.int64),
        )
        self.tables.append(table)
        self.filled.append(0)
        return table

    def leave_best(self, table: StateTable, width: int) -> float:
        """Truncate a table to at most `width` states, moved to its beginning.

        Returns:
            The lowest bound of a truncated state, inf if there is none.
        """
        rows, truncation_bound = np.flatnonzero(table.alive[: table.counters[0]]), math.inf
        place = next(n for n, other in enumerate(self.tables) if other.counters is table.counters)
        self.filled[place] = max(self.filled[place], int(table.counters[0]))
        if len(rows) > min(width, self.room):
            self.short_of_memory |= self.room < width
            width = min(width, self.room)
            # Half are the lowest bounds. Exactly counted states come next, because low bounds of
            # undercounted states are often far below their costs.
            bounds, counted = (
                table.rows.numbers[rows, BOUND],
                table.rows.integers[rows, self.layout.flags] & ~ROUNDED_FIRST_READS == 0,
            )
            order = np.argsort(bounds, kind="stable")
            lowest, others = order[: width // 2], order[width // 2 :]
            order = np.concatenate([lowest, others[counted[others]], others[~counted[others]]])
            truncation_bound = float(bounds[order[width:]].min())
            rows = np.sort(rows[order[:width]])
        moved = np.flatnonzero(rows != np.arange(len(rows)))
        for start in range(int(moved[0]) if len(moved) else len(rows), len(rows), ROWS_PER_MOVE):
            some = rows[start : start + ROWS_PER_MOVE]
            for array in (*table.rows, table.decision_code):
                array[start : start + len(some)] = array[some]
        table.alive[: len(rows)], table.chain_heads[:], table.counters[0] = True, -1, len(rows)
        return truncation_bound
