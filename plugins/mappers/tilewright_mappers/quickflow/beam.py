"""The local beam search: states one prime factor apart, each with its best orders, compared by a guide."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.constructive.placement import used
from tilewright.mapspace.moves import Moves
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Run, Task
from tilewright_mappers.quickflow.orders import OneShot

Guide = Literal["over_utilization", "plain"]
BETTER = 1 - 1e-9
"""A mapping is better if its guide is lower by this factor."""
CHUNK = 8192
"""Mappings priced at once: a few hundredths of a second."""

Prices = Generator[MappingBatch, Costs, Floats]
"""Yields mappings, is sent their costs, returns the objective of each."""


@dataclass(frozen=True, eq=False)
class States:
    """Factors and keeps of `n` mappings, without orders: trips [n, slot, dimension], keep [n, entry, tensor]; their
    guide [n], and the number of the state that they descend from [n]."""

    trips: Ints
    keep: Bools
    guide: Floats
    origin: Ints

    def __len__(self) -> int:
        return len(self.trips)

    @property
    def least(self) -> float:
        return float(self.guide.min(initial=np.inf))

    def take(self, index: Ints | Bools | slice) -> States:
        return States(self.trips[index], self.keep[index], self.guide[index], self.origin[index])

    def best(self, most: int) -> States:
        """The `most` with the lowest guides, best first, each its own origin."""
        rows = np.argsort(self.guide, kind="stable")[:most]
        return replace(self.take(rows), origin=np.arange(len(rows)))

    def apart(self) -> list[States]:
        """One by one."""
        return [self.take(slice(row, row + 1)) for row in range(len(self))]

    def best_of_each(self) -> States:
        """The best of each origin."""
        ranked = self.take(np.lexsort((self.guide, self.origin)))
        return ranked.take(np.flatnonzero(np.diff(ranked.origin, prepend=-1)))

    @classmethod
    def join(cls, parts: Sequence[States]) -> States:
        return cls(
            np.concatenate([part.trips for part in parts]),
            np.concatenate([part.keep for part in parts]),
            np.concatenate([part.guide for part in parts]),
            np.concatenate([part.origin for part in parts]),
        )


Search = Generator[MappingBatch, Costs, States]


@dataclass(frozen=True)
class Round:
    """Where factors may move, how far one looks, and by what.

    Attributes:
        slots: those among which factors move (None: all).
        powers: several equal prime factors move at once, too.
        hops: moves of one local search (QuickFlow's N).
        repeats: local searches from the best candidates, where none was better (M).
        width: candidates that these start from (K).
        follow: mappings of one hop that the next hop starts from.
    """

    slots: tuple[int, ...] | None
    powers: bool
    hops: int
    repeats: int
    width: int
    follow: int


class Beam:
    """Rounds of local beam search; no state is visited twice in one round."""

    def __init__(self, task: Task, run: Run, orders: OneShot, guide: Guide) -> None:
        self.task, self.space, self.run, self.orders, self.guide = task, task.space, run, orders, guide
        shape = (len(self.space.slots), len(task.problem.sizes))
        # any fixed odd numbers make a hash; the search's own chance is left alone
        numbers = np.random.default_rng(0).integers(1, 2**62, int(np.prod(shape)) + self.space.keeps[0].size)
        self.hashing = numbers.astype(np.uint64) * np.uint64(2) + np.uint64(1)
        self.seen: set[int] = set()
        self.moves = Moves.of(self.space.problem.sizes, self.space.slots)

    def optimise(self, start: States, rules: Round) -> Search:
        """From the best of some states to the best that a round finds."""
        self.moves, self.seen = Moves.of(self.space.problem.sizes, self.space.slots, rules.slots, rules.powers), set()
        best = start.best(1)
        self._unseen(best.trips, best.keep)
        while not self.run.exhausted:
            found = yield from self._local(best, best.least, rules)
            for _ in range(rules.repeats):
                if found.least < best.least * BETTER or not len(found):
                    break
                found = yield from self._local(found.best(rules.width), best.least, rules)
                found = found.best_of_each()
            if not found.least < best.least * BETTER:
                break
            best = found.best(1)
        return best

    def descend(self, start: States, rules: Round) -> Search:
        """Every state moves to its best neighbour, side by side, as long as that is better; where all of them end."""
        self.moves, self.seen = Moves.of(self.space.problem.sizes, self.space.slots, rules.slots, rules.powers), set()
        going, ended = start.best(len(start)), [start.take(slice(0, 0))]
        while len(going) and not self.run.exhausted:
            reached = (yield from self._hop(going)).best_of_each()
            least = np.full(len(going), np.inf)
            least[reached.origin] = reached.guide
            better = least < going.guide * BETTER
            ended.append(going.take(~better))
            going = reached.take(better[reached.origin])
            going = going.best(len(going))
        return States.join([*ended, going])

    def _local(self, sources: States, least: float, rules: Round) -> Search:
        """What up to `hops` moves reach; no more hops than it takes to find something better than `least`.

        States that have been moved on from are left out.
        """
        found = [sources.take(slice(0, 0))]
        for hop in range(rules.hops):
            reached = yield from self._hop(sources)
            if reached.least < least * BETTER or not len(reached) or hop == rules.hops - 1 or self.run.exhausted:
                return States.join([*found, reached])
            rank = np.argsort(reached.guide, kind="stable")
            sources = reached.take(rank[: rules.follow])
            found.append(reached.take(rank[rules.follow :]))
        return States.join(found)

    def _hop(self, sources: States) -> Search:
        """All valid states one move away that nobody has visited."""
        trips, row, _ = self.moves.apply(sources.trips)
        keep = sources.keep[row]
        flipped = [(trips, keep, sources.origin[row])]
        for entry, tensor in np.argwhere(self.space.keeps[1]):
            other = sources.keep.copy()
            other[:, entry, tensor] ^= True
            flipped.append((sources.trips, other, sources.origin))
        trips, keep, origin = (np.concatenate(each) for each in zip(*flipped, strict=True))
        new = self._unseen(trips, keep)
        trips, keep, origin = trips[new], keep[new], origin[new]
        fits = self.space.fits(self.space.build(trips, keep=keep))
        return (yield from self.priced(trips[fits], keep[fits], origin[fits]))

    def _unseen(self, trips: Ints, keep: Bools) -> Ints:
        """The first rows of states not seen yet; they are seen now."""
        if not len(trips):
            return np.zeros(0, dtype=np.int64)
        flat = np.concatenate([trips.reshape(len(trips), trips[0].size), keep.reshape(len(keep), keep[0].size)], axis=1)
        keys = (flat.astype(np.uint64) * self.hashing).sum(axis=1, dtype=np.uint64)
        distinct, first = np.unique(keys, return_index=True)
        new = [index for key, index in zip(distinct.tolist(), first.tolist(), strict=True) if key not in self.seen]
        self.seen.update(distinct.tolist())
        return np.sort(np.array(new, dtype=np.int64))

    def priced(self, trips: Ints, keep: Bools, origin: Ints | None = None) -> Search:
        """States with their best orders, priced; those that are not valid, or not asked any more, are left out.

        Without `origin` each is its own.
        """
        order = self.orders.order(trips, keep)
        values = yield from prices(self.space.build(trips, order, keep), self.task, self.run)
        busy = used(self.space, trips) if self.guide == "over_utilization" else 1
        states = States(trips, keep, values / busy, np.arange(len(trips)) if origin is None else origin)
        return states.take(np.isfinite(values))


def prices(batch: MappingBatch, task: Task, run: Run) -> Prices:
    """The objective of every mapping, inf where invalid and where the budget was spent before."""
    values = np.full(len(batch), np.inf)
    for start in range(0, len(batch), CHUNK):
        if run.exhausted:
            break
        rows = slice(start, start + CHUNK)
        costs = yield batch.take(rows)
        values[rows][: len(costs)] = np.where(costs.valid, costs.of(task.objective), np.inf)
    return values
