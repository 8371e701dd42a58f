"""`dmazerunner`: every tiling that fills the array and the memories above thresholds, with the orders that reuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Ints
from tilewright.mapspace.constructive.placement import (
    Spreading,
    reuse_orders,
    slots_by_cluster,
    temporal_slots,
    used,
    with_orders,
)
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.schema.problem import Problem

PASSES = 8
"""So many passes in a row without a candidate, and it gives up."""


@dataclass(frozen=True)
class DMazeRunnerMapper:
    """Passes over all tilings above the thresholds, level by level, `width` of them at a time.

    `array`, `inner`, `outer`: the least shares of the compute units, of the innermost cluster's memories, of those of
    every other cluster; of several memories in one cluster the fullest counts.
    """

    array: float
    inner: float
    outer: float
    reduction: bool
    width: int

    def search(self, task: Task, run: Run) -> Proposals:
        """Raises NotConformableError where no mapping is found that reaches the thresholds."""
        space = task.space
        orders = [reuse_orders(task.problem)] * len(temporal_slots(space))
        found, complete, empty = False, False, 0
        while not complete and empty < PASSES and (found or not run.exhausted):
            complete = True
            empty += 1
            for spreading in Spreading.each(space, run.rng):
                rows = self._candidates(spreading, run)
                for part in np.array_split(rows, 1 + len(rows) // 32) if len(rows) else ():
                    found, empty = True, 0
                    trips, order = with_orders(space, part, orders)
                    yield spreading.batch(trips, order)
                if run.exhausted and found:
                    yield spreading.batch(spreading.start)  # the driver stops here
                complete &= not spreading.thinned
        if not found:
            raise NotConformableError("dmazerunner", (self._reason(task.problem),))

    def _candidates(self, spreading: Spreading, run: Run) -> Ints:
        """Some tilings above the thresholds, the innermost memory filled first."""
        space = spreading.space
        dims = None if self.reduction else _kept_in_output(space.problem)
        rows = spreading.unroll(spreading.start, dims)
        rows = spreading.thin(rows[used(space, rows) >= self.array * space.architecture.compute_instances], self.width)
        for number, slots in enumerate(slots_by_cluster(space, temporal_slots(space)[1:])):
            for slot in slots:
                rows = spreading.into(slot, rows) if len(rows) and not run.exhausted else rows[:0]
            shares = np.array([spreading.fill(rows, slot) for slot in slots]).max(axis=0)
            rows = spreading.thin(rows[shares >= (self.outer if number else self.inner)], self.width)
        return rows

    def _reason(self, problem: Problem) -> Reason:
        text = (
            f"no mapping found that uses {self.array:.0%} of the array and fills {self.inner:.0%} of the innermost "
            f"memory and {self.outer:.0%} of the others; lower --mapper-option array=, inner=, outer="
        )
        return Reason(code="thresholds", where=problem.name, message=text)


def _kept_in_output(problem: Problem) -> list[int]:
    """The dimensions whose splitting needs no reduction in space."""
    return [problem.dimension_names.index(name) for name in problem.dimensions if name in problem.output.dimensions]
