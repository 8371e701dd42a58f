"""Mapper `gamma`: a genetic search over factors, loop orders and storage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import GammaOptions

Kind = TypeVar("Kind", bound=np.generic)
REPAIRS = 8
"""Maximum factors moved outwards to make a child fit."""


@dataclass(frozen=True)
class Gamma:
    """Generations of `population` mappings: the best `elite` survive, the others are bred."""

    options: GammaOptions

    def search(self, task: Task, run: Run) -> Proposals:
        population = self.options.population
        breeding = _Breeding(task.space, run.rng, self.options.mutation)
        living = breeding.founders(population)
        costs = yield living
        values = costs.of(task.objective)
        survivors = min(population - 1, max(1, round(self.options.elite * population)))
        for _ in range(self.options.generations):
            children = breeding.children(living, values, population - survivors)
            costs = yield children
            best = np.argsort(values, kind="stable")[:survivors]
            living = Candidates.join([living.take(best), children])
            values = np.concatenate([values[best], costs.of(task.objective)])


class _Breeding:
    """Founders, crossover and mutation in one map space, in batches."""

    def __init__(self, space: MapSpace, rng: np.random.Generator, mutation: float) -> None:
        self.space, self.rng, self.mutation = space, rng, mutation
        self.loops, self.unrolled = space.temporal_slots, space.spatial_slots

    def founders(self, count: int) -> Candidates:
        """Draw mappings that fit; if there are too few, add copies with all factors outside."""
        drawn = [self.space.sample(self.rng, count) for _ in range(8)]
        fit = Candidates.join([candidates.take(candidates.fits()) for candidates in drawn])
        missing = count - len(fit)
        if missing > 0:
            start = Placement.of(self.space, self.rng).start
            fit = Candidates.join([fit, start.take(np.zeros(missing, dtype=np.int64))])
        return fit.take(slice(0, count))

    def children(self, parents: Candidates, values: Floats, count: int) -> Candidates:
        """Breed children; each parent is the better one of two random mappings."""
        rivals = self.rng.integers(0, len(parents), (2, 2, count))
        mother, father = np.where(values[rivals[0]] <= values[rivals[1]], rivals[0], rivals[1])
        trips = self._crossed(parents.trips, mother, father)
        order = self._mixed(parents.orders, mother, father)
        keep = self._mixed(parents.keeps, mother, father)
        for mutate in (self._moved, self._moved, self._reunrolled):
            some = self.rng.random(count) < self.mutation
            trips[some] = mutate(trips[some])
        self._swap(order)
        return self._repaired(Candidates(self.space, trips, self.space.lawful(order), self._flipped(keep)))

    def _mixed(self, given: NDArray[Kind], mother: Ints, father: Ints) -> NDArray[Kind]:
        """Return each block or entry [n, block or entry, ...] from a random parent."""
        of_father = self.rng.random((len(mother), given.shape[1], 1)) < 0.5
        return np.where(of_father, given[father], given[mother])

    def _crossed(self, trips: Ints, mother: Ints, father: Ints) -> Ints:
        """Return each dimension's factors from a random parent.

        If the unrollings of both do not combine, all factors are the mother's.
        """
        dims = self.rng.random((len(mother), 1, trips.shape[2])) < 0.5
        mixed = np.where(dims, trips[father], trips[mother])
        good = np.ones(len(mixed), dtype=np.bool_)
        for slot in self.unrolled:
            good &= self.space.allowed(mixed, slot, 0)
        return np.where(good[:, None, None], mixed, trips[mother])

    def _moved(self, trips: Ints) -> Ints:
        """Move one prime factor between any two slots."""
        n, slots, _ = trips.shape
        everywhere = np.ones((n, slots), dtype=np.bool_)
        return self._move(trips, everywhere, everywhere)

    def _reunrolled(self, trips: Ints) -> Ints:
        """Move a prime factor out of a spatial slot, then another one into it."""
        if not self.unrolled:
            return trips
        chosen = np.zeros(trips.shape[:2], dtype=np.bool_)
        chosen[np.arange(len(trips)), self.rng.choice(self.unrolled, len(trips))] = True
        loops = np.isin(np.arange(trips.shape[1]), self.loops) & np.ones_like(chosen)
        return self._move(self._move(trips, chosen, loops), loops, chosen)

    def _repaired(self, rows: Candidates) -> Candidates:
        """Move factors of rows that do not fit from inner to outer slots, a few times."""
        slots = np.arange(len(self.space.slots))
        for _ in range(REPAIRS):
            bad = np.flatnonzero(~rows.fits())
            if not len(bad):
                break
            inner = slots >= self.rng.integers(1, max(2, len(slots)), (len(bad), 1))
            trips = rows.trips.copy()
            trips[bad] = self._move(trips[bad], inner, ~inner)
            rows = replace(rows, trips=trips)
        return rows

    def _move(self, trips: Ints, sources: Bools, targets: Bools) -> Ints:
        """Move one prime factor per row from a source to a target, unless the rules forbid it."""
        n, slots, dims = trips.shape
        line = np.arange(n)
        source, dim = np.unravel_index(
            _pick(self.rng, ((trips > 1) & sources[..., None]).reshape(n, -1)), (slots, dims)
        )
        target = _pick(self.rng, targets & (np.arange(slots) != source[:, None]))
        sizes = self.space.problem.sizes
        known = {prime for dim in range(len(sizes)) for prime in self.space.primes(dim)}
        primes = np.array(sorted(known or {1}), dtype=np.int64)
        able = self.space.divides(primes, trips[line, source, dim][:, None])
        prime = np.where(able.any(axis=1), primes[_pick(self.rng, able)], 1)
        result = Candidates(self.space, trips).move(dim, prime, source, target).trips
        good = sources[line, source] & targets[line, target] & (source != target)
        if self.space.factors == "ragged":
            return np.where((good & self.space.within(result))[:, None, None], result, trips)
        for slot in range(slots):
            for dimension in range(dims):
                here = np.flatnonzero((dim == dimension) & ((source == slot) | (target == slot)))
                good[here] &= self.space.allowed(result[here], slot, dimension)
        return np.where(good[:, None, None], result, trips)

    def _swap(self, order: NDArray[np.int8]) -> None:
        """Swap two loops of one block in some rows, in place."""
        some = np.flatnonzero(self.rng.random(len(order)) < self.mutation)
        if not self.loops or order.shape[2] < 2:
            return
        block = self.rng.integers(0, len(self.loops), len(some))
        a, b = self.rng.integers(0, order.shape[2], (2, len(some)))
        order[some, block, a], order[some, block, b] = order[some, block, b], order[some, block, a]

    def _flipped(self, keep: Bools) -> Bools:
        """Flip random optional storage decisions."""
        free = self.space.keeps[1]
        return keep ^ (free & (self.rng.random(keep.shape) < self.mutation / max(1, int(free.sum()))))


def _pick(rng: np.random.Generator, mask: Bools) -> Ints:
    """Return a random true column per row; 0 if there is none."""
    return np.asarray((rng.random(mask.shape) * mask).argmax(axis=1), dtype=np.int64)
