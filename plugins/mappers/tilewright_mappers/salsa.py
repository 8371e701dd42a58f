"""Mapper `salsa`: simulated annealing over the order of the loops' prime factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import SalsaOptions
from tilewright_mappers.loma import allocate, loop_factors


@dataclass(frozen=True)
class Salsa:
    """`chains` parallel chains of `steps` swaps, distributed over the fullest unrollings.

    A worse order is accepted with probability exp((old / new - 1) / temperature). The temperature
    is multiplied by `cooling` at each step.
    """

    options: SalsaOptions

    def search(self, task: Task, run: Run) -> Proposals:
        for placement in Placement.each(task.space, run.rng):
            full = placement.fullest(placement.unroll(placement.start))
            rows = placement.subsample(full, self.options.unrollings)
            rows = rows.take(np.arange(self.options.chains) % len(rows))
            yield from self._anneal(task, run.rng, placement, rows)

    def _anneal(self, task: Task, rng: np.random.Generator, placement: Placement, rows: Candidates) -> Proposals:
        line = np.arange(len(rows))
        factors = _padded(placement, rows)
        now = np.argsort(rng.random(factors.shape[:2]), axis=1)
        costs = yield allocate(placement, rows, np.take_along_axis(factors, now[..., None], axis=1))
        value, temperature = costs.of(task.objective), self.options.temperature
        for _ in range(self.options.steps if factors.shape[1] > 1 else 0):
            new = now.copy()
            a, b = rng.integers(0, now.shape[1], (2, len(rows)))
            new[line, a], new[line, b] = now[line, b], now[line, a]
            costs = yield allocate(placement, rows, np.take_along_axis(factors, new[..., None], axis=1))
            cost = costs.of(task.objective)
            ratio = np.divide(value, cost, out=np.zeros(len(rows)), where=np.isfinite(cost) & (cost > 0))
            taken = rng.random(len(rows)) < np.exp(np.minimum(0.0, (ratio - 1) / temperature))
            now, value = np.where(taken[:, None], new, now), np.where(taken, cost, value)
            temperature *= self.options.cooling


def _padded(placement: Placement, rows: Candidates) -> Ints:
    """Return the loop prime factors [n, loop, (dimension, trips)], padded with loops of one trip."""
    lists = [loop_factors(placement, row) for row in rows.trips]
    longest = max(1, *map(len, lists))
    return np.array([pairs + [(0, 1)] * (longest - len(pairs)) for pairs in lists], dtype=np.int64)
