"""Metadata of compressed tiles, counted coordinate by coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.sparse import RankFormat, TensorFormat
from tilewright_costmodels.oracle.sparse.accesses import Tiles, any_of, sum_of
from tilewright_costmodels.oracle.sparse.patterns import Flags
from tilewright_costmodels.oracle.trace import Ints
from tilewright_costmodels.sparse_refusals import RefusedError

Loops = list[tuple[str, int]]
"""Dimension and trips, outermost first."""


@dataclass(frozen=True)
class Rank:
    """One rank of a format.

    Attributes:
        spec: its format.
        length: coordinates of one fiber.
        part: iterations that one coordinate covers, by dimension.
    """

    spec: RankFormat
    length: int
    part: dict[str, int]


def ranks_of(
    problem: Problem,
    mapping: Mapping,
    tensor: Tensor,
    entries: tuple[int, int | None],
    spec: TensorFormat,
    inner: Sequence[Rank] | None,
) -> tuple[Rank, ...]:
    """Return the ranks of a format, innermost first.

    If the memory inside holds tiles of several words, its ranks are the inner ones of a compressed format.

    Args:
        entries: entry of the memory, and of the next one inside that keeps the tensor.
        inner: ranks there; None without a format.

    Raises:
        RefusedError: the format has too few ranks.
    """
    entry, child = entries
    extents = dict.fromkeys(problem.dimensions, 1)
    loops = _loops(mapping, tensor, entry, child)
    below: list[Rank] = []
    specs = list(spec.ranks)
    tile = extents if child is None else mapping.entries[child].temporal_tile_sizes
    if spec.is_compressed and any(tile[name] > 1 for name in tensor.dimensions):
        if inner is None:
            below = [Rank(specs[-1], _words(problem, tensor, dict(tile)), extents)]
        elif len(inner) > len(specs):
            raise RefusedError("format", tensor.name, "fewer ranks than the next memory inside has")
        else:
            kept = reversed(specs[len(specs) - len(inner) :])
            below = [Rank(form, rank.length, rank.part) for form, rank in zip(kept, inner, strict=True)]
        specs = specs[: len(specs) - len(below)]
        extents = dict(tile)
    else:
        for name in tensor.dimensions:  # the innermost loop of a dimension covers what is inside, too
            at = max(index for index, (of, _) in enumerate(loops) if of == name)
            loops[at] = name, loops[at][1] * tile[name]
    loops = [(name, trips) for name, trips in loops if trips > 1]
    ranks = list(below)
    for rank, taken in zip(reversed(specs), _filled(tensor, specs, loops, spec.fill == "inner"), strict=True):
        trips = dict.fromkeys(problem.dimensions, 1)
        for name, count in taken:
            trips[name] *= count
        ranks.append(Rank(rank, _words(problem, tensor, trips), extents))
        extents = {name: extents[name] * trips[name] for name in extents}
    return tuple(ranks)


def _loops(mapping: Mapping, tensor: Tensor, entry: int, child: int | None) -> Loops:
    """Return the loops of a tensor between two entries, or from one to compute; those of one trip, too."""
    last, factors, loops = len(mapping.entries) - 1 if child is None else child, mapping.factors(), Loops()
    for at in range(entry, last + 1):
        here, (temporal, spatial) = mapping.entries[at], factors[at]
        if at > entry and max(temporal.values()) > 1:
            loops += [(name, temporal[name]) for name in here.temporal_order]
        if (at < last or child is None) and max(spatial.values()) > 1:
            loops += [(name, spatial[name]) for name in here.spatial_order or mapping.dimension_names]
    missing = [name for name in mapping.dimension_names if name not in dict(loops)]
    return [(name, trips) for name, trips in [*((name, 1) for name in missing), *loops] if name in tensor.dimensions]


def _filled(tensor: Tensor, specs: Sequence[RankFormat], loops: Loops, outwards: bool) -> list[Loops]:
    """Return the loops of each rank, innermost rank first.

    Raises:
        RefusedError: loops are left over.
    """
    waiting, taken = (loops[::-1] if outwards else list(loops)), []
    for spec in specs[::-1] if outwards else specs:
        part: Loops = []
        group: Sequence[str] | None = None
        if waiting and spec.flatten is not None:
            groups = (tuple(tensor.dimensions),) if spec.flatten == "all" else spec.flatten
            group = next((names for names in groups if waiting[0][0] in names), ())
        while waiting and (waiting[0][0] in group if group is not None else not part):
            part.append(waiting.pop(0))
        taken.append(part)
    if waiting:
        raise RefusedError("format", tensor.name, "more loops than ranks of its format; flatten some")
    return taken if outwards else taken[::-1]


def _words(problem: Problem, tensor: Tensor, tile: dict[str, int]) -> int:
    return math.prod(_box(tensor, tile))


def _box(tensor: Tensor, tile: dict[str, int]) -> list[int]:
    return [1 + sum(by * (tile.get(name, 1) - 1) for name, by in rank.terms.items()) for rank in tensor.projection]


@dataclass(frozen=True)
class Contents:
    """Nonzeros of every tile.

    Attributes:
        sizes: words of each tile, [tile].
        held: its nonzeros, [tile, draw].
        units: pieces of metadata and of payload, ranks innermost first, [rank, 2, tile, draw].
        fibers, filled: nonempty fibers of each rank, and their nonempty coordinates, [rank, tile, draw].
    """

    sizes: Ints
    held: Ints
    units: NDArray[np.int64]
    fibers: NDArray[np.int64]
    filled: NDArray[np.int64]


def contents_of(
    tensor: Tensor, tiles: Tiles, coordinates: Ints, present: Flags, ranks: Sequence[Rank], outwards: bool
) -> Contents:
    """Return what tiles hold.

    Args:
        coordinates: coordinates of each word, [word, axis].
        present: whether it is nonzero, [word, draw].
        outwards: ranks were filled from the innermost one.
    """
    sizes = np.array([len(tile) for tile in tiles.words], dtype=np.int64)
    owner = np.repeat(np.arange(len(tiles)), sizes)
    words = np.array([word for tile in tiles.words for word in sorted(tile)], dtype=np.int64)
    flags, count = present[words], len(tiles)
    held = sum_of(flags, owner, count)
    units = np.zeros((len(ranks), 2, *held.shape), dtype=np.int64)
    fibers, filled = np.zeros((2, len(ranks), *held.shape), dtype=np.int64)
    if not ranks:
        return Contents(sizes, held, units, fibers, filled)
    at = coordinates[words]
    corners = np.full((count, at.shape[1]), np.iinfo(np.int64).max)
    np.minimum.at(corners, owner, at)
    offsets, top = at - corners[owner], len(ranks) - 1
    nonempty, all_fibers, lowest = (held > 0).astype(np.int64), 1, top
    for number in range(top, -1, -1):
        rank = ranks[number]
        part = offsets // np.array(_box(tensor, rank.part), dtype=np.int64)
        cells, cell = np.unique(np.column_stack([owner, part]), axis=0, return_inverse=True)
        fibers[number] = nonempty
        filled[number] = nonempty = sum_of(any_of(flags, cell.reshape(-1), len(cells)), cells[:, 0], count)
        if rank.length > 1 or number == (0 if outwards else top):
            lowest = number
            units[number] = _units(rank, fibers[number], nonempty, all_fibers)
        all_fibers *= rank.length
    units[lowest, 1] = 0  # its payloads are the words themselves
    return Contents(sizes, held, units, fibers, filled)


def _units(rank: Rank, fibers: Ints, filled: Ints, all_fibers: int) -> tuple[Ints, Ints]:
    """Return pieces of metadata and payload.

    Args:
        fibers: fibers that are not empty, [tile, draw].
        filled: their coordinates that are not empty.
        all_fibers: fibers with and without nonzeros.
    """
    length, kind = rank.length, rank.spec.format
    if kind == "UB":
        return (np.full_like(filled, all_fibers * length),) * 2
    if kind == "UOP":
        return np.zeros_like(filled), fibers * (length + 1)
    return (fibers * length if kind == "B" else filled), filled
