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
"""Points whose layers are searched at once."""
Watch = Callable[[float, str, float | None], None]
"""(points that are done, what is under way, the least objective so far) -> None."""
Waves = Generator[Sequence[Point], Sequence[ExploredPoint], None]


class Strategy(Protocol):
    """Points, and what is known of those that were not searched yet."""

    def waves(self) -> Waves:
        """Points to be tried together, one such group after another; what became of each group is sent before the next is asked for."""
        ...

    def needless(self, point: Point, found: Sequence[ExploredPoint]) -> str | None:
        """Why a point need not be searched, after what was found; None: it is to be searched."""
        ...


@dataclass(frozen=True)
class Grid:
    """Points as they come; with bounds those first that may be the best, and none that another one surely beats."""

    points: Sequence[Point]
    bounds: dict[int, Least]
    """Point -> energy and cycles that it takes at least; empty: not known."""

    @classmethod
    def of(
        cls,
        points: Sequence[Point],
        workload: Workload,
        configuration: RunConfiguration,
        bounded: bool,
        watch: Watch | None = None,
    ) -> Grid:
        """Bounds of all points, if they are wanted; `watch` is told of each."""
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
    """Nowhere worse than the bounds and somewhere better, by more than rounding."""
    pairs = list(zip(costs, bounds, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b * (1 - 1e-9) for a, b in pairs)


def least_of_workload(architecture: Architecture, workload: Workload, configuration: RunConfiguration) -> Least:
    """Energy in pJ and cycles of all layers, one after another, at least."""
    here = configuration.on(architecture)
    each = [(layer.count, *least(LayerSearch(layer, here))) for layer in workload.distinct()]
    return math.fsum(count * energy for count, energy, _ in each), math.fsum(count * cycles for count, _, cycles in each)  # fmt: skip
