"""Pareto front of a layer.

Each point is the mapping of lowest energy within a limit on the cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.application.run.network import MappedLayer
from tilewright.errors import TilewrightError
from tilewright.plugin.result import gap_of, proof
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.workload import DistinctProblem

Least = Callable[[Objective, float], MappedLayer]
"""Function from objective and cycle limit to the best mapping of the layer."""
SAME = 1 + 1e-9
"""Ratio up to which two energies count as equal."""


@dataclass(frozen=True)
class FrontPoint:
    """Mapping of lowest energy found within a limit of `most_cycles` (inf: no limit).

    `bound` is a lower bound on the energy within that limit; None if nothing was proved.
    """

    layer: MappedLayer
    energy_pj: float
    cycles: int
    most_cycles: float
    bound: float | None

    @property
    def gap(self) -> float | None:
        """Largest possible energy saving within `most_cycles`, as a fraction; None if nothing was proved."""
        gap = gap_of(self.energy_pj, self.bound)
        return None if gap is None else max(0.0, gap)

    @property
    def proved(self) -> str:
        """State of the proof as text: yes, the largest possible saving, or no; with the name of a plugin that claims it."""
        return proof(self.gap, self.claimed_by) or "no"

    @property
    def claimed_by(self) -> str | None:
        """Names of the plugins whose claim the bound is; None: it is proved, or there is none."""
        return None if self.layer.result is None else self.layer.result.claimed_by

    def extended(self, most_cycles: float, bound: float | None) -> FrontPoint:
        """Return the point for a larger cycle limit, with `bound` for the mappings that it adds."""
        if most_cycles <= self.most_cycles:
            return self
        both = None if self.bound is None or bound is None else min(self.bound, bound)
        return replace(self, most_cycles=most_cycles, bound=both)


@dataclass(frozen=True)
class Front:
    """Pareto front of a layer, lowest cycles first.

    `whole` is set if the front is complete, up to the gaps of its points. `fastest` is the result
    of the search for the lowest number of cycles. `interrupted` is set if Ctrl-C ended a search.
    """

    distinct: DistinctProblem
    points: tuple[FrontPoint, ...]
    whole: bool
    fastest: MappedLayer
    interrupted: bool = False
    refuted: TilewrightError | None = None
    """The failure of the plugin whose bound another search of the front refutes; then no point has a bound."""

    @property
    def errors(self) -> tuple[TilewrightError, ...]:
        """Errors of its searches, each once."""
        layers = self.fastest, *(point.layer for point in self.points)
        errors = [error for error in (*(layer.error for layer in layers), self.refuted) if error is not None]
        return tuple({str(error): error for error in errors}.values())


def front_of(distinct: DistinctProblem, least: Least, most: int) -> Front:
    """Return up to `most` points of the front of a layer.

    `most` is at least 2. Both ends are searched first, then repeatedly the widest gap in cycles
    that may contain another point.
    """
    fastest = least(CYCLES, math.inf)
    if fastest.cycles is None or fastest.energy_pj is None:
        return Front(distinct, (), False, fastest)
    search = _Search(least)
    search.ask(float(fastest.cycles))
    search.ask(math.inf)
    search.fill(most)
    wanted = list(search.points)
    for point in reversed(wanted[1:]):
        search.tighten(point.energy_pj)
    points = [point for number, point in enumerate(search.points) if search.failed or search.is_tight(number)]
    if len(points) > most:  # intermediate points found while tightening
        points = [point for point in points if any(_same(point.energy_pj, other.energy_pj) for other in wanted)]
    whole = not search.failed and not search.gaps() and len(points) == len(search.points)
    if not points:  # the searches under a limit found nothing
        points = [FrontPoint(fastest, fastest.energy_pj, fastest.cycles, float(fastest.cycles), None)]
    return Front(distinct, tuple(points), whole, fastest)


def _same(one: float, other: float) -> bool:
    return one <= other * SAME and other <= one * SAME


class _Search:
    """Points found so far, by ascending cycles and descending energy."""

    def __init__(self, least: Least) -> None:
        self.least = least
        self.points: list[FrontPoint] = []
        self.failed = False
        """Whether a search found no mapping although one exists: it was interrupted, or is incomplete."""

    def ask(self, cap: float) -> float:
        """Search under a cycle limit, store the result, and return its energy."""
        layer = self.least(ENERGY, cap)
        if layer.cycles is None or layer.energy_pj is None:
            self.failed = True
            return math.inf
        self.points = _with(self.points, layer, layer.cycles, layer.energy_pj, cap)
        return layer.energy_pj

    def is_tight(self, number: int) -> bool:
        """Return whether no mapping with fewer cycles reaches the energy of a point."""
        return number == 0 or self.points[number - 1].most_cycles >= self.points[number].cycles - 1

    def gaps(self) -> list[int]:
        """Return the indices of points below which there may be others."""
        return [number for number in range(len(self.points)) if not self.is_tight(number)]

    def _middle(self, number: int) -> float:
        """Return a cycle limit in the middle of the gap below a point."""
        before, point = self.points[number - 1], self.points[number]
        return min(
            point.cycles - 1, max(before.most_cycles + 1, math.floor(math.sqrt(before.most_cycles * point.cycles)))
        )

    def fill(self, most: int) -> None:
        """Search in the gaps until there are `most` points or no gaps."""
        # energies of points whose nearer half of the gap is empty: the next search covers the whole
        # gap
        vain: set[float] = set()
        while len(self.points) < most and not self.failed and (gaps := self.gaps()):
            number = max(gaps, key=lambda gap: self.points[gap].cycles / self.points[gap - 1].most_cycles)
            point, count = self.points[number], len(self.points)
            self.ask(point.cycles - 1 if point.energy_pj in vain else self._middle(number))
            if len(self.points) == count:
                vain.add(point.energy_pj)

    def tighten(self, energy: float) -> None:
        """Find the lowest number of cycles with which this energy is reached."""
        same = False
        while not self.failed:
            number = next(index for index, point in enumerate(self.points) if point.energy_pj <= energy * SAME)
            if self.is_tight(number):
                return
            cap = self._middle(number) if same else self.points[number].cycles - 1
            same = self.ask(cap) <= energy * SAME


def _with(points: list[FrontPoint], layer: MappedLayer, cycles: int, energy: float, cap: float) -> list[FrontPoint]:
    """Return the points with a new result, without the points that it dominates.

    A result that an existing point dominates extends the cycle limit of that point.
    """
    bound = None if layer.result is None else layer.result.lower_bound
    for number, point in enumerate(points):
        if point.cycles <= cycles and point.energy_pj <= energy * SAME:
            return [*points[:number], point.extended(cap, bound), *points[number + 1 :]]
    worse = [point for point in points if point.cycles >= cycles and point.energy_pj * SAME >= energy]
    new = FrontPoint(layer, energy, cycles, cap, bound)
    for point in worse:
        new = new.extended(point.most_cycles, point.bound)
    return sorted([new, *(point for point in points if point not in worse)], key=lambda point: point.cycles)
