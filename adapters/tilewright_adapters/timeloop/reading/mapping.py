"""Conversion of directives to a mapping: tile sizes from factors, entries from levels."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.reading.directives import Directives, Factor, LevelDirectives

Tiles = FrozenDict[str, int]


def build(directives: Directives, problem: Problem, clusters: tuple[str, ...], placed: bool = False) -> Mapping:
    """Return the mapping.

    Each level keeps tensors, has temporal loops, unrolls along Y, then along X (on `<level>_X` if there is one). If
    factors do not multiply to a dimension's size, tiles follow the factors, and legality reports the difference.

    Args:
        directives: loops and kept tensors of every level.
        problem: the problem.
        clusters: names of the clusters.
        placed: keep the order of unrolled loops even where it places no sub-cluster. Formats of
            sparse tensors depend on it.

    Raises:
        InputError: tile sizes cannot express the remainder factors.
    """
    whole, inside = _tiles(directives, problem)
    entries: list[Entry] = []
    for name, level in directives.levels.items():
        both = f"{name}_X" in clusters
        entries += _entries(name, level, (whole, *inside[name]), problem.dimension_names, both, placed)
        whole = inside[name][-1]
    return Mapping(entries=tuple(entries))


def unsplit(directives: Directives, architecture: Architecture) -> Iterator[str]:
    """Yield a warning for each level whose loops all lie along X, as Timeloop takes them, where they fit only with a split."""
    for name, level in directives.levels.items():
        loops = {dimension: factor for dimension, factor in level.spatial.items() if factor.end > 1}
        if name not in architecture.cluster_index or not loops or not level.in_x.issuperset(loops):
            continue
        both = [architecture.cluster(one) for one in (name, f"{name}_X") if one in architecture.cluster_index]
        room = {"X": 1, "Y": 1} | {cluster.fanout.axis: cluster.fanout.size for cluster in both}
        units = math.prod(factor.end for factor in loops.values())
        if not room["X"] < units <= room["X"] * room["Y"]:
            continue
        place = next(iter(loops.values())).where
        number = "0" if units <= room["Y"] else "N"
        told = " ".join(f"{dimension}={factor.end}" for dimension, factor in loops.items())
        yield (
            f"{place.document.locate(place.path)}: {name} unrolls {told} along X, where it has {room['X']}; "
            f"it has {room['Y']} along Y. Without `split`, Timeloop takes X: add `split: {number}`"
            + (", the number of dimensions in the permutation that lie along X" if number == "N" else "")
        )


def _entries(
    name: str, level: LevelDirectives, tiles: tuple[Tiles, ...], dims: tuple[str, ...], both: bool, placed: bool
) -> Iterator[Entry]:
    """Yield the entries of one level.

    `tiles` are those outside it, then after its temporal, Y and X factors. `both`: whether X has a cluster of its own.
    """
    given, stepped, after_y, after_x = tiles
    order = sorted(level.spatial, key=level.spatial_order.index)
    yield Entry(
        target=name,
        keep=tuple(level.keep),
        temporal_order=dims,
        temporal_tile_sizes=given,
        spatial_tile_sizes=given,
    )
    yield Entry(
        target=name,
        temporal_order=level.temporal_order,
        temporal_tile_sizes=stepped,
        spatial_tile_sizes=after_y if both else after_x,
        spatial_order=_order(level, [d for d in order if d not in level.in_x or not both], dims, placed),
        unicast=level.unicast,
    )
    if both:
        yield Entry(
            target=f"{name}_X",
            temporal_order=dims,
            temporal_tile_sizes=after_y,
            spatial_tile_sizes=after_x,
            spatial_order=_order(level, [d for d in order if d in level.in_x], dims, placed),
            unicast=level.unicast,
        )


def _order(level: LevelDirectives, unrolled: list[str], dims: tuple[str, ...], placed: bool) -> tuple[str, ...] | None:
    """Return the order of a spatial unrolling; None if the problem's order is the same, unless it is `placed`."""
    used = [name for name in unrolled if level.spatial[name].end != 1]
    same = not placed and used == [name for name in dims if name in used]
    return None if same else level.spatial_order


def _tiles(directives: Directives, problem: Problem) -> tuple[Tiles, dict[str, tuple[Tiles, Tiles, Tiles]]]:
    """Return the whole tile, and per level the tiles after its temporal, Y and X factors."""
    columns = {name: _column(directives, name) for name in problem.dimensions}
    whole = FrozenDict({name: column[0] for name, column in columns.items()})
    inside = {}
    for index, level in enumerate(directives.levels):
        first = 1 + 3 * index
        after = [FrozenDict({name: column[first + step] for name, column in columns.items()}) for step in range(3)]
        inside[level] = (after[0], after[1], after[2])
    return whole, inside


def _column(directives: Directives, dimension: str) -> list[int]:
    """Return tile sizes of one dimension: the whole, then after temporal, Y and X of every level."""
    chain: list[tuple[str, Factor | None]] = []
    for name, level in directives.levels.items():
        spatial = level.spatial.get(dimension)
        along_x = dimension in level.in_x
        chain.append((name, level.temporal.get(dimension)))
        chain.append((name, None if along_x else spatial))
        chain.append((name, spatial if along_x else None))
    ends = [1 if factor is None else factor.end for _, factor in chain]
    lasts = [1 if factor is None else factor.last for _, factor in chain]
    whole = 1 + sum((last - 1) * math.prod(ends[i + 1 :]) for i, last in enumerate(lasts))
    tiles = [whole] + [min(whole, math.prod(ends[i + 1 :])) for i in range(len(ends))]
    for (name, factor), end, outer, inner in zip(chain, ends, tiles[:-1], tiles[1:], strict=True):
        trips = -(-outer // inner)
        if factor is not None and trips != end:
            raise factor.where.error(
                f"remainder factors: {dimension}={end},{factor.last} of {name} would run {trips} times; "
                "tile sizes cannot express it"
            )
    return tiles
