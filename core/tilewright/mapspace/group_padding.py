"""Padding: words of a tensor that its layers use, although they do not exist. They are never moved nor held.

A coordinate of a tensor is a sum of dimensions. Its words in a tile are a pattern, shifted by the loops outside the tile.
If no dimension is in two coordinates, the words of a tile are the product of those of its coordinates. So sums over all
steps of a loop nest are products, too, and no loop has to be executed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.group import GroupMapping, Path
from tilewright.schema.mapping import Loop
from tilewright.schema.problem import Tensor

Range = tuple[int, int]
"""First and last coordinate."""
MAX_STEPS = 2**22
"""Largest product of the dimensions of one coordinate: they are listed."""
MAX_EXTENT = 2**50
"""Largest coordinate."""


def existing_words(group: GroupMapping, tensor: str) -> list[Range] | None:
    """Return the coordinates of the words that exist; None if all words that layers use do."""
    edge = group.edge_of(tensor)
    maker = group.maker(tensor)
    if edge is None or edge.zeros or (edge.sizes is None and maker is None):
        return None
    ranges = dict[str, list[Range]]()
    for layer, name in group.users[tensor].items():
        problem = group.paths[layer].problem
        ranks = problem.tensor(name).projection
        offsets = edge.offsets.get(layer) or (0,) * len(ranks)
        last = (sum(c * (problem.dimensions[at] - 1) for at, c in rank.terms.items()) for rank in ranks)
        ranges[layer] = [(-offset, end - offset) for offset, end in zip(offsets, last, strict=True)]
    exist = [(0, size - 1) for size in edge.sizes] if edge.sizes is not None else ranges[str(maker)]
    if maker is not None:
        exist = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(exist, ranges[maker], strict=True)]
    all_exist = all(
        first <= low and high <= last
        for used in ranges.values()
        for (low, high), (first, last) in zip(used, exist, strict=True)
    )
    return None if all_exist else exist


def padded_use(group: GroupMapping, tensor: str, layer: str) -> PaddedUse | None:
    """Return a layer's use of a padded tensor; None if the tensor is not padded."""
    exist = existing_words(group, tensor)
    if exist is None:
        return None
    path, name = group.paths[layer], group.users[tensor][layer]
    edge = group.edge_of(tensor)
    assert edge is not None, "a padded tensor has an edge"
    offsets = edge.offsets.get(layer) or (0,) * len(exist)
    ranges = [(first + by, last + by) for (first, last), by in zip(exist, offsets, strict=True)]
    return PaddedUse(path, path.problem.tensor(name), tuple(ranges))


@dataclass(frozen=True)
class PaddedUse:
    """A layer's use of a tensor; only the words within `exist` exist, in the layer's coordinates."""

    path: Path
    tensor: Tensor
    exist: tuple[Range, ...]

    @cached_property
    def padded(self) -> list[int]:
        """The coordinates along which the layer uses words that do not exist."""
        sizes = self.path.problem.dimensions
        return [
            number
            for number, (rank, (first, last)) in enumerate(zip(self.tensor.projection, self.exist, strict=True))
            if first > 0 or last < sum(c * (sizes[at] - 1) for at, c in rank.terms.items())
        ]

    def tile_words(self, entry: int) -> int:
        """Return the words of the largest tile of an entry that exist; `obstacle` is None."""
        loops, tile = self._outside(entry), self.path.mapping.entries[entry].temporal_tile_sizes
        return math.prod(int(axis.counts(axis.starts(loops)).max()) for axis in self._axes(tile))

    def obstacle(self) -> str | None:
        """Return why words cannot be counted by coordinates; None if they can."""
        if not self.padded:
            return None
        used, sizes = [at for rank in self.tensor.projection for at in rank.terms], self.path.problem.dimensions
        for rank in self.tensor.projection:
            extent = sum(c * (sizes[at] - 1) for at, c in rank.terms.items())
            if math.prod(sizes[at] for at in rank.terms) > MAX_STEPS or extent > MAX_EXTENT:
                return "a coordinate is too long"
        if len(used) > len(set(used)):
            return "a dimension is in two of its coordinates"
        if self.tensor.is_output:
            return "its maker makes words that do not exist"
        along = {at for n in self.padded for at in self.tensor.projection[n].terms}
        windows = [set(rank.terms) for rank in self.tensor.projection if len(rank.terms) > 1]
        innermost = self.path.keepers(self.tensor.name)[-1]
        unrolled = [loop for loop in self.path.mapping.loops() if loop.spatial]
        for loop in unrolled:  # units with memories are not alike; others only read what exists
            if loop.entry < innermost and loop.dimension in along.union(*windows):
                return f"{loop.dimension} is unrolled outside a memory that keeps it"
        if any(len(window.intersection(loop.dimension for loop in unrolled)) > 1 for window in windows):
            return "two dimensions of a coordinate are unrolled, so units share words"
        outside = self.path.mapping.entries[0].temporal_tile_sizes
        for entry in self.path.mapping.entries:
            for at, size in entry.temporal_tile_sizes.items():
                if outside[at] % size or size % entry.spatial_tile_sizes[at]:
                    return f"a tile of {at} does not divide the one outside it"
            outside = entry.spatial_tile_sizes
        for keeper in self.path.keepers(self.tensor.name):
            axes = self._axes(self.path.mapping.entries[keeper].temporal_tile_sizes)
            loops = self._outside(keeper)
            for axis in axes:
                if len(axis.pattern) <= axis.pattern[-1]:
                    return "its tiles have gaps"
                if not axis.counts(axis.starts(loops)).all():
                    return "some tiles have no word that exists"
        return None

    def moved(self, outer: int, entry: int | None, cut: int, clip: bool = True) -> int:
        """Return the words that one instance of the memory of entry `outer` delivers to those of an inner entry.

        Sub-clusters that need equal words count as one.

        Args:
            outer: the entry of the delivering memory; for the words of one receiver give `entry`.
            entry: the entry of the receiving memory, which keeps what its next tile has, too; None: compute, which
                keeps nothing.
            cut: entries whose temporal loops are visits; memories inside start each visit empty.
            clip: words that do not exist are not moved.
        """
        entries = self.path.mapping.entries
        last = len(entries) if entry is None else entry
        tile = entries[-1].spatial_tile_sizes if entry is None else entries[last].temporal_tile_sizes
        loops = list(self.path.mapping.loops()) if entry is None else self._outside(entry)
        relevant = set(self.tensor.dimensions)
        # each sub-cluster, each visit, and each operation of compute moves all its words
        places = [
            candidate
            for candidate in loops
            if (candidate.spatial and outer <= candidate.entry < last and candidate.dimension in relevant)
            or (not candidate.spatial and (candidate.entry < cut or entry is None))
        ]
        steps = [candidate for candidate in loops if not candidate.spatial and candidate not in places]
        axes = self._axes(tile, clip)
        total = self._new_words(axes, places, None, [], relevant)
        for number, loop in enumerate(steps):
            total += self._new_words(axes, [*places, *steps[:number]], loop, steps[number + 1 :], relevant)
        return total

    def _new_words(
        self, axes: list[_Axis], outside: list[Loop], loop: Loop | None, inside: list[Loop], relevant: set[str]
    ) -> int:
        """Return the words that are new in all steps of a loop but its first; without a loop, all words of the first."""
        times = math.prod(outer.trips for outer in outside if outer.dimension not in relevant)
        if loop is not None and loop.dimension not in relevant:
            times *= loop.trips - 1
        words, kept = 1, 0 if loop is None else 1
        for axis in axes:
            starts = axis.starts(outside)
            if loop is None:
                words *= int(axis.counts(starts).sum())
                continue
            back = sum(axis.shift(inner) * (inner.trips - 1) for inner in inside)
            by = axis.shift(loop)
            if loop.dimension in axis.terms:
                starts = (starts[:, None] + by * np.arange(1, loop.trips)).ravel()
            words *= int(axis.counts(starts).sum())
            kept *= int(axis.kept(starts, by - back).sum())
        return times * (words - kept)

    def _outside(self, entry: int) -> list[Loop]:
        """Return the loops outside the tile that an entry keeps, outermost first."""
        return [
            loop
            for loop in self.path.mapping.loops()
            if loop.entry < entry or (loop.entry == entry and not loop.spatial)
        ]

    def _axes(self, tile: Mapping[str, int], clip: bool = True) -> list[_Axis]:
        axes = list[_Axis]()
        for rank, exist in zip(self.tensor.projection, self.exist, strict=True):
            pattern = np.zeros(1, dtype=np.int64)
            for at, coefficient in rank.terms.items():
                pattern = np.unique((pattern[:, None] + coefficient * np.arange(tile[at])).ravel())
            axes.append(_Axis(rank.terms, pattern, exist if clip else None))
        return axes


@dataclass(frozen=True)
class _Axis:
    """One coordinate: its words in a tile that starts at 0, and the words that exist (None: all)."""

    terms: Mapping[str, int]
    pattern: NDArray[np.int64]
    exist: Range | None

    def shift(self, loop: Loop) -> int:
        return self.terms.get(loop.dimension, 0) * loop.tile

    def starts(self, loops: list[Loop]) -> NDArray[np.int64]:
        """Return the starts of the tile in all steps of the loops that move it."""
        starts = np.zeros(1, dtype=np.int64)
        for loop in loops:
            if loop.dimension in self.terms:
                starts = (starts[:, None] + self.shift(loop) * np.arange(loop.trips)).ravel()
        return starts

    def counts(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the words of each tile that exist."""
        return self._within(starts, self.pattern)

    def kept(self, starts: NDArray[np.int64], by: int) -> NDArray[np.int64]:
        """Return the words of each tile that exist, and that the tile `by` before it had, too."""
        both = self.pattern[np.isin(self.pattern + by, self.pattern)]
        return self._within(starts, both)

    def _within(self, starts: NDArray[np.int64], pattern: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.exist is None:
            return np.full(len(starts), len(pattern))
        first, last = self.exist
        end = np.searchsorted(pattern, last - starts, side="right")
        counts: NDArray[np.int64] = np.maximum(end - np.searchsorted(pattern, first - starts), 0)
        return counts
