"""Levels of a mapping: its loops next to the memories of its architecture, for pictures and pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Loop, Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.values import Model


class Tile(Model):
    """Tile of a tensor in a memory.

    The tile is stationary for `steps` iterations in a row: those of `loops`, the loops directly
    outside it that do not move the tensor. 1: every iteration brings another tile.
    """

    tensor: str
    words: int
    steps: int = 1
    loops: tuple[str, ...] = ()


class MemoryUse(Model):
    """Memory, the tiles that it keeps at one level, and the tensors that it could keep but never does.

    `used_words` counts the tiles of all levels. `instances` are all that exist.
    """

    name: str
    instances: int
    capacity_words: int | None = None
    used_words: int = 0
    tiles: tuple[Tile, ...] = ()
    bypassed: tuple[str, ...] = ()


class Level(Model):
    """Temporal loops, the memories that keep tiles inside them, and the unrolled loops inside these."""

    loops: tuple[str, ...] = ()
    memories: tuple[MemoryUse, ...] = ()
    unrolled: tuple[str, ...] = ()


def levels_of(mapping: Mapping, problem: Problem, architecture: Architecture) -> tuple[Level, ...]:
    """Return the levels of a mapping, outermost first.

    A memory that keeps nothing has a level of its own, or is at that of its cluster.

    Raises:
        InputError: The mapping names a cluster or a tensor that does not exist.
    """
    clusters, tensors = architecture.cluster_index, {tensor.name: tensor for tensor in problem.tensors}
    for entry in mapping.entries:
        wrong = (
            [entry.target]
            if entry.target not in clusters
            else [name for name in entry.keep or () if name not in tensors]
        )
        if wrong or set(entry.temporal_tile_sizes) != set(problem.dimension_names):
            what = f"{wrong[0]} does not exist" if wrong else "it has other dimensions than the problem"
            raise InputError(f"the mapping cannot be drawn: {what}", hint="evaluate reports every broken rule")
    loops, kept = list(mapping.loops()), list(_kept(mapping, architecture, tensors))
    levels: list[Level] = []
    following = 0
    for index, entry in enumerate(mapping.entries):
        here = clusters[entry.target]
        for cluster in range(following, here):
            levels += _unused(cluster, kept, architecture, problem)
        following = max(following, here)
        memories = []
        for memory in architecture.clusters[here].memories:
            tiles = [
                _tile(index, memory, tensor, mapping, problem, loops)
                for at, name, tensor in kept
                if (at, name) == (index, memory.name)
            ]
            if tiles:
                memories.append(_use(memory, architecture.instances[here], tiles, mapping, problem, kept))
        last = not any(later.target == entry.target for later in mapping.entries[index + 1 :])
        if last:
            memories += [memory for level in _unused(here, kept, architecture, problem) for memory in level.memories]
            following = here + 1
        mine = [loop for loop in loops if loop.entry == index]
        levels.append(
            Level(
                loops=tuple(f"for {loop.dimension} in {loop.trips}" for loop in mine if not loop.spatial),
                memories=tuple(memories),
                unrolled=tuple(f"parallel for {loop.dimension} in {loop.trips} over {entry.target}" for loop in mine if loop.spatial),
            )
        )  # fmt: skip
    for cluster in range(following, len(architecture.clusters)):
        levels += _unused(cluster, kept, architecture, problem)
    return tuple(level for level in levels if level.loops or level.memories or level.unrolled)


Kept = tuple[int, str, Tensor]
"""Entry, memory and tensor of a tile."""


def _kept(mapping: Mapping, architecture: Architecture, tensors: dict[str, Tensor]) -> Iterator[Kept]:
    for index, entry in enumerate(mapping.entries):
        for name in entry.keep or ():
            able = [memory for memory in architecture.cluster(entry.target).memories if memory.may_hold(tensors[name])]
            if able:
                yield index, able[0].name, tensors[name]


def _use(
    memory: Memory, instances: int, tiles: Sequence[Tile], mapping: Mapping, problem: Problem, kept: Sequence[Kept]
) -> MemoryUse:
    mine = [(index, tensor) for index, name, tensor in kept if name == memory.name]
    words = (
        memory.tile_words(problem, tensor, mapping.entries[index].temporal_tile_sizes) * memory.words_of(tensor)
        for index, tensor in mine
    )
    present = {tensor.name for _, tensor in mine}
    return MemoryUse(
        name=memory.name,
        instances=instances,
        capacity_words=memory.usable_words,
        used_words=math.ceil(math.fsum(words)),
        tiles=tuple(tiles),
        bypassed=tuple(
            tensor.name for tensor in problem.tensors if memory.may_hold(tensor) and tensor.name not in present
        ),
    )


def _unused(cluster: int, kept: Sequence[Kept], architecture: Architecture, problem: Problem) -> list[Level]:
    """Return a level with the memories of a cluster that keep nothing; none if there are none."""
    used = {name for _, name, _ in kept}
    memories = tuple(
        MemoryUse(
            name=memory.name,
            instances=architecture.instances[cluster],
            capacity_words=memory.usable_words,
            bypassed=tuple(tensor.name for tensor in problem.tensors if memory.may_hold(tensor)),
        )
        for memory in architecture.clusters[cluster].memories
        if memory.name not in used
    )
    return [Level(memories=memories)] if memories else []


def _tile(
    index: int, memory: Memory, tensor: Tensor, mapping: Mapping, problem: Problem, loops: Sequence[Loop]
) -> Tile:
    still: list[Loop] = []
    for loop in reversed([outer for outer in loops if outer.entry <= index and not outer.spatial]):
        if loop.dimension in tensor.dimensions:
            break
        still.insert(0, loop)
    return Tile(
        tensor=tensor.name,
        words=memory.tile_words(problem, tensor, mapping.entries[index].temporal_tile_sizes),
        steps=math.prod(outer.trips for outer in still),
        loops=tuple(f"{outer.dimension} {outer.trips}" for outer in still),
    )
