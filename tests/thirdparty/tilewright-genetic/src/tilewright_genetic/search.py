"""The search: children inherit each dimension's factors from one of two parents, some move a prime factor on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilewright.plugin import Candidates, Proposals, Run, Task
from tilewright_genetic import GeneticOptions


@dataclass(frozen=True)
class Genetic:
    """Keeps the `population` best of parents and children."""

    options: GeneticOptions

    def search(self, task: Task, run: Run) -> Proposals:
        population = self.options.population
        parents = task.space.sample(run.rng, population)
        values = (yield parents).of(task.objective)
        while True:
            mothers, fathers = (parents.take(_winners(values, population, run.rng)) for _ in range(2))
            children = self._mutated(task, _crossed(mothers, fathers, run.rng), run.rng)
            costs = yield children
            parents = Candidates.join([parents, children])
            values = np.concatenate([values, costs.of(task.objective)])
            best = np.argsort(values, kind="stable")[:population]
            parents, values = parents.take(best), values[best]

    def _mutated(self, task: Task, children: Candidates, rng: np.random.Generator) -> Candidates:
        """Some of the children become one of their neighbours."""
        chosen = rng.random(len(children)) < self.options.mutation
        neighbours, origin = task.space.neighbours(children.take(chosen))
        shuffled = rng.permutation(len(neighbours))
        _, first = np.unique(origin[shuffled], return_index=True)
        return Candidates.join([children.take(~chosen), neighbours.take(shuffled[first])])


def _winners(values: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The better of two drawn at random, `count` times."""
    pairs = rng.integers(0, len(values), (count, 2))
    winners: NDArray[np.int64] = pairs[np.arange(count), np.argmin(values[pairs], axis=1)]
    return winners


def _crossed(mothers: Candidates, fathers: Candidates, rng: np.random.Generator) -> Candidates:
    """Every dimension's factors come from one parent, all else from the mother.

    So do the factors of dimensions whose loops a rule puts in order, which the mother's orders keep, and all where two
    parents' unrollings together would exceed a fanout.
    """
    space = mothers.space
    from_father = rng.random((len(mothers), 1, mothers.trips.shape[2])) < 0.5
    orders, every = [slot.order for slot in space.slots], range(mothers.trips.shape[2])
    ordered = {d for order in orders for d in (every if order.outermost or order.innermost else order.named)}
    from_father[..., sorted(ordered)] = False
    trips = np.where(from_father, fathers.trips, mothers.trips)
    for slot in space.spatial_slots:
        trips = np.where(space.allowed(trips, slot, 0)[:, None, None], trips, mothers.trips)
    return replace(mothers, trips=trips)
