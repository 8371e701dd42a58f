"""`gamma`: a genetic search over factors, orders and what is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.constructive.placement import Spreading, spatial_slots, temporal_slots
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Proposals, Run, Task

REPAIRS = 8
"""Factors moved outwards, at most, to make a child fit."""


@dataclass(frozen=True)
class GammaMapper:
    """Generations of `population` mappings; the best `elite` of them live on, the others are bred."""

    population: int
    generations: int
    elite: float
    mutation: float

    def search(self, task: Task, run: Run) -> Proposals:
        breeding = _Breeding(task.space, run.rng, self.mutation)
        living = breeding.founders(self.population)
        costs = yield living
        values = costs.of(task.objective)
        survivors = min(self.population - 1, max(1, round(self.elite * self.population)))
        for _ in range(self.generations):
            children = breeding.children(living, values, self.population - survivors)
            costs = yield children
            best = np.argsort(values, kind="stable")[:survivors]
            living = MappingBatch.join([living.take(best), children])
            values = np.concatenate([values[best], costs.of(task.objective)])


class _Breeding:
    """Founders, crossover and mutation in one map space, by the batch."""

    def __init__(self, space: MapSpace, rng: np.random.Generator, mutation: float) -> None:
        self.space, self.rng, self.mutation = space, rng, mutation
        self.loops, self.splits = temporal_slots(space), spatial_slots(space)

    def founders(self, count: int) -> MappingBatch:
        """Mappings drawn until enough fit, or for some time; then those with everything outside make up the rest."""
        drawn = [self.space.sample(self.rng, count) for _ in range(8)]
        fit = MappingBatch.join([batch.take(self.space.fits(batch)) for batch in drawn])
        missing = count - len(fit)
        if missing > 0:
            spreading = Spreading.of(self.space, self.rng)
            fit = MappingBatch.join([fit, spreading.batch(np.repeat(spreading.start, missing, axis=0))])
        return fit.take(slice(0, count))

    def children(self, parents: MappingBatch, values: Floats, count: int) -> MappingBatch:
        """Each of two parents, the better of two drawn ones."""
        rivals = self.rng.integers(0, len(parents), (2, 2, count))
        mother, father = np.where(values[rivals[0]] <= values[rivals[1]], rivals[0], rivals[1])
        trips = self._crossed(self.space.trips(parents), mother, father)
        order, keep = parents.order[mother].copy(), parents.keep[mother].copy()
        entries = self.rng.random((count, order.shape[1])) < 0.5
        order[entries] = parents.order[father][entries]
        keep[entries] = parents.keep[father][entries]
        for mutate in (self._moved, self._moved, self._unrolled):
            some = self.rng.random(count) < self.mutation
            trips[some] = mutate(trips[some])
        self._swap(order)
        keep = self._flipped(keep)
        return self.space.build(self._repaired(trips, keep), order, keep)

    def _crossed(self, trips: Ints, mother: Ints, father: Ints) -> Ints:
        """Per dimension the factors of one parent; all of the mother's where the splits would not suit one another."""
        dims = self.rng.random((len(mother), 1, trips.shape[2])) < 0.5
        mixed = np.where(dims, trips[father], trips[mother])
        good = np.ones(len(mixed), dtype=np.bool_)
        for slot in self.splits:
            good &= self.space.allowed(mixed, slot, 0)
        return np.where(good[:, None, None], mixed, trips[mother])

    def _moved(self, trips: Ints) -> Ints:
        """One prime factor from anywhere to anywhere."""
        n, slots, _ = trips.shape
        everywhere = np.ones((n, slots), dtype=np.bool_)
        return self._move(trips, everywhere, everywhere)

    def _unrolled(self, trips: Ints) -> Ints:
        """One split gives up a prime factor, then takes one."""
        if not self.splits:
            return trips
        split = np.zeros(trips.shape[:2], dtype=np.bool_)
        split[np.arange(len(trips)), self.rng.choice(self.splits, len(trips))] = True
        loops = np.isin(np.arange(trips.shape[1]), self.loops) & np.ones_like(split)
        return self._move(self._move(trips, split, loops), loops, split)

    def _repaired(self, trips: Ints, keep: Bools) -> Ints:
        """Rows that do not fit give factors of inner slots to outer ones, a few times."""
        slots = np.arange(trips.shape[1])
        for _ in range(REPAIRS):
            bad = np.flatnonzero(~self.space.fits(self.space.build(trips, keep=keep)))
            if not len(bad):
                break
            inner = slots >= self.rng.integers(1, max(2, len(slots)), (len(bad), 1))
            trips = trips.copy()
            trips[bad] = self._move(trips[bad], inner, ~inner)
        return trips

    def _move(self, trips: Ints, sources: Bools, targets: Bools) -> Ints:
        """One prime factor of each row from one of its sources to one of its targets; none where the rules forbid it."""
        n, slots, dims = trips.shape
        line = np.arange(n)
        result = trips.copy()
        source, dim = np.unravel_index(
            _pick(self.rng, ((trips > 1) & sources[..., None]).reshape(n, -1)), (slots, dims)
        )
        target = _pick(self.rng, targets & (np.arange(slots) != source[:, None]))
        primes = np.array(sorted({prime for size in self.space.problem.sizes for prime, _ in prime_powers(size)}))
        able = (trips[line, source, dim][:, None] % primes == 0) & (primes > 1)
        prime = np.where(able.any(axis=1), primes[_pick(self.rng, able)], 1)
        result[line, source, dim] //= prime
        result[line, target, dim] *= prime
        good = sources[line, source] & targets[line, target] & (source != target)
        for slot in range(slots):
            for each in range(dims):
                here = np.flatnonzero((dim == each) & ((source == slot) | (target == slot)))
                good[here] &= self.space.allowed(result[here], slot, each)
        return np.where(good[:, None, None], result, trips)

    def _swap(self, order: NDArray[np.int8]) -> None:
        """Two loops of one block change places, in some rows, in place."""
        some = np.flatnonzero(self.rng.random(len(order)) < self.mutation)
        if not self.loops or order.shape[2] < 2:
            return
        entry = np.array([self.space.slots[slot].entry for slot in self.loops])[
            self.rng.integers(0, len(self.loops), len(some))
        ]
        a, b = self.rng.integers(0, order.shape[2], (2, len(some)))
        order[some, entry, a], order[some, entry, b] = order[some, entry, b], order[some, entry, a]

    def _flipped(self, keep: Bools) -> Bools:
        """Free choices of what is kept change now and then."""
        free = self.space.keeps[1]
        return keep ^ (free & (self.rng.random(keep.shape) < self.mutation / max(1, int(free.sum()))))


def _pick(rng: np.random.Generator, mask: Bools) -> Ints:
    """Per row one of the columns that are true, the first if none is."""
    return np.asarray((rng.random(mask.shape) * mask).argmax(axis=1), dtype=np.int64)
