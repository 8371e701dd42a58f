"""`marvel`: first the least traffic to the outermost memory, then, with that tile fixed, everything on the chip."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, Positions
from tilewright.mapspace.constructive.placement import (
    Spreading,
    reuse_orders,
    slots_by_cluster,
    temporal_slots,
    used,
    with_orders,
)
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.schema.problem import Problem

PASSES = 2
"""So many passes in a row without a candidate, and the threshold is halved."""
TILES = 20_000
"""Of more tiles for the chip so many are drawn."""
LOWEST = 0.02
"""A threshold below this is none."""


@dataclass(frozen=True)
class MarvelMapper:
    """Off-chip first, on-chip second.

    `array`: the least share of the compute units that can be used at all; `memory`: the least share of the memories,
    halved once all above it has been seen; `width`: how many tilings are followed at once.
    """

    array: float
    memory: float
    width: int

    def search(self, task: Task, run: Run) -> Proposals:
        open_ones = [_Chip(self, run, each) for each in Spreading.each(task.space, run.rng, most=TILES)]
        while open_ones:
            for chip in open_ones:
                yield from chip.some()
                if run.exhausted:
                    yield chip.spreading.batch(chip.spreading.start)  # the driver stops here
            open_ones = [chip for chip in open_ones if not chip.done]


class _Chip:
    """What is left once the loops outside of the chip are fixed, for one choice of what is kept."""

    def __init__(self, options: MarvelMapper, run: Run, outside: Spreading) -> None:
        space = outside.space
        self.space, self.run, self.width = space, run, options.width
        self.array, self.memory = options.array, options.memory
        self.loops = temporal_slots(space)
        start, order = least_traffic(outside, options.memory)
        chip = np.full_like(outside.home, (*self.loops, -1, -1)[1])
        self.spreading = replace(outside, start=start, home=chip, most=4 * options.width)
        self.orders = [order[None], *[reuse_orders(space.problem)] * (len(self.loops) - 1)]
        self.done, self.empty = False, 0

    def some(self) -> Proposals:
        """One pass over mappings above the thresholds; the next has a lower one if this saw all, or many saw none."""
        self.spreading.thinned = False
        rows = self._candidates()
        self.empty = 0 if len(rows) else self.empty + 1
        if not self.spreading.thinned or self.empty >= PASSES:
            self.done = self.memory == 0
            self.memory, self.empty = _halved(self.memory), 0
        for part in np.array_split(rows, 1 + len(rows) // 32) if len(rows) else ():
            trips, order = with_orders(self.space, part, self.orders[: len(self.loops)])
            yield self.spreading.batch(trips, order)

    def _candidates(self) -> Ints:
        rows = self.spreading.unroll(self.spreading.start)
        units = used(self.space, rows)
        rows = self.spreading.thin(rows[units >= self.array * units.max()], self.width)
        for slots in slots_by_cluster(self.space, self.loops[2:]):
            for slot in slots:
                rows = self.spreading.into(slot, rows) if len(rows) and not self.run.exhausted else rows[:0]
            shares = np.array([self.spreading.fill(rows, slot) for slot in slots]).max(axis=0)
            rows = self.spreading.thin(rows[shares >= self.memory], self.width)
        return rows


def _halved(threshold: float) -> float:
    return threshold / 2 if threshold / 2 >= LOWEST else 0.0


def least_traffic(spreading: Spreading, share: float) -> tuple[Ints, Positions]:
    """The row [1, slot, dimension] whose tile, handed on to the chip, moves the fewest words, and the order outside.

    Only tiles that take `share` of the outermost memory on the chip; half of it, if there is none, and so on. Of equals
    the largest tile.
    """
    space, loops = spreading.space, temporal_slots(spreading.space)
    orders = reuse_orders(space.problem)
    if len(loops) < 2:
        return spreading.start, orders[0]
    rows = spreading.into(loops[1], spreading.start)
    fill = spreading.fill(rows, loops[1])
    while not (fill >= share).any():
        share = _halved(share)
    rows = rows[fill >= share]
    tiles = np.array(space.problem.sizes) // rows[:, loops[0]]
    words = np.array([words_moved(space.problem, tiles, rows[:, loops[0]], order) for order in orders])
    best = int(np.lexsort((rows[:, loops[0]].prod(axis=1), words.min(axis=0)))[0])
    return rows[best : best + 1], orders[int(words[:, best].argmin())]


def words_moved(problem: Problem, tiles: Ints, trips: Ints, order: Positions) -> Floats:
    """Words that cross into tiles [n, dimension] under loops of `trips` [n, dimension] in one order, [n].

    A tensor stays while only loops inside of its innermost indexing one turn; outputs come back but for the first time.
    """
    total = np.zeros(len(tiles), dtype=np.float64)
    before = np.cumprod(trips[:, order], axis=1, dtype=np.float64)
    for tensor in problem.tensors:
        indexing = np.array([problem.dimension_names[dim] in tensor.dimensions for dim in order])
        turns = indexing & (trips[:, order] > 1)
        last = np.where(turns.any(axis=1), len(order) - 1 - turns[:, ::-1].argmax(axis=1), -1)
        visits = np.where(last < 0, 1.0, before[np.arange(len(tiles)), last])
        ranks = problem.projection_matrix(tensor)
        moved = (1.0 + (tiles[:, None, :] - 1) @ ranks.T[None]).reshape(len(tiles), -1).prod(axis=1) * visits
        total += 2 * moved - problem.tensor_words(tensor) if tensor.is_output else moved
    return total
