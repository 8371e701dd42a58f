"""The children of one fanout on their grid: who shares a delivery, who gets words from a neighbour, how far they are.

Rules: Timeloop v3 (`nest-analysis`, `network-legacy`), as measured; see docs/timeloop.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SpatialLoop:
    """One loop of a split. `step`: displacement of the child's tile per iteration, words per rank.

    `shared`: children that differ in this loop only may share a delivery.
    """

    trips: int
    step: tuple[int, ...]
    vertical: bool
    shared: bool


@dataclass(frozen=True)
class Group:
    """Deliveries of one size. `scatter` groups of `multicast` children; `hops` summed over them."""

    multicast: int
    scatter: int
    hops: float


@dataclass(frozen=True)
class Sharing:
    """How one tile shift is served: deliveries by the parent, and children served by a neighbour."""

    groups: tuple[Group, ...]
    linked: int

    @property
    def deliveries(self) -> int:
        return sum(group.scatter for group in self.groups)


@dataclass(frozen=True)
class Array:
    """A split over at most two axes; `width` and `height` are the physical fanouts.

    Loops outermost first; those along Y stand outside those along X.
    """

    loops: tuple[SpatialLoop, ...]
    width: int
    height: int
    ranks: int

    @property
    def children(self) -> int:
        return math.prod(loop.trips for loop in self.loops)

    def sharing(self, shift: tuple[int, ...] | None = None) -> Sharing:
        """Multicast groups; with `shift` (words per rank) after neighbours have passed on what they held one shift
        ago, if that saves the parent deliveries."""
        if shift is None or not self.service(shift)[1]:
            return self._alone
        left = ~self._linked(shift)
        return Sharing(tuple(self._groups(self._places[left], self._sends[left])), int((~left).sum()))

    def service(self, shift: tuple[int, ...] | None = None) -> tuple[int, int]:
        """(deliveries by the parent, children served by a neighbour) of `sharing`, without the groups."""
        alone = len(np.unique(self._sends))
        if shift is None or any(abs(move) > reach for move, reach in zip(shift, self._reach, strict=True)):
            return alone, 0
        linked = self._linked(shift)
        helped = len(np.unique(self._sends[~linked]))
        return (helped, int(linked.sum())) if helped < alone else (alone, 0)

    @cached_property
    def _alone(self) -> Sharing:
        return Sharing(tuple(self._groups(self._places, self._sends)), 0)

    @cached_property
    def _reach(self) -> tuple[int, ...]:
        """The farthest that two children's tiles lie apart, words per rank."""
        return tuple(sum((loop.trips - 1) * loop.step[rank] for loop in self.loops) for rank in range(self.ranks))

    def _ordered(self) -> tuple[SpatialLoop, ...]:
        return tuple(sorted(self.loops, key=lambda loop: not loop.vertical))

    def _indices(self) -> list[Ints]:
        """Index of every child in every loop, children in row-major order (X fastest)."""
        grids = np.indices([loop.trips for loop in self._ordered()]) if self.loops else np.zeros((0, 1), dtype=np.int64)
        return [grid.reshape(-1) for grid in grids]

    @cached_property
    def _offsets(self) -> Ints:
        """Displacement of every child's tile, words [child, rank]."""
        offsets = np.zeros((self.children, self.ranks), dtype=np.int64)
        for loop, index in zip(self._ordered(), self._indices(), strict=True):
            offsets += index[:, None] * np.array(loop.step, dtype=np.int64)
        return offsets

    @cached_property
    def _sends(self) -> Ints:
        """A number per child, equal for those that one delivery serves."""
        sends = np.zeros(self.children, dtype=np.int64)
        for rank in range(self.ranks):
            sends = sends * (self._reach[rank] + 1) + self._offsets[:, rank]
        for loop, index in zip(self._ordered(), self._indices(), strict=True):
            if not loop.shared:
                sends = sends * loop.trips + index
        return sends

    @cached_property
    def _places(self) -> Ints:
        """(x, y) of every child. Timeloop lays out the used loops in the physical width, and so wraps rows when they
        are not full; that is reproduced."""
        across = math.prod(loop.trips for loop in self.loops if not loop.vertical)
        number = np.arange(self.children, dtype=np.int64)
        width = max(self.width, across)
        return np.column_stack([number % width, number // width])

    def _linked(self, shift: tuple[int, ...]) -> NDArray[np.bool_]:
        """Children whose new words are those that a 4-neighbour was sent one shift ago."""
        places, offsets = self._places, self._offsets
        width, height = places.max(axis=0) + 1
        grid = np.full((width + 2, height + 2), -1, dtype=np.int64)  # a margin of nobody
        x, y = places[:, 0] + 1, places[:, 1] + 1
        grid[x, y] = np.arange(len(places))
        linked = np.zeros(len(places), dtype=np.bool_)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            neighbour = grid[x + dx, y + dy]
            linked |= (neighbour >= 0) & (offsets[neighbour] - offsets == shift).all(axis=1)
        return linked

    def _groups(self, places: Ints, sends: Ints) -> Iterator[Group]:
        if not len(places):
            return
        _, member = np.unique(sends, return_inverse=True)
        counts = np.bincount(member)
        hops = self._hops(places, member, len(counts)) if self.loops else np.zeros(1)
        for size in np.unique(counts):
            same = counts == size
            yield Group(int(size), int(same.sum()), float(hops[same].sum()))

    def _hops(self, places: Ints, member: Ints, groups: int) -> NDArray[np.float64]:
        """Per group: along the row to the farthest column, then in every used column from the middle row to its
        ends."""
        down = math.prod(loop.trips for loop in self.loops if loop.vertical)
        middle = (max(self.height, down) - 1) / 2
        hops = np.zeros(groups)
        np.maximum.at(hops, member, places[:, 0].astype(np.float64))
        columns, column = np.unique(member * (places[:, 0].max() + 1) + places[:, 0], return_inverse=True)
        column = column.reshape(-1)
        lowest, highest = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
        np.minimum.at(lowest, column, places[:, 1])
        np.maximum.at(highest, column, places[:, 1])
        rise = np.maximum(0, middle - lowest) + np.maximum(0, highest - middle)
        np.add.at(hops, columns // (places[:, 0].max() + 1), rise)
        return hops
