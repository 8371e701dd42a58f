"""Least energy of a network within a total of cycles, from the fronts of its layers.

This is a multiple-choice knapsack. Along the lower convex hull of its front, a layer saves energy for further cycles,
first where a cycle saves most. Taking these steps in order, the last one in part, bounds the energy from below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.application.api.front.points import Front, FrontPoint
from tilewright.application.documents.searches import BudgetOutput, BudgetRow
from tilewright.errors import InputError
from tilewright.plugin.result import gap_of, proof
from tilewright.reports.costs import COSTS
from tilewright.tables import SIZES, Table, Tabular, numbers
from tilewright.values import attributes

Corner = tuple[float, float]
"""Cycles and pJ."""
Uses = tuple[tuple[FrontPoint, int], ...]
"""Points of a front, each with the number of layers that use it."""


@dataclass(frozen=True, repr=False)
class BudgetedNetwork(Tabular):
    """Mappings of least energy within `most_cycles` of the whole network, layer after layer.

    Attributes:
        chosen: for each front, the points in use, each with its number of layers.
        energy_pj, cycles: of the whole network.
        bound: lower bound on the energy within the budget; 0 if nothing was proved.

    Example:
        >>> import tilewright as tw
        >>> front = tw.front("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> network = front.within(10**6)
        >>> network.network, network.cycles <= 10**6
        ('einsum', True)
    """

    network: str
    architecture: str
    most_cycles: float
    chosen: tuple[tuple[Front, Uses], ...]
    energy_pj: float
    cycles: int
    bound: float

    def __repr__(self) -> str:
        return f"<BudgetedNetwork of {self.network} on {self.architecture}: {self.cycles:,} cycles>"

    @property
    def gap(self) -> float:
        """Largest possible energy saving within the budget, as a fraction."""
        return max(0.0, gap_of(self.energy_pj, self.bound) or 0.0)

    @property
    def claimed_by(self) -> str | None:
        """Names of the plugins whose claim the bound is; None: it is proved."""
        points = [point for front, _ in self.chosen for point in front.points]
        return next((point.claimed_by for point in points if point.claimed_by), None)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per chosen point, with the number of layers that use it."""
        return [
            {"layer": front.distinct.problem.name, "dimensions": front.distinct.problem.long_dimensions}
            | {"count": count}
            | COSTS.data("budget", point.layer.report)
            for front, uses in self.chosen
            for point, count in uses
        ]

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `map --pareto --budget-cycles --json`."""
        layers = [
            BudgetRow(**row, mapping=None if point.layer.mapping is None else point.layer.mapping.to_data())
            for row, (point, _) in zip(self.rows(), (use for _, uses in self.chosen for use in uses), strict=True)
        ]
        values = attributes(self, "architecture most_cycles energy_pj cycles bound gap claimed_by")
        return BudgetOutput(workload=self.network, **values, layers=layers).data()

    def tables(self) -> Sequence[Table | str]:
        title = f"least energy of {self.network} on {self.architecture} within {self.most_cycles:,.0f} cycles"
        table = Table("layer", SIZES, numbers("layers"), *COSTS.columns("budget"), title=title)
        for row in self.rows():
            table.add_row(*row.values())
        table.add_row("all", "", sum(row["count"] for row in self.rows()), *COSTS.data("budget", self).values())
        return [table, f"proved: {proof(self.gap, self.claimed_by)}"]


def chosen_within(fronts: Sequence[Front], most_cycles: float) -> list[Uses]:
    """Return the points of each front that its layers use. A step that does not fit is skipped, and later ones are tried.

    Raises:
        InputError: The layers take more cycles at least.
    """
    fewest = sum(front.points[0].cycles * front.distinct.count for front in fronts)
    if fewest > most_cycles:
        raise InputError(f"the budget is {most_cycles:,.0f} cycles; the layers take {fewest:,} at least")
    left, places = most_cycles - fewest, [{0: front.distinct.count} for front in fronts]
    hulls = [_hull([(point.cycles, point.energy_pj) for point in front.points]) for front in fronts]
    for _, number, step in _steps(hulls):
        cycles = hulls[number][step + 1][0] - hulls[number][step][0]
        count = math.floor(min(places[number].get(step, 0), left / cycles))
        if count:
            places[number][step] -= count
            places[number][step + 1] = count
            left -= cycles * count
    choices = []
    for front, hull, place in zip(fronts, hulls, places, strict=True):
        points = {point.cycles: point for point in front.points}
        choices.append(tuple((points[int(hull[step][0])], count) for step, count in place.items() if count))
    return choices


def bound_within(fronts: Sequence[Front], most_cycles: float) -> float:
    """Return a lower bound on the energy of all layers within a total of cycles, in pJ; 0 without a proof."""
    if any(point.bound is None for front in fronts for point in front.points):
        return 0.0
    hulls = [_hull(_corners(front)) for front in fronts]
    counts = [front.distinct.count for front in fronts]
    left = most_cycles - sum(hull[0][0] * count for hull, count in zip(hulls, counts, strict=True))
    energy = math.fsum(hull[0][1] * count for hull, count in zip(hulls, counts, strict=True))
    for slope, number, step in _steps(hulls):
        cycles = (hulls[number][step + 1][0] - hulls[number][step][0]) * counts[number]
        energy += slope * min(cycles, left)
        left -= min(cycles, left)
    return energy


def _corners(front: Front) -> list[Corner]:
    """Return the corners of the region that the points' bounds exclude: no mapping is left of and below them."""
    fewest = 0.0 if front.fastest.result is None else front.fastest.result.lower_bound or 0.0
    starts = [min(fewest, front.points[0].cycles), *(point.most_cycles + 1 for point in front.points[:-1])]
    bounds = [point.bound or 0.0 for point in front.points]
    return [(start, max(bounds[at:])) for at, start in enumerate(starts)]


def _hull(corners: Sequence[Corner]) -> list[Corner]:
    """Return the lower convex hull of corners with rising cycles, as far as the energy falls."""
    hull: list[Corner] = []
    for corner in corners:
        if hull and corner[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-2], corner):
            hull.pop()
        hull.append(corner)
    return hull


def _slope(one: Corner, other: Corner) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])


def _steps(hulls: Sequence[Sequence[Corner]]) -> list[tuple[float, int, int]]:
    """Return (pJ per cycle, hull, position) of all steps, those that save most first."""
    pairs = [
        (_slope(*hull[at : at + 2]), number, at) for number, hull in enumerate(hulls) for at in range(len(hull) - 1)
    ]
    return sorted(pairs)
