"""The front of a layer: mappings of which none takes less energy in as few cycles, each searched under a bound on the cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.plugin.result import gap_of, proof
from tilewright.run.network import MappedLayer
from tilewright.schema.report import Objective
from tilewright.schema.workload import DistinctProblem

Least = Callable[[Objective, float], MappedLayer]
"""(what to make small, most cycles) -> the best mapping of the layer."""
SAME = 1 + 1e-9
"""Energies that differ by no more are one."""


@dataclass(frozen=True)
class FrontPoint:
    """The mapping of least energy that was found among those of at most `most_cycles`; inf: among all. `bound`: none of these takes less
    energy than that; None: nothing was proved."""

    layer: MappedLayer
    energy_pj: float
    cycles: int
    most_cycles: float
    bound: float | None

    @property
    def gap(self) -> float | None:
        """How much less energy one of at most `most_cycles` might take, as a part; None where nothing was proved."""
        gap = gap_of(self.energy_pj, self.bound)
        return None if gap is None else max(0.0, gap)

    @property
    def proved(self) -> str:
        """The same in words: yes, how much less, or no."""
        return proof(self.gap) or "no"

    def settled(self, most_cycles: float, bound: float | None) -> FrontPoint:
        """The same among more mappings, where none of those takes less energy than the bound."""
        if most_cycles <= self.most_cycles:
            return self
        both = None if self.bound is None or bound is None else min(self.bound, bound)
        return replace(self, most_cycles=most_cycles, bound=both)


@dataclass(frozen=True)
class Front:
    """Fewest cycles first. `whole`: there are no other points, as far as these are proved; otherwise these are some of them.
    `fastest`: what was found when only cycles counted, or why nothing was. `interrupted`: Ctrl-C ended its searches."""

    distinct: DistinctProblem
    points: tuple[FrontPoint, ...]
    whole: bool
    fastest: MappedLayer
    interrupted: bool = False


def front_of(distinct: DistinctProblem, least: Least, most: int) -> Front:
    """At most `most` points, at least 2: the ends first, then always in the widest gap in cycles that may have one."""
    fastest = least("cycles", math.inf)
    if fastest.cycles is None or fastest.energy_pj is None:
        return Front(distinct, (), False, fastest)
    search = _Search(least)
    search.ask(float(fastest.cycles))
    search.ask(math.inf)
    search.fill(most)
    wanted = list(search.points)
    for point in reversed(wanted[1:]):
        search.tighten(point.energy_pj)
    found = [point for number, point in enumerate(search.points) if search.failed or search.is_tight(number)]
    if len(found) > most:  # some are by the way
        found = [point for point in found if any(_same(point.energy_pj, each.energy_pj) for each in wanted)]
    whole = not search.failed and not search.gaps() and len(found) == len(search.points)
    if not found:  # searched no further
        found = [FrontPoint(fastest, fastest.energy_pj, fastest.cycles, float(fastest.cycles), None)]
    return Front(distinct, tuple(found), whole, fastest)


def _same(one: float, other: float) -> bool:
    return one <= other * SAME and other <= one * SAME


class _Search:
    """What has been found so far: points of fewer cycles and more energy first."""

    def __init__(self, least: Least) -> None:
        self.least = least
        self.points: list[FrontPoint] = []
        self.failed = False
        """A search found nothing where there is something: it was interrupted, or is a poor one."""

    def ask(self, cap: float) -> float:
        """Search under a bound on the cycles; the energy of what is found."""
        layer = self.least("energy", cap)
        if layer.cycles is None or layer.energy_pj is None:
            self.failed = True
            return math.inf
        self.points = _with(self.points, layer, layer.cycles, layer.energy_pj, cap)
        return layer.energy_pj

    def is_tight(self, number: int) -> bool:
        """No mapping takes as little energy in fewer cycles."""
        return number == 0 or self.points[number - 1].most_cycles >= self.points[number].cycles - 1

    def gaps(self) -> list[int]:
        """Numbers of the points below which there may be others."""
        return [number for number in range(len(self.points)) if not self.is_tight(number)]

    def _middle(self, number: int) -> float:
        """Between what is settled below a point and the point."""
        before, point = self.points[number - 1], self.points[number]
        return min(
            point.cycles - 1, max(before.most_cycles + 1, math.floor(math.sqrt(before.most_cycles * point.cycles)))
        )

    def fill(self, most: int) -> None:
        """Look for points between, as long as there is room."""
        # energies of points below which the nearer half is empty: all that is left is asked for at once
        vain: set[float] = set()
        while len(self.points) < most and not self.failed and (gaps := self.gaps()):
            number = max(gaps, key=lambda each: self.points[each].cycles / self.points[each - 1].most_cycles)
            point, count = self.points[number], len(self.points)
            self.ask(point.cycles - 1 if point.energy_pj in vain else self._middle(number))
            if len(self.points) == count:
                vain.add(point.energy_pj)

    def tighten(self, energy: float) -> None:
        """Find the fewest cycles in which so little energy is taken."""
        same = False
        while not self.failed:
            number = next(each for each, point in enumerate(self.points) if point.energy_pj <= energy * SAME)
            if self.is_tight(number):
                return
            cap = self._middle(number) if same else self.points[number].cycles - 1
            same = self.ask(cap) <= energy * SAME


def _with(points: list[FrontPoint], layer: MappedLayer, cycles: int, energy: float, cap: float) -> list[FrontPoint]:
    """With what was found under this bound on the cycles, without those that it is better than; one as good as it stands for it."""
    bound = None if layer.result is None else layer.result.lower_bound
    for number, point in enumerate(points):
        if point.cycles <= cycles and point.energy_pj <= energy * SAME:
            return [*points[:number], point.settled(cap, bound), *points[number + 1 :]]
    worse = [point for point in points if point.cycles >= cycles and point.energy_pj * SAME >= energy]
    new = FrontPoint(layer, energy, cycles, cap, bound)
    for point in worse:
        new = new.settled(point.most_cycles, point.bound)
    return sorted([new, *(point for point in points if point not in worse)], key=lambda point: point.cycles)
