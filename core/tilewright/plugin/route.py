"""Route: the way of a tensor that a count is about, and what in the mapping makes it hard to count."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import Report

Action = Literal["reads", "fills", "updates"]
ACTIONS: tuple[Action, ...] = ("reads", "fills", "updates")


@dataclass(frozen=True)
class Route:
    """What one count of a model is about: words of `tensor` that move between two entries that keep it.

    `inner` None: to compute. `report`: the model's, with the count in it.
    """

    problem: Problem
    architecture: Architecture
    mapping: Mapping
    report: Report
    tensor: Tensor
    action: Action
    outer: int
    inner: int | None

    @classmethod
    def of(
        cls,
        problem: Problem,
        architecture: Architecture,
        mapping: Mapping,
        report: Report,
        name: str,
        level: str,
        action: Action,
    ) -> Route:
        """That of a count of tensor `name` at `level`: fills come from outside, reads and updates from inside."""
        keepers = [index for index, entry in enumerate(mapping.entries) if name in (entry.keep or ())]
        home = architecture.cluster_of(level).name
        here = next(at for at, index in enumerate(keepers) if mapping.entries[index].target == home)
        at = here - 1 if action == "fills" and here else here
        inner = keepers[at + 1] if at + 1 < len(keepers) else None
        return cls(problem, architecture, mapping, report, problem.tensor(name), action, keepers[at], inner)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Dimension of the tensor -> iterations of the tile that is moved."""
        sizes = None if self.inner is None else self.mapping.entries[self.inner].temporal_tile_sizes
        return {name: 1 if sizes is None else sizes[name] for name in sorted(self.tensor.dimensions)}

    def words(
        self, shift: MappingOf[str, int] | None = None, sizes: MappingOf[str, int] | None = None
    ) -> set[tuple[int, ...]]:
        """What the tile, or one of other sizes, touches, after its dimensions are shifted."""
        start = shift or {}
        tile = sizes or self.tile
        ranges = [range(start.get(name, 0), start.get(name, 0) + size) for name, size in tile.items()]
        points = (dict(zip(tile, at, strict=True)) for at in product(*ranges))
        return {
            tuple(sum(c * at[name] for name, c in rank.terms.items()) for rank in self.tensor.projection)
            for at in points
        }

    @cached_property
    def is_plain(self) -> bool:
        """Any two tiles are equal or disjoint boxes."""
        names = [name for rank in self.tensor.projection for name in rank.terms]
        single = all(tuple(rank.terms.values()) == (1,) for rank in self.tensor.projection)
        return single and len(set(names)) == len(names)

    @cached_property
    def pieces(self) -> dict[str, tuple[int, ...]]:
        """Dimension of the tensor -> the sizes that the tile has: where tiles do not divide, the last ones are short."""
        inner = () if self.inner is None else self.mapping.entries[: self.inner + 1]
        found = {}
        for name, size in self.tile.items():
            sizes = {self.problem.dimensions[name] if inner else size}
            for entry in inner:
                for cut in (entry.temporal_tile_sizes[name], entry.spatial_tile_sizes[name]):
                    if cut >= size:
                        sizes = {piece for of in sizes for piece in (min(of, cut), of % cut) if piece}
            found[name] = tuple(sorted(sizes, reverse=True))
        return found

    @cached_property
    def holes(self) -> tuple[int, int] | None:
        """Words of the smallest box around a tile, and of those what it touches, where it does not touch all."""
        ones = dict.fromkeys(self.problem.dimensions, 1)
        for sizes in product(*self.pieces.values()):
            tile = dict(zip(self.pieces, sizes, strict=True))
            box, touched = self.problem.tile_words(self.tensor, {**ones, **tile}), len(self.words(sizes=tile))
            if box != touched:
                return box, touched
        return None

    @property
    def link_transfers(self) -> int:
        """Words that the report passes on between neighbours."""
        return sum(row.link_transfers for row in self.report.networks if row.tensor == self.tensor.name)

    @cached_property
    def neighbour_overlaps(self) -> tuple[str, ...]:
        """Dimensions unrolled in space on the way whose tiles overlap their neighbours'."""
        return tuple(self._overlaps(spatial=True))

    @cached_property
    def time_overlaps(self) -> tuple[str, ...]:
        """Dimensions of loops in time whose tiles overlap the one before."""
        return tuple(dict.fromkeys(self._overlaps(spatial=False)))

    @cached_property
    def shared_coordinates(self) -> tuple[str, ...]:
        """In words: coordinates that several loops in time move, and loops that move several coordinates."""
        return tuple(self._shared())

    @property
    def bypassed(self) -> list[str]:
        """Clusters on the way whose storage levels do not keep the tensor."""
        last = len(self.mapping.entries) if self.inner is None else self.inner
        between = self.mapping.entries[self.outer + 1 : last]
        return [entry.target for entry in between if entry.keep is not None]

    def _overlaps(self, spatial: bool) -> Iterator[str]:
        """Dimensions whose loops, on the way (in space) or outside (in time), shift the tile onto part of itself."""
        last = len(self.mapping.entries) if self.inner is None else self.inner
        here = self.words()
        for loop in self.mapping.loops():
            on_the_way = self.outer <= loop.entry < last if spatial else loop.entry <= last
            if loop.spatial == spatial and on_the_way and loop.dimension in self.tile:
                there = self.words({loop.dimension: loop.tile})
                if here != there and here & there:
                    yield loop.dimension

    def _shared(self) -> Iterator[str]:
        last = len(self.mapping.entries) if self.inner is None else self.inner
        stepping = [loop.dimension for loop in self.mapping.loops() if not loop.spatial and loop.entry <= last]
        for rank in self.tensor.projection:
            loops = [name for name in stepping if name in rank.terms]
            if len(loops) > 1 and len(rank.terms) > 1:
                yield f"loops over {', '.join(loops)} all move {rank}"
        for name in dict.fromkeys(stepping):
            if sum(name in rank.terms for rank in self.tensor.projection) > 1:
                yield f"{name} moves several coordinates at once"
