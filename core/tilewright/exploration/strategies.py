"""Strategies: which points are tried, in which order, and which need not be searched."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.exploration.bounds import Least, least
from tilewright.exploration.records import ExploredPoint
from tilewright.exploration.space import Point
from tilewright.run.configuration import RunConfiguration
from tilewright.run.network import LayerSearch
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload

WAVE = 16
"""Number of points whose layers are searched together."""
Watch = Callable[[float, str, float | None], None]
"""Callback with the number of finished points, a text for the current step, and the best objective so far."""
Waves = Generator[Sequence[Point], Sequence[ExploredPoint], None]


class Strategy(Protocol):
    """Protocol of a strategy: it chooses the points to search, and those that need no search."""

    def waves(self) -> Waves:
        """Yield groups of points to try together; the caller sends the results of each group before it asks for the next."""
        ...

    def needless(self, point: Point, found: Sequence[ExploredPoint]) -> str | None:
        """Return the reason why the points found make this one needless; None if it has to be searched."""
        ...


@dataclass(frozen=True)
class Grid:
    """Grid search: points in order or, with bounds, the most promising first and none that is dominated by its bounds."""

    points: Sequence[Point]
    bounds: dict[int, Least]
    """Lower bounds on energy and cycles by point; empty if unknown."""

    @classmethod
    def of(
        cls,
        points: Sequence[Point],
        workload: Workload,
        configuration: RunConfiguration,
        bounded: bool,
        watch: Watch | None = None,
    ) -> Grid:
        """Return the strategy with bounds of all points if `bounded`; call `watch` after each."""
        bounds = {}
        for number, point in enumerate(points):
            if bounded and point.architecture is not None:
                bounds[point.index] = least_of_workload(point.architecture, workload, configuration)
                if watch is not None:
                    watch(0.0, f"bounds of {number + 1:,} points", None)
        if not any(energy or cycles for energy, cycles in bounds.values()):
            return cls(points, {})
        objective = configuration.objective

        def promise(point: Point) -> float:
            energy, cycles = bounds.get(point.index, (0.0, 0.0))
            return {"edp": energy * cycles, "energy": energy, "cycles": cycles}[objective]

        return cls(sorted(points, key=promise), bounds)

    def waves(self) -> Waves:
        for start in range(0, len(self.points), WAVE):
            yield self.points[start : start + WAVE]

    def needless(self, point: Point, found: Sequence[ExploredPoint]) -> str | None:
        if point.index not in self.bounds or point.architecture is None:
            return None
        energy, cycles = self.bounds[point.index]
        mine = energy, cycles, point.architecture.area_um2 or 0.0
        better = next((each for each in found if _surely_better(each.costs, mine)), None)
        if better is None:
            return None
        return f"bound: takes {energy:.6g} pJ and {cycles:.6g} cycles at least, and point {better.index} is better"


def _surely_better(costs: tuple[float, ...], bounds: tuple[float, ...]) -> bool:
    """Return whether no cost exceeds its bound and one is lower by more than rounding."""
    pairs = list(zip(costs, bounds, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b * (1 - 1e-9) for a, b in pairs)


def least_of_workload(architecture: Architecture, workload: Workload, configuration: RunConfiguration) -> Least:
    """Return lower bounds on the total energy in pJ and the total cycles of all layers."""
    here = configuration.on_architecture(architecture)
    each = [(layer.count, *least(LayerSearch(layer, here))) for layer in workload.distinct()]
    return math.fsum(count * energy for count, energy, _ in each), math.fsum(count * cycles for count, _, cycles in each)  # fmt: skip
