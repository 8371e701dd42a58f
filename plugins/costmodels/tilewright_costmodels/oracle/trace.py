"""The operations that a mapping executes: which iteration, at which moment, in which compute unit."""

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


class TooManyOperationsError(Exception):
    """A mapping would execute more operations than the limit."""


@dataclass(frozen=True)
class SpatialLoop:
    """One loop of the spatial unrolling of `entry`; the distance of its neighbours is `weight` compute units."""

    entry: int
    trips: int
    weight: int


@dataclass(frozen=True)
class OperationTrace:
    """`n` executed operations, in no particular order.

    Attributes:
        points: the iteration of each, int64 [n, dimension].
        moments: when, int64 [n]; moments with nothing to do in short last tiles are left out, so numbers have gaps.
        places: number of the compute unit, int64 [n].
        moments_per_step: per entry, how many moments pass while it holds one tile.
        places_per_instance: per entry, how many compute units lie under one of its instances.
        spatial: the loops in space, outermost first.
    """

    points: Ints
    time_steps: Ints
    unit_indices: Ints
    time_steps_per_tile: tuple[int, ...]
    units_per_instance: tuple[int, ...]
    spatial: tuple[SpatialLoop, ...]

    def steps(self, entry: int) -> Ints:
        """Number of the tile that each operation's instance of `entry` holds, [n]."""
        return self.time_steps // self.time_steps_per_tile[entry]

    def instances(self, entry: int) -> Ints:
        """Number of the instance of `entry` that each operation lies under, [n]."""
        return self.unit_indices // self.units_per_instance[entry]


def trace_operations(problem: Problem, mapping: Mapping, limit: int) -> OperationTrace:
    """Walk the whole nest.

    Every tile is cut at the end of the tile it is cut from (the last one is then short); but a tile that is stated
    larger than the one it is cut from runs to its own end, over its neighbours. Compute does the first iteration of
    the innermost tile, and no more.

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
    """Temporal and spatial tile sizes of one dimension, outermost first."""
    for entry in mapping.entries:
        yield entry.temporal_tile_sizes[name]
        yield entry.spatial_tile_sizes[name]


def _cut_dimension(tiles: list[int], limit: int) -> tuple[Ints, Ints]:
    """One dimension, cut into `tiles` one inside the other: (start of every innermost tile [m], its number in every
    cut [m, cut])."""
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
    """Per dimension the moments (even positions) and places (odd) between one trip of each loop and the next; per entry the
    moments of a step and the places of an instance; the loops in space."""
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
