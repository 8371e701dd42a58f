"""`factorflow`: greedy moves of prime factors, started anew from everything outside for each order of one block."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, MappingBatch
from tilewright.mapspace.constructive.placement import Spreading, temporal_slots, used
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Proposals, Run, Task

Guide = Literal["over_utilization", "plain"]
BETTER = 1 - 1e-9
"""A move has to lower the guide by this factor."""

Descent = Generator[MappingBatch, Costs, tuple[MappingBatch, Floats]]
"""Yields mappings, is sent their prices, and returns where the walks ended."""


@dataclass(frozen=True)
class FactorFlowMapper:
    """Block of loops by block of loops, the order whose descent ends lowest; at most `rounds` times through all blocks.

    `guide`: the objective over the share of compute units that work, or plainly the objective. `ahead`: where no move
    is better, the moves after the best so many moves are looked at.
    """

    guide: Guide
    rounds: int
    ahead: int
    unrollings: int

    def search(self, task: Task, run: Run) -> Proposals:
        space = task.space
        orders = distinct_reuse_orders(task.problem)
        for spreading in Spreading.each(space, run.rng):
            starts = self._starts(spreading)
            chosen, best = spreading.batch(spreading.start).order, np.inf
            for _ in range(self.rounds):
                before = best
                for slot in temporal_slots(space):
                    tried = np.repeat(chosen, len(orders) * len(starts), axis=0)
                    tried[:, space.slots[slot].entry] = np.repeat(orders, len(starts), axis=0)
                    rows = np.tile(starts, (len(orders), 1, 1))
                    states, values = yield from self._descend(task, spreading.batch(rows, tried))
                    if values.min() < best:
                        best, chosen = float(values.min()), states.order[[int(values.argmin())]]
                if not best < before * BETTER:
                    break

    def _starts(self, spreading: Spreading) -> Ints:
        """Everything outside, and then with the array as full as can be, in some ways."""
        full = spreading.thin(spreading.fullest(spreading.unroll(spreading.start)), self.unrollings)
        return np.concatenate([spreading.start, full]) if self.unrollings else spreading.start

    def _descend(self, task: Task, states: MappingBatch) -> Descent:
        """Every state moves to its best neighbour as long as there is a better one."""
        costs = yield states
        values = self._guided(task, states, costs)
        done, ends = [states.take(slice(0, 0))], [values[:0]]
        while len(states):
            near, origin = task.space.neighbours(states)
            costs = yield near
            prices = self._guided(task, near, costs)
            best, least = _least(prices, origin, len(states))
            better = least < values * BETTER
            onward, lower = [near.take(best[better])], [least[better]]
            stuck = np.flatnonzero(~better)
            if self.ahead and len(stuck) and len(near):
                far, beyond, price = yield from self._ahead(task, near, origin, prices, stuck)
                saved = price < values[stuck] * BETTER
                onward.append(far.take(beyond[saved]))
                lower.append(price[saved])
                stuck = stuck[~saved]
            done.append(states.take(stuck))
            ends.append(values[stuck])
            states, values = MappingBatch.join(onward), np.concatenate(lower)
        return MappingBatch.join(done), np.concatenate(ends)

    def _ahead(
        self, task: Task, near: MappingBatch, origin: Ints, prices: Floats, stuck: Ints
    ) -> Generator[MappingBatch, Costs, tuple[MappingBatch, Ints, Floats]]:
        """The best of two moves for each stuck state: (batch, index in it, price)."""
        some = np.concatenate([_first(prices, np.flatnonzero(origin == state), self.ahead) for state in stuck])
        far, via = task.space.neighbours(near.take(some), powers=True)
        costs = yield far
        number = np.searchsorted(stuck, origin[some][via])
        return far, *_least(self._guided(task, far, costs), number, len(stuck))

    def _guided(self, task: Task, batch: MappingBatch, costs: Costs) -> Floats:
        values = costs.of(task.objective)
        return values if self.guide == "plain" else values / used(task.space, task.space.trips(batch))


def _first(prices: Floats, rows: Ints, count: int) -> Ints:
    """The cheapest `count` of some rows."""
    return np.asarray(rows[np.argsort(prices[rows], kind="stable")[:count]])


def _least(prices: Floats, group: Ints, groups: int) -> tuple[Ints, Floats]:
    """(index, price) of the cheapest of each group, [group]; price inf where a group is empty."""
    order = np.lexsort((prices, group))
    present, first = np.unique(group[order], return_index=True)
    index, least = np.zeros(groups, dtype=np.int64), np.full(groups, np.inf)
    index[present] = order[first]
    least[present] = prices[index[present]]
    return index, least
