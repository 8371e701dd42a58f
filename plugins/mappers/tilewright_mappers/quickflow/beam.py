"""Local beam search over states that differ in one prime factor, compared with their best orders."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import used
from tilewright.mapspace.moves import Moves
from tilewright.plugin import Costs, Run, Task, objectives
from tilewright_mappers.quickflow.orders import OneShot

SearchObjective = Literal["over_utilization", "plain"]
BETTER = 1 - 1e-9
"""Factor by which a better mapping has a lower value."""


@dataclass(frozen=True, eq=False)
class BeamStates:
    """Mappings without loop orders.

    Each has the search objective with its best orders [n], and the index of the state that it descends from [n].
    """

    rows: Candidates
    values: Floats
    origin: Ints

    def __len__(self) -> int:
        return len(self.values)

    @property
    def least(self) -> float:
        return float(self.values.min(initial=np.inf))

    def take(self, index: Ints | Bools | slice) -> BeamStates:
        return BeamStates(self.rows.take(index), self.values[index], self.origin[index])

    def best(self, most: int) -> BeamStates:
        """Return the `most` states with the lowest values, best first; each is its own origin."""
        ranked = np.argsort(self.values, kind="stable")[:most]
        return replace(self.take(ranked), origin=np.arange(len(ranked)))

    def singly(self) -> list[BeamStates]:
        """Return the states as a list of single ones."""
        return [self.take(slice(row, row + 1)) for row in range(len(self))]

    def best_of_each(self) -> BeamStates:
        """Return the best state of each origin."""
        ranked = self.take(np.lexsort((self.values, self.origin)))
        return ranked.take(np.flatnonzero(np.diff(ranked.origin, prepend=-1)))

    @classmethod
    def join(cls, parts: Sequence[BeamStates]) -> BeamStates:
        return cls(
            Candidates.join([part.rows for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.origin for part in parts]),
        )


Search = Generator[Candidates, Costs, BeamStates]


@dataclass(frozen=True)
class Round:
    """Parameters of one round of local search.

    Attributes:
        slots: slots between which factors move (None: all).
        powers: several equal prime factors may move together.
        hops: moves of one local search (QuickFlow's N).
        repeats: further local searches if none was better (M).
        width: candidates that these start from (K).
        follow: mappings of one hop that the next hop starts from.
    """

    slots: tuple[int, ...] | None
    powers: bool
    hops: int
    repeats: int
    width: int
    follow: int


@dataclass
class Share:
    """Share of a limited budget for the present round, so that the later ones have theirs.

    `until`: fraction of the budget at which the round ends. `cut`: some round ended by its share.
    """

    until: float = 1.0
    cut: bool = False


class Beam:
    """Rounds of local beam search; one round visits each state once."""

    def __init__(self, task: Task, run: Run, orders: OneShot, objective: SearchObjective, share: Share) -> None:
        self.task, self.space, self.run, self.orders, self.objective = task, task.space, run, orders, objective
        # any fixed odd numbers make a hash, and the search's random numbers stay unchanged
        chance = np.random.default_rng(0)
        sizes = len(self.space.slots) * len(task.problem.sizes), self.space.keeps[0].size
        self.hashing = tuple(2 * chance.integers(1, 2**62, size).astype(np.uint64) + np.uint64(1) for size in sizes)
        self.seen = np.zeros(0, dtype=np.uint64)
        self.moves = Moves.of(self.space)
        self.share = share

    @property
    def over(self) -> bool:
        """Whether the round has used up its share of the budget."""
        run, budget, until = self.run, self.run.budget, self.share.until
        by_count = budget.evaluations is not None and run.evaluated >= int(until * budget.evaluations)
        by_time = budget.seconds is not None and run.elapsed_seconds >= until * budget.seconds
        self.share.cut |= until < 1 and (by_count or by_time)
        return run.exhausted or by_count or by_time

    def within_share(self, count: int) -> Ints:
        """Return the indices of the mappings of `count` that the round may still evaluate, evenly spaced."""
        most, until = self.run.budget.evaluations, self.share.until
        left = count if most is None or until >= 1 else max(0, int(until * most) - self.run.evaluated)
        self.share.cut |= left < count
        return np.arange(count) if left >= count else np.arange(left) * count // max(1, left)

    def _begin(self, rules: Round) -> None:
        """Begin a round: forget all visited states."""
        self.moves = Moves.of(self.space, rules.slots, rules.powers)
        self.seen = self.seen[:0]

    def optimise(self, start: BeamStates, rules: Round) -> Search:
        """Search from the best of some states, and return the best state of the round."""
        self._begin(rules)
        best = start.best(1)
        self._unseen(best.rows)
        while not self.over:
            states = yield from self._local(best, best.least, rules)
            for _ in range(rules.repeats):
                if states.least < best.least * BETTER or not len(states):
                    break
                states = yield from self._local(states.best(rules.width), best.least, rules)
                states = states.best_of_each()
            if not states.least < best.least * BETTER:
                break
            best = states.best(1)
        return best

    def descend(self, start: BeamStates, rules: Round) -> Search:
        """Move all states to their best neighbours in parallel until none is better; return the ends."""
        self._begin(rules)
        going, ended = start.best(len(start)), [start.take(slice(0, 0))]
        while len(going) and not self.over:
            reached = (yield from self._hop(going)).best_of_each()
            least = np.full(len(going), np.inf)
            least[reached.origin] = reached.values
            better = least < going.values * BETTER
            ended.append(going.take(~better))
            going = reached.take(better[reached.origin])
            going = going.best(len(going))
        return BeamStates.join([*ended, going])

    def _local(self, sources: BeamStates, least: float, rules: Round) -> Search:
        """Return the states within `hops` moves, except those already followed.

        The search stops at the first hop that finds a value below `least`.
        """
        parts = [sources.take(slice(0, 0))]
        for hop in range(rules.hops):
            reached = yield from self._hop(sources)
            if reached.least < least * BETTER or not len(reached) or hop == rules.hops - 1 or self.over:
                return BeamStates.join([*parts, reached])
            rank = np.argsort(reached.values, kind="stable")
            sources = reached.take(rank[: rules.follow])
            parts.append(reached.take(rank[rules.follow :]))
        return BeamStates.join(parts)

    def _hop(self, sources: BeamStates) -> Search:
        """Return all valid unvisited states one move away."""
        moved, row, _ = self.moves.apply(sources.rows)
        parts, origins = [moved], [sources.origin[row]]
        for entry, tensor in np.argwhere(self.space.keeps[1]):
            keep = sources.rows.keeps.copy()
            keep[:, entry, tensor] ^= True
            parts.append(replace(sources.rows, keep=keep))
            origins.append(sources.origin)
        rows, origin = Candidates.join(parts), np.concatenate(origins)
        new = self._unseen(rows)
        rows, origin = rows.take(new), origin[new]
        fits = rows.fits()
        return (yield from self.evaluated(rows.take(fits), origin[fits]))

    def _unseen(self, rows: Candidates) -> Ints:
        """Return the rows of the first occurrences of unvisited states, and mark these as visited."""
        factors, kept = self.hashing
        keys = rows.trips.view(np.uint64).reshape(len(rows), len(factors)) @ factors
        if self.space.keeps[1].any():
            keys += rows.keeps.astype(np.uint64).reshape(len(rows), len(kept)) @ kept
        distinct, first = np.unique(keys, return_index=True)
        place = np.searchsorted(self.seen, distinct)
        new = np.append(self.seen, np.uint64(0))[place] != distinct
        new |= place == len(self.seen)
        self.seen = np.insert(self.seen, place[new], distinct[new])
        return np.sort(first[new])

    def evaluated(self, rows: Candidates, origin: Ints | None = None) -> Search:
        """Return the valid states with their best orders; states beyond the round's share of the budget are dropped.

        Without `origin` each state is its own origin.
        """
        origin, index = np.arange(len(rows)) if origin is None else origin, self.within_share(len(rows))
        rows, origin = rows.take(index), origin[index]
        values = yield from objectives(replace(rows, order=self.orders.order(rows)), self.task, self.run)
        busy = used(rows) if self.objective == "over_utilization" else 1
        states = BeamStates(rows, values / busy, origin)
        return states.take(np.isfinite(values))
