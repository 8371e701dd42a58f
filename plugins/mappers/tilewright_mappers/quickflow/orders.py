"""Loop orders in one shot: per block, the order that saves most words (QuickFlow, IV-B/C)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.compiled import for_kernel
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.mapspace.space import MapSpace
from tilewright.prices import value_pj
from tilewright.schema.problem import Problem
from tilewright_mappers.quickflow.kernel import Blocks, OrderCatalog, OrderScratch, choose

MAX_CLASSES = 256
"""Maximum number of equi-reuse classes that are listed."""

Reuse = tuple[frozenset[int], int | None]
"""Reuse of a tensor in an order: dimensions where it is stationary; dimension where it then slides."""


@dataclass(frozen=True)
class Indexing:
    """Dimensions that index each tensor, and those that index it together with others (windows)."""

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

    def reuse(self, order: Sequence[int], tensor: int, non_unit: Sequence[bool]) -> Reuse:
        """Return the reuse of a tensor in an order, outermost first; only non-unit loops count."""
        stays: set[int] = set()
        for dim in reversed(order):
            if not non_unit[dim]:
                continue
            if dim in self.coupled[tensor]:
                return frozenset(stays), dim if dim in self.window[tensor] else None
            stays.add(dim)
        return frozenset(stays), None


def equi_reuse_orders(problem: Problem, tensors: Sequence[int] | None = None) -> Positions:
    """Return one order of each equi-reuse class, int8 [k, position] (QuickFlow, section IV-B).

    In one class every tensor is stationary over the same innermost dimensions, and then slides
    along the same dimension or none. Dimensions of size 1 are outermost.

    Their number is exponential in that of the dimensions. If there are more than MAX_CLASSES, the reuse-maximal
    orders are returned instead.

    Args:
        tensors: tensors that count (None: all).
    """
    indexing = Indexing.of(problem)
    counted = range(len(problem.tensors)) if tensors is None else tensors
    non_unit = [dim for dim, size in enumerate(problem.sizes) if size > 1]
    classes: dict[tuple[Reuse | None, ...], tuple[int, ...]] = {}
    open_states: dict[tuple[frozenset[int], tuple[Reuse | None, ...]], tuple[int, ...]] = {
        (frozenset(), (None,) * len(counted)): ()
    }
    while open_states:
        if len(classes) + len(open_states) > MAX_CLASSES:
            return distinct_reuse_orders(problem, tensors)
        grown: dict[tuple[frozenset[int], tuple[Reuse | None, ...]], tuple[int, ...]] = {}
        for (inner, reuse), loops in open_states.items():
            if None not in reuse or len(inner) == len(non_unit):
                classes.setdefault(tuple((inner, None) if kind is None else kind for kind in reuse), loops)
                continue
            for dim in non_unit:
                if dim not in inner:
                    after = tuple(
                        (inner, dim if dim in indexing.window[t] else None)
                        if kind is None and dim in indexing.coupled[t]
                        else kind
                        for t, kind in zip(counted, reuse, strict=True)
                    )
                    grown.setdefault((inner | {dim}, after), (*loops, dim))
        open_states = grown
    dims = range(len(problem.sizes))
    rows = [[*(d for d in dims if d not in loops), *reversed(loops)] for loops in classes.values()]
    return np.array(rows, dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Choices:
    """Distinct orders of one block for one set of non-unit loops.

    Attributes:
        orders: int8 [k, position], loops of one trip outermost.
        stationary: bool [k, tensor, dimension], the tensor is stationary.
        slides: [k, tensor], dimension of the window that the tensor slides along, else -1.
    """

    orders: Positions
    stationary: Bools
    slides: Ints


class OneShot:
    """Greedy choice of the loop orders of all blocks, inner blocks first."""

    def __init__(self, space: MapSpace) -> None:
        self.space = space
        self.indexing = Indexing.of(space.problem)
        self.dims, self.tensors = len(space.problem.sizes), len(space.problem.tensors)
        long = np.array([size > 1 for size in space.problem.sizes])
        self.bits = np.where(long, 1 << np.cumsum(long) - long, 0)
        """[D]: bit of a dimension in a pattern, a set of non-unit loops. The product of the sizes limits their number."""
        may_keep = space.keeps[0] | space.keeps[1]
        entries = [space.slots[slot].entry for slot in space.temporal_slots]
        self.counted = [np.flatnonzero(may_keep[entry:].any(axis=0)).tolist() for entry in entries]
        self.classes = [
            space.lawful_block(equi_reuse_orders(space.problem, counted), slot)
            for slot, counted in zip(space.temporal_slots, self.counted, strict=True)
        ]
        self.made: dict[tuple[int, int], Choices] = {}
        self.numbers: list[tuple[Ints, Ints]] = [(np.zeros(0, np.int64),) * 2] * len(entries)
        """Per block: the known patterns, ascending, and the number of each in the catalogue."""
        self.catalog = _catalog((), self.dims)

    def choices(self, block: int, pattern: int) -> Choices:
        """Return one order of each equi-dataflow class of a block.

        Args:
            pattern: the non-unit loops, as `bits`.
        """
        if (block, pattern) not in self.made:
            self.made[block, pattern] = self._choices(block, [bool(pattern & bit) for bit in self.bits.tolist()])
        return self.made[block, pattern]

    def _choices(self, block: int, non_unit: Sequence[bool]) -> Choices:
        classes: dict[tuple[Reuse, ...], list[int]] = {}
        counted = self.counted[block]
        for order in self.classes[block].tolist():
            reuse = tuple(self.indexing.reuse(order, tensor, non_unit) for tensor in counted)
            classes.setdefault(reuse, [*(d for d in order if not non_unit[d]), *(d for d in order if non_unit[d])])
        stationary = np.zeros((len(classes), self.tensors, self.dims), dtype=np.bool_)
        slides = np.full((len(classes), self.tensors), -1, dtype=np.int64)
        for row, kind in enumerate(classes):
            for tensor, (inner, window) in zip(counted, kind, strict=True):
                stationary[row, tensor, list(inner)] = True
                slides[row, tensor] = -1 if window is None else window
        return Choices(np.array(list(classes.values()), dtype=np.int8), stationary, slides)

    def order(self, rows: Candidates) -> Positions:
        """Return orders int8 [n, block, position] for trips and storage; existing orders are ignored."""
        patterns = np.where(rows.trips[:, self.space.temporal_slots] > 1, self.bits, 0).sum(axis=2)
        order = np.empty((*patterns.shape, self.dims), dtype=np.int8)
        arrays = for_kernel(self._numbered(patterns)), for_kernel(rows.trips), for_kernel(rows.keeps)
        choose(self._blocks, self.catalog, *arrays, order, self._scratch)
        return order

    def _numbered(self, patterns: Ints) -> Ints:
        """Return the number in the catalogue of each pattern [n, block]; new patterns are added."""
        distinct = [np.unique(column) for column in patterns.T]
        if not all(np.isin(some, known).all() for some, (known, _) in zip(distinct, self.numbers, strict=True)):
            for block, some in enumerate(distinct):
                for pattern in some.tolist():
                    self.choices(block, pattern)
            self.catalog = _catalog(tuple(self.made.values()), self.dims)
            for block in range(len(distinct)):
                pairs = sorted((key[1], number) for number, key in enumerate(self.made) if key[0] == block)
                known, numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
                self.numbers[block] = known, numbers
        columns = zip(patterns.T, self.numbers, strict=True)
        return np.stack([numbers[np.searchsorted(known, column)] for column, (known, numbers) in columns], axis=1)

    @cached_property
    def _blocks(self) -> Blocks:
        space = self.space
        indexes = np.zeros((self.tensors, self.dims), dtype=np.bool_)
        for tensor, dims in enumerate(self.indexing.coupled):
            indexes[tensor, list(dims)] = True
        read, write = self._access
        return Blocks(
            terms=space.tile_rules.terms,
            slot=for_kernel(np.array(space.temporal_slots, dtype=np.int64)),
            slot_entry=for_kernel(np.array([slot.entry for slot in space.slots], dtype=np.int64)),
            spatial=for_kernel(np.array([slot.spatial for slot in space.slots], dtype=np.bool_)),
            indexes=for_kernel(indexes),
            read_pj=for_kernel(read),
            write_pj=for_kernel(write),
        )

    @cached_property
    def _scratch(self) -> OrderScratch:
        energy, words = np.zeros((2, self.tensors))
        return OrderScratch(
            np.zeros(self.tensors, dtype=np.bool_), energy, words, np.ones((1, self.dims), dtype=np.int64)
        )

    @property
    def _access(self) -> tuple[Floats, Floats]:
        """pJ per value read, and written, [entry, tensor]; partial sums move both ways."""
        read, write = np.zeros((2, len(self.space.skeleton), self.tensors))
        for index, entry in enumerate(self.space.skeleton.entries):
            cluster = self.space.architecture.cluster(entry.target)
            for number, tensor in enumerate(self.space.problem.tensors):
                memory = next((candidate for candidate in cluster.memories if candidate.may_hold(tensor)), None)
                if entry.holds and memory is not None:
                    read[index, number] = value_pj(memory, tensor, 1, int(tensor.is_output), 0)
                    write[index, number] = value_pj(memory, tensor, int(tensor.is_output), 1, 0)
        return read, write

    def every(self, trips: Ints, most: int) -> Positions:
        """Return combinations of the choices of all blocks for one mapping: int8 [k, block, position].

        The innermost block varies fastest.

        Args:
            trips: [slot, dimension].
            most: maximum number of combinations.
        """
        able = [
            self.choices(block, int((trips[slot] > 1) @ self.bits)).orders
            for block, slot in enumerate(self.space.temporal_slots)
        ]
        total = math.prod(len(orders) for orders in able)
        rest = np.arange(min(total, most))
        order = np.empty((len(rest), len(able), self.dims), dtype=np.int8)
        for block, orders in reversed(list(enumerate(able))):
            order[:, block] = orders[rest % len(orders)]
            rest = rest // len(orders)
        return order


def _catalog(made: Sequence[Choices], dims: int) -> OrderCatalog:
    """Return all choices so far as one table."""
    count = np.array([len(choices.orders) for choices in made], dtype=np.int64)
    return OrderCatalog(
        for_kernel(np.cumsum(count) - count),
        for_kernel(count),
        for_kernel(np.concatenate([np.zeros((0, dims), dtype=np.int8), *(choices.orders for choices in made)])),
        for_kernel(
            np.concatenate([choices.stationary for choices in made] or [np.zeros((0, 1, dims), dtype=np.bool_)])
        ),
        for_kernel(np.concatenate([choices.slides for choices in made] or [np.zeros((0, 1), dtype=np.int64)])),
    )
