"""Mapper `factorflow`: greedy moves of prime factors, restarted for each loop order of one block."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, used
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.plugin import Costs, Proposals, Run, Task
from tilewright_mappers import FactorFlowOptions

BETTER = 1 - 1e-9
"""Factor by which a move has to lower the search objective."""

Descent = Generator[Candidates, Costs, tuple[Candidates, Floats]]
"""Generator that yields mappings, receives their costs, and returns the local optima."""


@dataclass(frozen=True)
class FactorFlow:
    """Block by block, choose the loop order whose descent ends lowest; repeat at most `rounds` times."""

    options: FactorFlowOptions

    def search(self, task: Task, run: Run) -> Proposals:
        space = task.space
        orders = distinct_reuse_orders(task.problem)
        for placement in Placement.each(space, run.rng):
            starts = self._starts(placement)
            chosen, best = space.plain_order[None], np.inf
            for _ in range(self.options.rounds):
                before = best
                for block, slot in enumerate(space.temporal_slots):
                    tried = np.repeat(chosen, len(orders) * len(starts), axis=0)
                    tried[:, block] = np.repeat(space.lawful_block(orders, slot), len(starts), axis=0)
                    rows = starts.take(np.tile(np.arange(len(starts)), len(orders)))
                    states, values = yield from self._descend(task, replace(rows, order=tried))
                    if values.min() < best:
                        best, chosen = float(values.min()), states.orders[[int(values.argmin())]]
                if not best < before * BETTER:
                    break

    def _starts(self, placement: Placement) -> Candidates:
        """Return the start with all factors outside, and starts with the array as full as possible."""
        most = self.options.unrollings
        full = placement.subsample(placement.fullest(placement.unroll(placement.start)), most)
        return Candidates.join([placement.start, full]) if most else placement.start

    def _descend(self, task: Task, states: Candidates) -> Descent:
        """Move every state to its best neighbour until no neighbour is better."""
        costs = yield states
        values = self._values(task, states, costs)
        done, ends = [states.take(slice(0, 0))], [values[:0]]
        while len(states):
            near, origin = task.space.neighbours(states)
            costs = yield near
            near_values = self._values(task, near, costs)
            best, least = _least(near_values, origin, len(states))
            better = least < values * BETTER
            onward, lower = [near.take(best[better])], [least[better]]
            stuck = np.flatnonzero(~better)
            if self.options.ahead and len(stuck) and len(near):
                far, beyond, value = yield from self._ahead(task, near, origin, near_values, stuck)
                saved = value < values[stuck] * BETTER
                onward.append(far.take(beyond[saved]))
                lower.append(value[saved])
                stuck = stuck[~saved]
            done.append(states.take(stuck))
            ends.append(values[stuck])
            states, values = Candidates.join(onward), np.concatenate(lower)
        return Candidates.join(done), np.concatenate(ends)

    def _ahead(
        self, task: Task, near: Candidates, origin: Ints, values: Floats, stuck: Ints
    ) -> Generator[Candidates, Costs, tuple[Candidates, Ints, Floats]]:
        """Return the best second move for each stuck state: (candidates, index in them, value)."""
        some = np.concatenate([_first(values, np.flatnonzero(origin == state), self.options.ahead) for state in stuck])
        far, via = task.space.neighbours(near.take(some), powers=True)
        costs = yield far
        number = np.searchsorted(stuck, origin[some][via])
        return far, *_least(self._values(task, far, costs), number, len(stuck))

    def _values(self, task: Task, rows: Candidates, costs: Costs) -> Floats:
        values = costs.of(task.objective)
        return values if self.options.search_objective == "plain" else values / used(rows)


def _first(values: Floats, rows: Ints, count: int) -> Ints:
    """Return the `count` cheapest rows."""
    return np.asarray(rows[np.argsort(values[rows], kind="stable")[:count]])


def _least(values: Floats, group: Ints, groups: int) -> tuple[Ints, Floats]:
    """Return (index, value) of the cheapest row per group; inf for empty groups."""
    order = np.lexsort((values, group))
    present, first = np.unique(group[order], return_index=True)
    index, least = np.zeros(groups, dtype=np.int64), np.full(groups, np.inf)
    index[present] = order[first]
    least[present] = values[index[present]]
    return index, least
