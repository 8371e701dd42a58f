"""Path of a tensor that one count covers, and the properties of the mapping that make it hard to count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from operator import attrgetter
from typing import Literal

from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Loop, Mapping
from tilewright.schema.problem import Problem, Tensor

Action = Literal["reads", "fills", "updates"]
ACTIONS: tuple[Action, ...] = ("reads", "fills", "updates")


@dataclass(frozen=True)
class Route:
    """Path of the words that one count of a model covers: words of `tensor` between two storage entries.

    If `inner` is None, the words go to compute. `report` is the model's, with the count.
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
        """Return the route of a count of tensor `name` at `level`.

        Fills come from outside; reads and updates from inside.
        """
        keepers = [index for index, entry in enumerate(mapping.entries) if name in (entry.keep or ())]
        home = architecture.cluster_of(level).name
        here = next(at for at, index in enumerate(keepers) if mapping.entries[index].target == home)
        at = here - 1 if action == "fills" and here else here
        inner = keepers[at + 1] if at + 1 < len(keepers) else None
        return cls(problem, architecture, mapping, report, problem.tensor(name), action, keepers[at], inner)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Dimension of the tensor -> iterations of the moved tile."""
        sizes = None if self.inner is None else self.mapping.entries[self.inner].temporal_tile_sizes
        return {name: 1 if sizes is None else sizes[name] for name in sorted(self.tensor.dimensions)}

    def words(self, sizes: MappingOf[str, int] | None = None) -> set[tuple[int, ...]]:
        """Return the words of the tile, or of one with other sizes, at its first position."""
        tile = sizes or self.tile
        points = (dict(zip(tile, at, strict=True)) for at in product(*map(range, tile.values())))
        return {
            tuple(sum(c * at[name] for name, c in rank.terms.items()) for rank in self.tensor.projection)
            for at in points
        }

    @cached_property
    def is_plain(self) -> bool:
        """Whether any two tiles are equal or disjoint boxes."""
        names = [name for rank in self.tensor.projection for name in rank.terms]
        single = all(tuple(rank.terms.values()) == (1,) for rank in self.tensor.projection)
        return single and len(set(names)) == len(names)

    @cached_property
    def pieces(self) -> dict[str, tuple[int, ...]]:
        """Dimension of the tensor -> sizes of the tile.

        If tiles do not divide the enclosing ones, the last ones are smaller.
        """
        inner = () if self.inner is None else self.mapping.entries[: self.inner + 1]
        pieces = {}
        for name, size in self.tile.items():
            sizes = {self.problem.dimensions[name] if inner else size}
            for entry in inner:
                for cut in (entry.temporal_tile_sizes[name], entry.spatial_tile_sizes[name]):
                    if cut >= size:
                        sizes = {piece for of in sizes for piece in (min(of, cut), of % cut) if piece}
            pieces[name] = tuple(sorted(sizes, reverse=True))
        return pieces

    @cached_property
    def holes(self) -> tuple[int, int] | None:
        """Words of the smallest box around a tile, and of the tile; None if it fills every box."""
        ones = dict.fromkeys(self.problem.dimensions, 1)
        for sizes in product(*self.pieces.values()):
            tile = dict(zip(self.pieces, sizes, strict=True))
            box, touched = self.problem.tile_words(self.tensor, {**ones, **tile}), len(self.words(tile))
            if box != touched:
                return box, touched
        return None

    @property
    def link_transfers(self) -> int:
        """Words that neighbours forward, by the report."""
        return sum(row.link_transfers for row in self.report.networks if row.tensor == self.tensor.name)

    @cached_property
    def neighbour_overlaps(self) -> tuple[str, ...]:
        """Dimensions along which tiles of sub-clusters on the path overlap.

        The sub-clusters need not be adjacent.
        """
        loops = list(self._unrolled)
        if self.inner is not None and self.tensor.is_output and not self.mapping.is_perfect:
            # an idle sub-cluster still has the partial sums of an earlier step
            dimensions = {loop.dimension for loop in loops}
            loops += [loop for loop in self._moving if not loop.spatial and loop.dimension in dimensions]
        return self._overlaps(loops)

    @cached_property
    def time_overlaps(self) -> tuple[str, ...]:
        """Dimensions of temporal loops whose tiles overlap, one step or several apart."""
        stepping = [loop for loop in self._moving if not loop.spatial]
        return tuple(dict.fromkeys(name for loop in stepping for name in self._overlaps([loop])))

    @cached_property
    def uneven_sharing(self) -> tuple[str, ...]:
        """Dimensions unrolled on the path that together deliver the tile to one position.

        Empty unless tiles of one of them do not divide.
        """
        if self.inner is None or self.is_plain:
            return ()
        alike = {name for shift, names in self._shifts(self._unrolled) if not any(shift) for name in names}
        return tuple(name for name in self.tile if name in alike) if alike & self._short else ()

    @cached_property
    def shared_unrollings(self) -> tuple[str, ...]:
        """Dimensions unrolled on the path that do not move the tile: sub-clusters need the same words."""
        loops = [loop for loop in self.mapping.loops() if loop.spatial and self.outer <= loop.entry < self._last]
        return tuple(dict.fromkeys(loop.dimension for loop in loops if loop.dimension not in self.tile))

    @cached_property
    def shared_coordinates(self) -> tuple[str, ...]:
        """Descriptions of coordinates that several temporal loops move, and of loops that move several."""
        return tuple(self._shared())

    @property
    def bypassed(self) -> list[str]:
        """Clusters on the path whose storage levels do not keep the tensor."""
        between = self.mapping.entries[self.outer + 1 : self._last]
        return [entry.target for entry in between if entry.keep is not None]

    @cached_property
    def _short(self) -> set[str]:
        """Dimensions with a tile that does not divide the enclosing one."""
        tiles = [
            sizes for entry in self.mapping.entries for sizes in (entry.temporal_tile_sizes, entry.spatial_tile_sizes)
        ]
        return {name for name in self.tile for outer, inner in pairwise(tiles) if outer[name] % inner[name]}

    @property
    def _last(self) -> int:
        """Index of the entry that receives the tile; for compute, the number of entries."""
        return len(self.mapping.entries) if self.inner is None else self.inner

    @cached_property
    def _moving(self) -> list[Loop]:
        """Loops that move the tile: temporal ones down to `inner`, spatial ones outside it."""
        loops = self.mapping.loops()
        return [loop for loop in loops if loop.dimension in self.tile and loop.entry + loop.spatial <= self._last]

    @property
    def _unrolled(self) -> list[Loop]:
        """Spatial loops on the path that move the tile."""
        return [loop for loop in self._moving if loop.spatial and loop.entry >= self.outer]

    def _overlaps(self, loops: Sequence[Loop]) -> tuple[str, ...]:
        """Return dimensions of loops that shift the tile onto a part of itself."""
        if self.is_plain or not loops:
            return ()
        here, moving = self.words(), set[str]()
        for shift, names in self._shifts(loops):
            if any(shift):
                overlap = any(tuple(map(sum, zip(word, shift, strict=True))) in here for word in here)
            else:  # the same position, but smaller last tiles differ
                overlap = any(len(self.pieces[name]) > 1 for name in names)
            if overlap:
                moving.update(names)
        return tuple(name for name in self.tile if name in moving)

    def _shifts(self, loops: Sequence[Loop]) -> set[tuple[tuple[int, ...], frozenset[str]]]:
        """Return shifts of the tile by trips of the loops where its box overlaps itself, with the dimensions."""
        ranks, longest_first = self.tensor.projection, sorted(loops, key=attrgetter("tile"), reverse=True)
        steps = [[rank.terms.get(loop.dimension, 0) * loop.tile for rank in ranks] for loop in longest_first]
        room = [sum(c * (self.tile[name] - 1) for name, c in rank.terms.items()) for rank in ranks]
        for loop, step in zip(longest_first, steps, strict=True):
            room = [most + (loop.trips - 1) * by for most, by in zip(room, step, strict=True)]
        shifts = {((0,) * len(ranks), frozenset[str]())}
        for loop, step in zip(longest_first, steps, strict=True):
            # the largest shift that the remaining loops can undo
            room = [most - (loop.trips - 1) * by for most, by in zip(room, step, strict=True)]
            shifts = {
                (moved, names | {loop.dimension} if number else names)
                for shift, names in shifts
                for number in range(1 - loop.trips, loop.trips)
                for moved in [tuple(by + number * one for by, one in zip(shift, step, strict=True))]
                if all(abs(by) <= most for by, most in zip(moved, room, strict=True))
            }
        return shifts

    def _shared(self) -> Iterator[str]:
        stepping = [loop.dimension for loop in self.mapping.loops() if not loop.spatial and loop.entry <= self._last]
        for rank in self.tensor.projection:
            loops = [name for name in stepping if name in rank.terms]
            if len(loops) > 1 and len(rank.terms) > 1:
                yield f"loops over {', '.join(loops)} all move {rank}"
        for name in dict.fromkeys(stepping):
            if sum(name in rank.terms for rank in self.tensor.projection) > 1:
                yield f"{name} moves several coordinates at once"
