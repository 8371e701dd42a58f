"""Pool of the best candidates of a search."""

from __future__ import annotations

import numpy as np

from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.candidates import Candidates


class Pool:
    """Best candidates so far, best first; of equal costs the first one."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: Candidates | None = None
        self.values: Floats = np.zeros(0)
        self.open: Bools = np.zeros(0, dtype=np.bool_)
        """Candidates whose neighbours are not visited yet."""

    @property
    def best(self) -> float:
        return float(self.values[0]) if len(self.values) else np.inf

    def add(self, rows: Candidates, values: Floats) -> None:
        limit = self.values[-1] if len(self.values) >= self.width else np.inf
        able = np.flatnonzero(values < limit)
        joined = Candidates.join([rows.take(slice(0, 0)) if self.rows is None else self.rows, rows.take(able)])
        all_values = np.concatenate([self.values, values[able]])
        is_open = np.concatenate([self.open, np.ones(len(able), dtype=np.bool_)])
        rank = np.argsort(all_values, kind="stable")
        ordered = all_values[rank]
        new = np.diff(ordered, prepend=-np.inf) > 1e-12 * np.abs(ordered)
        rank = rank[new][: self.width]
        self.rows, self.values, self.open = joined.take(rank), all_values[rank], is_open[rank]

    def join(self, other: Pool) -> None:
        """Add the candidates of another pool."""
        if other.rows is not None:
            self.add(other.rows, other.values)

    def next(self, most: int) -> Candidates:
        """Return at most `most` of the best open candidates, and close them."""
        assert self.rows is not None
        rows = np.flatnonzero(self.open)[:most]
        self.open[rows] = False
        return self.rows.take(rows)
