"""`cosa`: solve, evaluate the solver's solutions, solve again around the best one, then reorder its loops."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, with_orders
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.plugin import Costs, Proposals, Run, Task
from tilewright.schema.mapping import Mapping
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.measures import MappingMeasures, Terms, breakdown, check_tensors
from tilewright_mappers.cosa.objectives import Shares, least_energy_pj, weighted
from tilewright_mappers.cosa.program import Linear, Program, SolverLimits
from tilewright_mappers.cosa.tiling import Tiling
from tilewright_mappers.cosa.traffic import Traffic
from tilewright_mappers.local import built

MARGIN_SECONDS = 0.3
"""Seconds reserved before a deadline, because the solver checks the clock late and costs take time."""
UNROLLINGS = 32
"""Number of unrollings that are evaluated before a program is solved; these use the most compute units."""
CUTS = 8
"""Maximum number of solves of a program, which is repeated if the tiles of its solution do not fit."""


@dataclass(frozen=True)
class Cosa:
    """CoSA search: for each choice of kept tensors one program, or several around the best solution so far."""

    options: CosaOptions

    def search(self, task: Task, run: Run) -> Proposals:
        check_tensors(task.problem, self.options)
        choices, placed, solved = Placement.each(task.space, run.rng), _Best(), _Best()
        starts = []
        for choice in choices:
            rows, best = constructed(choice), _Best()
            best.note(task, np.zeros((len(rows), 0)), rows, (yield rows))
            starts.append(rows.take(slice(0, 1)) if best.rows is None else best.rows)
            placed.take(best)
        for number, start in enumerate(starts):
            yield from self._solutions(task, run, start, solved, len(choices) - number)
        if np.isfinite(solved.bound):  # a program that was cut short may have none
            run.figures.update(program=solved.program, program_bound=solved.bound)
        placed.take(solved)
        yield from _reordered(task, placed)

    def figures(self, task: Task, best: Mapping) -> dict[str, float]:
        """Return the breakdown of CoSA's objective for a mapping of the space."""
        terms = Terms.of(MappingMeasures.of(task.space, best), self.options)
        return breakdown(terms, self.options.objective_form == "balanced")

    def _limits(self, run: Run, parts: int) -> SolverLimits:
        """Return the limits of one program if `parts` programs are left to solve."""
        return SolverLimits((run.remaining_seconds - MARGIN_SECONDS) / parts, self.options.nodes, self.options.gap)

    def _solutions(self, task: Task, run: Run, start: Candidates, best: _Best, left: int) -> Proposals:
        """Propose solutions for the kept tensors of `start`, the solver's first solution; `left` choices are not solved yet."""
        tiling = Tiling(task.space, start.keeps[0])
        traffic = Traffic(tiling)
        begin = tiling.values(start)
        if self.options.objective_form != "energy":
            objective = weighted(traffic, self.options, tiling.program)
            yield from self._solve(task, run, traffic, tiling.program, objective, best, left, begin)
            return
        shares, whole_pj, here = Shares(traffic, traffic.moves()), least_energy_pj(task.space), _Best()
        for number in range(self.options.rounds):
            program, before = tiling.program.copy(), here.value
            objective = shares.of(task.objective, program, whole_pj)
            parts = left * (self.options.rounds - number)
            yield from self._solve(task, run, traffic, program, objective, here, parts, begin)
            best.take(here)
            if here.point is None or here.rows is None or not here.value < before:
                return
            whole_pj, begin = shares.energy_pj(here.point), tiling.values(here.rows)

    def _solve(
        self,
        task: Task,
        run: Run,
        traffic: Traffic,
        program: Program,
        objective: Linear,
        best: _Best,
        parts: int,
        begin: dict[int, float],
    ) -> Proposals:
        """Propose the solutions that fit. Tiles that do not fit are cut off, and the program is solved again.

        `begin`: values of a first solution.
        """
        tiling = traffic.tiling
        for _ in range(CUTS):
            limits = self._limits(run, parts)
            if limits.seconds <= 0:
                run.short_of_time = True
                return
            solved = program.solve(objective, limits, begin)
            points = solved.points
            run.short_of_time |= not solved.in_time
            sound = tiling.sound(tiling.read(points))
            if sound.any():
                rows = traffic.read(points[sound])
                if best.note(task, points[sound], rows, (yield rows)) and best.point is not None:
                    best.program, best.bound = objective.at(best.point), solved.bound
            if not len(points) or sound[-1] or not tiling.cut(program, points[-1]):
                return


def constructed(placement: Placement) -> Candidates:
    """Return mappings built without a program, for one choice of kept tensors.

    These are the mapping with all factors outside, that of `local`, and some that use the most compute units.
    """
    full = placement.subsample(placement.fullest(placement.unroll(placement.start)), UNROLLINGS)
    return Candidates.join([placement.start, built(placement), full])


class _Best:
    """Best mapping with its solution, its program's objective and the solver's bound."""

    def __init__(self) -> None:
        self.value = self.program = np.inf
        self.bound = -np.inf
        self.point: Floats | None = None
        self.rows: Candidates | None = None

    def note(self, task: Task, points: Floats, rows: Candidates, costs: Costs) -> bool:
        """Keep the best of `rows` if it improves on the mapping kept so far; return whether it does."""
        values = costs.of(task.objective)
        if not len(values) or not values.min() < self.value:
            return False
        row = int(values.argmin())
        self.value, self.point, self.rows = float(values[row]), points[row], rows.take(slice(row, row + 1))
        return True

    def take(self, other: _Best) -> None:
        """Replace this by `other` if that is better."""
        if other.value < self.value:
            vars(self).update(vars(other))


def _reordered(task: Task, best: _Best) -> Generator[Candidates, Costs, None]:
    """Propose the best mapping with all loop orders that differ in reuse, one block at a time from the innermost."""
    space, orders = task.space, distinct_reuse_orders(task.problem)
    blocks = range(len(space.temporal_slots))
    for block in [*reversed(blocks), *reversed(blocks)]:
        if best.rows is None:
            return
        rows = with_orders(best.rows, [orders if number == block else best.rows.orders[:, number] for number in blocks])
        if len(rows) > 1:
            best.note(task, np.zeros((len(rows), 0)), rows, (yield rows))
