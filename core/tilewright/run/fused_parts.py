"""Partial mappings of one layer in a fused group: all nests on two memories, priced and thinned.

A nest has loops, and nodes where the buffer keeps a tensor. Every loop outside a node repeats its
tile: where a tile would stay, another nest keeps it in an outer place at the same price. Only the last
loop in front of a window slides: each further step brings the new words. docs/fusion.md ("Search")
states the space.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright.plugin.group_report import energy_of, port_limits
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Tensor

Loops = tuple[tuple[str, int], ...]
"""Axis and tile of each loop, outermost first."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops outermost first, and the nodes of the kept tensors, outermost first.

    For each node, `depths` has the number of loops outside it, and `slices` the slices of its tile. `fills` has
    the words that all loops bring. `visits` is the product of the trips of all loops. `sliding` are the windows in the
    shared part that bring only the new words of each step.
    """

    loops: Loops = ()
    kept: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()
    visits: int = 1
    slices: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()
    sliding: frozenset[str] = frozenset()

    def followed_by(self, inner: Nest) -> Nest:
        """Return the nest with another one inside."""
        depth = len(self.loops)
        return Nest(
            (*self.loops, *inner.loops),
            (*self.kept, *inner.kept),
            (*self.depths, *(depth + each for each in inner.depths)),
            self.visits * inner.visits,
            (*self.slices, *inner.slices),
            (*self.fills, *(self.visits * each for each in inner.fills)),
            self.sliding | inner.sliding,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A partial mapping: its costs, and the words that it keeps.

    `outside` are words per depth that stay while deeper shared loops run, without fused tensors.
    `inside` are words that only this layer's branch keeps. `leaf` are the entries inside the nest; empty: tiles of 1.
    """

    nest: Nest
    energy_pj: float
    cycles: float
    outside: tuple[float, ...]
    inside: float
    leaf: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Homes:
    """Homes of the fused tensors that are alive while a layer runs: (tensor, loops outside), by name.

    `loops` are those outside the innermost home, by axis.
    """

    loops: Loops = ()
    depths: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Fusable:
    """A tensor that several layers use, or that is alive while they run.

    `users` are the positions of its layers. `made`: the first one makes it. Otherwise it is an input of the group, and
    the first one fills it. `sizes`: axis -> size. `width`: slices of a word in the buffer. `halo`: axis -> rows of the
    steps before that a window reads again.
    """

    name: str
    sizes: dict[str, int]
    users: tuple[int, ...]
    made: bool
    width: int
    halo: dict[str, int]

    @property
    def first(self) -> int:
        return self.users[0]

    @property
    def last(self) -> int:
        return self.users[-1]

    def slices(self, loops: Loops) -> int:
        """Return the slices of the tile inside some loops, with the rows that stay."""
        tiles = {axis: size + self.halo.get(axis, 0) for axis, size in loops}
        return self.width * math.prod(tiles.get(axis, size) for axis, size in self.sizes.items())

    def keeps_halo(self, loops: Loops) -> bool:
        """Return whether rows stay at home for the next step of a loop outside it."""
        return any(self.halo.get(axis) for axis, _ in loops)


@dataclass(frozen=True)
class FusedLayer:
    """A layer of a group, on an architecture of two memories.

    Args:
        axes: dimension -> axis of the group.
        names: tensor -> its name in the group.
        alive: the tensors that may be fused and are alive while the layer runs.
    """

    problem: Problem
    architecture: Architecture
    number: int
    axes: dict[str, str]
    names: dict[str, str]
    alive: tuple[Fusable, ...]

    @property
    def outer(self) -> Memory:
        return self.architecture.memories[0]

    @property
    def buffer(self) -> Memory:
        return self.architecture.memories[1]

    def parts(self) -> dict[Homes, list[Part]]:
        """Return the partial mappings that no other one of their class beats."""
        found: dict[Homes, list[Part]] = {}
        for count in range(len(self.alive) + 1):
            for fused in itertools.combinations(self.alive, count):
                for nest in self._nests(frozenset(each.name for each in fused)):
                    homes, part = self._priced(fused, nest)
                    found.setdefault(homes, []).append(part)
        for homes, parts in found.items():
            if len(parts) == 1:
                continue
            columns = [(each.energy_pj, each.cycles, *each.outside, each.inside) for each in parts]
            found[homes] = [parts[at] for at in undominated(np.array(columns))]
        return found

    def _nests(self, fused: frozenset[str]) -> Iterator[Nest]:
        """Yield the nests for which no other one fills the same tensors less often in less room."""
        others = [name for name in self.names.values() if name not in fused]
        several = {each.name for each in self.alive}
        whole = dict(self.problem.dimensions)
        for kept in _subsets(others):
            for inside in _subsets(kept) if fused else [kept]:
                if not several.isdisjoint(set(kept).difference(inside)):
                    continue  # in a shared part, its tile would be one of the other layers, too
                for order in itertools.permutations(sorted(fused.union(kept).difference(inside))):
                    if order and order[-1] not in fused:
                        continue
                    for outer, tile in self._shared_parts(fused, order, whole, Nest()):
                        room = self._capacity - sum(outer.slices)
                        for inner in self._branches(inside, tile):
                            if sum(inner.slices) <= room:
                                yield outer.followed_by(inner)

    def _shared_parts(
        self, fused: frozenset[str], order: tuple[str, ...], tile: dict[str, int], nest: Nest
    ) -> Iterator[tuple[Nest, dict[str, int]]]:
        """Yield the nests as far as the innermost home, and the tiles there.

        A node moves in through the next loop if that moves it, since it then needs less room. A window does not. Loops are
        not exchanged, since the other layers share their order.
        """
        at = len(nest.kept)
        if at and order[at - 1] in fused and not self._may_be_home(order[at - 1], nest.loops):
            return
        if at == len(order):
            yield nest, tile
            return
        able = set(self.problem.dimensions).intersection(*(self._shared[name] for name in order[at:] if name in fused))
        passed = set[str]()
        if at and order[at - 1] not in fused and not self._windows[order[at - 1]]:
            passed = self._moving[order[at - 1]]
        for loops, inner, slices in self._loops(able, order[at], tile, nest):
            for ordered in itertools.permutations(loops):
                if ordered and ordered[0][0] in passed:
                    continue
                more = nest.followed_by(self._node(order[at], ordered, tile, slices))
                yield from self._shared_parts(fused, order, inner, more)
                if order[at] not in fused and self._may_slide(order[at], inner, more.loops):
                    outer = {**self.problem.dimensions, **dict(more.loops[:-1])}
                    new = self._slid(order[at], more.fills[-1], outer, inner, more.loops[-1])
                    more = replace(more, fills=(*more.fills[:-1], new), sliding=more.sliding | {order[at]})
                    yield from self._shared_parts(fused, order, inner, more)

    def _may_be_home(self, name: str, loops: Loops) -> bool:
        """Return whether a home inside some loops can keep a halo: only the last loop needs one."""
        tensor = next(each for each in self.alive if each.name == name)
        return not any(tensor.halo.get(self.axes[at]) for at, _ in loops[:-1])

    def _may_slide(self, name: str, tile: dict[str, int], loops: Loops) -> bool:
        """Return whether the last loop slides a window, and no other dimension of a window has loops."""
        whole = self.problem.dimensions
        return loops[-1:] != () and any(
            loops[-1][0] in window and sum(tile[at] < whole[at] for at in window) == 1 for window in self._sums[name]
        )

    def _branches(self, kept: tuple[str, ...], tile: dict[str, int]) -> list[Nest]:
        """Return the undominated nests inside the shared part, for tiles there."""
        key = (kept, tuple(tile.values()))
        if key not in self._known_branches:
            found = [nest for order in itertools.permutations(kept) for nest in self._branch(order, tile, tile, Nest())]
            fills = [dict(zip(nest.kept, nest.fills, strict=True)) for nest in found]
            rows = [[*(own[name] for name in kept), sum(nest.slices)] for own, nest in zip(fills, found, strict=True)]
            several = len(found) > 1
            self._known_branches[key] = [found[at] for at in undominated(np.array(rows))] if several else found
        return self._known_branches[key]

    def _branch(
        self, order: tuple[str, ...], whole: dict[str, int], tile: dict[str, int], nest: Nest
    ) -> Iterator[Nest]:
        """Yield the nests that keep tensors in an order.

        A node moves in through loops that move it, since it then needs less room. It moves out through others, since it
        is then filled less often. A window that slides does not move in, and the loop that slides it may be any.
        A loop that moves a node and all later ones has the least tile, unless one is a window: all are filled as often.

        Args:
            whole: tiles of the branch.
        """
        at = len(nest.kept)
        if at == len(order):
            yield nest
            return
        able, slides = self._moving[order[at]], self._windows[order[at]]
        moved = self._moving[order[at - 1]] if at else set()
        if at and nest.loops and nest.loops[-1][0] in self._windows[order[at - 1]]:
            moved = set()
        later = [] if self._sliding.intersection(order[at:]) else [self._moving[name] for name in order[at:]]
        least = able.intersection(*later) if later else set[str]()
        for loops, inner, slices in self._loops(able - moved | slides, order[at], tile, nest, least):
            if any(sum(inner[d] < whole[d] for d in window) > 1 for window in self._sums[order[at]]):
                continue
            for ordered in _orders(loops, slides, moved):
                node = self._node(order[at], ordered, tile, slices)
                if ordered and ordered[-1][0] in slides:
                    node = replace(node, fills=(self._slid(order[at], node.fills[0], tile, inner, ordered[-1]),))
                yield from self._branch(order, whole, inner, nest.followed_by(node))

    def _loops(
        self, able: set[str], name: str, tile: dict[str, int], nest: Nest, least: Set[str] = frozenset()
    ) -> Iterator[tuple[Loops, dict[str, int], int]]:
        """Yield sets of loops in front of a node that fits, the tiles inside them, and the node's slices.

        Args:
            least: dimensions whose loop, if any is possible, has the least tile.
        """
        options: list[list[tuple[str, int] | None]] = [
            [(d, 1)] if d in least else [None, *((d, t) for t in _divisors(tile[d])[:-1])]
            for d in sorted(able)
            if tile[d] > 1
        ]
        room = self._capacity - sum(nest.slices)
        for chosen in itertools.product(*options):
            loops = tuple(each for each in chosen if each is not None)
            inner = tile | dict(loops)
            slices = self._slices(name, inner)
            if slices <= room:
                yield loops, inner, slices

    def _node(self, name: str, loops: Loops, tile: dict[str, int], slices: int) -> Nest:
        """Return a node behind loops that fill it whole at every step."""
        visits = math.prod(tile[dimension] // size for dimension, size in loops)
        return Nest(loops, (name,), (len(loops),), visits, (slices,), (visits * slices // self._widths[name],))

    @cached_property
    def _macs(self) -> int:
        return self.problem.macs

    @cached_property
    def _capacity(self) -> float:
        return self.buffer.usable_slices

    @cached_property
    def _known_branches(self) -> dict[tuple[tuple[str, ...], tuple[int, ...]], list[Nest]]:
        return {}

    def _slices(self, name: str, tile: dict[str, int]) -> int:
        """Return the slices of a tensor's tile in the buffer."""
        if name in self._passing:
            loops = ((self.axes[at], tile[at]) for at in self._moving[name] if tile[at] < self.problem.dimensions[at])
            return self._passing[name].slices(tuple(loops))
        own = math.prod(tile[dimension] for dimension in self._moving[name] - self._windows[name])
        return (
            self._widths[name] * own * math.prod(1 + sum(tile[at] - 1 for at in window) for window in self._sums[name])
        )

    @cached_property
    def _passing(self) -> dict[str, Fusable]:
        """Tensors that are alive while the layer runs, which it does not use."""
        return {each.name: each for each in self.alive if each.name not in self.names.values()}

    @cached_property
    def _widths(self) -> dict[str, int]:
        """Tensor of the group -> slices of a word."""
        own = {self.names[each.name]: self.buffer.slices_of(each) for each in self.problem.tensors}
        return {each.name: each.width for each in self.alive} | own

    @cached_property
    def _moving(self) -> dict[str, set[str]]:
        """Tensor of the group -> dimensions of the layer that move it."""
        return self._shared | {self.names[each.name]: set(each.dimensions) for each in self.problem.tensors}

    @cached_property
    def _sums(self) -> dict[str, list[set[str]]]:
        """Tensor of the group -> dimensions of each coordinate that is a window."""
        own = {self.names[each.name]: each.projection for each in self.problem.tensors}
        return {name: [set(rank.terms) for rank in own.get(name, ()) if len(rank.terms) > 1] for name in self._moving}

    @cached_property
    def _windows(self) -> dict[str, set[str]]:
        """Tensor of the group -> dimensions of its windows."""
        return {name: set().union(*windows) for name, windows in self._sums.items()}

    @cached_property
    def _sliding(self) -> set[str]:
        """Tensors with windows."""
        return {name for name, windows in self._windows.items() if windows}

    @cached_property
    def _shared(self) -> dict[str, set[str]]:
        """Tensor that may be fused -> dimensions of the layer whose loops may be outside its home."""
        return {
            each.name: {dimension for dimension, axis in self.axes.items() if axis in each.sizes} for each in self.alive
        }

    def _priced(self, fused: tuple[Fusable, ...], nest: Nest) -> tuple[Homes, Part]:
        """Return the class and the partial mapping of a nest."""
        energy, a, b, c, d = 0.0, 0, 0, 0, 0
        depth = dict(zip(nest.kept, nest.depths, strict=True))
        at_home = {each.name for each in fused}
        shared = max((depth[name] for name in at_home), default=0)
        fills = dict(zip(nest.kept, nest.fills, strict=True))
        filled_here = {each.name for each in fused if not each.made and each.first == self.number}
        for own, name in self.names.items():
            filled = fills.get(name) if name not in at_home or name in filled_here else 0
            pj, *moved = self._moves(own, filled)
            energy += pj
            a, b, c, d = a + moved[0], b + moved[1], c + moved[2], d + moved[3]
        macs, compute = self._macs, self.architecture.compute
        cycles = max(macs * compute.cycles_per_operation, self._port_cycles((a, b, c, d)))
        energy += macs * compute.energy_per_operation_pj
        energy += cycles * sum(memory.leakage_pj_per_cycle for memory in (self.outer, self.buffer))
        outside, inside = [0.0] * shared, 0.0
        for name, words in zip(nest.kept, nest.slices, strict=True):
            if name in nest.sliding:  # it stays for the next step of the last loop
                outside[depth[name] - 1] += words
            elif name not in at_home and depth[name] < shared:
                outside[depth[name]] += words
            elif name not in at_home:
                inside += words
        loops = tuple((self.axes[dimension], size) for dimension, size in nest.loops[:shared])
        homes = Homes(loops, tuple((each.name, depth[each.name]) for each in fused))
        return homes, Part(nest, energy, cycles, tuple(outside), inside)

    def _slid(self, name: str, words: int, outer: dict[str, int], tile: dict[str, int], last: tuple[str, int]) -> int:
        """Return the words that are new, of those of all tiles of a window that the last loop slides."""
        window = next(each for each in self._sums[name] if last[0] in each)
        side, trips = 1 + sum(tile[at] - 1 for at in window), outer[last[0]] // last[1]
        return words * (side + (trips - 1) * min(side, last[1])) // (trips * side)

    def _moves(self, name: str, filled: int | None) -> tuple[float, int, int, int, int]:
        """Return pJ, and the slices that the outermost memory reads and writes, then the buffer.

        Args:
            filled: words between the outermost memory and the buffer. 0 if the tensor is at home in the buffer,
                None if the buffer does not keep it.
        """
        if (name, filled) not in self._known_moves:
            tensor, macs = self.problem.tensor(name), self.problem.macs
            near = self.outer if filled is None else self.buffer
            moves = [(near, *self._moved(tensor, macs, macs, filled or None))]
            if filled:
                moves.append((self.outer, *self._moved(tensor, filled, filled, None)))
            energy, slices = 0.0, Counter[tuple[str, bool]]()
            for memory, read, fills, updates in moves:
                energy += energy_of(memory, tensor, read, fills, updates)
                slices[memory.name, False] += read * memory.slices_of(tensor)
                slices[memory.name, True] += (fills + updates) * memory.slices_of(tensor)
            (a, b), (c, d) = ((slices[each.name, False], slices[each.name, True]) for each in (self.outer, self.buffer))
            self._known_moves[name, filled] = energy, a, b, c, d
        return self._known_moves[name, filled]

    @cached_property
    def _known_moves(self) -> dict[tuple[str, int | None], tuple[float, int, int, int, int]]:
        return {}

    def _port_cycles(self, slices: tuple[int, ...]) -> int:
        """Return the cycles that the bandwidths require; `slices` as in `_moves`."""
        if slices not in self._known_cycles:
            memories, counts = (self.outer, self.buffer), [Counter({0: each}) for each in slices]
            moved = {self.outer.name: (counts[0], counts[1]), self.buffer.name: (counts[2], counts[3])}
            self._known_cycles[slices] = max((each.cycles for each in port_limits(memories, moved)), default=0)
        return self._known_cycles[slices]

    @cached_property
    def _known_cycles(self) -> dict[tuple[int, ...], int]:
        return {}

    def _moved(self, tensor: Tensor, read: int, written: int, filled: int | None) -> tuple[int, int, int]:
        """Return reads, fills and updates of a memory; the first partial sum of a word is not read."""
        if not tensor.is_output:
            return read, filled or 0, 0
        words = self.problem.tensor_words(tensor)
        return read - words, 0 if filled is None else filled - words, written


def undominated(rows: Floats) -> Ints:
    """Return the indices of the rows [n, k] that no other row is at most in every column; of equal ones the first."""
    left, kept = np.lexsort(rows.T[::-1]), list[int]()
    ordered = rows[left]
    while len(left):  # no row beats the first one of the order
        kept.append(int(left[0]))
        worse = (ordered >= ordered[0]).all(axis=1)
        left, ordered = left[~worse], ordered[~worse]
    return np.array(kept, dtype=np.int64)


def _orders(loops: Sequence[tuple[str, int]], slides: set[str], moved: set[str]) -> Iterator[Loops]:
    """Yield the orders of loops in front of a node that differ in price: each loop that slides its window, last.

    Args:
        moved: dimensions that move the node before, which has moved in through all loops but the last.
    """
    last = [each for each in loops if each[0] in slides]
    if not last:
        yield tuple(loops)
    for each in last:
        others = tuple(other for other in loops if other != each)
        if moved.isdisjoint(at for at, _ in others):
            yield (*others, each)


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for count in range(len(names) + 1):
        yield from itertools.combinations(names, count)


def _divisors(size: int) -> list[int]:
    return [each for each in range(1, size + 1) if size % each == 0]
