"""Loop orders in one shot: for given factors, block by block, the order that spares the most words (QuickFlow, IV-B/C)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.space import MapSpace
from tilewright.schema.problem import Problem

Reuse = tuple[frozenset[int], int | None]
"""What a tensor has of an order: the innermost dimensions over which it stays, and the one over which it then slides."""


@dataclass(frozen=True)
class Indexing:
    """Which dimensions index each tensor, and which of them together with others (windows)."""

    coupled: tuple[frozenset[int], ...]
    window: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, problem: Problem) -> Indexing:
        number = {name: index for index, name in enumerate(problem.dimension_names)}
        return cls(
            tuple(frozenset(number[name] for name in tensor.dimensions) for tensor in problem.tensors),
            tuple(
                frozenset(number[name] for rank in tensor.projection if len(rank.terms) > 1 for name in rank.terms)
                for tensor in problem.tensors
            ),
        )

    def reuse(self, order: Sequence[int], tensor: int, turning: Sequence[bool]) -> Reuse:
        """What a tensor has of an order, outermost first, of which only the turning loops count."""
        stays: set[int] = set()
        for dim in reversed(order):
            if not turning[dim]:
                continue
            if dim in self.coupled[tensor]:
                return frozenset(stays), dim if dim in self.window[tensor] else None
            stays.add(dim)
        return frozenset(stays), None


def equi_reuse_orders(problem: Problem, tensors: Sequence[int] | None = None) -> Positions:
    """One order of each equi-reuse class, outermost first, int8 [k, position] (QuickFlow, section IV-B).

    Two orders are of one class if every tensor stays over the same innermost dimensions, and then slides over the same
    one, if it slides. `tensors`: those that count (None: all). Dimensions of size 1 stand outside.
    """
    indexing = Indexing.of(problem)
    counted = range(len(problem.tensors)) if tensors is None else tensors
    turning = [dim for dim, size in enumerate(problem.sizes) if size > 1]
    found: dict[tuple[Reuse | None, ...], tuple[int, ...]] = {}
    open_states: dict[tuple[frozenset[int], tuple[Reuse | None, ...]], tuple[int, ...]] = {
        (frozenset(), (None,) * len(counted)): ()
    }
    while open_states:
        grown: dict[tuple[frozenset[int], tuple[Reuse | None, ...]], tuple[int, ...]] = {}
        for (inner, reuse), loops in open_states.items():
            if None not in reuse or len(inner) == len(turning):
                found.setdefault(tuple((inner, None) if each is None else each for each in reuse), loops)
                continue
            for dim in turning:
                if dim not in inner:
                    after = tuple(
                        (inner, dim if dim in indexing.window[t] else None)
                        if each is None and dim in indexing.coupled[t]
                        else each
                        for t, each in zip(counted, reuse, strict=True)
                    )
                    grown.setdefault((inner | {dim}, after), (*loops, dim))
        open_states = grown
    dims = range(len(problem.sizes))
    rows = [[*(d for d in dims if d not in loops), *reversed(loops)] for loops in found.values()]
    return np.array(rows, dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Choices:
    """The orders of one block that differ for the loops that turn there.

    Attributes:
        orders: int8 [k, position], loops that do not turn outermost.
        stays: bool [k, tensor, dimension].
        slides: the dimension of the window that a tensor slides over, else -1, [k, tensor].
    """

    orders: Positions
    stays: Bools
    slides: Ints


class OneShot:
    """Chooses the orders of all blocks of a space, inner blocks first, never going back."""

    def __init__(self, space: MapSpace) -> None:
        self.space = space
        self.indexing = Indexing.of(space.problem)
        self.dims, self.tensors = len(space.problem.sizes), len(space.problem.tensors)
        may_keep = space.keeps[0] | space.keeps[1]
        self.blocks = [(index, slot.entry) for index, slot in enumerate(space.slots) if not slot.spatial]
        counted = {entry: np.flatnonzero(may_keep[entry:].any(axis=0)).tolist() for _, entry in self.blocks}
        self.counted = counted
        self.classes = {entry: equi_reuse_orders(space.problem, counted[entry]) for _, entry in self.blocks}
        self.matrices = [space.problem.projection_matrix(tensor).astype(np.float64) for tensor in space.problem.tensors]
        self.known: dict[tuple[int, int], Choices] = {}

    def choices(self, entry: int, pattern: int) -> Choices:
        """The orders of a block, one of each equi-dataflow class; bit d of `pattern`: dimension d turns."""
        if (entry, pattern) not in self.known:
            turning = [bool(pattern >> dim & 1) for dim in range(self.dims)]
            self.known[entry, pattern] = self._choices(entry, turning)
        return self.known[entry, pattern]

    def _choices(self, entry: int, turning: Sequence[bool]) -> Choices:
        classes: dict[tuple[Reuse, ...], list[int]] = {}
        counted = self.counted[entry]
        for order in self.classes[entry].tolist():
            reuse = tuple(self.indexing.reuse(order, tensor, turning) for tensor in counted)
            classes.setdefault(reuse, [*(d for d in order if not turning[d]), *(d for d in order if turning[d])])
        stays = np.zeros((len(classes), self.tensors, self.dims), dtype=np.bool_)
        slides = np.full((len(classes), self.tensors), -1, dtype=np.int64)
        for row, each in enumerate(classes):
            for tensor, (inner, window) in zip(counted, each, strict=True):
                stays[row, tensor, list(inner)] = True
                slides[row, tensor] = -1 if window is None else window
        return Choices(np.array(list(classes.values()), dtype=np.int8), stays, slides)

    @cached_property
    def _plain(self) -> Positions:
        return np.arange(self.dims, dtype=np.int8)

    def order(self, trips: Ints, keep: Bools) -> Positions:
        """Orders int8 [n, entry, position] for trips [n, slot, dimension] and keeps [n, entry, tensor]."""
        order = np.empty((len(trips), len(self.space.skeleton), self.dims), dtype=np.int8)
        order[:] = self._plain
        waiting = np.zeros((len(trips), self.tensors), dtype=np.bool_)
        inner_entry = len(self.space.skeleton)
        for slot, entry in reversed(self.blocks):
            # a tensor kept further in, below which no loop has changed it, may stay
            waiting |= keep[:, entry:inner_entry].any(axis=1)
            inner_entry = entry
            weight = np.where(waiting, self._energy(trips, slot, entry, keep), 0.0)
            order[:, entry] = self._block(trips, slot, entry, weight)
            turns = trips[:, slot] > 1
            for tensor, coupled in enumerate(self.indexing.coupled):
                waiting[:, tensor] &= ~turns[:, list(coupled)].any(axis=1)
        return order

    def _energy(self, trips: Ints, slot: int, entry: int, keep: Bools) -> Floats:
        """pJ for each word that moves into the tiles inside a block, on both sides, summed over instances [n, tensor]."""
        number, tensors = np.arange(len(trips))[:, None], np.arange(self.tensors)
        kept = keep[:, entry:].argmax(axis=1) + entry
        supplier = entry - 1 - keep[:, entry - 1 :: -1].argmax(axis=1)
        read, write = self._access
        outside, shared = self._instances(trips, slot)
        apart = outside[number, supplier] * shared[:, entry, tensors] / shared[number, supplier, tensors]
        return np.asarray(read[supplier, tensors] * apart + write[kept, tensors] * outside[:, [entry]])

    def _instances(self, trips: Ints, slot: int) -> tuple[Floats, Floats]:
        """(instances of each entry [n, entry], those of them that hold different words of a tensor [n, entry, tensor]),
        for entries up to that of a slot; equal beyond."""
        every = np.ones((len(trips), len(self.space.skeleton)))
        apart = np.ones((*every.shape, self.tensors))
        for index, place in enumerate(self.space.slots[:slot]):
            if place.spatial:
                every[:, place.entry + 1 :] *= trips[:, index].prod(axis=1)[:, None]
                for tensor, coupled in enumerate(self.indexing.coupled):
                    apart[:, place.entry + 1 :, tensor] *= trips[:, index, list(coupled)].prod(axis=1)[:, None]
        return every, apart

    @cached_property
    def _access(self) -> tuple[Floats, Floats]:
        """pJ to give, and to take, a word of a tensor, [entry, tensor]; partial sums go both ways."""
        read, write = np.zeros((2, len(self.space.skeleton), self.tensors))
        for index, entry in enumerate(self.space.skeleton.entries):
            cluster = self.space.architecture.clusters[self.space.architecture.cluster_index[entry.target]]
            for number, tensor in enumerate(self.space.problem.tensors):
                memory = next((each for each in cluster.memories if each.may_hold(tensor)), None)
                if entry.holds and memory is not None:
                    both = memory.read_energy_pj + memory.write_energy_pj
                    read[index, number] = (both if tensor.is_output else memory.read_energy_pj) / memory.block_words
                    write[index, number] = (both if tensor.is_output else memory.write_energy_pj) / memory.block_words
        return read, write

    def _block(self, trips: Ints, slot: int, entry: int, energy: Floats) -> Positions:
        inside = trips[:, slot + 1 :].prod(axis=1).astype(np.float64)
        words = self._words(inside)
        weight = energy * words
        order = np.empty((len(trips), self.dims), dtype=np.int8)
        patterns = (trips[:, slot] > 1) @ (1 << np.arange(self.dims))
        distinct, which = np.unique(patterns, return_inverse=True)
        for number, pattern in enumerate(distinct.tolist()):
            choices = self.choices(entry, pattern)
            rows = np.flatnonzero(which == number)
            if len(choices.orders) == 1:
                order[rows] = choices.orders[0]
                continue
            moved = self._moved(choices, trips[rows, slot].astype(np.float64), inside[rows], weight[rows], words[rows])
            order[rows] = choices.orders[moved.argmin(axis=1)]
        return order

    def _moved(self, choices: Choices, trips: Floats, inside: Floats, weight: Floats, words: Floats) -> Floats:
        """Words that move into the tiles inside while the block runs once, over its trips, [n, choice]."""
        logs = np.log(trips) @ choices.stays.reshape(-1, self.dims).T.astype(np.float64)
        share = np.exp(-logs).reshape(len(trips), -1, self.tensors)
        for tensor in range(self.tensors):
            for dim in np.unique(choices.slides[:, tensor]):
                if dim >= 0:
                    wide = inside.copy()
                    wide[:, dim] *= trips[:, dim]
                    part = self._tensor_words(wide, tensor) / (words[:, tensor] * trips[:, dim])
                    share[:, choices.slides[:, tensor] == dim, tensor] *= part[:, None]
        return np.asarray((share * weight[:, None]).sum(axis=2), dtype=np.float64)

    def _words(self, extents: Floats) -> Floats:
        return np.column_stack([self._tensor_words(extents, tensor) for tensor in range(self.tensors)])

    def _tensor_words(self, extents: Floats, tensor: int) -> Floats:
        """Words of the bounding box of a tensor's tile, [n]."""
        return np.asarray((1 + (extents - 1) @ self.matrices[tensor].T).prod(axis=1), dtype=np.float64)

    def every(self, trips: Ints, most: int) -> Positions:
        """Combinations of the choices of all blocks for one mapping's trips [slot, dimension], at most so many of them:
        int8 [k, entry, position]; those of the innermost block change fastest."""
        bits = 1 << np.arange(self.dims)
        able = [self.choices(entry, int((trips[slot] > 1) @ bits)).orders for slot, entry in self.blocks]
        total = math.prod(len(each) for each in able)
        rest = np.arange(min(total, most))
        order = np.empty((len(rest), len(self.space.skeleton), self.dims), dtype=np.int8)
        order[:] = self._plain
        for (_, entry), each in reversed(list(zip(self.blocks, able, strict=True))):
            order[:, entry] = each[rest % len(each)]
            rest = rest // len(each)
        return order
