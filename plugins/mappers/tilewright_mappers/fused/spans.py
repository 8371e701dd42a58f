"""Lower bounds on all trees: each layer's least cost beside tiles at home, summed where layers agree on these tiles.

The *span* of a tensor goes from its first layer to its last. If it is at home, every layer of its span has the same tile
on its path, inside the same loops, which step the tensor. The *state* of a tensor is this tile, or that it is away.
docs/fusion_proof.md ("Spans") has the proof.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.factoring.cuts import divisors
from tilewright_mappers.fused.limits import Limits
from tilewright_mappers.fused.parts import FAR, HOME, FusedLayer, subsets
from tilewright_mappers.fused.solution import Axis, Shared

AWAY = 0
"""State of a tensor that is not at home. Tiles have numbers from 1 on."""

AxesOf = Callable[[int, int, Sequence[Shared]], Sequence[Axis]]
"""Axes of loops that layers may share, from the first to the last, if some inputs are at home inside."""
Able = tuple[int, frozenset[int]]
"""Position of a home, and the dimensions that loops over all layers of some wider span may step."""

USED, KEPT, OUTSIDE, BEFORE, AFTER = range(-5, 0)
"""Last columns of nests, in slices: all tiles (USED), and the layer's own (KEPT). The others count its own tiles outside loops:
the last loop, those that it shares with the layer before, and with the layer after."""


@dataclass(frozen=True, eq=False)
class Home:
    """A tensor's place at home, on the path of one layer of its span.

    `number`: the layer's number of it; None: it does not use it. `dimensions`: those that loops outside may step.
    `slices`: room of one step of each. `fills`: state of the layer's tensor (`parts`).
    """

    tensor: Shared
    number: int | None
    dimensions: tuple[int, ...]
    slices: int
    fills: int


@dataclass(frozen=True, eq=False)
class Table:
    """Least energy and cycles of a layer [n, 2] by the states of homes [n, home] and by room [n, 4].

    The room is that of a nest, and of its tiles that the layer before has beside its own; then both for the layer after.
    It counts in parts of the buffer, and is 0 where no home is shared.
    """

    tensors: tuple[Shared, ...]
    states: Ints
    room: Ints
    costs: Floats


@dataclass(frozen=True, eq=False)
class Ends:
    """Least energy and cycles of the first layers (or the last ones) by the states of tensors that others use, too.

    `costs` [parts + 1, parts + 1, n, 2]: if the nearest layer has at most this room, and this room of tiles beside others.
    """

    tensors: tuple[Shared, ...]
    codes: Ints
    costs: Floats


@dataclass(frozen=True, eq=False)
class HomedLayer:
    """A layer with the homes on its path. Its nests are rows: tiles, fills, states of homes, and slices.

    `pairs`: homes whose spans overlap. `sides`: position of a home that the layer shares with only the one before, and with
    only the one after. `parts`: parts of the buffer in which room counts.
    """

    layer: FusedLayer
    homes: tuple[Home, ...]
    pairs: tuple[tuple[Able, Able], ...]
    sides: tuple[int | None, int | None]
    limits: Limits
    parts: int

    def table(self) -> Table:
        """Return the least costs for all states.

        Raises:
            OutOfTime: It takes too long, or too much memory.
        """
        keys, costs = list[Ints](), list[Floats]()
        counts = [*map(self.count, self.homes), *[self.parts + 1] * 4]
        for rows in self._nests():
            nests = rows[self._agrees(rows[:, self._states])]
            if len(nests):
                figures = np.stack(self.layer.costs(nests[:, self._fills], nests[:, self._tiles]), axis=1)
                key, least = _least(np.column_stack([nests[:, self._states], *self._room(nests)]), figures, counts)
                keys.append(key)
                costs.append(least)
        every, least = _least(np.concatenate(keys), np.concatenate(costs), counts)
        homes = len(self.homes)
        return Table(tuple(home.tensor for home in self.homes), every[:, :homes], every[:, homes:], least)

    def count(self, home: Home) -> int:
        """Return the number of a home's states."""
        return 1 + math.prod(self._sizes(home))

    def tile(self, home: Home, state: int) -> list[int]:
        """Return the sizes along a home's dimensions in a state."""
        places = np.unravel_index(state - 1, self._sizes(home)) if home.dimensions else ()
        return [int(self._divisors[at][place]) for at, place in zip(home.dimensions, places, strict=True)]

    def _sizes(self, home: Home) -> list[int]:
        return [len(self._divisors[at]) for at in home.dimensions]

    @cached_property
    def _tiles(self) -> slice:
        return slice(0, len(self.layer.whole))

    @cached_property
    def _fills(self) -> slice:
        return slice(self._tiles.stop, self._tiles.stop + len(self.layer.widths))

    @cached_property
    def _states(self) -> slice:
        return slice(self._fills.stop, self._fills.stop + len(self.homes))

    def _room(self, nests: Ints) -> Iterator[Ints]:
        """Yield the columns of `Table.room`. Nests are rounded up, and tiles beside others down, so nests that fit still do."""
        part = self.layer.buffer.usable_slices / self.parts
        for side, taken in zip(self.sides, (BEFORE, AFTER), strict=True):
            meets = np.zeros(len(nests), np.int64) if side is None else nests[:, self._states][:, side] != AWAY
            yield np.ceil(nests[:, USED] / part).astype(np.int64) * meets
            yield np.floor(nests[:, taken] / part).astype(np.int64) * meets

    def _agrees(self, states: Ints) -> Bools:
        """Return whether, of two homes with overlapping spans, one has loops over all layers of both only."""
        agrees = np.ones(len(states), dtype=np.bool_)
        for pair in self.pairs:
            one, other = (self._steps_only(states[:, at], self.homes[at], able) for at, able in pair)
            agrees &= one | other
        return agrees

    def _steps_only(self, states: Ints, home: Home, able: frozenset[int]) -> Bools:
        """Return whether loops outside a home step only some dimensions."""
        only, left = np.ones(len(states), dtype=np.bool_), states - 1
        for at, count in reversed(list(zip(home.dimensions, self._sizes(home), strict=True))):
            left, place = np.divmod(left, count)
            if at not in able:
                only &= place == count - 1
        stays: Bools = only | (states == AWAY)
        return stays

    def _nests(self) -> Iterator[Ints]:
        for at_home in subsets(range(len(self.homes))):
            start = np.zeros((1, self._states.stop + 5), dtype=np.int64)
            start[:, self._tiles], start[:, self._fills] = self.layer.whole, FAR
            for home in (self.homes[at] for at in at_home):
                if home.number is not None:
                    start[:, self._fills.start + home.number] = home.fills
            for kept in subsets(np.flatnonzero(start[0, self._fills] == FAR).tolist()):
                yield from self._grown(frozenset(at_home), frozenset(kept), frozenset(), start)

    def _grown(
        self, at_home: frozenset[int], kept: frozenset[int], moved: frozenset[int], nests: Ints
    ) -> Iterator[Ints]:
        """Yield nests with further tiles inside, in all orders.

        Loops outside a home step it. A tile of the layer alone moves in through loops that step it (`moved`), since it
        then needs less room. It moves out through others, since it is then filled less often.
        """
        if not at_home and not kept:
            yield nests
            return
        layer, room = self.layer, self.layer.buffer.usable_slices
        able = frozenset(range(len(layer.whole))).intersection(*(self.homes[at].dimensions for at in at_home)) - moved
        ends = frozenset[int]() if at_home else able.intersection(*(layer.moving[at] for at in kept))
        for at, home in [*((at, None) for at in kept), *((at, self.homes[at]) for at in at_home)]:
            rows, tiles = self._tiled(nests[:, self._tiles], able if home else able & layer.moving[at], ends)
            if home:
                slices = home.slices * tiles[:, home.dimensions].prod(axis=1)
            else:
                slices = layer.words_in(at, tiles) * layer.widths[at]
            fits = nests[rows, USED] + slices <= room
            inside, tiles, slices = nests[rows[fits]], tiles[fits], slices[fits]
            if not len(inside):
                continue
            looped = (tiles < inside[:, self._tiles]).any(axis=1)
            inside[:, OUTSIDE] = np.where(looped, inside[:, KEPT], inside[:, OUTSIDE])
            inside[:, self._tiles] = tiles
            inside[:, USED] += slices
            if home:
                places = [np.searchsorted(self._divisors[d], tiles[:, d]) for d in home.dimensions]
                inside[:, self._states.start + at] = 1 + _code(places, self._sizes(home), len(tiles))
                for side, column in zip(self.sides, (BEFORE, AFTER), strict=True):
                    inside[:, column] = inside[:, OUTSIDE] if at == side else inside[:, column]
                yield from self._grown(at_home - {at}, kept, frozenset(), inside)
            else:
                inside[:, KEPT] += slices
                inside[:, self._fills.start + at] = layer.filling_in(at, tiles)
                yield from self._grown(at_home, kept - {at}, layer.moving[at], inside)

    def _tiled(self, tiles: Ints, stepped: frozenset[int], ends: frozenset[int]) -> tuple[Ints, Ints]:
        """Return the rows of the tiles outside, and all tiles inside loops over some dimensions.

        Args:
            ends: dimensions with the least tile only.
        """
        self.limits.check()
        outside = np.arange(len(tiles))
        for at in stepped - ends:
            places = np.searchsorted(self._divisors[at], tiles[:, at])
            counts = np.array([len(inside) for inside in self._inside[at]])[places]
            self.limits.check_room(int(counts.sum()) * (self._states.stop + 5))
            again = np.repeat(np.arange(len(tiles)), counts)
            outside, tiles = outside[again], tiles[again]
            tiles[:, at] = np.concatenate([self._inside[at][place] for place in places])
        if stepped & ends:
            tiles = tiles.copy()
            tiles[:, list(stepped & ends)] = 1
        return outside, tiles

    @cached_property
    def _divisors(self) -> list[Ints]:
        return [np.array(divisors(size), dtype=np.int64) for size in self.layer.whole]

    @cached_property
    def _inside(self) -> list[list[Ints]]:
        """For each divisor of each dimension, its own divisors."""
        return [[np.array(divisors(int(size)), dtype=np.int64) for size in sizes] for sizes in self._divisors]


class SpanBounds:
    """Lower bounds on energy and cycles of all trees, by the states of tensors.

    Args:
        parts: parts of the buffer in which room counts; 1: neighbours leave each other all room.

    Raises:
        OutOfTime: It takes too long, or too much memory.
    """

    def __init__(
        self,
        layers: Sequence[FusedLayer],
        homes: Sequence[tuple[Home, ...]],
        axes_of: AxesOf,
        limits: Limits,
        parts: int,
    ) -> None:
        self.parts, self.limits = parts, limits
        self.layers = [
            HomedLayer(layer, row, tuple(_pairs(at, row, axes_of)), _sides(at, row), limits, parts)
            for at, (layer, row) in enumerate(zip(layers, homes, strict=True))
        ]
        self.counts = {home.tensor: layer.count(home) for layer in self.layers for home in layer.homes}
        self.tables = [layer.table() for layer in self.layers]
        nothing = Ends((), np.zeros(1, dtype=np.int64), np.zeros((parts + 1, parts + 1, 1, 2)))
        self.first, self.last = [nothing], [nothing]
        for at, table in enumerate(self.tables):
            left = tuple(tensor for tensor in table.tensors if tensor.last > at)
            self.first.append(self._joined(self.first[-1], table, table.room, left))
        for at, table in reversed(list(enumerate(self.tables))):
            left = tuple(tensor for tensor in table.tensors if tensor.first < at)
            self.last.insert(0, self._joined(self.last[0], table, table.room[:, [2, 3, 0, 1]], left))

        self._known: dict[tuple[bool, int, tuple[bool | None, ...]], tuple[float, float]] = {}

    def crossing(self, at: int) -> tuple[str, ...]:
        """Return the tensors that may be at home between the layers before a number and the others."""
        return tuple(tensor.name for tensor in self.first[at].tensors)

    def before(self, at: int, at_home: tuple[bool | None, ...] | None = None) -> tuple[float, float]:
        """Return the least energy and cycles of the layers before a number.

        Args:
            at_home: whether each of the crossing tensors is at home; None: unknown.
        """
        return self._lowest(True, at, at_home)

    def after(self, at: int, at_home: tuple[bool | None, ...] | None = None) -> tuple[float, float]:
        """Return the least energy and cycles of the layers from a number on."""
        return self._lowest(False, at, at_home)

    def _lowest(self, first: bool, at: int, at_home: tuple[bool | None, ...] | None) -> tuple[float, float]:
        ends = (self.first if first else self.last)[at]
        key = first, at, at_home or (None,) * len(ends.tensors)
        if key not in self._known:
            left, fits = ends.codes, np.ones(len(ends.codes), dtype=np.bool_)
            for tensor, is_home in reversed(list(zip(ends.tensors, key[2], strict=True))):
                left, state = np.divmod(left, self.counts[tensor])
                if is_home is not None:
                    fits &= (state != AWAY) == is_home
            costs = ends.costs[-1, -1, fits]
            energy, cycles = costs.min(axis=0, initial=math.inf).tolist()
            self._known[key] = energy, cycles
        return self._known[key]

    def _codes(self, table: Table, tensors: Sequence[Shared]) -> Ints:
        columns = [table.states[:, table.tensors.index(tensor)] for tensor in tensors]
        return _code(columns, [self.counts[tensor] for tensor in tensors], len(table.costs))

    def _reached(self, ends: Ends, table: Table, room: Ints) -> Floats:
        """Return the least costs of other layers beside each row of a table; inf if there are none."""
        codes = self._codes(table, ends.tensors)
        places = np.minimum(np.searchsorted(ends.codes, codes), len(ends.codes) - 1)
        costs = ends.costs[self.parts - room[:, 1], self.parts - room[:, 0], places]
        costs[ends.codes[places] != codes] = math.inf
        return costs

    def _joined(self, ends: Ends, table: Table, room: Ints, left: tuple[Shared, ...]) -> Ends:
        costs = self._reached(ends, table, room) + table.costs
        fits = np.isfinite(costs[:, 0])
        codes, places = np.unique(self._codes(table, left)[fits], return_inverse=True)
        self.limits.check()
        self.limits.check_room(2 * (self.parts + 1) ** 2 * len(codes))
        least = np.full((self.parts + 1, self.parts + 1, len(codes), 2), math.inf)
        np.minimum.at(least, (room[fits, 2], room[fits, 3], places), costs[fits])
        for part in range(self.parts):  # what has less room counts with more, too
            np.minimum(least[part + 1], least[part], out=least[part + 1])
        for part in range(self.parts):
            np.minimum(least[:, part + 1], least[:, part], out=least[:, part + 1])
        return Ends(left, codes, least)

    def best(self, figure: int) -> Iterator[tuple[Shared, list[int]]]:
        """Yield each tensor that is at home where energy (0) or cycles (1) are bounded, and the sizes of its tile."""
        states, used, taken = dict[Shared, int](), 0, 0
        for at, table in enumerate(self.tables):
            costs = (table.costs + self._reached(self.last[at + 1], table, table.room[:, [2, 3, 0, 1]]))[:, figure]
            agrees = (table.room[:, 1] <= self.parts - used) & (table.room[:, 0] <= self.parts - taken)
            for number, tensor in enumerate(table.tensors):
                agrees &= table.states[:, number] == states.get(tensor, table.states[:, number])
            row = int(np.argmin(np.where(agrees, costs, math.inf)))
            states |= dict(zip(table.tensors, table.states[row].tolist(), strict=True))
            _, _, used, taken = table.room[row].tolist()
        for layer in self.layers:
            for home in layer.homes:
                if states[home.tensor] != AWAY:
                    yield home.tensor, layer.tile(home, states[home.tensor])


def homes_by_layer(count: int, shared: Sequence[Shared], axes_of: AxesOf) -> list[tuple[Home, ...]] | None:
    """Return the homes on the path of each layer; None if axes leave open which of its dimensions loops step."""
    homes: list[list[Home]] = [[] for _ in range(count)]
    for tensor in (one for one in shared if one.alike):
        axes = axes_of(tensor.first, tensor.last, [] if tensor.made else [tensor])
        coordinates = [tensor.stepped(tensor.first, axis) for axis in axes]
        slices = tensor.width * math.prod(size for at, size in enumerate(tensor.sizes) if at not in coordinates)
        for layer in range(tensor.first, tensor.last + 1):
            dimensions = tuple(axis[layer - tensor.first] for axis in axes)
            if len(set(dimensions)) < len(axes) or len(set(coordinates)) < len(axes):
                return None
            fills = HOME if tensor.made or layer > tensor.first else tensor.words
            homes[layer].append(Home(tensor, tensor.users.get(layer), dimensions, slices, fills))
    return list(map(tuple, homes))


def _pairs(layer: int, homes: Sequence[Home], axes_of: AxesOf) -> Iterator[tuple[Able, Able]]:
    """Yield the homes whose spans overlap, and neither span is in the other one."""
    for pair in itertools.combinations(range(len(homes)), 2):
        tensors = [homes[at].tensor for at in pair]
        first, last = min(tensor.first for tensor in tensors), max(tensor.last for tensor in tensors)
        if all((tensor.first, tensor.last) != (first, last) for tensor in tensors):
            one, other = (
                (at, frozenset(axis[layer - first] for axis in axes_of(first, last, [] if tensor.made else [tensor])))
                for at, tensor in zip(pair, tensors, strict=True)
            )
            yield one, other


def _sides(layer: int, homes: Sequence[Home]) -> tuple[int | None, int | None]:
    spans = [(home.tensor.first, home.tensor.last) for home in homes]
    before, after = (
        next((at for at, span in enumerate(spans) if span == (one, one + 1)), None) for one in (layer - 1, layer)
    )
    return before, after


def _code(columns: Sequence[Ints], counts: Sequence[int], rows: int) -> Ints:
    """Return a number for each row of numbers, which are below some counts."""
    codes = np.zeros(rows, dtype=np.int64)
    for column, count in zip(columns, counts, strict=True):
        codes = codes * count + column
    return codes


def _least(keys: Ints, costs: Floats, counts: Sequence[int]) -> tuple[Ints, Floats]:
    """Return the distinct keys [n, k], which are below some counts, and the least costs of each."""
    codes = _code(list(keys.T), counts, len(keys))
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return keys[order[starts]], np.minimum.reduceat(costs[order], starts)
