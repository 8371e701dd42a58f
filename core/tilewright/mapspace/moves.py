"""Neighbours: every move of one prime factor between two slots, for many mappings at once.

QuickFlow and FactorFlow call two mappings adjacent when one prime factor of one dimension stands in another slot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.skeleton import Slot


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves between slots; move `m` takes `factor[m]` of `dimension[m]` from slot `source[m]` to
    `target[m]`. All arrays are int64 [move]."""

    slots: tuple[Slot, ...]
    dimension: Ints
    factor: Ints
    source: Ints
    target: Ints

    @classmethod
    def of(
        cls, sizes: Sequence[int], slots: tuple[Slot, ...], among: Sequence[int] | None = None, powers: bool = False
    ) -> Moves:
        """All moves of dimensions of `sizes` among some slots (None: all). `powers`: of several equal prime factors at
        once, too."""
        chosen = range(len(slots)) if among is None else sorted(among)
        rows = [
            (dim, prime**count, source, target)
            for dim, size in enumerate(sizes)
            for prime, most in prime_powers(size)
            if prime > 1
            for count in range(1, most + 1 if powers else 2)
            for source, target in itertools.permutations(chosen, 2)
            if slots[target].highest[dim] > 1
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        return cls(slots, *columns)

    def __len__(self) -> int:
        return len(self.factor)

    def possible(self, trips: Ints) -> Bools:
        """Which moves leave which mappings within the bounds of the space, bool [n, move].

        `trips`: trip counts [n, slot, dimension]. What the tiles need is not asked.
        """
        given, got = trips[:, self.source, self.dimension], trips[:, self.target, self.dimension]
        there: Bools = given % self.factor == 0
        low, high = self._bounds
        good = there & (given // self.factor >= low) & (got * self.factor <= high)
        if self._splits.any():
            product = trips.prod(axis=2)
            left, taken = product[:, self.source] // self.factor, product[:, self.target] * self.factor
            least, most = self._fanouts
            good &= (~self._splits[self.source] | (left >= least[self.source])) & (
                ~self._splits[self.target] | (taken <= most[self.target])
            )
        return good

    def apply(self, trips: Ints) -> tuple[Ints, Ints, Ints]:
        """Every possible move of every mapping: (trips [k, slot, dimension], row it came from [k], move [k])."""
        move, row = np.nonzero(self.possible(trips).T)
        after = trips[row]
        number, dim = np.arange(len(row)), self.dimension[move]
        after[number, self.source[move], dim] //= self.factor[move]
        after[number, self.target[move], dim] *= self.factor[move]
        return after, row, move

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """(least trips of the source, most trips of the target), each [move]."""
        lowest = np.array([slot.lowest for slot in self.slots], dtype=np.int64)
        highest = np.array([slot.highest for slot in self.slots], dtype=np.int64)
        return lowest[self.source, self.dimension], highest[self.target, self.dimension]

    @cached_property
    def _splits(self) -> Bools:
        return np.array([slot.spatial for slot in self.slots], dtype=np.bool_)

    @cached_property
    def _fanouts(self) -> tuple[Ints, Ints]:
        """(least, most) sub-clusters that a slot uses, each [slot]."""
        least, most = [slot.least for slot in self.slots], [slot.most or 1 for slot in self.slots]
        return np.array(least, dtype=np.int64), np.array(most, dtype=np.int64)
