"""Branches of one layer in a fused group: all nests inside a tile on two memories, as arrays of priced rows.

A nest has loops, and nodes where the buffer keeps a tensor. Every loop outside a node repeats its
tile: where a tile would stay, another nest keeps it in an outer place at the same price. Only the last
loop in front of a window slides: each further step brings the new words. docs/fusion_proof.md ("Two memories")
states the space.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.prices import Price, access_pj, leaked_pj, operations_pj, port_cycles, price_of
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright_mappers.fused.limits import Limits
from tilewright_mappers.fused.padding import PaddedWindow

Item = TypeVar("Item")
FAR, HOME = -1, 0
"""States of a tensor at a branch: in the outermost memory only, or at home in the buffer.

Any other state is the number of words that fill the tiles that the shared part keeps of it.
"""
LayerTile = tuple[int, ...]
"""Size of each dimension of a layer."""
States = tuple[int, ...]
"""State of each tensor of a layer."""


@dataclass(frozen=True, eq=False, slots=True)
class TileBounds:
    """Tiles of a layer, and lower bounds on its energy and cycles inside each."""

    tiles: list[LayerTile]
    energy_pj: Floats
    cycles: Floats


@dataclass(frozen=True, slots=True)
class Node:
    """A kept tensor of a layer, and the loops right outside it: dimension and tile."""

    tensor: int
    loops: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """Costs of a layer with some nest inside its tile, and the slices that only this branch keeps."""

    energy_pj: float
    cycles: float
    slices: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class _Block:
    """Nests that keep tensors in one order: an array row for each nest.

    Args:
        sliding: the last dimension in front of each node, if it slides a window.
        tiles: tiles at each node, int64 [n, dimension].
        fills: words that fill each kept tensor in total, int64 [n].
        slices: slices of all kept tiles, int64 [n].
    """

    order: tuple[int, ...]
    sliding: tuple[int | None, ...]
    tiles: tuple[Ints, ...]
    fills: tuple[Ints, ...]
    slices: Ints


@dataclass(frozen=True)
class _Rows:
    """All nests inside a tile. `fills` are states of all tensors [n, tensor], FAR where none is kept."""

    blocks: tuple[_Block, ...]
    ends: tuple[int, ...]
    fills: Ints
    slices: Ints
    inner: Ints
    """Tiles inside the innermost node, int64 [n, dimension]."""


@dataclass(frozen=True)
class FusedLayer:
    """A layer of a group, on an architecture of two memories. Dimensions and tensors have numbers.

    `padding`: for each tensor, the padded ones of its windows, by number. `limits`: those of the search.
    """

    problem: Problem
    architecture: Architecture
    padding: tuple[tuple[tuple[int, PaddedWindow], ...], ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def outer(self) -> Memory:
        return self.architecture.memories[0]

    @property
    def buffer(self) -> Memory:
        return self.architecture.memories[1]

    @cached_property
    def whole(self) -> LayerTile:
        return tuple(self.problem.dimensions.values())

    @cached_property
    def moving(self) -> tuple[frozenset[int], ...]:
        """For each tensor, the dimensions that move it."""
        names = list(self.problem.dimensions)
        return tuple(frozenset(map(names.index, tensor.dimensions)) for tensor in self.problem.tensors)

    @cached_property
    def windows(self) -> tuple[tuple[frozenset[int], ...], ...]:
        """For each tensor, the dimensions of each coordinate that is a window."""
        names = list(self.problem.dimensions)
        return tuple(
            tuple(frozenset(map(names.index, rank.terms)) for rank in tensor.projection if len(rank.terms) > 1)
            for tensor in self.problem.tensors
        )

    @cached_property
    def sliding(self) -> tuple[frozenset[int], ...]:
        """For each tensor, the dimensions of its windows."""
        return tuple(frozenset[int]().union(*window) for window in self.windows)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """For each tensor, the slices of a word in the buffer."""
        return tuple(self.buffer.slices_of(tensor) for tensor in self.problem.tensors)

    def words(self, tensor: int, tile: LayerTile) -> int:
        """Return the words of a tensor's tile."""
        if self._is_padded(tensor):
            return int(self.words_in(tensor, np.array([tile], dtype=np.int64))[0])
        area = math.prod(tile[at] for at in self.moving[tensor] - self.sliding[tensor])
        return area * math.prod(1 + sum(tile[at] - 1 for at in window) for window in self.windows[tensor])

    def words_in(self, tensor: int, tiles: Ints) -> Ints:
        """Return the words of a tensor's tiles [n, dimension]; of padded ones those of the largest tile."""
        return self._words_by(PaddedWindow.held, tensor, tiles)

    def filling(self, tensor: int, tile: LayerTile) -> int:
        """Return the words that fill tiles of a tensor in all visits."""
        if self._is_padded(tensor):
            return int(self.filling_in(tensor, np.array([tile], dtype=np.int64))[0])
        return self.words(tensor, tile) * self.visits(tile)

    def filling_in(self, tensor: int, tiles: Ints) -> Ints:
        """Return the words that fill tiles of a tensor in all visits [n]."""
        words = self._words_by(PaddedWindow.filling, tensor, tiles)
        windows = enumerate(self.windows[tensor])
        padded = frozenset[int]().union(*(dimensions for number, dimensions in windows if self._padded(tensor, number)))
        for at in set(range(len(self.whole))) - padded:  # `filling` counts the steps along padded windows
            words *= self.whole[at] // tiles[:, at]
        return words

    def _words_by(self, measure: Callable[[PaddedWindow, tuple[int, int]], int], tensor: int, tiles: Ints) -> Ints:
        """Return the words of a tensor's tiles [n, dimension], where padded windows are measured by one of their methods."""
        words = np.ones(len(tiles), dtype=np.int64)
        for at in self.moving[tensor] - self.sliding[tensor]:
            words *= tiles[:, at]
        for number, window in enumerate(self.windows[tensor]):
            padded = self._padded(tensor, number)
            if padded is None:
                words *= 1 + sum(tiles[:, at] - 1 for at in window)
            else:
                words *= np.array([measure(padded, pair) for pair in _pairs(tiles, window)], dtype=np.int64)
        return words

    def _is_padded(self, tensor: int) -> bool:
        return bool(self.padding and self.padding[tensor])

    def _padded(self, tensor: int, number: int) -> PaddedWindow | None:
        """Return a padded window of a tensor; None if it is not padded."""
        return dict(self.padding[tensor]).get(number) if self.padding else None

    def visits(self, tile: LayerTile) -> int:
        """Return the steps of all loops outside a tile."""
        return math.prod(whole // size for whole, size in zip(self.whole, tile, strict=True))

    def slid(self, tensor: int, outer: int, tile: LayerTile, last: int) -> int:
        """Return the words that fill tiles of a window if the last loop, over one dimension, slides it.

        Args:
            outer: the tile of that dimension outside the loop.
        """
        tiles, before = np.array([tile], dtype=np.int64), np.array([outer], dtype=np.int64)
        return int(self._slid(tensor, before, tiles, last, self.filling_in(tensor, tiles))[0])

    def _slid(self, tensor: int, outer: Ints, tiles: Ints, last: int, fills: Ints) -> Ints:
        """Return `slid` for tiles [n, dimension], given the words of all tiles without sliding [n]."""
        number, window = next(
            (n, dimensions) for n, dimensions in enumerate(self.windows[tensor]) if last in dimensions
        )
        padded = self._padded(tensor, number)
        if padded is None:
            side, trips = 1 + sum(tiles[:, dimension] - 1 for dimension in window), outer // tiles[:, last]
            new: Ints = fills // (trips * side) * (side + (trips - 1) * np.minimum(side, tiles[:, last]))
            return new
        at, pairs = sorted(window).index(last), _pairs(tiles, window)
        whole = np.array([padded.filling(pair) for pair in pairs], dtype=np.int64)
        slid = [padded.slid(pair, at, size) for pair, size in zip(pairs, outer.tolist(), strict=True)]
        return fills // whole * np.array(slid, dtype=np.int64)

    @cached_property
    def signature(self) -> object:
        """Equal for layers that have the same branches."""
        return (
            self.problem.macs,
            self.whole,
            self.moving,
            self.windows,
            self.padding,
            self.widths,
            tuple((tensor.role, self.outer.slices_of(tensor)) for tensor in self.problem.tensors),
        )

    def branches(self, tile: LayerTile, states: States, room: float, objective: Objective) -> list[Branch]:
        """Return all nests of a branch whose figures no other nest beats.

        Args:
            room: slices that are left for the branch.
            objective: energy, or cycles, do not matter if it does not depend on them.
        """
        rows = self._rows(tile, tuple(at for at, state in enumerate(states) if state == FAR))
        fills = np.where(np.array(states) == FAR, rows.fills, np.array(states))
        energy, cycles = self.costs(fills, rows.inner)
        figures = np.column_stack([*objective.needed(energy, cycles), rows.slices])
        rows_kept = np.flatnonzero(rows.slices <= room)
        rows_kept = rows_kept[undominated(figures[rows_kept], self.limits)]
        return [
            Branch(float(energy[at]), float(cycles[at]), int(rows.slices[at]), self._nodes(rows, int(at), tile))
            for at in rows_kept
        ]

    def costs(self, fills: Ints, inner: Ints) -> tuple[Floats, Floats]:
        """Return energy and cycles of the layer.

        Args:
            fills: states of all tensors [n, tensor]. FAR: the buffer does not keep it.
            inner: tiles inside the innermost node [n, dimension]. Below the buffer is one unit, whose costs do not
                depend on them.
        """
        counts = self._counts(fills)
        return self._totals(self._energies(counts), counts)

    def home_is_least(self, objective: Objective) -> bool:
        """Return whether no tensor costs less if it is not at home in the buffer."""
        count = len(self.widths)
        far, home = (self._energies(self._counts(np.full((1, count), state))) for state in (FAR, HOME))
        most = self._counts(np.full((1, count), self.problem.macs))  # all tensors, filled for each operation
        moved = (most * self._slices).sum(axis=1)
        moved[:, :2] = 0
        busy = self.port_cycles(np.column_stack([moved[:, :3], moved[:, 3] + moved[:, 4]]).astype(np.int64))
        timed = self.leaks or objective.cycle_power > 0
        computing = self.problem.macs * self.architecture.compute.cycles_per_operation
        return bool((home <= far).all() and (not timed or busy[0] <= computing))

    def least(self, tiles: Ints, states: States) -> tuple[Floats, Floats]:
        """Return a lower bound on energy and cycles inside tiles [n, dimension] for all nests inside."""
        fills = np.tile(np.array(states, dtype=np.int64), (len(tiles), 1))
        counts = self._counts(fills)
        energies = self._energies(counts)
        if FAR in states:
            for tensor, state in enumerate(states):
                if state == FAR:
                    fills[:, tensor] = self._filled_at_least(tensor, tiles)
            kept = self._counts(fills)
            counts, energies = np.minimum(counts, kept), np.minimum(energies, self._energies(kept))
        return self._totals(energies, counts)

    def _filled_at_least(self, tensor: int, tiles: Ints) -> Ints:
        """Return the fewest words that fill a tensor inside tiles. Loops over windows bring new words only."""
        words = np.full(len(tiles), self.words(tensor, self.whole))
        for at, whole in enumerate(self.whole):
            if at not in self.moving[tensor]:
                words *= whole // tiles[:, at]
        return words

    @cached_property
    def _known_counts(self) -> tuple[Floats, Floats]:
        """Transfers of each tensor.

        There are five: reads and accumulations of the outermost memory, then reads, fills and accumulations of the
        buffer. The first array has those of each tensor that is FAR, at HOME, or kept [tensor, 3, 5].
        The other one has what is added for each word that fills a kept tensor [tensor, 5].
        """
        known, filled = [], []
        for number, tensor in enumerate(self.problem.tensors):
            words = (
                self.problem.tensor_words(tensor) if tensor.is_output else 0
            )  # a word's first partial sum is not read
            reads, sums = self._operations(number) - words, self.problem.macs if tensor.is_output else 0
            known.append([[reads, sums, 0, 0, 0], [0, 0, reads, 0, sums], [-words, 0, reads, -words, sums]])
            filled.append([1, int(tensor.is_output), 0, 1, 0])
        return np.array(known, dtype=np.float64), np.array(filled, dtype=np.float64)

    def _operations(self, tensor: int) -> int:
        """Return the operations whose word of a tensor exists."""
        operations = self.problem.macs
        for number, padded in self.padding[tensor] if self.padding else ():
            operations = operations // math.prod(self.whole[at] for at in self.windows[tensor][number]) * padded.used
        return operations

    @cached_property
    def _slices(self) -> Floats:
        """Slices of a word in the memory of each transfer [tensor, 5]."""
        memories = (self.outer, self.outer, self.buffer, self.buffer, self.buffer)
        return np.array(
            [[memory.slices_of(tensor) for memory in memories] for tensor in self.problem.tensors], dtype=np.float64
        )

    @cached_property
    def prices(self) -> tuple[Price, Price]:
        """Prices of the outermost memory and of the buffer; one instance of each exists."""
        return price_of(self.outer), price_of(self.buffer)

    @property
    def leaks(self) -> bool:
        """Whether a memory leaks."""
        return any(price.leakage_pj > 0 for price in self.prices)

    def leaked(self, cycles: Any) -> Any:
        """Return the pJ that leak in both memories during a number, or an array, of cycles."""
        return sum(leaked_pj(price, cycles, 1) for price in self.prices)

    def _counts(self, fills: Ints) -> Floats:
        """Return the transfers of all tensors [n, tensor, 5], given their states [n, tensor]."""
        known, filled = self._known_counts
        modes = np.where(fills > 0, 2, fills + 1)
        return known[np.arange(len(known)), modes] + filled * np.maximum(fills, 0)[:, :, None]

    def _energies(self, counts: Floats) -> Floats:
        """Return the energy of all transfers of each tensor [n, tensor]."""
        outer, buffer = self.prices
        slices = np.moveaxis(counts * self._slices, -1, 0)
        energies: Floats = access_pj(outer, slices[0], 0.0, slices[1]) + access_pj(buffer, *slices[2:])
        return energies

    def _totals(self, energies: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Return energy and cycles, given energies [n, tensor] and transfers [n, tensor, 5]."""
        macs, compute = self.problem.macs, self.architecture.compute
        moved = (counts * self._slices).sum(axis=1)
        ports = self.port_cycles(np.column_stack([moved[:, :3], moved[:, 3] + moved[:, 4]]).astype(np.int64))
        cycles = np.maximum(ports, macs * compute.cycles_per_operation)
        return energies.sum(axis=1) + operations_pj(compute, macs) + self.leaked(cycles), cycles

    def port_cycles(self, slices: Ints) -> Floats:
        """Return the cycles that the bandwidths require.

        Args:
            slices: those that the outermost memory reads and writes, then the buffer [n, 4].
        """
        read, written = slices.T[::2], slices.T[1::2]
        both = (port_cycles(price, *moved) for price, *moved in zip(self.prices, read, written, strict=True))
        cycles: Floats = np.maximum(*both)
        return cycles

    def inner_entries(self, branch: Branch) -> list[dict[str, Any]]:
        """Return the entries inside the nest of a branch."""
        ones = dict.fromkeys(self.problem.dimensions, 1)
        inner = self.architecture.cluster_of(self.buffer.name).name
        return [{"target": inner, "temporal_tile_sizes": ones, "temporal_order": list(ones)}]

    def _rows(self, tile: LayerTile, able: tuple[int, ...]) -> _Rows:
        """Return the nests inside a tile that keep some of the tensors."""
        if (tile, able) not in self._known_rows:
            start = np.array([tile], dtype=np.int64)
            none = np.zeros(1, dtype=np.int64)
            blocks, numbers = list[_Block](), 0
            for order in (
                permutation for count in range(len(able) + 1) for permutation in itertools.permutations(able, count)
            ):
                for block in self._grown(order, tile, _Block(order, (), (start,), (), none)):
                    numbers += len(block.slices) * len(tile) * len(block.tiles)
                    self.limits.check_room(numbers)
                    blocks += [block] if len(block.slices) else []
            fills = [np.full((len(block.slices), len(self.widths)), FAR, dtype=np.int64) for block in blocks]
            for part, table in zip(blocks, fills, strict=True):
                for tensor, words in zip(part.order, part.fills, strict=True):
                    table[:, tensor] = words
            self._known_rows[tile, able] = _Rows(
                tuple(blocks),
                tuple(np.cumsum([len(block.slices) for block in blocks]).tolist()),
                np.concatenate(fills),
                np.concatenate([block.slices for block in blocks]),
                np.concatenate([block.tiles[-1] for block in blocks]),
            )
        return self._known_rows[tile, able]

    @cached_property
    def _known_rows(self) -> dict[tuple[LayerTile, tuple[int, ...]], _Rows]:
        return {}

    def _grown(self, order: tuple[int, ...], tile: LayerTile, block: _Block) -> Iterator[_Block]:
        """Yield the nests that keep tensors in an order, where the first ones are in a block.

        A node moves in through loops that move it, since it then needs less room. It moves out through others, since it
        is then filled less often. A window does not move in, and the loop that slides it may be any.
        A loop that moves a node and all later ones, outside windows, has the least tile: all are filled as often.

        Args:
            tile: the tile of the branch.
        """
        self.limits.check()
        at = len(block.fills)
        if at == len(order):
            yield block
            return
        tensor, later = order[at], order[at:]
        moved = self.moving[order[at - 1]] if at and not self.sliding[order[at - 1]] else frozenset[int]()
        slides = self.sliding[tensor]
        least = self.moving[tensor].intersection(*(self.moving[other] - self.sliding[other] for other in later))
        outside, tiles = np.arange(len(block.slices)), block.tiles[-1]
        stepped = sorted(self.moving[tensor] - moved | slides)
        room, waiting = self.buffer.usable_slices, stepped[:]
        for dimension in stepped:
            waiting.remove(dimension)
            if dimension in least:
                tiles = tiles.copy()
                tiles[:, dimension] = 1
                continue
            sizes, rows = np.unique(tiles[:, dimension], return_inverse=True)
            options = [self.limits.divisors(size) for size in sizes.tolist()]
            counts = np.array([len(option) for option in options])[rows]
            self.limits.check_room(int(counts.sum()) * len(tile))
            again = np.repeat(np.arange(len(tiles)), counts)
            outside, tiles = outside[again], tiles[again]
            tiles[:, dimension] = np.concatenate([options[row] for row in rows.tolist()])
            alone = sorted(self.moving[tensor] - slides - set(waiting))
            fits = block.slices[outside] + tiles[:, alone].prod(axis=1) * self.widths[tensor] <= room
            for window in self.windows[tensor]:
                fits &= (tiles[:, sorted(window)] < [tile[at] for at in sorted(window)]).sum(axis=1) <= 1
            outside, tiles = outside[fits], tiles[fits]
            if not len(tiles):
                return
        words = self.words_in(tensor, tiles)
        slices = block.slices[outside] + words * self.widths[tensor]
        fits = slices <= room
        outside, tiles, words, slices = outside[fits], tiles[fits], words[fits], slices[fits]
        fills = self.filling_in(tensor, tiles)
        before = block.tiles[-1][outside]
        looped = tiles < before
        for last, chosen, filled in self._slidings(tensor, moved, before, tiles, looped, fills):
            if len(chosen):
                rows = outside[chosen]
                grown = _Block(
                    order,
                    (*block.sliding, last),
                    (*(column[rows] for column in block.tiles), tiles[chosen]),
                    (*(fill[rows] for fill in block.fills), filled),
                    slices[chosen],
                )
                yield from self._grown(order, tile, grown)

    def _slidings(
        self, tensor: int, moved: frozenset[int], before: Ints, tiles: Ints, looped: Bools, fills: Ints
    ) -> Iterator[tuple[int | None, Ints, Ints]]:
        """Yield the last dimension if it slides a window of a node, the rows where it may, and their fills."""
        slides = sorted(self.sliding[tensor])
        if not slides:
            yield None, np.arange(len(tiles)), fills
            return
        chosen = np.flatnonzero(~looped[:, slides].any(axis=1))
        yield None, chosen, fills[chosen]
        for last in slides:
            others = sorted(moved - {last})  # the node before has moved in through all loops but the last
            chosen = np.flatnonzero(looped[:, last] & ~looped[:, others].any(axis=1))
            yield last, chosen, self._slid(tensor, before[chosen, last], tiles[chosen], last, fills[chosen])

    def _nodes(self, rows: _Rows, at: int, tile: LayerTile) -> tuple[Node, ...]:
        """Return the nodes of one nest."""
        number = next(segment for segment, end in enumerate(rows.ends) if at < end)
        block = rows.blocks[number]
        at -= rows.ends[number] - len(block.slices)
        tiles = [[int(size) for size in table[at]] for table in block.tiles]
        nodes = []
        for tensor, last, outer, inner in zip(block.order, block.sliding, tiles[:-1], tiles[1:], strict=True):
            loops = [
                (dimension, inner[dimension])
                for dimension in range(len(tile))
                if inner[dimension] < outer[dimension] and dimension != last
            ]
            nodes.append(Node(tensor, (*loops, *([] if last is None else [(last, inner[last])]))))
        return tuple(nodes)


def _pairs(tiles: Ints, window: frozenset[int]) -> list[tuple[int, int]]:
    """Return the tiles of a window's two dimensions [n]."""
    one, other = sorted(window)
    return list(zip(tiles[:, one].tolist(), tiles[:, other].tolist(), strict=True))


def undominated(rows: Floats, limits: Limits) -> Ints:
    """Return the indices of the rows [n, k] that no other row is at most in every column; of equal ones the first."""
    left = np.lexsort(rows.T[::-1])
    kept: list[int] = []
    while len(left):
        limits.check()
        kept.append(int(left[0]))
        left = left[(rows[left] < rows[left[0]]).any(axis=1)]
    return np.array(kept, dtype=np.int64)


def subsets(items: Sequence[Item], least: int = 0, large_first: bool = False) -> Iterator[tuple[Item, ...]]:
    """Yield the subsets of `least` items or more, small ones first, or large ones."""
    counts = range(least, len(items) + 1)
    for count in reversed(counts) if large_first else counts:
        yield from itertools.combinations(items, count)
