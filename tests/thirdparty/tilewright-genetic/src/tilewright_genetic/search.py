"""The search: children inherit each dimension's tiles from one of two parents, some move a prime factor on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Proposals, Run, Task
from tilewright_genetic import GeneticOptions


class Genetic:
    """Keeps the `population` best of parents and children."""

    def __init__(self, options: GeneticOptions) -> None:
        self.population = options.population
        self.mutation = options.mutation

    def search(self, task: Task, run: Run) -> Proposals:
        parents = task.space.sample(run.rng, self.population)
        values = (yield parents).of(task.objective)
        while True:
            children = self._children(task.space, parents, values, run.rng)
            costs = yield children
            parents = MappingBatch.join([parents, children])
            values = np.concatenate([values, costs.of(task.objective)])
            best = np.argsort(values, kind="stable")[: self.population]
            parents, values = parents.take(best), values[best]

    def _children(
        self, space: MapSpace, parents: MappingBatch, values: Floats, rng: np.random.Generator
    ) -> MappingBatch:
        mothers, fathers = (parents.take(_winners(values, self.population, rng)) for _ in range(2))
        mixed = _cross(space, mothers, fathers, rng)
        stays = _splits_allowed(space, mixed)
        children = MappingBatch.join([mixed.take(stays), mothers.take(~stays)])
        return _mutate(space, children, rng.random(len(children)) < self.mutation, rng)


def _winners(values: Floats, count: int, rng: np.random.Generator) -> Ints:
    """The better of two drawn at random, `count` times."""
    pairs = rng.integers(0, len(values), (count, 2))
    better = np.argmin(values[pairs], axis=1)
    winners: Ints = pairs[np.arange(count), better]
    return winners


def _cross(space: MapSpace, mothers: MappingBatch, fathers: MappingBatch, rng: np.random.Generator) -> MappingBatch:
    """Every dimension's tiles come from one parent; orders and keeps from the mother.

    So do the tiles of dimensions whose loops a rule puts in order, which the mother's orders then keep.
    """
    from_father = rng.random((len(mothers), 1, mothers.temporal.shape[2])) < 0.5
    from_father[..., sorted({dimension for slot in space.slots for dimension in slot.order})] = False
    return replace(
        mothers,
        temporal=np.where(from_father, fathers.temporal, mothers.temporal),
        spatial=np.where(from_father, fathers.spatial, mothers.spatial),
    )


def _splits_allowed(space: MapSpace, batch: MappingBatch) -> Bools:
    """Which mappings split within the bounds, bool [n]: two parents' splits together may exceed a fanout."""
    used = space.trips(batch).prod(axis=2)
    good = np.ones(len(batch), dtype=np.bool_)
    for index, slot in enumerate(space.slots):
        if slot.spatial:
            good &= (used[:, index] >= slot.least) & (used[:, index] <= (slot.most or 1))
    return good


def _mutate(space: MapSpace, children: MappingBatch, chosen: np.ndarray, rng: np.random.Generator) -> MappingBatch:
    """The chosen children become one of their neighbours."""
    neighbours, origin = space.neighbours(children.take(chosen))
    shuffled = rng.permutation(len(neighbours))
    _, first = np.unique(origin[shuffled], return_index=True)
    return MappingBatch.join([children.take(~chosen), neighbours.take(shuffled[first])])
