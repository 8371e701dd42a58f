"""Levels with their tile sizes: whole, last, and what is new in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.notations.directives import WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright.notations.directives.completion import CompleteLevel, complete


@dataclass(frozen=True)
class Extent:
    """Tile sizes of one directive against the nominal size of its dimension in this level."""

    full: int
    part: int
    """Of the last tile."""
    fresh: int
    """Elements of a full tile that its predecessor did not have."""
    fresh_part: int


@dataclass(frozen=True)
class Level(CompleteLevel):
    """One level of clusters, with the tiles that its directives come to."""

    @cached_property
    def position(self) -> dict[str, int]:
        """Dimension -> place in the loop order, outermost 0."""
        return {each.dimension: index for index, each in enumerate(self.maps)}

    @cached_property
    def first_spatial(self) -> int:
        return next(index for index, each in enumerate(self.maps) if each.spatial)

    @cached_property
    def extents(self) -> dict[str, Extent]:
        """By dimension of input and filter."""
        return {each.dimension: _extent(each, self.sizes[each.dimension]) for each in self.maps}

    @cached_property
    def output_extents(self) -> dict[str, Extent]:
        """The same for the output, whose Y and X are rows and columns of results. Strides are not regarded."""
        result = dict(self.extents)
        for position, window in WINDOWS.items():
            if position not in self.extents:
                continue
            outer, inner = self.extents[position], self.extents[window]
            each = self.maps[self.position[position]]
            part = outer.part - inner.part + 1
            result[position] = Extent(
                outer.full - inner.full + 1, part, min(each.size, each.offset), min(each.offset, part)
            )
        return result

    @cached_property
    def edge_clusters(self) -> int:
        """Sub-clusters at work in the last, short fold; a partial one is counted only if all fit in one fold."""
        each = self.maps[self.first_spatial]
        size, clusters = self.sizes[each.dimension], self.sub_clusters
        covered = each.size + each.offset * (clusters - 1)
        if size > covered:
            rest = size - (folds(each, size, clusters) + 1) * each.offset * clusters
            return 1 if rest < each.size else (rest - each.size) // each.offset + 1
        if size <= each.size:
            return 1
        whole = (size - each.size) // each.offset + 1
        return whole + (each.offset * (whole - 1) + each.size < size)


def folds(each: Map, size: int, clusters: int) -> int:
    """Full folds of a spatial map after the first."""
    return ((size - each.size) // each.offset + 1) // clusters - 1


def _extent(each: Map, size: int) -> Extent:
    steps = max(0, (size - each.size) // each.offset)
    ragged = steps * each.offset + each.size < size or each.size > size
    rest = size - (steps + 1) * each.offset
    if rest < 0:
        rest = size
    still = not each.spatial and size <= each.size
    return Extent(
        full=each.size,
        part=rest if ragged else each.size,
        fresh=0 if still else min(each.size, each.offset),
        fresh_part=max(each.offset - (each.size - rest), 0),
    )


def levels_of(layer: DirectiveLayer, hardware: DirectiveHardware) -> tuple[Level, ...]:
    """The levels, outermost first. Raises NotConformableError with every reason MAESTRO stops, crashes or guesses."""
    return tuple(Level(each.maps, each.sizes, each.sub_clusters) for each in complete(layer, hardware))
