"""The storage levels that a mapping makes, and the words that move between neighbours, in closed form.

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upward in binary, each step
shifts a tile by one of as many vectors as there are loops, so the walk has a closed form: with `c` the innermost loop
that moves the tile, a step of `c` always follows a step that left no other direction behind, so its overlap with the
tile before is always credited; a step of an outer loop is credited only if it happens to shift by the same vector.
The tests hold this to a literal walk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.timeloop.array import Array, SpatialLoop


@dataclass(frozen=True)
class TemporalLoop:
    """`trips` iterations; each shifts `dimension` by `step` iterations of the problem."""

    dimension: str
    trips: int
    step: int


@dataclass(frozen=True)
class SplitLoop:
    """One dimension of one entry's split."""

    dimension: str
    trips: int
    step: int
    cluster: Cluster
    unicast: tuple[str, ...]


@dataclass(frozen=True)
class Level:
    """A storage level: an entry that holds, and the loops between it and the next one.

    `extents`: dimension -> iterations of the held tile. `child`: of the next level's tile (ones for compute).
    """

    name: str
    cluster: Cluster
    cluster_index: int
    keep: tuple[str, ...]
    extents: MappingOf[str, int]
    child: MappingOf[str, int]
    temporal: tuple[TemporalLoop, ...]
    split: tuple[SplitLoop, ...]
    utilized: int
    """Instances in use."""
    width: int
    height: int
    """Physical fanout to the next level along X and along Y."""

    @property
    def children(self) -> int:
        return math.prod(loop.trips for loop in self.split)


def levels_of(mapping: Mapping, architecture: Architecture) -> tuple[Level, ...]:
    """The mapping's storage levels, outermost first; the loops between two belong to the outer one."""
    factors = mapping.factors()
    holds = [index for index, entry in enumerate(mapping.entries) if entry.keep is not None]
    levels = []
    utilized = 1
    for number, start in enumerate(holds):
        inner = number == len(holds) - 1
        stop = len(mapping.entries) if inner else holds[number + 1]
        temporal: list[TemporalLoop] = []
        split: list[SplitLoop] = []
        for index in range(start, len(mapping.entries) if inner else stop + 1):
            entry = mapping.entries[index]
            if index > start:
                temporal += [
                    TemporalLoop(name, factors[index][0][name], entry.temporal_tile_sizes[name])
                    for name in entry.temporal_order
                    if factors[index][0][name] > 1
                ]
            if index < stop:
                cluster = architecture.clusters[architecture.cluster_index[entry.target]]
                split += [
                    SplitLoop(name, factors[index][1][name], entry.spatial_tile_sizes[name], cluster, entry.unicast)
                    for name in entry.spatial_order or mapping.dimension_names
                    if factors[index][1][name] > 1
                ]
        entry = mapping.entries[start]
        first = architecture.cluster_index[entry.target]
        last = len(architecture.clusters) if inner else architecture.cluster_index[mapping.entries[stop].target]
        outer, within = architecture.mesh(first), architecture.mesh(last)
        child = {name: 1 for name in mapping.dimension_names} if inner else mapping.entries[stop].temporal_tile_sizes
        levels.append(
            Level(
                name=entry.target,
                cluster=architecture.clusters[first],
                cluster_index=first,
                keep=entry.keep or (),
                extents=entry.temporal_tile_sizes,
                child=child,
                temporal=tuple(temporal),
                split=tuple(split),
                utilized=utilized,
                width=math.prod(n // outer.get(axis, 1) for axis, n in within.items() if axis != "Y"),
                height=within.get("Y", 1) // outer.get("Y", 1),
            )
        )
        utilized *= math.prod(loop.trips for loop in split)
    return tuple(levels)


@dataclass
class Delivery:
    """Words that the parent handles in deliveries of one group size."""

    multicast: int
    scatter: int
    accesses: float = 0.0
    hops: float = 0.0


@dataclass
class Traffic:
    """What one tensor moves between a level and the next, per instance of the level.

    `deliveries`: parent accesses by group size; `share`: words received by the average child; `links`: words passed
    on between neighbouring children.
    """

    deliveries: list[Delivery]
    share: float
    links: float = 0.0

    @property
    def content(self) -> float:
        return sum(delivery.accesses for delivery in self.deliveries)

    @property
    def served(self) -> float:
        return sum(delivery.accesses * delivery.multicast for delivery in self.deliveries)


def traffic(problem: Problem, tensor: Tensor, levels: tuple[Level, ...], index: int, link_transfers: bool) -> Traffic:
    """Movement of `tensor` between levels `index` and `index + 1`, before bypassing."""
    level = levels[index]
    array = _array(tensor, level)
    loops = [loop for outer in levels[: index + 1] for loop in outer.temporal]
    deliveries: dict[tuple[int, int], Delivery] = {}
    links = 0.0

    def deliver(words: int, shift: tuple[int, ...] | None) -> None:
        nonlocal links
        sharing = array.sharing(shift)
        links += words * sharing.linked
        for group in sharing.groups:
            entry = deliveries.setdefault((group.multicast, group.scatter), Delivery(group.multicast, group.scatter))
            entry.accesses += words * group.scatter
            entry.hops += words * group.hops

    if index == len(levels) - 1:  # compute has no register: every operation fetches its words
        deliver(math.prod(loop.trips for loop in loops), None)
    else:
        for words, shift in shifts(problem, tensor, loops, level.child):
            deliver(words, shift if link_transfers else None)
    result = Traffic(list(deliveries.values()), 0.0, links)
    result.share = result.served / array.children
    return result


def shifts(
    problem: Problem, tensor: Tensor, loops: list[TemporalLoop], tile: MappingOf[str, int]
) -> list[tuple[int, tuple[int, ...] | None]]:
    """(words newly needed, shift from which a neighbour may pass them on) of every kind of step of the nest.

    The words of all steps of a kind are added up. The shift is None where the step before moved other words than
    these, so that no neighbour has them.
    """
    box = [1 + sum(c * (tile[name] - 1) for name, c in rank.terms.items()) for rank in tensor.projection]
    volume = math.prod(box)
    steps = [tuple(rank.terms.get(loop.dimension, 0) * loop.step for rank in tensor.projection) for loop in loops]
    moving = [position for position, step in enumerate(steps) if any(step)]
    if not moving:
        return [(volume, None)]
    c = moving[-1]
    overlap = math.prod(max(0, side - abs(move)) for side, move in zip(box, steps[c], strict=True))
    innermost = c == len(loops) - 1
    inner = (0,) * len(box)  # the sum of the steps of all loops inside, undone when an outer loop advances
    kinds: list[tuple[int, tuple[int, ...], bool]] = []  # steps outside c: (times, shift, credited)
    for position in range(len(loops) - 1, -1, -1):
        if position < c:
            shift = tuple(a - b for a, b in zip(steps[position], inner, strict=True))
            if any(shift):
                times = (loops[position].trips - 1) * math.prod(loop.trips for loop in loops[:position])
                kinds.append((times, shift, shift == steps[c]))
        inner = tuple(a + b for a, b in zip(inner, steps[position], strict=True))
    again = loops[c].trips - 1
    fresh = volume - overlap
    still = math.prod(loop.trips for loop in loops[:c]) - 1 - sum(times for times, _, _ in kinds)
    # The words a neighbour holds are a shifted copy only where the step before moved as many of them.
    result: list[tuple[int, tuple[int, ...] | None]] = [(volume, None)]
    for times, shift, credited in kinds:
        same = innermost and (credited or not overlap)
        result.append((times * (fresh if credited else volume), shift if same else None))
        result.append((times * again * fresh, steps[c] if same else None))
    result.append((again * fresh, steps[c] if innermost and not overlap else None))
    result.append((still * again * fresh, None))
    return [(words, shift) for words, shift in result if words]


def _array(tensor: Tensor, level: Level) -> Array:
    return Array(
        loops=tuple(
            SpatialLoop(
                trips=loop.trips,
                step=tuple(rank.terms.get(loop.dimension, 0) * loop.step for rank in tensor.projection),
                vertical=loop.cluster.fanout.axis == "Y",
                shared=tensor.name not in loop.unicast
                and (loop.cluster.fanout.reduction if tensor.is_output else loop.cluster.fanout.multicast),
            )
            for loop in level.split
        ),
        width=level.width,
        height=level.height,
        ranks=len(tensor.projection),
    )
