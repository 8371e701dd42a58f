"""Points: mappings under search, as trip counts, orders and keeps."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Run
from tilewright.schema.report import Objective

CHUNK = 8192
"""Mappings priced at once: a few hundredths of a second."""


@dataclass(frozen=True, eq=False)
class Points:
    """`n` mappings of one space: trips [n, slot, dimension], order [n, entry, position], keep [n, entry, tensor]."""

    trips: Ints
    order: Positions
    keep: Bools

    def __len__(self) -> int:
        return len(self.trips)

    def take(self, index: Ints | Bools | slice) -> Points:
        return Points(self.trips[index], self.order[index], self.keep[index])

    @classmethod
    def join(cls, parts: Sequence[Points]) -> Points:
        return cls(
            np.concatenate([part.trips for part in parts]),
            np.concatenate([part.order for part in parts]),
            np.concatenate([part.keep for part in parts]),
        )

    @classmethod
    def of(cls, space: MapSpace, batch: MappingBatch) -> Points:
        return cls(space.trips(batch), np.asarray(batch.order), np.asarray(batch.keep))

    def batch(self, space: MapSpace) -> MappingBatch:
        return space.build(self.trips, self.order, self.keep)


Pricing = Generator[MappingBatch, Costs, Floats]
"""Yields batches, is sent their costs, returns the objective of all points, inf where invalid."""


def priced(space: MapSpace, points: Points, objective: Objective, run: Run) -> Pricing:
    """The objective of every point; inf too for those that are not asked any more when the budget is spent."""
    values = np.full(len(points), np.inf)
    for start in range(0, len(points), CHUNK):
        if run.exhausted:
            break
        rows = slice(start, start + CHUNK)
        costs = yield points.take(rows).batch(space)
        values[rows][: len(costs)] = np.where(costs.valid, costs.of(objective), np.inf)
    return values


class Pool:
    """The best points so far, best first; of points that cost the same only the first."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.points: Points | None = None
        self.values: Floats = np.zeros(0)
        self.open: Bools = np.zeros(0, dtype=np.bool_)
        """Those whose neighbours nobody has seen yet."""

    @property
    def best(self) -> float:
        return float(self.values[0]) if len(self.values) else np.inf

    def add(self, points: Points, values: Floats) -> None:
        able = np.flatnonzero(np.isfinite(values))
        if self.points is None:
            joined, all_values, is_open = points.take(able), values[able], np.ones(len(able), dtype=np.bool_)
        else:
            limit = self.values[-1] if len(self.values) >= self.width else np.inf
            able = able[values[able] < limit]
            joined = Points.join([self.points, points.take(able)])
            all_values = np.concatenate([self.values, values[able]])
            is_open = np.concatenate([self.open, np.ones(len(able), dtype=np.bool_)])
        rank = np.argsort(all_values, kind="stable")
        ordered = all_values[rank]
        new = np.diff(ordered, prepend=-np.inf) > 1e-12 * np.abs(ordered)
        rank = rank[new][: self.width]
        self.points, self.values, self.open = joined.take(rank), all_values[rank], is_open[rank]

    def next(self, most: int) -> Points:
        """At most so many of the best open points, which are closed thereby."""
        assert self.points is not None
        rows = np.flatnonzero(self.open)[:most]
        self.open[rows] = False
        return self.points.take(rows)


def stepping(space: MapSpace) -> Iterator[tuple[int, int]]:
    """(slot, entry) of the blocks of loops, outermost first."""
    return ((index, slot.entry) for index, slot in enumerate(space.slots) if not slot.spatial)
