"""Small spaces: enumerate every tiling, independently of the tiling and unrolling principles."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence

import numpy as np

from tilewright.mapspace.batch import Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import keep_choices, with_order, with_orders
from tilewright.plugin import Bounder, Costs, Run, Task, objectives

CHUNK = 2048
"""Factorisations whose orders are chosen together."""


def enumerate_small_space(
    task: Task, run: Run, orders: Sequence[Positions], best: float = np.inf
) -> Generator[Candidates, Costs, None]:
    """Evaluate every factorisation that fits, with all storage choices and reuse-maximal orders.

    If the cost model has bounds, orders are chosen from outside, block by block. Mappings whose
    bound reaches the best cost are pruned; `best` is the best cost known before.
    """
    for factors, keep in itertools.product(task.space.factorings(), keep_choices(task.space)):
        kept = factors.keeping(keep)
        fits = kept.take(kept.fits())
        for start in range(0, len(fits), CHUNK):
            if run.exhausted:
                return
            rows = _ordered(task, fits.take(slice(start, start + CHUNK)), orders, run.bounder, best)
            values = yield from objectives(rows, task, run)
            best = min(best, values.min(initial=np.inf))


def _ordered(
    task: Task, rows: Candidates, orders: Sequence[Positions], bounder: Bounder | None, best: float
) -> Candidates:
    """Return the rows with orders, except those that a lower bound prunes."""
    if bounder is None:
        return with_orders(rows, orders)
    space = task.space
    last = len(orders) - 1
    for block in range(last):
        rows = with_order(rows, block, orders[block])
        known = space.slots[space.temporal_slots[block + 1]].entry
        able = bounder.bound(rows.batch(), known).of(task.objective) < best
        rows = rows.take(able)
    return with_order(rows, last, orders[last])
