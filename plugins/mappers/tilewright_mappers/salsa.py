"""`salsa`: simulated annealing over the order of the loops' prime factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Ints
from tilewright.mapspace.constructive.placement import Spreading
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright_mappers.loma import allocate, loop_factors


@dataclass(frozen=True)
class SalsaMapper:
    """`chains` walks at once, shared among the unrollings that use most of the array, of `steps` swaps each.

    A worse order is taken with the chance exp((old / new - 1) / temperature), which cools by `cooling` at every step.
    """

    chains: int
    steps: int
    temperature: float
    cooling: float
    unrollings: int

    def search(self, task: Task, run: Run) -> Proposals:
        for spreading in Spreading.each(task.space, run.rng):
            rows = spreading.thin(spreading.fullest(spreading.unroll(spreading.start)), self.unrollings)
            rows = rows[np.arange(self.chains) % len(rows)]
            yield from self._anneal(task, run.rng, spreading, rows)

    def _anneal(self, task: Task, rng: np.random.Generator, spreading: Spreading, rows: Ints) -> Proposals:
        line = np.arange(len(rows))
        factors = _padded(spreading, rows)
        now = np.argsort(rng.random(factors.shape[:2]), axis=1)
        costs = yield allocate(spreading, rows, np.take_along_axis(factors, now[..., None], axis=1))
        value, temperature = costs.of(task.objective), self.temperature
        for _ in range(self.steps if factors.shape[1] > 1 else 0):
            new = now.copy()
            a, b = rng.integers(0, now.shape[1], (2, len(rows)))
            new[line, a], new[line, b] = now[line, b], now[line, a]
            costs = yield allocate(spreading, rows, np.take_along_axis(factors, new[..., None], axis=1))
            price = costs.of(task.objective)
            ratio = np.divide(value, price, out=np.zeros(len(rows)), where=np.isfinite(price) & (price > 0))
            taken = rng.random(len(rows)) < np.exp(np.minimum(0.0, (ratio - 1) / temperature))
            now, value = np.where(taken[:, None], new, now), np.where(taken, price, value)
            temperature *= self.cooling


def _padded(spreading: Spreading, rows: Ints) -> Ints:
    """The loop prime factors of each row, [n, loop, (dimension, trips)], with loops of one trip where there are fewer."""
    lists = [loop_factors(spreading, row) for row in rows]
    longest = max(1, *map(len, lists))
    return np.array([each + [(0, 1)] * (longest - len(each)) for each in lists], dtype=np.int64)
