"""Small spaces: every tiling, so that nothing rests on the Tiling and Unrolling Principles."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence

import numpy as np

from tilewright.mapspace.batch import Bools, Ints, MappingBatch, Positions
from tilewright.mapspace.constructive.placement import keep_choices, with_order, with_orders
from tilewright.mapspace.constructive.tiling import fitting
from tilewright.plugin.costmodel import Bounder, Costs
from tilewright.plugin.mapper import Run, Task
from tilewright_mappers.sunstone.points import Points, priced, stepping

CHUNK = 2048
"""Factorisations whose orders grow at once."""


def whole(
    task: Task, run: Run, orders: Sequence[Positions], best: float = np.inf
) -> Generator[MappingBatch, Costs, None]:
    """Price every factorisation that fits, with every choice of keeps and every combination of promising orders.

    Where the cost model has bounds, orders are chosen block by block from outside, and what cannot be better than the
    best, which was `best` before, is left out.
    """
    space = task.space
    for trips, keep in itertools.product(space.factorings(), keep_choices(space)):
        fits = trips[fitting(space, trips, keep)]
        for start in range(0, len(fits), CHUNK):
            if run.exhausted:
                return
            rows, order = _ordered(task, fits[start : start + CHUNK], keep, orders, run.bounder, best)
            kept = np.broadcast_to(keep, (len(rows), *keep.shape))
            values = yield from priced(space, Points(rows, order, kept), task.objective, run)
            best = min(best, values.min(initial=np.inf))


def _ordered(
    task: Task, trips: Ints, keep: Bools, orders: Sequence[Positions], bounder: Bounder | None, best: float
) -> tuple[Ints, Positions]:
    """Rows of trips with orders, those that a lower bound does not exclude."""
    space = task.space
    if bounder is None:
        return with_orders(space, trips, orders)
    blocks = list(stepping(space))
    order = np.tile(np.arange(trips.shape[2], dtype=np.int8), (len(trips), len(space.skeleton), 1))
    for (slot, _), (_, known), choices in zip(blocks, blocks[1:], orders, strict=False):
        trips, order = with_order(space, trips, order, slot, choices)
        points = Points(trips, order, np.broadcast_to(keep, (len(trips), *keep.shape)))
        able = bounder.bound(points.batch(space), known).of(task.objective) < best
        trips, order = trips[able], order[able]
    return with_order(space, trips, order, blocks[-1][0], orders[-1])
