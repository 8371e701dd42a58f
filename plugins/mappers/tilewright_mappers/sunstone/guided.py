"""The default search: principles make the first candidates, moves repair what they decided too early."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.constructive.placement import Spreading
from tilewright.mapspace.constructive.tiling import leaves
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Run, Task
from tilewright_mappers.sunstone.levels import Step
from tilewright_mappers.sunstone.moves import exchanged, rekept, reordered, shifted
from tilewright_mappers.sunstone.points import Points, Pool, priced

Steps = Generator[MappingBatch, Costs, None]
PARENTS = 32
"""Candidates whose trees are grown at once."""


class Guided:
    """One way through the slots, and the repair of what it finds; `pool` has the best points.

    A partial mapping is priced by completing it: what is not decided stays in the outermost loops, and all blocks get
    the same promising order, each in turn.
    """

    def __init__(self, task: Task, run: Run, orders: Sequence[Positions], width: int, tries: int) -> None:
        self.task, self.run, self.space = task, run, task.space
        self.orders, self.width, self.tries = orders, width, tries
        self.pool = Pool(max(8, width // 2))

    def construct(self, steps: Sequence[Step], keep: Bools) -> Steps:
        """Decide slot after slot: leaves of the tiling trees of the best `width` candidates of the slot before."""
        start = Spreading.of(self.space, self.run.rng, keep)
        rows = start.start
        for number, step in enumerate(steps):
            if self.run.exhausted:
                return
            rows = self._grown(rows, step, start.home, keep)
            if len(rows) > 1 or number == len(steps) - 1:
                values = yield from self._valued(rows, keep)
                rows = rows[np.argsort(values, kind="stable")[: self.width]]

    def _grown(self, rows: Ints, step: Step, home: Ints, keep: Bools) -> Ints:
        """At most `tries` leaves, those of the first rows before those of the others."""
        parts = [rows[:0]]
        for start in range(0, len(rows), PARENTS):
            if sum(map(len, parts)) >= self.tries or self.run.exhausted:
                break
            grown = rows[start : start + PARENTS]
            for source, dims in self._sources(step, home):
                grown = leaves(self.space, grown, source, step.slot, dims, keep, self.tries)
            parts.append(grown)
        return np.concatenate(parts)[: self.tries]

    def _sources(self, step: Step, home: Ints) -> Iterator[tuple[int, list[int]]]:
        """(slot, dimensions) that a step takes factors from."""
        if step.source is not None:
            yield step.source, list(range(len(home)))
        for source in sorted({int(each) for each in home} - {-1, step.slot, step.source or -1}):
            yield source, np.flatnonzero(home == source).tolist()

    def _valued(self, rows: Ints, keep: Bools) -> Generator[MappingBatch, Costs, Floats]:
        """The best price of each row's completions."""
        whole = max(self.orders, key=len)
        shape = (len(rows), len(self.space.skeleton), whole.shape[1])
        kept = np.broadcast_to(keep, (len(rows), *keep.shape))
        points = Points.join([Points(rows, np.broadcast_to(order, shape), kept) for order in whole])
        values = yield from priced(self.space, points, self.task.objective, self.run)
        self.pool.add(points, values)
        return np.asarray(values.reshape(len(whole), len(rows)).min(axis=0))

    def repair(self, most: int = 8) -> Steps:
        """Visit the neighbours of the best points, `most` at once, until none of the pool has unseen ones."""
        space, pool = self.space, self.pool
        while pool.open.any() and not self.run.exhausted:
            now = pool.next(most)
            parts = [shifted(space, now), exchanged(space, now), reordered(space, now, self.orders), rekept(space, now)]
            found = Points.join(parts)
            values = yield from priced(space, found, self.task.objective, self.run)
            pool.add(found, values)
