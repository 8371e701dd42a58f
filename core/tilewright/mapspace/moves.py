"""Neighbours in a map space: moves of one prime factor between two slots, for many mappings at once.

QuickFlow and FactorFlow call two mappings adjacent if they differ by one such move.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.feasible_region import FeasibleRegion


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves between slots, as int64 arrays [move].

    Move `m` transfers `factor[m]` of `dimension[m]` from slot `source[m]` to `target[m]`. In ragged
    spaces, factor 0 means that the target gains one trip.
    """

    space: FeasibleRegion
    dimension: Ints
    factor: Ints
    source: Ints
    target: Ints

    @classmethod
    def of(cls, space: FeasibleRegion, among: Sequence[int] | None = None, powers: bool = False) -> Moves:
        """Return all moves between the slots `among` (None: all slots).

        With `powers`, several equal prime factors may move at once.
        """
        chosen = range(len(space.slots)) if among is None else sorted(among)
        rows = [
            (dim, factor, source, target)
            for dim in range(len(space.problem.sizes))
            for factor in _factors(space, dim, powers)
            for source, target in itertools.permutations(chosen, 2)
            if space.slots[target].highest[dim] > 1
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        return cls(space, *columns)

    def __len__(self) -> int:
        return len(self.factor)

    def possible(self, trips: Ints) -> Bools:
        """Return which moves stay within the bounds, for each mapping, bool [n, move].

        `trips` are trip counts [n, slot, dimension]. Memory capacity is not checked.
        """
        lowest, highest, least, most = self.space.bounds
        given, got = trips[:, self.source, self.dimension], trips[:, self.target, self.dimension]
        good: Bools = given % self.factor == 0
        good &= given // self.factor >= lowest[self.source, self.dimension]
        good &= got * self.factor <= highest[self.target, self.dimension]
        used = trips.prod(axis=2)
        good &= used[:, self.source] // self.factor >= least[self.source]
        good &= used[:, self.target] <= most[self.target] // self.factor
        return good

    def apply(self, rows: Candidates) -> tuple[Candidates, Ints, Ints]:
        """Apply every possible move to every row.

        Returns:
            The candidates, the source row of each [k], and the move of each [k].
        """
        if self.space.factors == "ragged":
            return self._apply_ragged(rows)
        move, row = np.nonzero(self.possible(rows.trips).T)
        columns = (column[move] for column in (self.dimension, self.factor, self.source, self.target))
        return rows.take(row).move(*columns), row, move

    def _apply_ragged(self, rows: Candidates) -> tuple[Candidates, Ints, Ints]:
        """Apply the moves of a ragged space: the target grows and the source must shrink.

        If a piece becomes empty, the outermost slot may shrink as well.
        """
        _, highest, _, most = self.space.bounds
        trips, used = rows.trips, rows.trips.prod(axis=2)
        given, got = trips[:, self.source, self.dimension], trips[:, self.target, self.dimension]
        wanted = np.where(self.factor == 0, got + 1, got * self.factor)
        sizes = np.array(self.space.problem.sizes, dtype=np.int64)[self.dimension]
        others = trips.prod(axis=1)[:, self.dimension] // (given * got)
        shrinks = -(-sizes // (others * wanted)) < given
        able = shrinks & (wanted <= highest[self.target, self.dimension]) & ((self.factor > 0) | (got > 1))
        able &= used[:, self.target] // got <= most[self.target] // wanted
        move, row = np.nonzero(able.T)
        dimension, source, target = (column[move] for column in (self.dimension, self.source, self.target))
        moved = rows.take(row).give(dimension, wanted[row, move], source, target)
        good = self.space.within(moved.trips)
        return moved.take(good), row[good], move[good]


def _factors(space: FeasibleRegion, dim: int, powers: bool) -> Iterator[int]:
    """Yield the factors that a move can transfer; 0 means a single trip."""
    if space.factors == "ragged" and space.problem.sizes[dim] > 1:
        yield 0
    for prime, most in space.primes(dim).items():
        yield from (prime**count for count in range(1, most + 1 if powers else 2))
