"""Mapper `dmazerunner`: tilings that fill array and memories above thresholds, with reusing orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, reuse_orders, slots_by_cluster, used, with_orders
from tilewright.plugin import Proposals, Run, Task
from tilewright.schema.problem import Problem
from tilewright_mappers import DMazeRunnerOptions

PASSES = 8
"""Consecutive passes without a candidate after which the search gives up."""


@dataclass(frozen=True)
class DMazeRunner:
    """Passes over all tilings above the thresholds, level by level, `width` of them at a time.

    If a cluster has several memories, the fullest counts.
    """

    options: DMazeRunnerOptions

    def search(self, task: Task, run: Run) -> Proposals:
        """Search the task's map space.

        Raises:
            NotConformableError: no mapping reaches the thresholds.
        """
        space = task.space
        orders = [reuse_orders(task.problem)] * len(space.temporal_slots)
        has_result, complete, empty = False, False, 0
        while not complete and empty < PASSES and (has_result or not run.exhausted):
            complete = True
            empty += 1
            for placement in Placement.each(space, run.rng):
                rows = self._candidates(placement, run)
                for part in np.array_split(np.arange(len(rows)), 1 + len(rows) // 32) if len(rows) else ():
                    has_result, empty = True, 0
                    yield with_orders(rows.take(part), orders)
                if run.exhausted and has_result:
                    yield placement.start  # the driver stops here
                complete &= not placement.subsampled
        if not has_result:
            raise NotConformableError("dmazerunner", (self._reason(task.problem),))

    def _candidates(self, placement: Placement, run: Run) -> Candidates:
        """Return some tilings above the thresholds; the innermost memory is filled first."""
        space, options = placement.space, self.options
        dims = None if options.reduction else _kept_in_output(space.problem)
        rows = placement.unroll(placement.start, dims)
        full = used(rows) >= options.array * space.architecture.compute_instances
        rows = placement.subsample(rows.take(full), options.width)
        for number, slots in enumerate(slots_by_cluster(space, space.temporal_slots[1:])):
            for slot in slots:
                rows = placement.into(slot, rows if not run.exhausted else rows.take(slice(0, 0)))
            shares = np.array([placement.fill(rows, slot) for slot in slots]).max(axis=0)
            rows = placement.subsample(rows.take(shares >= (options.outer if number else options.inner)), options.width)
        return rows

    def _reason(self, problem: Problem) -> Reason:
        options = self.options
        text = (
            f"no mapping found that uses {options.array:.0%} of the array and fills {options.inner:.0%} of the innermost "
            f"memory and {options.outer:.0%} of the others; lower --mapper-option array=, inner=, outer="
        )
        return Reason(code="thresholds", where=problem.name, message=text)


def _kept_in_output(problem: Problem) -> list[int]:
    """Return the dimensions whose unrolling needs no spatial reduction."""
    return [problem.dimension_names.index(name) for name in problem.dimensions if name in problem.output.dimensions]
