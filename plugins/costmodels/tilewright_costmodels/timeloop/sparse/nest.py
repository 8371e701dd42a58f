"""Loop nest of one mapping as Timeloop lists it: by storage level, innermost first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.timeloop.sparse.densities import Box

Extents = dict[str, int]
"""Iterations by dimension."""
COMPUTE = -1
"""Level below the innermost one."""


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop. `mold`: iterations of it and of all loops inside."""

    dimension: str
    trips: int
    spatial: bool
    mold: Extents
    axis: str = ""


@dataclass(frozen=True, eq=False)
class Level:
    """One storage level: loops innermost first, and its cluster's position, 0 for the outermost."""

    cluster: int
    keeps: frozenset[str]
    loops: tuple[Loop, ...]


class Nest:
    """Levels of a mapping without ragged tiles, 0 for the innermost.

    A level's loops are those between its entry and the next storage entry: unrolled ones along X, along Y, temporal ones.
    """

    def __init__(self, problem: Problem, architecture: Architecture, mapping: Mapping) -> None:
        self.problem, self.architecture = problem, architecture
        self.quirks: dict[str, dict[str, None]] = {}
        """Peculiarities of Timeloop that change figures -> where."""
        self.levels = tuple(_levels(problem, architecture, mapping))

    def note(self, quirk: str, tensor: Tensor, level: int) -> None:
        """Note that a peculiarity of Timeloop changes figures of a tensor at a level."""
        self.quirks.setdefault(quirk, {})[f"{tensor.name} in {self.memory(tensor, level).name}"] = None

    @cached_property
    def unit(self) -> Extents:
        """One iteration."""
        return dict.fromkeys(self.problem.dimensions, 1)

    def kept_from(self, tensor: Tensor, level: int) -> int | None:
        """Return the nearest level from `level` outwards that keeps the tensor; None if none does."""
        return next((at for at in range(level, len(self.levels)) if tensor.name in self.levels[at].keeps), None)

    def child(self, tensor: Tensor, level: int) -> int:
        """Return the next level inwards that keeps the tensor, or `COMPUTE`."""
        return next((at for at in range(level - 1, -1, -1) if tensor.name in self.levels[at].keeps), COMPUTE)

    def kept(self, tensor: Tensor) -> list[int]:
        """Return the levels that keep a tensor, outermost first."""
        return [at for at in range(len(self.levels) - 1, -1, -1) if tensor.name in self.levels[at].keeps]

    def loops(self, first: int, last: int) -> list[Loop]:
        """Return the loops of the levels `first` to `last`, innermost first."""
        return [loop for level in self.levels[first : last + 1] for loop in level.loops]

    def memory(self, tensor: Tensor, level: int) -> Memory:
        """Return the memory that keeps the tensor there."""
        memory = self.architecture.clusters[self.levels[level].cluster].memory_for(tensor)
        assert memory is not None, "legality has been checked"
        return memory

    def box(self, tensor: Tensor, extents: Extents) -> Box:
        """Return the extents of a tile along the tensor's ranks."""
        return tuple(
            1 + sum(coefficient * (extents[name] - 1) for name, coefficient in rank.terms.items())
            for rank in tensor.projection
        )

    def tile(self, tensor: Tensor, level: int) -> Box:
        """Return the tile that a level keeps."""
        return self.box(tensor, self.levels[level].loops[-1].mold)


def words(tile: Box) -> int:
    """Return the words of a tile."""
    return math.prod(tile)


def _levels(problem: Problem, architecture: Architecture, mapping: Mapping) -> list[Level]:
    """Return the levels, innermost first."""
    starts = [at for at, entry in enumerate(mapping.entries) if entry.keep is not None]
    factors, levels, mold = mapping.factors(), list[Level](), dict.fromkeys(problem.dimensions, 1)
    last = len(mapping.entries) - 1
    for start, stop in reversed(list(zip(starts, [*starts[1:], last + 1], strict=True))):
        unrolled, stepped = list[tuple[str, int, str]](), list[tuple[str, int, str]]()
        between = range(min(stop, last), start - 1, -1)
        for at in between:
            entry, (temporal, spatial) = mapping.entries[at], factors[at]
            axis = "Y" if architecture.cluster(entry.target).fanout.axis == "Y" else "X"
            if at < stop:
                names = reversed(entry.spatial_order or problem.dimension_names)
                unrolled += [(name, spatial[name], axis) for name in names if spatial[name] > 1]
            if at > start:
                stepped += [(name, temporal[name], "") for name in reversed(entry.temporal_order) if temporal[name] > 1]
        fanning = [at for at in range(start, stop) if architecture.cluster(mapping.entries[at].target).fanout.size > 1]
        unrolled.sort(key=lambda loop: loop[2])
        if fanning or unrolled:
            given = [mapping.entries[at].spatial_order for at in fanning]
            placed = next((order for order in given if order), problem.dimension_names[::-1])
            unrolled = _with_single_trips(unrolled, placed, "X", any(given))
        steps = mapping.entries[min(start + 1, last)].temporal_order if start < last else problem.dimension_names
        loops = []
        for name, trips, axis in [*unrolled, *_with_single_trips(stepped, steps, "")]:
            mold = mold | {name: mold[name] * trips}
            loops.append(Loop(name, trips, bool(axis), mold, axis))
        entry = mapping.entries[start]
        levels.append(Level(architecture.cluster_index[entry.target], frozenset(entry.keep or ()), tuple(loops)))
    return levels


def _with_single_trips(
    loops: Sequence[tuple[str, int, str]], order: Sequence[str], axis: str, between: bool = True
) -> list[tuple[str, int, str]]:
    """Return loops, innermost first, with a loop of one trip for each other dimension.

    Args:
        loops: loops of several trips.
        order: dimensions, outermost first.
        axis: axis of the added loops.
        between: added loops are placed by `order`; else outside the others, as Timeloop's files are written.
    """
    found = list(loops)
    for position, name in reversed(list(enumerate(order))):
        if name not in {loop[0] for loop in found}:
            outside = set(order[:position]) if between else set()
            at = next((at for at, loop in enumerate(found) if loop[0] in outside), len(found))
            found.insert(at, (name, 1, axis))
    return found
