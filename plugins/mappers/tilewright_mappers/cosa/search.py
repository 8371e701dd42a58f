"""`cosa`: solves the program, prices what it finds with all orders that differ in reuse."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from tilewright.batch import Bools, Ints, MappingBatch
from tilewright.costmodel import Costs
from tilewright.mapper import Proposals, Run, Task
from tilewright.mapspace import MapSpace
from tilewright.spreading import Spreading
from tilewright_mappers.cosa.formulation import Formulation, Goal
from tilewright_mappers.cosa.linear import Limits, solve
from tilewright_mappers.quickflow.orders import OneShot

TOLERANCE = 1e-3
"""By how much the logarithm of a sum may come out below the true one."""
COARSE = 0.02
"""The same, in relaxations."""
RELAXATIONS = 40
"""Relaxations solved to sharpen sums before the first whole program."""
COMBINATIONS = 4096
"""Combinations of orders priced for one solution."""

Proposing = Generator[MappingBatch, Costs, None]


@dataclass(frozen=True)
class CosaMapper:
    """The manual says what is the paper's and what is not.

    Attributes:
        objective: `published`: CoSA's weighted sum; `model`: the task's objective; None: both, the better is the result.
        weights: of utilization, compute and traffic in the published objective.
        seconds: for all programs together; a deadline of the search goes before.
        gap: a program is solved when its best is within so much of its bound, both logarithms: 0.002 is 0.2 %.
        nodes: most branches of one program.
        rounds: how often a program is solved, each time with sharper sums.
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
        orders = OneShot(task.space)
        for spreading in spreadings:
            yield from priced(task.space, orders, spreading.start, spreading.keep)
        ends = run.elapsed_seconds + self.seconds
        left = len(goals) * len(spreadings)
        for goal in goals:
            bounds = Bounds(run, goal, len(spreadings))
            for spreading in spreadings:
                share = run.elapsed_seconds + (ends - run.elapsed_seconds) / left
                form = Formulation(task.space, spreading.keep)
                form.minimise(goal, task.objective, self.weights)
                yield from self._solved(run, orders, form, spreading, share, bounds)
                left -= 1

    def _solved(
        self, run: Run, orders: OneShot, form: Formulation, spreading: Spreading, ends: float, bounds: Bounds
    ) -> Proposing:
        """Solve one program, again and again with sharper sums, and price what it finds."""

        def limits(share: float) -> Limits:
            seconds = min(run.remaining_seconds, ends - run.elapsed_seconds)
            return Limits(max(0.0, seconds * share), self.gap, self.nodes)

        for _ in range(RELAXATIONS):  # cheap, and the whole program begins with a close bound
            relaxed = solve(form.program, limits(1), whole=False)
            if not relaxed.found or not form.program.sharpen(relaxed.found[-1], COARSE):
                break
        start, seen = form.values(spreading.start[0]), set[bytes]()
        for _ in range(self.rounds):
            if not limits(1).seconds:
                break
            solution = solve(form.program, limits(0.5), start=start)
            bounds.tell(spreading.keep, solution.bound)
            trips = {each.tobytes(): each for each in map(form.trips, reversed(solution.found))}
            new = [each for key, each in trips.items() if key not in seen]
            seen.update(trips)
            if new:
                yield from priced(form.space, orders, np.array(new), spreading.keep)
            if not solution.found or not form.program.sharpen(solution.found[-1], TOLERANCE):
                break
            start = form.values(form.trips(solution.found[-1]))


@dataclass
class Bounds:
    """What the solver has proved for each choice of what is kept; the least of them is told."""

    run: Run
    goal: Goal
    count: int
    proved: dict[bytes, float] = field(default_factory=dict)

    def tell(self, keep: Bools, bound: float) -> None:
        self.proved[keep.tobytes()] = max(bound, self.proved.get(keep.tobytes(), -math.inf))
        least = min(self.proved.values())
        if len(self.proved) == self.count and math.isfinite(least):
            self.run.figures[f"{self.goal}_bound"] = math.exp(least) if self.goal == "model" else least


def priced(space: MapSpace, orders: OneShot, trips: Ints, keep: Bools) -> Proposing:
    """Solutions that fit, each in one shot and with the combinations of orders that differ in reuse."""
    kept = np.broadcast_to(keep, (len(trips), *keep.shape))
    good = trips[space.fits(space.build(trips, keep=kept)) & _allowed(space, trips)]
    for row in good:
        order = np.concatenate([orders.order(row[None], keep[None]), orders.every(row, COMBINATIONS)])
        shape = len(order)
        yield space.build(np.broadcast_to(row, (shape, *row.shape)), order, np.broadcast_to(keep, (shape, *keep.shape)))


def _allowed(space: MapSpace, trips: Ints) -> Bools:
    """Whether all factors stand within the rules and fanouts, and none is lost, bool [n]."""
    good = (trips.prod(axis=1) == np.array(space.problem.sizes)).all(axis=1)
    for slot in range(len(space.slots)):
        for dim in range(trips.shape[2]):
            good &= space.allowed(trips, slot, dim)
    return np.asarray(good)
