"""Compressed formats: the loops of each rank, and its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.schema.problem import Tensor
from tilewright.schema.sparse import RankFormat, TensorFormat
from tilewright_costmodels.sparse_refusals import RefusedError
from tilewright_costmodels.timeloop.sparse.densities import Box, Distribution
from tilewright_costmodels.timeloop.sparse.nest import COMPUTE, Extents, Loop, Nest, words

Pieces = Floats
"""Pieces of metadata and of payload by rank, innermost first, [rank, 2, ...]."""


@dataclass(frozen=True)
class Rank:
    """One rank of a format on a tile: a fiber has `length` coordinates; `tile` is what all of its fibers cover."""

    length: int
    tile: Box
    spec: RankFormat | None = None


@dataclass(frozen=True)
class Stored:
    """A tensor at a level: its tile, and the ranks of its format, innermost first (none: not in a format)."""

    tile: Box
    ranks: tuple[Rank, ...] = ()
    outwards: bool = False
    """Ranks were matched with loops from the innermost one outwards."""

    @property
    def has_metadata(self) -> bool:
        return bool(self.ranks)

    @property
    def compressed(self) -> bool:
        return any(rank.spec is not None and rank.spec.is_compressed for rank in self.ranks)

    def units(self, density: Distribution, held: Sequence[int]) -> Pieces:
        """Return the pieces of each rank, innermost first, by the nonzeros that the tile holds: [rank, 2, n].

        Args:
            held: [n], ascending.
        """
        found: Pieces = np.zeros((len(self.ranks), 2, len(held)))
        fibers, top = 1.0, len(self.ranks) - 1
        for number in range(top, -1, -1):
            rank = self.ranks[number]
            assert rank.spec is not None
            below = self.ranks[number - 1].tile if number else (1,) * len(self.tile)
            tile = self.tile if number == top else rank.tile
            filled = fibers * (1 - density.empties(tile, self.tile, held))
            kept = 1 - density.empties(below, self.tile, held)
            if rank.length > 1 or number == (0 if self.outwards else top):
                found[number, 0], found[number, 1] = _pieces(rank.spec.format, fibers, filled, rank.length, kept)
            fibers *= rank.length
        data = np.ones(len(held), np.bool_)  # the innermost rank that costs anything has the data as its payload
        for pieces in found:
            costs = pieces.any(axis=0)
            pieces[1, data & costs] = 0.0
            data &= ~costs
        return found


def _pieces(
    kind: str, fibers: float, filled: Floats, length: int, kept: Floats
) -> tuple[Floats | float, Floats | float]:
    if kind == "UB":
        return fibers * length, fibers * length
    if kind == "UOP":
        return 0.0, filled * (length + 1)
    if kind == "RLE":
        return filled * (length * kept), filled * (length * kept)
    coordinates = filled * np.ceil(length * kept)
    return (filled * length if kind == "B" else coordinates), coordinates


@dataclass(frozen=True)
class _Group:
    """Loops of one rank."""

    trips: Extents
    mold: Extents | None
    loops: int = 0
    unmatched: bool = False


def placed(nest: Nest, formats: dict[tuple[int, str], TensorFormat]) -> dict[tuple[int, str], Stored]:
    """Return how every kept tensor is stored, by level and name.

    Raises:
        RefusedError: a format has too few ranks, or not those of the level inside.
    """
    contents: dict[tuple[int, str], Stored] = {}
    ranks: dict[tuple[int, str], tuple[Rank, ...]] = {}
    for tensor in nest.problem.tensors:
        for level in reversed(nest.kept(tensor)):
            spec, here = formats.get((level, tensor.name)), (level, tensor.name)
            inner = (nest.child(tensor, level), tensor.name)
            ranks[here] = tuple(_ranks(nest, tensor, level, spec, ranks.get(inner, ())))
            kept = ranks[here] if spec is not None else ()
            contents[here] = Stored(nest.tile(tensor, level), kept, spec is not None and spec.fill == "inner")
    return contents


def _ranks(nest: Nest, tensor: Tensor, level: int, spec: TensorFormat | None, inner: Sequence[Rank]) -> Iterator[Rank]:
    """Yield the ranks, innermost first."""
    child, where = nest.child(tensor, level), nest.memory(tensor, level).name
    specs = [None] if spec is None else list(spec.ranks)
    pretiled = spec is not None and spec.is_compressed and child != COMPUTE and words(nest.tile(tensor, child)) > 1
    loops = [loop for loop in nest.loops(child + 1, level) if loop.dimension in tensor.dimensions]
    trips = [loop.trips for loop in loops]
    below: list[Rank] = []
    if pretiled:
        assert spec is not None
        below = list(inner)
        if len(below) > len(specs):
            raise RefusedError(
                "format",
                where,
                f"{tensor.name} has {len(specs)} ranks, and the next memory inside needs {len(below)} of them",
            )
        theirs = [rank.spec for rank in below if rank.spec is not None]
        names, ours = [rank.format for rank in theirs], [rank.format for rank in reversed(spec.ranks)]
        if any(rank.is_compressed for rank in theirs) and names != ours[: len(names)]:
            raise RefusedError(
                "format",
                where,
                f"the inner ranks of {tensor.name} are not those of the next memory inside ({' '.join(names)})",
            )
    elif child != COMPUTE:
        inside = nest.levels[child].loops[-1].mold
        for name in tensor.dimensions:
            at = next(number for number, loop in enumerate(loops) if loop.dimension == name)
            trips[at] *= inside[name]
    outer = specs[: len(specs) - len(below)]
    groups, matched = _matched(
        nest, list(zip(loops, trips, strict=True)), outer, spec is not None and spec.fill == "inner"
    )
    if not matched:
        raise RefusedError("format", where, f"{tensor.name} has more loops than its format has ranks; flatten some")
    outwards = spec is not None and spec.fill == "inner"
    if not outwards and any(group.unmatched for group in groups[1:]) and any(group.trips for group in groups):
        nest.note("rank_shift", tensor, level)
    if outwards and any(group.loops > 1 for group in groups[:-1]):
        nest.note("flattened_subtile", tensor, level)
    kinds = list(reversed(specs))  # innermost first
    for number, rank in enumerate(below):
        yield Rank(rank.length, rank.tile, kinds[number])
    for number, group in enumerate(groups, start=len(below)):
        length = words(nest.box(tensor, nest.unit | group.trips))
        tile = (1,) * len(tensor.projection) if group.mold is None else nest.box(tensor, group.mold)
        yield Rank(length, tile, kinds[number])


def _matched(
    nest: Nest, loops: list[tuple[Loop, int]], specs: Sequence[RankFormat | None], outwards: bool
) -> tuple[list[_Group], bool]:
    """Return the loops of each rank, innermost first, and whether every loop has a rank.

    Args:
        loops: loops with their trips, innermost first.
        specs: ranks, outermost first; None takes all loops.
    """
    empty = _Group({}, loops[0][0].mold if loops else nest.unit)
    order = loops if outwards else loops[::-1]
    waiting = list(reversed(specs)) if outwards else list(specs)
    groups: list[_Group] = []
    at = 0
    while waiting:
        while at < len(order) and order[at][1] == 1:
            at += 1
        if at == len(order):
            break
        spec = waiting.pop(0)
        group: Sequence[str] = ()
        if spec is None or spec.flatten == "all":
            group = [loop.dimension for loop, _ in order]
        elif spec.flatten is not None:
            found = next((each for each in spec.flatten if order[at][0].dimension in each), None)
            if found is None:
                groups.append(_Group({}, None if outwards else empty.mold, unmatched=True))
                continue
            group = found
        taken = [order[at]]
        at += 1
        while group and at < len(order) and (order[at][1] == 1 or order[at][0].dimension in group):
            if order[at][1] > 1:
                taken.append(order[at])
            at += 1
        trips: Extents = {}
        for loop, count in taken:
            trips[loop.dimension] = trips.get(loop.dimension, 1) * count
        made = _Group(trips, taken[0][0].mold, len(taken))
        groups.insert(len(groups) if outwards else 0, made)
    for _ in waiting:
        groups.insert(len(groups) if outwards else 0, empty)
    return groups, all(count == 1 for _, count in order[at:])
