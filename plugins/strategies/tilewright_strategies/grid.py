"""Grid search: points in order or, with bounds, the most promising first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointProposals, PointResult
from tilewright_strategies import GROUP

Bounds = dict[int, tuple[float, float]]
"""Lower bounds on energy in pJ and cycles by point."""


class Grid:
    """Strategy that tries all points, except those that another point dominates by their bounds."""

    def explore(self, task: ExplorationTask) -> PointProposals:
        points = task.drawn()
        bounds = _bounds(task, points)
        if not any(energy or cycles for energy, cycles in bounds.values()):
            bounds = {}

        def promise(index: int) -> float:
            energy, cycles = bounds.get(index, (0.0, 0.0))
            return task.objective.value(energy, cycles)

        points = sorted(points, key=promise)
        best: list[PointResult] = []
        for start in range(0, len(points), GROUP):
            group = points[start : start + GROUP]
            results = yield [PointProposal(index, _needless(task, index, bounds, best)) for index in group]
            best = _front([*best, *results])


def _bounds(task: ExplorationTask, points: Sequence[int]) -> Bounds:
    """Return the bounds of all valid points."""
    bounds: Bounds = {}
    if task.bounds is None:
        return bounds
    for number, index in enumerate(points):
        if task.architecture(index) is not None:
            bounds[index] = task.bounds(index)
            task.report(f"bounds of {number + 1:,} points")
    return bounds


def _needless(task: ExplorationTask, index: int, bounds: Bounds, best: Sequence[PointResult]) -> str | None:
    """Return the reason why a better point makes this one needless, or None."""
    architecture = task.architecture(index)
    if index not in bounds or architecture is None:
        return None
    energy, cycles = bounds[index]
    costs = energy, cycles, architecture.area_um2 or 0.0
    better = next((result for result in best if _surely_better(result.costs, costs)), None)
    if better is None:
        return None
    return f"bound: takes {energy:.6g} pJ and {cycles:.6g} cycles at least, and point {better.index} is better"


def _surely_better(costs: tuple[float, ...], bounds: tuple[float, ...]) -> bool:
    """Return whether no cost exceeds its bound and one is lower by more than rounding."""
    pairs = list(zip(costs, bounds, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b * (1 - 1e-9) for a, b in pairs)


def _front(results: Sequence[PointResult]) -> list[PointResult]:
    """Return the Pareto-optimal results."""
    finite = [result for result in results if math.isfinite(result.energy_pj)]
    return [result for result in finite if not any(_dominates(other.costs, result.costs) for other in finite)]


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
