"""`marvel`: first the least traffic to the outermost memory, then, with that tile fixed, everything on the chip."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, reuse_orders, slots_by_cluster, used, with_orders
from tilewright.plugin import Proposals, Run, Task
from tilewright.schema.problem import Problem
from tilewright_mappers import MarvelOptions

PASSES = 2
"""Number of consecutive passes without a candidate after which the threshold is halved."""
TILES = 20_000
"""Maximum number of tiles for the chip; if there are more, this many are drawn at random."""
LOWEST = 0.02
"""Minimum threshold; a lower one becomes 0."""


@dataclass(frozen=True)
class Marvel:
    """Marvel search: the off-chip tile first, the on-chip mapping second."""

    options: MarvelOptions

    def search(self, task: Task, run: Run) -> Proposals:
        open_ones = [
            _Chip(self.options, run, placement) for placement in Placement.each(task.space, run.rng, most=TILES)
        ]
        while open_ones:
            for chip in open_ones:
                yield from chip.some()
                if run.exhausted:
                    yield chip.placement.start  # the driver stops here
            open_ones = [chip for chip in open_ones if not chip.done]


class _Chip:
    """Search on the chip after the off-chip loops are fixed, for one choice of kept tensors."""

    def __init__(self, options: MarvelOptions, run: Run, outside: Placement) -> None:
        space = outside.space
        self.space, self.run, self.width = space, run, options.width
        self.array, self.memory = options.array, options.memory
        self.loops = space.temporal_slots
        self.orders = [reuse_orders(space.problem)] * len(self.loops)
        chip = np.full_like(outside.source_slot, (*self.loops, -1, -1)[1])
        if len(self.loops) > 1 and max(space.slots[self.loops[1]].highest) == 1:
            start, chip = outside.start, outside.source_slot  # no loops there, so that no tile can be fixed first
        else:
            start, order = least_traffic(outside, options.memory)
            self.orders[:1] = [order[None]]
        self.placement = replace(outside, start=start, source_slot=chip, most=4 * options.width)
        self.done, self.empty = False, 0

    def some(self) -> Proposals:
        """Propose the mappings above the thresholds in one pass.

        The next pass has a lower threshold if this one saw all mappings, or if `PASSES` in a row found none.
        """
        self.placement.subsampled = False
        rows = self._candidates()
        self.empty = 0 if len(rows) else self.empty + 1
        if not self.placement.subsampled or self.empty >= PASSES:
            self.done = self.memory == 0
            self.memory, self.empty = _halved(self.memory), 0
        for part in np.array_split(np.arange(len(rows)), 1 + len(rows) // 32) if len(rows) else ():
            yield with_orders(rows.take(part), self.orders[: len(self.loops)])

    def _candidates(self) -> Candidates:
        rows = self.placement.unroll(self.placement.start)
        units = used(rows)
        rows = self.placement.subsample(rows.take(units >= self.array * units.max()), self.width)
        for slots in slots_by_cluster(self.space, self.loops[2:]):
            for slot in slots:
                rows = self.placement.into(slot, rows if not self.run.exhausted else rows.take(slice(0, 0)))
            shares = np.array([self.placement.fill(rows, slot) for slot in slots]).max(axis=0)
            rows = self.placement.subsample(rows.take(shares >= self.memory), self.width)
        return rows


def _halved(threshold: float) -> float:
    return threshold / 2 if threshold / 2 >= LOWEST else 0.0


def least_traffic(placement: Placement, share: float) -> tuple[Candidates, Positions]:
    """Return the mapping whose on-chip tile moves the fewest off-chip words, and the off-chip loop order.

    Tiles have to fill at least `share` of the outermost memory on the chip. If none does, the share is halved until one does.
    Among equal tiles the largest wins.
    """
    problem, loops = placement.space.problem, placement.space.temporal_slots
    orders = reuse_orders(problem)
    if len(loops) < 2:
        return placement.start, orders[0]
    rows = placement.into(loops[1], placement.start)
    fill = placement.fill(rows, loops[1])
    while not (fill >= share).any():
        share = _halved(share)
    rows = rows.take(fill >= share)
    outside = rows.trips[:, loops[0]]
    tiles = np.array(problem.sizes) // outside
    words = np.array([words_moved(problem, tiles, outside, order) for order in orders])
    best = int(np.lexsort((outside.prod(axis=1), words.min(axis=0)))[0])
    return rows.take(slice(best, best + 1)), orders[int(words[:, best].argmin())]


def words_moved(problem: Problem, tiles: Ints, trips: Ints, order: Positions) -> Floats:
    """Return the words moved into `tiles` [n, dimension] under loops of `trips` [n, dimension] in one order, [n].

    A tensor is stationary in the loops inside its innermost relevant loop. Outputs are read back except for the first time.
    """
    total = np.zeros(len(tiles), dtype=np.float64)
    before = np.cumprod(trips[:, order], axis=1, dtype=np.float64)
    for tensor in problem.tensors:
        indexing = np.array([problem.dimension_names[dim] in tensor.dimensions for dim in order])
        non_unit = indexing & (trips[:, order] > 1)
        last = np.where(non_unit.any(axis=1), len(order) - 1 - non_unit[:, ::-1].argmax(axis=1), -1)
        visits = np.where(last < 0, 1.0, before[np.arange(len(tiles)), last])
        ranks = problem.projection_matrix(tensor)
        moved = (1.0 + (tiles[:, None, :] - 1) @ ranks.T[None]).reshape(len(tiles), -1).prod(axis=1) * visits
        total += 2 * moved - problem.tensor_words(tensor) if tensor.is_output else moved
    return total
