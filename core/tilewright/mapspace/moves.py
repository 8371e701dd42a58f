"""Neighbours: every move of one prime factor between two slots, for many mappings at once.

QuickFlow and FactorFlow call two mappings adjacent when one prime factor of one dimension stands in another slot.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.limits import Limits


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves between slots; move `m` takes `factor[m]` of `dimension[m]` from slot `source[m]` to
    `target[m]`; factor 0, in ragged spaces: the target gets one trip more. All arrays are int64 [move]."""

    space: Limits
    dimension: Ints
    factor: Ints
    source: Ints
    target: Ints

    @classmethod
    def of(cls, space: Limits, among: Sequence[int] | None = None, powers: bool = False) -> Moves:
        """All moves among some slots of a space (None: all). `powers`: of several equal prime factors at once, too."""
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
        """Which moves leave which mappings within the bounds of the space, bool [n, move].

        `trips`: trip counts [n, slot, dimension]. What the tiles need is not asked.
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
        """Every possible move of every row: (candidates, row each came from [k], move [k])."""
        if self.space.factors == "ragged":
            return self._apply_ragged(rows)
        move, row = np.nonzero(self.possible(rows.trips).T)
        columns = (column[move] for column in (self.dimension, self.factor, self.source, self.target))
        return rows.take(row).move(*columns), row, move

    def _apply_ragged(self, rows: Candidates) -> tuple[Candidates, Ints, Ints]:
        """The target grows, the source has to shrink; a piece that is then empty may shrink the outermost slot, too."""
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


def _factors(space: Limits, dim: int, powers: bool) -> Iterator[int]:
    """What moves of a dimension."""
    if space.factors == "ragged" and space.problem.sizes[dim] > 1:
        yield 0
    for prime, most in space.primes(dim).items():
        yield from (prime**count for count in range(1, most + 1 if powers else 2))
