"""`cosa`: solves the program, prices what it finds with all orders that differ in reuse."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from tilewright.batch import Bools, Ints, MappingBatch
from tilewright.costmodel import Costs
from tilewright.looporders import distinct_reuse_orders
from tilewright.mapper import Proposals, Run, Task
from tilewright.mapspace import MapSpace
from tilewright.spreading import Spreading, temporal_slots, with_orders
from tilewright_mappers.cosa.formulation import Formulation, Goal
from tilewright_mappers.cosa.linear import Solution, solve

logger = logging.getLogger(__name__)

TOLERANCE = 1e-3
"""By how much a sum of exponentials may be below its true logarithm."""
RELAXED_ROUNDS = 40
"""Relaxations solved to sharpen sums before the first whole program."""
CHUNK = 8192

Proposing = Generator[MappingBatch, Costs, None]


@dataclass(frozen=True)
class CosaMapper:
    """The manual says what is the paper's and what is not.

    Attributes:
        objective: `published`: CoSA's weighted sum; `model`: the task's objective; None: both, the better is the result.
        weights: of utilization, compute and traffic in the published objective.
        seconds: for all programs together; a deadline of the search goes before.
        gap: a program is solved when its best is within this share of its bound.
        nodes: most branches of one program.
        rounds: how often a program is solved again with sharper sums.
    """

    objective: Goal | None = None
    weights: tuple[float, float, float] = (0.1, 10.0, 1.0)
    seconds: float = 20.0
    gap: float = 0.002
    nodes: int = 20_000
    rounds: int = 12

    def search(self, task: Task, run: Run) -> Proposals:
        spreadings = Spreading.each(task.space, run.rng)
        goals: tuple[Goal, ...] = ("model", "published") if self.objective is None else (self.objective,)
        tried = [(spreading, goal) for spreading in spreadings for goal in goals]
        for spreading in spreadings:
            yield from self._priced(task, run, spreading.start, spreading.keep)
        ends = run.elapsed_seconds + self.seconds
        for number, (spreading, goal) in enumerate(tried):
            share = (ends - run.elapsed_seconds) / (len(tried) - number)
            yield from self._solved(task, run, spreading, goal, share)

    def _solved(self, task: Task, run: Run, spreading: Spreading, goal: Goal, seconds: float) -> Proposing:
        form = Formulation(task.space, spreading.keep)
        form.minimise(goal, task.objective, self.weights)
        ends = run.elapsed_seconds + seconds

        def left() -> float:
            return min(run.remaining_seconds, ends - run.elapsed_seconds)

        self._relax(form, left)
        start, seen = form.values(spreading.start[0]), set[bytes]()
        for _ in range(self.rounds):
            if left() <= 0:
                return
            solution = solve(form.program, True, left() / 2, self.gap, self.nodes, start)
            self._report(task, goal, form, solution)
            if not solution.found:
                return
            trips = [form.trips(values) for values in reversed(solution.found)]
            new = [each for each in trips if each.tobytes() not in seen]
            seen.update(each.tobytes() for each in new)
            if new:
                yield from self._priced(task, run, np.array(new), spreading.keep)
            best = solution.found[-1]
            start = form.values(form.trips(best))
            if not form.program.sharpen(best, TOLERANCE):
                return

    def _relax(self, form: Formulation, left: Callable[[], float]) -> None:
        """Sharpen sums where relaxations break them: cheap, and the whole program starts with a close bound."""
        for _ in range(RELAXED_ROUNDS):
            if left() <= 0:
                return
            relaxed = solve(form.program, False, left(), self.gap, self.nodes)
            if not relaxed.found or not form.program.sharpen(relaxed.found[-1], 0.02):
                return

    def _report(self, task: Task, goal: Goal, form: Formulation, solution: Solution) -> None:
        if solution.found:
            value = form.program.objective.at(solution.found[-1])
            logger.info("%s: %s %.6g, bound %.6g", task.problem.name, goal, value, solution.bound)

    def _priced(self, task: Task, run: Run, trips: Ints, keep: Bools) -> Proposing:
        """Solutions with all combinations of orders that differ in reuse, those that fit."""
        space = task.space
        kept = np.broadcast_to(keep, (len(trips), *keep.shape))
        good = space.fits(space.build(trips, keep=kept)) & _allowed(space, trips)
        choices = [distinct_reuse_orders(space.problem)] * len(temporal_slots(space))
        for row in trips[good]:
            rows, order = with_orders(space, row[None], choices)
            for start in range(0, len(rows), CHUNK):
                if run.exhausted:
                    return
                part = slice(start, start + CHUNK)
                same = np.broadcast_to(keep, (len(rows[part]), *keep.shape))
                yield space.build(rows[part], order[part], same)


def _allowed(space: MapSpace, trips: Ints) -> Bools:
    """Whether all factors stand within the rules and fanouts, and none is lost, bool [n]."""
    good = (trips.prod(axis=1) == np.array(space.problem.sizes)).all(axis=1)
    for slot in range(len(space.slots)):
        for dim in range(trips.shape[2]):
            good &= space.allowed(trips, slot, dim)
    return np.asarray(good)
