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
MOST = 2**62


class TooManyOperationsError(Exception):
    """A mapping would execute more operations than the limit."""


@dataclass(frozen=True)
class SpatialLoop:
    """One loop of the spatial unrolling of `entry`; the distance of its neighbours is `weight` compute units."""

    entry: int
    trips: int
    weight: int


@dataclass(frozen=True)
class Trace:
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
    moments: Ints
    places: Ints
    moments_per_step: tuple[int, ...]
    places_per_instance: tuple[int, ...]
    spatial: tuple[SpatialLoop, ...]

    def steps(self, entry: int) -> Ints:
        """Number of the tile that each operation's instance of `entry` holds, [n]."""
        return self.moments // self.moments_per_step[entry]

    def instances(self, entry: int) -> Ints:
        """Number of the instance of `entry` that each operation lies under, [n]."""
        return self.places // self.places_per_instance[entry]


def trace(problem: Problem, mapping: Mapping, limit: int) -> Trace:
    """Walk the whole nest.

    Every tile is cut at the end of the tile it is cut from (the last one is then short); but a tile that is stated
    larger than the one it is cut from runs to its own end, over its neighbours. Compute does the first iteration of
    the innermost tile, and no more.

    Raises:
        TooManyOperationsError: more than `limit` operations.
    """
    names = problem.dimension_names
    walks = [_walk(list(_tiles(mapping, name)), limit) for name in names]
    counts = [len(starts) for starts, _ in walks]
    if math.prod(counts) > limit:
        raise TooManyOperationsError(f"{math.prod(counts)} operations")
    weights, per_step, per_instance, spatial = _weights(mapping)
    which = np.unravel_index(np.arange(math.prod(counts)), counts)
    moments, places = np.zeros(math.prod(counts), dtype=np.int64), np.zeros(math.prod(counts), dtype=np.int64)
    for name, (_, digits), index in zip(names, walks, which, strict=True):
        moments += (digits[:, 0::2] @ np.array(weights[name][0::2], dtype=np.int64))[index]
        places += (digits[:, 1::2] @ np.array(weights[name][1::2], dtype=np.int64))[index]
    points = np.stack([starts[index] for (starts, _), index in zip(walks, which, strict=True)], axis=1)
    return Trace(points, moments, places, per_step, per_instance, spatial)


def _tiles(mapping: Mapping, name: str) -> Iterator[int]:
    """Temporal and spatial tile sizes of one dimension, outermost first."""
    for entry in mapping.entries:
        yield entry.temporal_tile_sizes[name]
        yield entry.spatial_tile_sizes[name]


def _walk(tiles: list[int], limit: int) -> tuple[Ints, Ints]:
    """One dimension, cut into `tiles` one inside the other: (start of every innermost tile [m], its number in every
    cut [m, cut])."""
    low, high = np.zeros(1, dtype=np.int64), np.full(1, tiles[0], dtype=np.int64)
    digits = np.zeros((1, 1), dtype=np.int64)
    for outer, inner in zip(tiles, tiles[1:], strict=False):
        trips = -(-outer // inner)
        if len(low) * trips > 2 * limit + 2:
            raise TooManyOperationsError(f"{len(low) * trips} tiles of one dimension")
        starts = low[:, None] + np.arange(trips, dtype=np.int64) * inner
        some = starts < high[:, None]
        row, digit = np.nonzero(some)
        low = starts[some]
        high = np.minimum(low + inner, high[row]) if inner <= outer else low + inner
        digits = np.column_stack([digits[row], digit])
    return low, digits


def _weights(
    mapping: Mapping,
) -> tuple[dict[str, list[int]], tuple[int, ...], tuple[int, ...], tuple[SpatialLoop, ...]]:
    """Per dimension the moments (even positions) and places (odd) between one trip of each loop and the next; per entry the
    moments of a step and the places of an instance; the loops in space."""
    names, factors = mapping.dimension_names, mapping.factors()
    weights = {name: [0] * (2 * len(mapping.entries)) for name in names}
    per_step, per_instance = [1] * len(factors), [1] * len(factors)
    loops: list[SpatialLoop] = []
    moments = places = 1
    for index in range(len(factors) - 1, -1, -1):
        entry, (temporal, spatial) = mapping.entries[index], factors[index]
        for name in reversed(entry.spatial_order or names):
            weights[name][2 * index + 1] = places
            if spatial[name] > 1:
                loops.append(SpatialLoop(index, spatial[name], places))
            places *= spatial[name]
        per_step[index], per_instance[index] = moments, places
        for name in reversed(entry.temporal_order):
            weights[name][2 * index] = moments
            moments *= temporal[name]
    if max(moments, places) > MOST:
        raise TooManyOperationsError(f"{moments} steps on {places} compute units")
    return weights, tuple(per_step), tuple(per_instance), tuple(reversed(loops))
