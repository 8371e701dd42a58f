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
    """Tile of a tensor in a memory."""

    tensor: str
    """Name of the tensor."""
    words: int
    """Words of the tile."""
    steps: int = 1
    """Iterations in a row for which it is stationary. 1: every iteration brings another tile."""
    loops: tuple[str, ...] = ()
    """Loops with these iterations: those directly outside the tile that do not move the tensor."""


class MemoryUse(Model):
    """Memory at one level."""

    name: str
    """Name of the memory."""
    instances: int
    """Instances that exist."""
    capacity_words: int | None = None
    """Words of an instance; None: no limit."""
    used_words: int = 0
    """Words of its tiles at all levels."""
    tiles: tuple[Tile, ...] = ()
    """Tiles that it keeps at this level."""
    bypassed: tuple[str, ...] = ()
    """Tensors that it could keep, but never does."""


class Level(Model):
    """Level of a mapping: loops next to memories."""

    loops: tuple[str, ...] = ()
    """Temporal loops, as text."""
    memories: tuple[MemoryUse, ...] = ()
    """Memories that keep tiles inside these loops."""
    unrolled: tuple[str, ...] = ()
    """Unrolled loops inside these memories, as text."""


def levels_of(mapping: Mapping, problem: Problem, architecture: Architecture) -> tuple[Level, ...]:
    """Return the levels of a mapping, outermost first.

    A memory that keeps nothing has a level of its own, or is at that of its cluster.

    Raises:
        InputError: The mapping names a cluster or a tensor that does not exist.
    """
    check_names(mapping, problem, architecture)
    clusters = architecture.cluster_index
    loops, kept = list(mapping.loops()), list(kept_tiles(mapping, problem, architecture))
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
        nest = [loop for loop in loops if loop.entry == index]
        levels.append(
            Level(
                loops=tuple(f"for {loop.dimension} in {loop.trips}" for loop in nest if not loop.spatial),
                memories=tuple(memories),
                unrolled=tuple(f"parallel for {loop.dimension} in {loop.trips} over {entry.target}" for loop in nest if loop.spatial),
            )
        )  # fmt: skip
    for cluster in range(following, len(architecture.clusters)):
        levels += _unused(cluster, kept, architecture, problem)
    return tuple(level for level in levels if level.loops or level.memories or level.unrolled)


def check_names(mapping: Mapping, problem: Problem, architecture: Architecture) -> None:
    """Raise InputError if a mapping names a cluster or a tensor that does not exist, or has other dimensions."""
    for entry in mapping.entries:
        wrong = (
            [entry.target]
            if entry.target not in architecture.cluster_index
            else [name for name in entry.keep or () if name not in problem.tensor_names]
        )
        if wrong or set(entry.temporal_tile_sizes) != set(problem.dimension_names):
            what = f"{wrong[0]} does not exist" if wrong else "it has other dimensions than the problem"
            raise InputError(f"the mapping cannot be drawn: {what}", hint="evaluate reports every broken rule")


Kept = tuple[int, str, Tensor]
"""Entry, memory and tensor of a tile."""


def kept_tiles(mapping: Mapping, problem: Problem, architecture: Architecture) -> Iterator[Kept]:
    """Yield the tiles that memories keep, outermost first."""
    tensors = {tensor.name: tensor for tensor in problem.tensors}
    for index, entry in enumerate(mapping.entries):
        for name in entry.keep or ():
            able = [memory for memory in architecture.cluster(entry.target).memories if memory.may_hold(tensors[name])]
            if able:
                yield index, able[0].name, tensors[name]


def _use(
    memory: Memory, instances: int, tiles: Sequence[Tile], mapping: Mapping, problem: Problem, kept: Sequence[Kept]
) -> MemoryUse:
    held = [(index, tensor) for index, name, tensor in kept if name == memory.name]
    words = (
        memory.tile_words(problem, tensor, mapping.entries[index].temporal_tile_sizes) * memory.words_of(tensor)
        for index, tensor in held
    )
    present = {tensor.name for _, tensor in held}
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
