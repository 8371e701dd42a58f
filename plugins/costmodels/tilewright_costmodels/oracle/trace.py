"""Operations that a mapping executes: iteration, time step and compute unit of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

Ints = NDArray[np.int64]
MAX_INDEX = 2**62
"""Maximum of time steps and compute units, below the range of int64."""


class TooManyOperationsError(Exception):
    """A mapping with more operations than the limit."""


@dataclass(frozen=True)
class SpatialLoop:
    """Spatial loop of `entry`. Neighbours along it are `weight` compute units apart."""

    entry: int
    trips: int
    weight: int


@dataclass(frozen=True)
class OperationTrace:
    """`n` executed operations, in no particular order.

    Attributes:
        points: iteration of each operation, int64 [n, dimension].
        time_steps: its time step, int64 [n]. Steps without work in edge tiles are omitted, so there
            are gaps.
        unit_indices: index of its compute unit, int64 [n].
        time_steps_per_tile: per entry, time steps during which it holds one tile.
        units_per_instance: per entry, compute units below one instance.
        spatial: spatial loops, outermost first.
    """

    points: Ints
    time_steps: Ints
    unit_indices: Ints
    time_steps_per_tile: tuple[int, ...]
    units_per_instance: tuple[int, ...]
    spatial: tuple[SpatialLoop, ...]

    def steps(self, entry: int) -> Ints:
        """Return the index of the tile that each operation's instance of `entry` holds, [n]."""
        return self.time_steps // self.time_steps_per_tile[entry]

    def instances(self, entry: int) -> Ints:
        """Return the index of the instance of `entry` above each operation, [n]."""
        return self.unit_indices // self.units_per_instance[entry]


def trace_operations(problem: Problem, mapping: Mapping, limit: int) -> OperationTrace:
    """Execute the whole nest, and return its operations.

    A tile is cut off at the end of the tile it is cut from, so the last one is an edge tile. A tile
    that is larger than the tile it is cut from runs to its own end, over its neighbours. Compute
    executes the first iteration of the innermost tile only.

    Raises:
        TooManyOperationsError: more than `limit` operations.
    """
    names = problem.dimension_names
    cuts = [_cut_dimension(list(_tiles(mapping, name)), limit) for name in names]
    counts = [len(starts) for starts, _ in cuts]
    if math.prod(counts) > limit:
        raise TooManyOperationsError(f"{math.prod(counts)} operations")
    weights, steps_per_tile, units_per_instance, spatial = _weights(mapping)
    which = np.unravel_index(np.arange(math.prod(counts)), counts)
    time_steps, unit_indices = np.zeros(math.prod(counts), dtype=np.int64), np.zeros(math.prod(counts), dtype=np.int64)
    for name, (_, digits), index in zip(names, cuts, which, strict=True):
        time_steps += (digits[:, 0::2] @ np.array(weights[name][0::2], dtype=np.int64))[index]
        unit_indices += (digits[:, 1::2] @ np.array(weights[name][1::2], dtype=np.int64))[index]
    points = np.stack([starts[index] for (starts, _), index in zip(cuts, which, strict=True)], axis=1)
    return OperationTrace(points, time_steps, unit_indices, steps_per_tile, units_per_instance, spatial)


def _tiles(mapping: Mapping, name: str) -> Iterator[int]:
    """Yield temporal and spatial tile sizes of one dimension, outermost first."""
    for entry in mapping.entries:
        yield entry.temporal_tile_sizes[name]
        yield entry.spatial_tile_sizes[name]


def _cut_dimension(tiles: list[int], limit: int) -> tuple[Ints, Ints]:
    """Cut one dimension into nested tiles.

    Returns:
        Start of every innermost tile [m], and its index in every cut [m, cut].

    Raises:
        TooManyOperationsError: far more tiles than `limit`.
    """
    starts_of_tiles, ends_of_tiles = np.zeros(1, dtype=np.int64), np.full(1, tiles[0], dtype=np.int64)
    digits = np.zeros((1, 1), dtype=np.int64)
    for outer, inner in zip(tiles, tiles[1:], strict=False):
        trips = -(-outer // inner)
        if len(starts_of_tiles) * trips > 2 * limit + 2:
            raise TooManyOperationsError(f"{len(starts_of_tiles) * trips} tiles of one dimension")
        starts = starts_of_tiles[:, None] + np.arange(trips, dtype=np.int64) * inner
        exists = starts < ends_of_tiles[:, None]
        row, digit = np.nonzero(exists)
        starts_of_tiles = starts[exists]
        ends_of_tiles = (
            np.minimum(starts_of_tiles + inner, ends_of_tiles[row]) if inner <= outer else starts_of_tiles + inner
        )
        digits = np.column_stack([digits[row], digit])
    return starts_of_tiles, digits


def _weights(
    mapping: Mapping,
) -> tuple[dict[str, list[int]], tuple[int, ...], tuple[int, ...], tuple[SpatialLoop, ...]]:
    """Return the distances between the trips of loops, and the sizes of entries.

    Returns:
        Per dimension, the time steps (even positions) and units (odd) between two trips of each
        loop. Time steps per tile and units per instance of each entry. The spatial loops.
    """
    names, factors = mapping.dimension_names, mapping.factors()
    weights = {name: [0] * (2 * len(mapping.entries)) for name in names}
    steps_per_tile, units_per_instance = [1] * len(factors), [1] * len(factors)
    loops: list[SpatialLoop] = []
    time_steps = units = 1
    for index in range(len(factors) - 1, -1, -1):
        entry, (temporal, spatial) = mapping.entries[index], factors[index]
        for name in reversed(entry.spatial_order or names):
            weights[name][2 * index + 1] = units
            if spatial[name] > 1:
                loops.append(SpatialLoop(index, spatial[name], units))
            units *= spatial[name]
        steps_per_tile[index], units_per_instance[index] = time_steps, units
        for name in reversed(entry.temporal_order):
            weights[name][2 * index] = time_steps
            time_steps *= temporal[name]
    if max(time_steps, units) > MAX_INDEX:
        raise TooManyOperationsError(f"{time_steps} steps on {units} compute units")
    return weights, tuple(steps_per_tile), tuple(units_per_instance), tuple(reversed(loops))
