"""Full form of a mapping: all loops and all tiles, so that a program needs no rules of inheritance to read it."""

from __future__ import annotations

from typing import Literal, Self

from tilewright.schema.architecture import Architecture
from tilewright.schema.document import FileModel
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.mapping.levels import check_names, kept_tiles
from tilewright.schema.problem import Problem, Role
from tilewright.values import Model


class FullLoop(Model):
    """Loop of a full mapping.

    It steps through the piece of a dimension that the loops outside it leave. Step i covers `tile` iterations from
    i x `tile` on, and ends with that piece at the latest. The loop ends with the piece, after at most `trips` steps.
    """

    dimension: str
    """Dimension of the problem."""
    trips: int
    """Number of steps of the longest piece."""
    tile: int
    """Iterations of the dimension in one step."""
    last: int
    """Iterations in the last step of the longest piece: `tile`, or less."""
    kind: Literal["temporal", "spatial"]
    """Whether steps follow one another, or run at once in sub-clusters."""
    cluster: str
    """Cluster of the loop; a spatial loop unrolls over its sub-clusters."""
    axis: str | None
    """Axis of the array that a spatial loop unrolls along; None for temporal loops."""
    memories: tuple[str, ...]
    """Memories with tiles directly outside the loop, whose tiles it steps through; empty outside all memories."""


class FullTile(Model):
    """Tile that a memory keeps of a tensor."""

    tensor: str
    """Name of the tensor."""
    memory: str
    """Memory that keeps it."""
    cluster: str
    """Cluster of the memory."""
    depth: int
    """Number of loops outside the tile, from the first loop on."""
    sizes: FrozenDict[str, int]
    """Dimension of the tensor -> iterations that the tile covers, at most."""
    shape: tuple[int, ...]
    """Extent along each coordinate of the tensor (bounding box)."""
    words: int
    """Words that it takes at most, as capacity counts them."""


class FullRank(Model):
    """Coordinate of a tensor: the sum of its terms."""

    terms: FrozenDict[str, int]
    """Dimension -> its coefficient."""


class FullTensor(Model):
    """Tensor of the problem."""

    name: str
    """Name of the tensor."""
    role: Role
    """Input, weight or output."""
    coordinates: tuple[FullRank, ...]
    """Coordinates of a word, outermost first."""


class FullMapping(FileModel):
    """Mapping with all its loops and tiles, for code generators.

    Loops of one step are left out. Loops and tiles are listed outermost first.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> full = tw.full_mapping(layer)
        >>> full.tiles[0].memory, full.tiles[0].depth, full.ragged
        ('DRAM', 0, False)
    """

    schema_version: Literal[1] = 1
    kind: Literal["full_mapping"] = "full_mapping"
    problem: str
    """Name of the problem."""
    architecture: str
    """Name of the architecture."""
    unit_operation: str
    """Work of one iteration."""
    dimensions: FrozenDict[str, int]
    """Dimension -> its size."""
    tensors: tuple[FullTensor, ...]
    """Tensors of the problem."""
    ragged: bool
    """Whether some step is shorter than the others of its loop."""
    loops: tuple[FullLoop, ...]
    """Loops, outermost first."""
    tiles: tuple[FullTile, ...]
    """Tiles, outermost first; a memory may keep several of one tensor."""
    unicast: FrozenDict[str, tuple[str, ...]]
    """Cluster -> tensors that it sends to, or collects from, each sub-cluster separately."""

    @classmethod
    def of(cls, mapping: Mapping, problem: Problem, architecture: Architecture) -> Self:
        """Return the full form of a mapping.

        Raises:
            InputError: The mapping names a cluster, a tensor or dimensions that do not exist.
        """
        check_names(mapping, problem, architecture)
        loops, depths = _loops(mapping, problem, architecture)
        tiles = []
        for index, name, tensor in kept_tiles(mapping, problem, architecture):
            entry = mapping.entries[index]
            memory = next(memory for memory in architecture.cluster(entry.target).memories if memory.name == name)
            sizes = {one: size for one, size in entry.temporal_tile_sizes.items() if one in tensor.dimensions}
            tiles.append(
                FullTile(
                    tensor=tensor.name,
                    memory=name,
                    cluster=entry.target,
                    depth=depths[index],
                    sizes=FrozenDict(sizes),
                    shape=problem.tile_shape(tensor, sizes),
                    words=memory.tile_words(problem, tensor, entry.temporal_tile_sizes),
                )
            )
        return cls(
            problem=problem.name,
            architecture=architecture.name,
            unit_operation=problem.unit_operation,
            dimensions=problem.dimensions,
            tensors=tuple(
                FullTensor(
                    name=tensor.name,
                    role=tensor.role,
                    coordinates=tuple(FullRank(terms=rank.terms) for rank in tensor.projection),
                )
                for tensor in problem.tensors
            ),
            ragged=not mapping.is_perfect,
            loops=tuple(loops),
            tiles=tuple(tiles),
            unicast=FrozenDict({entry.target: entry.unicast for entry in mapping.entries if entry.unicast}),
        )


def _loops(mapping: Mapping, problem: Problem, architecture: Architecture) -> tuple[list[FullLoop], list[int]]:
    """Return the loops, and how many of them are outside the tiles of each entry."""
    loops, depths = list[FullLoop](), list[int]()
    memories = dict[int, list[str]]()
    for index, name, _ in kept_tiles(mapping, problem, architecture):
        if name not in memories.setdefault(index, []):
            memories[index].append(name)
    pieces, outside = dict(problem.dimensions), tuple[str, ...]()
    nest = list(mapping.loops())
    for index, entry in enumerate(mapping.entries):
        for spatial in (False, True):
            if spatial:
                depths.append(len(loops))
                outside = tuple(memories[index]) if index in memories else outside
            for loop in nest:
                if (loop.entry, loop.spatial) != (index, spatial):
                    continue
                axis = architecture.cluster(entry.target).fanout.axis if spatial else None
                loops.append(
                    FullLoop(
                        dimension=loop.dimension,
                        trips=loop.trips,
                        tile=loop.tile,
                        last=pieces[loop.dimension] - (loop.trips - 1) * loop.tile,
                        kind="spatial" if spatial else "temporal",
                        cluster=entry.target,
                        axis=axis,
                        memories=outside,
                    )
                )
                pieces[loop.dimension] = loop.tile
    return loops, depths
