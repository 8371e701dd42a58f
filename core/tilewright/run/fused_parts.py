"""Partial mappings of one layer in a fused chain: all nests on two memories, priced and thinned.

A nest has loops, and nodes where the buffer keeps a tensor. Every loop outside a node repeats its
tile: where a tile would stay, another nest keeps it in an outer place at the same price. docs/fusion.md
("Search") states the space.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright.plugin.group_report import energy_of, port_limits
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Tensor

Loops = tuple[tuple[str, int], ...]
"""Axis and tile of each loop, outermost first."""


@dataclass(frozen=True)
class Nest:
    """Loops outermost first, and the nodes of the kept tensors, outermost first.

    `depths` has for each node how many loops are outside it.
    """

    loops: Loops
    kept: tuple[str, ...]
    depths: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A partial mapping: its costs, and the words that it keeps.

    `outside` are words per depth that stay while deeper shared loops run, without fused tensors.
    `inside` are words that only this layer's branch keeps. `live` and `made` are the words of the
    fused input's and output's tiles.
    """

    nest: Nest
    energy_pj: float
    cycles: float
    outside: tuple[float, ...]
    inside: float
    live: float
    made: float


@dataclass(frozen=True)
class Ends:
    """Loops outside the homes of a layer's input and output, by axis; None: it is not fused."""

    left: Loops | None
    right: Loops | None


@dataclass(frozen=True)
class FusedLayer:
    """A layer of a chain, on an architecture of two memories.

    Args:
        axes: dimension -> axis of the chain.
        operand: the operand that the layer before makes, or None.
        feeds: the layer after reads the result.
    """

    problem: Problem
    architecture: Architecture
    axes: dict[str, str]
    operand: str | None
    feeds: bool

    @property
    def outer(self) -> Memory:
        return self.architecture.memories[0]

    @property
    def buffer(self) -> Memory:
        return self.architecture.memories[1]

    def parts(self) -> dict[Ends, list[Part]]:
        """Return the partial mappings that no other one of their class beats."""
        found: dict[tuple[Ends, float, float], list[Part]] = {}
        for fused in self._choices():
            for nest in self._nests(fused):
                ends, part = self._priced(fused, nest)
                if sum(part.outside) + part.inside + part.live + part.made <= self.buffer.usable_slices:
                    found.setdefault((ends, part.live, part.made), []).append(part)
        classes: dict[Ends, list[Part]] = {}
        for (ends, _, _), parts in found.items():
            columns = [(each.energy_pj, each.cycles, *each.outside, each.inside) for each in parts]
            classes.setdefault(ends, []).extend(parts[at] for at in undominated(np.array(columns)))
        return classes

    def _choices(self) -> Iterator[frozenset[str]]:
        ends = [name for name in (self.operand, self.problem.output.name if self.feeds else None) if name]
        for count in range(len(ends) + 1):
            yield from map(frozenset, itertools.combinations(ends, count))

    def _nests(self, fused: frozenset[str]) -> Iterator[Nest]:
        others = [tensor.name for tensor in self.problem.tensors if tensor.name not in fused]
        for count in range(len(others) + 1):
            for more in itertools.combinations(others, count):
                for order in itertools.permutations(sorted(fused.union(more))):
                    last = max((at for at, name in enumerate(order) if name in fused), default=-1)
                    yield from self._filled(fused, order, last, 0, dict(self.problem.dimensions), Nest((), order, ()))

    def _filled(
        self, fused: frozenset[str], order: tuple[str, ...], last: int, at: int, tile: dict[str, int], nest: Nest
    ) -> Iterator[Nest]:
        """Yield the nests with all loops in front of nodes from `at` on.

        A node moves in through loops that move it, since it then needs less room. Behind the last
        home a node moves out through other loops, since it is then filled less often.
        """
        if at == len(order):
            yield nest
            return
        able = set(self.problem.dimensions)
        for name in order[at:]:
            able &= self._dimensions(name) if name in fused else able
        if at and order[at - 1] not in fused:
            able -= self._dimensions(order[at - 1])
        if at > last:
            able &= self._dimensions(order[at])
        options = [[None, *((d, t) for t in _divisors(tile[d])[:-1])] for d in sorted(able)]
        for chosen in itertools.product(*options):
            loops = [each for each in chosen if each is not None]
            for ordered in itertools.permutations(loops) if at <= last else [tuple(loops)]:
                inner = Nest((*nest.loops, *ordered), order, (*nest.depths, len(nest.loops) + len(ordered)))
                yield from self._filled(fused, order, last, at + 1, tile | dict(loops), inner)

    def _dimensions(self, name: str) -> set[str]:
        return set(self.problem.tensor(name).dimensions)

    def _priced(self, fused: frozenset[str], nest: Nest) -> tuple[Ends, Part]:
        problem, room = self.problem, dict[str, float]()
        reads, writes, energy = Counter[str](), Counter[str](), 0.0
        depth = dict(zip(nest.kept, nest.depths, strict=True))
        for tensor in problem.tensors:
            moves = [(self.outer, *self._moved(tensor, problem.macs, problem.macs, None))]
            if tensor.name in depth:
                tile, visits = self._tile(nest.loops[: depth[tensor.name]], tensor)
                room[tensor.name] = tile * self.buffer.slices_of(tensor)
                filled = None if tensor.name in fused else tile * visits
                moves = [(self.buffer, *self._moved(tensor, problem.macs, problem.macs, filled))]
                if filled is not None:
                    moves.append((self.outer, *self._moved(tensor, filled, filled, None)))
            for memory, read, fills, updates in moves:
                energy += energy_of(memory, tensor, read, fills, updates)
                reads[memory.name] += read * memory.slices_of(tensor)
                writes[memory.name] += (fills + updates) * memory.slices_of(tensor)
        moved = {
            each.name: (Counter({0: reads[each.name]}), Counter({0: writes[each.name]}))
            for each in (self.outer, self.buffer)
        }
        cycles = problem.macs * self.architecture.compute.cycles_per_operation
        cycles = max([cycles, *(limit.cycles for limit in port_limits((self.outer, self.buffer), moved))])
        energy += problem.macs * self.architecture.compute.energy_per_operation_pj
        energy += cycles * sum(memory.leakage_pj_per_cycle for memory in (self.outer, self.buffer))
        left, right = (self._outside(name, fused, nest) for name in (self.operand, problem.output.name))
        shared = max((len(each) for each in (left, right) if each is not None), default=0)
        outside = [0.0] * shared
        inside = 0.0
        for name, words in room.items():
            if name in fused:
                continue
            if depth[name] < shared:
                outside[depth[name]] += words
            else:
                inside += words
        live = room[self.operand] if self.operand in fused and self.operand else 0.0
        made = room[problem.output.name] if problem.output.name in fused else 0.0
        return Ends(left, right), Part(nest, energy, cycles, tuple(outside), inside, live, made)

    def _moved(self, tensor: Tensor, read: int, written: int, filled: int | None) -> tuple[int, int, int]:
        """Return reads, fills and updates of a memory; the first partial sum of a word is not read."""
        if not tensor.is_output:
            return read, filled or 0, 0
        words = self.problem.tensor_words(tensor)
        return read - words, 0 if filled is None else filled - words, written

    def _tile(self, loops: Loops, tensor: Tensor) -> tuple[int, int]:
        """Return the words of the tile inside some loops, and how often they bring one."""
        tile, trips = dict(self.problem.dimensions), 1
        for dimension, size in loops:
            trips *= tile[dimension] // size
            tile[dimension] = size
        return math.prod(tile[at] for at in tensor.dimensions), trips

    def _outside(self, name: str | None, fused: frozenset[str], nest: Nest) -> Loops | None:
        if name is None or name not in fused:
            return None
        depth = nest.depths[nest.kept.index(name)]
        return tuple((self.axes[dimension], size) for dimension, size in nest.loops[:depth])


def undominated(rows: Floats) -> Ints:
    """Return the indices of the rows [n, k] that no other row is at most in every column; of equal ones the first."""
    order = np.lexsort(rows.T[::-1])
    kept: list[int] = []
    for at in order:
        if not kept or not (rows[kept] <= rows[at]).all(axis=1).any():
            kept.append(int(at))
    return np.array(kept, dtype=np.int64)


def _divisors(size: int) -> list[int]:
    return [each for each in range(1, size + 1) if size % each == 0]
