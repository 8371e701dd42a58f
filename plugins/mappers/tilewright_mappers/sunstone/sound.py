"""Default search of `sunstone`: principles make the first candidates, and moves repair them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.constructive.tiling import leaves
from tilewright.plugin import Costs, Run, Task, objectives
from tilewright_mappers.sunstone.levels import Decision
from tilewright_mappers.sunstone.moves import Exchanges, rekept, reordered
from tilewright_mappers.sunstone.pool import Pool

Steps = Generator[Candidates, Costs, None]
PARENTS = 32
"""Candidates whose trees are grown per step."""


class Sound:
    """One plan through the slots, and the repair of its results, in `pool`.

    A partial mapping is evaluated by completing it: undecided factors stay in the outermost loops,
    and all blocks get the same reuse-maximal order. Each such order is tried.
    """

    def __init__(
        self, task: Task, run: Run, orders: Sequence[Positions], exchanges: Exchanges, width: int, tries: int
    ) -> None:
        self.task, self.run, self.space = task, run, task.space
        self.orders, self.exchanges, self.width, self.tries = orders, exchanges, width, tries
        self.pool = Pool(max(8, width // 2))

    def construct(self, decisions: Sequence[Decision], placement: Placement) -> Steps:
        """Decide the slots in sequence: leaves of the tiling trees of the `width` best candidates."""
        rows = placement.start
        for number, decision in enumerate(decisions):
            if self.run.exhausted:
                return
            rows = self._grown(rows, decision, placement.source_slot)
            if len(rows) > 1 or number == len(decisions) - 1:
                values = yield from self._valued(rows)
                rows = rows.take(np.argsort(values, kind="stable")[: self.width])

    def _grown(self, rows: Candidates, decision: Decision, source_slot: Ints) -> Candidates:
        """Return at most `tries` leaves; those of earlier rows come first."""
        parts = [rows.take(slice(0, 0))]
        for start in range(0, len(rows), PARENTS):
            if sum(map(len, parts)) >= self.tries or self.run.exhausted:
                break
            grown = rows.take(slice(start, start + PARENTS))
            for source, dims in self._sources(decision, source_slot):
                grown = leaves(grown, source, decision.slot, dims, self.tries)
            parts.append(grown)
        return Candidates.join(parts).take(slice(0, self.tries))

    def _sources(self, decision: Decision, source_slot: Ints) -> Iterator[tuple[int, list[int]]]:
        """Yield (slot, dimensions) from which a decision takes factors."""
        if decision.source is not None:
            yield decision.source, list(range(len(source_slot)))
        for source in sorted({int(slot) for slot in source_slot} - {-1, decision.slot, decision.source or -1}):
            yield source, np.flatnonzero(source_slot == source).tolist()

    def _valued(self, rows: Candidates) -> Generator[Candidates, Costs, Floats]:
        """Return the best cost over each row's completions."""
        orders = max(self.orders, key=len)
        order = self.space.lawful(np.repeat(orders[:, None], len(self.space.temporal_slots), axis=1))
        completed = rows.take(np.tile(np.arange(len(rows)), len(orders)))
        completed = replace(completed, order=np.repeat(order, len(rows), axis=0))
        values = yield from objectives(completed, self.task, self.run)
        self.pool.add(completed, values)
        return np.asarray(values.reshape(len(orders), len(rows)).min(axis=0))

    def repair(self, most: int = 8) -> Steps:
        """Visit the neighbours of the best open candidates, `most` per step, until none is left."""
        pool = self.pool
        while pool.open.any() and not self.run.exhausted:
            now = pool.next(most)
            moved, _ = self.space.neighbours(now)
            candidates = Candidates.join([moved, self.exchanges.apply(now), reordered(now, self.orders), rekept(now)])
            values = yield from objectives(candidates, self.task, self.run)
            pool.add(candidates, values)
