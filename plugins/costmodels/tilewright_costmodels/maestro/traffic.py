"""Elements sent to and from the sub-clusters of a level, and operations, in one phase."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tilewright_costmodels.maestro.levels import Extent, Level
from tilewright_costmodels.maestro.phases import Phase, State


class Who(Enum):
    """Which sub-cluster a tile is for."""

    FIRST = 1
    OTHER = 2
    LAST = 3
    """The last one at work, with a short tile."""


@dataclass(frozen=True)
class Spread:
    """Who is at work in a phase."""

    clusters: int
    """At work in this phase."""
    edge: bool
    partial: bool
    """The last of them has a short tile."""

    @property
    def first(self) -> Who:
        return Who.LAST if self.edge and self.clusters == 1 and self.partial else Who.FIRST

    def total(self, share: Callable[[Who], int], other: Who = Who.OTHER) -> int:
        """The sum over sub-clusters; `other` says as whom the later ones count."""
        if not self.edge:
            return share(self.first) + (self.clusters - 1) * (share(other) if self.clusters > 1 else 0)
        if self.clusters == 1:
            return share(self.first)
        return (
            share(Who.FIRST)
            + max(self.clusters - self.partial - 1, 0) * share(other)
            + (share(Who.LAST) if self.partial else 0)
        )


def spread_of(level: Level, phase: Phase) -> Spread:
    """With two SpatialMaps one at its edge is enough; the flag is that of the later one."""
    states = [state for each, state in zip(level.maps, phase.states, strict=True) if each.spatial and state.edge]
    if not states:
        return Spread(level.sub_clusters, edge=False, partial=False)
    return Spread(level.edge_clusters, edge=True, partial=states[-1].partial_last)


class PhaseTraffic:
    """Ingress, egress and operations of one phase of one level."""

    def __init__(self, level: Level, phase: Phase) -> None:
        self.level = level
        self.phase = phase
        self.spread = spread_of(level, phase)

    def ingress(self, dimensions: str) -> int:
        """Elements of an input tensor sent down. A tensor that the moved loop does not index costs nothing."""
        moved = self.phase.moved
        if moved is not None and self.level.maps[moved].dimension not in dimensions:
            return 0

        def share(who: Who) -> int:
            return math.prod(self._down(dimension, dimensions, who) for dimension in dimensions)

        return self.spread.total(share) if self._is_spatial(dimensions) else share(Who.FIRST)

    def egress(self, dimensions: str) -> int:
        """Elements of the output sent up: the whole tile at every step; sums over sub-clusters cost nothing."""

        def share(who: Who) -> int:
            return math.prod(self._up(self.level.output_extents, d, who, counting=False) for d in dimensions)

        return self.spread.total(share) if self._is_spatial(dimensions) else share(self.spread.first)

    def critical_macs(self, dimensions: str) -> int:
        """Operations of the first sub-cluster at work."""
        return self._macs(dimensions, self.spread.first)

    def macs(self, dimensions: str) -> int:
        """Operations of all sub-clusters."""
        return self.spread.total(lambda who: self._macs(dimensions, who), other=Who.FIRST)

    def _macs(self, dimensions: str, who: Who) -> int:
        sums = [each.dimension for each in self.level.maps if each.dimension not in dimensions]
        outputs = math.prod(self._up(self.level.output_extents, d, who, counting=True) for d in dimensions)
        return outputs * math.prod(self._up(self.level.extents, d, who, counting=True) for d in sums)

    def _is_spatial(self, dimensions: str) -> bool:
        return any(each.spatial and each.dimension in dimensions for each in self.level.maps)

    def _at(self, dimension: str) -> tuple[int, State]:
        index = self.level.position[dimension]
        return index, self.phase.states[index]

    def _restarted(self, dimensions: str) -> bool:
        """Whether a loop of the tensor inside the moved one is back at its start."""
        assert self.phase.moved is not None
        later = list(zip(self.level.maps, self.phase.states, strict=True))[self.phase.moved + 1 :]
        return any(each.dimension in dimensions and state.first and not state.unrolled for each, state in later)

    def _down(self, dimension: str, dimensions: str, who: Who) -> int:
        index, state = self._at(dimension)
        extent, moved = self.level.extents[dimension], self.phase.moved
        if not self.level.maps[index].spatial:
            if state.first:
                return extent.part if state.edge else extent.full
            fresh = index == moved and not self._restarted(dimensions)
            return max(extent.fresh, 1) if fresh else extent.full
        if moved is None:
            short = state.edge and (who is Who.LAST or self.spread.clusters == 1)
            return extent.part if short else extent.full
        if who is Who.FIRST or (who is Who.LAST and self.spread.clusters == 1):
            return extent.part if who is Who.LAST else extent.full
        shared = moved < index if state.first else index == moved and not self._restarted(dimensions)
        if who is Who.LAST:
            return extent.fresh_part if shared else extent.part
        return extent.fresh if shared else extent.full

    def _up(self, extents: dict[str, Extent], dimension: str, who: Who, counting: bool) -> int:
        index, state = self._at(dimension)
        extent = extents[dimension]
        if not self.level.maps[index].spatial:
            return extent.part if state.edge else extent.full
        alone = self.spread.clusters == 1
        if state.edge and not state.first and alone:
            return self.level.extents[dimension].part  # MAESTRO takes the input's width even for output columns
        if who is Who.LAST:
            whole = state.first and (alone or counting)
            return extent.part if whole else extent.fresh_part
        if who is Who.OTHER:
            return extent.fresh or extent.full
        return extent.full
