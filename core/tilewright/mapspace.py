"""MapSpace: every perfect mapping of a problem over one skeleton, counted, sampled and enumerated.

A point is a factorisation of every dimension over the slots of the skeleton (one temporal slot per entry that steps,
one spatial slot per entry that splits), an order of the loops of every stepping entry, and a choice of what is kept
where that is free. Fanouts and constraints bound the space; capacity does not: cost models and legality judge it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.architecture import Architecture
from tilewright.batch import MappingBatch, Positions
from tilewright.constraints import Factors, Variant
from tilewright.counting import count_mappings, divisors
from tilewright.errors import NoValidMappingError, SpaceTooLargeError
from tilewright.problem import Problem, Tensor
from tilewright.skeleton import Skeleton

MAX_TABLE = 2_000_000
"""Rows of the largest table of one dimension's factorisations."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Slot:
    """A place for factors. `lowest`, `highest`: bounds on the trips of each dimension; `most`, `least` on their
    product (of a split). `order`: dimension indices whose loops keep this order."""

    entry: int
    spatial: bool
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    least: int = 1
    most: int | None = None
    order: tuple[int, ...] = ()

    def allows(self, dimension: int, trips: int) -> bool:
        return self.lowest[dimension] <= trips <= self.highest[dimension]


@dataclass(frozen=True)
class MapSpace:
    """The space of one problem on one architecture under rules already on the problem's dimensions."""

    problem: Problem
    architecture: Architecture
    rules: Variant
    skeleton: Skeleton

    @classmethod
    def of(
        cls,
        problem: Problem,
        architecture: Architecture,
        rules: Variant | None = None,
        skeleton: Skeleton | None = None,
    ) -> MapSpace:
        """The standard space: no rules, the architecture's own skeleton."""
        return cls(problem, architecture, rules or Variant(), skeleton or Skeleton.for_architecture(architecture))

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Temporal and spatial slots, outermost first."""
        slots = []
        for index, entry in enumerate(self.skeleton.entries):
            if entry.steps and index:
                slots.append(self._temporal_slot(index))
            if entry.splits:
                slots.append(self._spatial_slot(index))
        return tuple(slots)

    def _temporal_slot(self, index: int) -> Slot:
        inside = self.skeleton.entries[index].inside
        rules = [rule for rule in self.rules.temporal if rule.memory == inside]
        lowest, highest = self._bounds([(rule.only, rule.factors) for rule in rules])
        named = self.problem.dimension_names
        order = next((tuple(named.index(name) for name in rule.order) for rule in rules if rule.order), ())
        return Slot(index, False, lowest, highest, order=order)

    def _spatial_slot(self, index: int) -> Slot:
        target = self.skeleton.entries[index].target
        size = self.architecture.clusters[self.architecture.cluster_index[target]].fanout.size
        rules = [rule for rule in self.rules.spatial if rule.cluster == target]
        lowest, highest = self._bounds([(rule.only, rule.factors) for rule in rules])
        least = max([1, *(math.ceil(rule.min_utilization * size) for rule in rules)])
        most = min([size, *(math.floor(rule.max_utilization * size) for rule in rules)])
        return Slot(index, True, lowest, highest, least, most)

    def _bounds(self, rules: list[tuple[tuple[str, ...] | None, Factors]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        lowest, highest = [], []
        for name, size in self.problem.dimensions.items():
            low, high = 1, size
            for only, factors in rules:
                if only is not None and name not in only:
                    high = 1
                bound = factors.get(name)
                if bound is not None:
                    low, high = max(low, bound.min), min(high, size if bound.max is None else bound.max)
            lowest.append(low)
            highest.append(high)
        return tuple(lowest), tuple(highest)

    # -- what is kept ----------------------------------------------------------------------------------------

    @cached_property
    def keeps(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(always kept, free to choose), each bool [entry, tensor]."""
        shape = (len(self.skeleton), len(self.problem.tensors))
        always, free = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        for index, entry in enumerate(self.skeleton.entries):
            if not entry.holds:
                continue
            cluster = self.architecture.clusters[self.architecture.cluster_index[entry.target]]
            for number, tensor in enumerate(self.problem.tensors):
                memory = cluster.memory_for(tensor)
                if memory is None or (entry.memories and memory.name not in entry.memories):
                    continue
                choice = self._kept(memory.name, tensor) if index else "keep"
                always[index, number] = choice == "keep"
                free[index, number] = choice == "free"
        return always, free

    def _kept(self, memory: str, tensor: Tensor) -> str:
        for rule in self.rules.keep:
            if rule.memory == memory:
                for choice, words in (("keep", rule.keep), ("bypass", rule.bypass), ("free", rule.free)):
                    if tensor.name in words or tensor.role in words:
                        return choice
        return "keep"

    # -- counting --------------------------------------------------------------------------------------------

    @cached_property
    def size(self) -> int:
        """Exactly how many different mappings there are (the order of loops of one trip makes no difference)."""
        bound = self.factorizations * math.factorial(len(self.problem.dimensions)) ** len(self._temporal)
        return count_mappings(self.problem.sizes, self.slots, bound) << int(self.keeps[1].sum())

    @cached_property
    def factorizations(self) -> int:
        """Exactly how many ways there are to spread the dimensions' factors over the slots."""
        return self._tables.count

    @cached_property
    def _temporal(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if not slot.spatial)

    @cached_property
    def _tables(self) -> _Tables:
        return _Tables(self)

    # -- sampling --------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator, count: int) -> MappingBatch:
        """`count` mappings: every factorisation equally likely, then every order of its loops, then free keeps.

        Raises:
            NoValidMappingError: the space is empty.
        """
        tables = self._tables
        if tables.count == 0:
            raise NoValidMappingError(
                f"no mapping of {self.problem.name} on {self.architecture.name} meets the constraints",
                hint="loosen the factors, or try --constraints none",
            )
        temporal, spatial = tables.tiles(tables.draw(rng, count))
        return MappingBatch(
            self.problem, self.skeleton, temporal, spatial, self._draw_orders(rng, count), self._draw_keeps(rng, count)
        )

    def _draw_orders(self, rng: np.random.Generator, count: int) -> Positions:
        dims = len(self.problem.dimensions)
        order = np.empty((count, len(self.skeleton), dims), dtype=np.int8)
        order[:] = np.arange(dims, dtype=np.int8)
        for slot in self._temporal:
            orders = self._orders(slot)
            if orders is None:
                keys = rng.random((count, dims))
                if slot.order:
                    keys[:, list(slot.order)] = np.sort(keys[:, list(slot.order)], axis=1)
                order[:, slot.entry] = np.argsort(keys, axis=1)
            elif len(orders) > 1:
                order[:, slot.entry] = orders[rng.integers(0, len(orders), count)]
        return order

    def _orders(self, slot: Slot) -> Positions | None:
        """All allowed orders of the dimensions that may step in a slot, the others first; None: too many to list."""
        able = self._tables.able[self.slots.index(slot)]
        if len(able) > 8:
            return None
        others = [dim for dim in range(len(self.problem.dimensions)) if dim not in able]
        named = [dim for dim in slot.order if dim in able]
        orders = [
            [*others, *order]
            for order in itertools.permutations(able)
            if [dim for dim in order if dim in named] == named
        ]
        return np.array(orders, dtype=np.int8)

    def _draw_keeps(self, rng: np.random.Generator, count: int) -> NDArray[np.bool_]:
        always, free = self.keeps
        if not free.any():
            return np.broadcast_to(always, (count, *always.shape))
        return always | (free & rng.integers(0, 2, (count, *free.shape)).astype(np.bool_))

    # -- enumeration -----------------------------------------------------------------------------------------

    def enumerate(self, chunk: int = 4096) -> Iterator[MappingBatch]:
        """Every different mapping exactly once, in batches of about `chunk`."""
        pieces: list[MappingBatch] = []
        for row in self._tables.all_rows():
            for batch in self._all_orders(*self._tables.tiles(row), chunk):
                pieces.append(batch)
                if sum(len(piece) for piece in pieces) >= chunk:
                    yield MappingBatch.join(pieces)
                    pieces = []
        if pieces:
            yield MappingBatch.join(pieces)

    def _all_orders(self, temporal: Ints, spatial: Ints, chunk: int) -> Iterator[MappingBatch]:
        """All orders and keeps of one factorisation (arrays of one mapping)."""
        dims = range(len(self.problem.dimensions))
        incoming = np.concatenate([temporal[:, :1], spatial[:, :-1]], axis=1)[0]
        choices: list[list[list[int]]] = []
        for slot in self._temporal:
            turning = [dim for dim in dims if incoming[slot.entry, dim] > temporal[0, slot.entry, dim]]
            still = [dim for dim in dims if dim not in turning]
            named = [dim for dim in slot.order if dim in turning]
            choices.append(
                [
                    [*still, *order]
                    for order in itertools.permutations(turning)
                    if [dim for dim in order if dim in named] == named
                ]
            )
        always, free = self.keeps
        places = np.argwhere(free)
        bits: list[list[list[int]]] = [[[0], [1]] for _ in places]
        orders = itertools.product(*choices, *bits)
        plain = np.tile(np.arange(len(dims), dtype=np.int8), (len(self.skeleton), 1))
        while block := list(itertools.islice(orders, chunk)):
            order = np.repeat(plain[None], len(block), axis=0)
            keep = np.repeat(always[None], len(block), axis=0)
            for number, slot in enumerate(self._temporal):
                order[:, slot.entry] = [chosen[number] for chosen in block]
            for number, (entry, tensor) in enumerate(places, start=len(choices)):
                keep[:, entry, tensor] = [bool(chosen[number][0]) for chosen in block]
            yield MappingBatch(
                self.problem,
                self.skeleton,
                np.repeat(temporal, len(block), axis=0),
                np.repeat(spatial, len(block), axis=0),
                order,
                keep,
            )


@dataclass(frozen=True)
class _Dimension:
    """The factorisations of one dimension, grouped by their spatial part.

    `spatial`: trips in the spatial slots [option, spatial slot]; rows `start` to `start + count` of `rows` are the
    factorisations of an option, trips [row, slot].
    """

    spatial: Ints
    rows: Ints
    start: Ints
    count: Ints


class _Tables:
    """Tables from which factorisations are drawn without a Python loop per mapping.

    Dimensions are drawn one after another; the state is the product already used of every fanout, and the chance of an
    option is the number of ways to finish after it.
    """

    def __init__(self, space: MapSpace) -> None:
        self.space = space
        self.slots = space.slots
        self.splits = [index for index, slot in enumerate(self.slots) if slot.spatial]
        self.dimensions = [self._dimension(dim, size) for dim, size in enumerate(space.problem.sizes)]
        self.able = {
            index: [dim for dim, table in enumerate(self.dimensions) if (table.rows[:, index] > 1).any()]
            for index in range(len(self.slots))
        }
        self._link()

    def _dimension(self, dim: int, size: int) -> _Dimension:
        rows = factorizations(size, [(slot.lowest[dim], slot.highest[dim]) for slot in self.slots])
        for index in self.splits:
            rows = rows[rows[:, index] <= (self.slots[index].most or size)]
        spatial, which = np.unique(rows[:, self.splits], axis=0, return_inverse=True)
        which = which.reshape(-1)
        count = np.bincount(which, minlength=len(spatial)).astype(np.int64)
        rows = rows[np.argsort(which, kind="stable")]
        return _Dimension(spatial, rows, np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64), count)

    def _link(self) -> None:
        """Which states each dimension can be reached in, and how many ways lead on from there."""
        most = [self.slots[index].most or 1 for index in self.splits]
        states: list[list[tuple[int, ...]]] = [[(1,) * len(most)]]
        follow: list[list[list[int]]] = []  # dimension -> state -> option -> state after it, or -1
        for table in self.dimensions:
            number: dict[tuple[int, ...], int] = {}
            options = [tuple(int(trips) for trips in option) for option in table.spatial]
            after = []
            for state in states[-1]:
                line = []
                for option in options:
                    product = tuple(a * b for a, b in zip(state, option, strict=True))
                    fits = all(used <= limit for used, limit in zip(product, most, strict=True))
                    line.append(number.setdefault(product, len(number)) if fits else -1)
                after.append(line)
            follow.append(after)
            states.append(list(number))
        least = [self.slots[index].least for index in self.splits]
        ways = [int(all(a >= b for a, b in zip(state, least, strict=True))) for state in states[-1]]
        self.draws: list[tuple[NDArray[np.float64], Ints]] = []
        for table, after in zip(reversed(self.dimensions), reversed(follow), strict=True):
            counts = [int(count) for count in table.count]
            weights = [
                [count * ways[next_] if next_ >= 0 else 0 for count, next_ in zip(counts, line, strict=True)]
                for line in after
            ]
            self.draws.append(_cumulate(weights, after))
            ways = [sum(line) for line in weights]
        self.draws.reverse()
        self.follow = follow
        self.count = ways[0] if ways else 0

    def draw(self, rng: np.random.Generator, count: int) -> list[Ints]:
        """Row indices, one array [count] per dimension."""
        state = np.zeros(count, dtype=np.int64)
        picked = []
        for table, (limits, after) in zip(self.dimensions, self.draws, strict=True):
            options = after.shape[1]
            option = np.searchsorted(limits, state + rng.random(count), side="right") - state * options
            option = np.minimum(option, options - 1)
            state = after[state, option]
            within = (rng.random(count) * table.count[option]).astype(np.int64)
            picked.append(table.start[option] + within)
        return picked

    def all_rows(self) -> Iterator[list[Ints]]:
        """Row indices of every factorisation, as arrays of one."""

        def walk(dim: int, state: int) -> Iterator[list[Ints]]:
            if dim == len(self.dimensions):
                yield []
                return
            table = self.dimensions[dim]
            limits, after = self.draws[dim]
            options = after.shape[1]
            chances = np.diff(limits[state * options : (state + 1) * options], prepend=float(state))
            for option in np.flatnonzero(chances > 0):
                for row in range(int(table.start[option]), int(table.start[option] + table.count[option])):
                    for rest in walk(dim + 1, int(after[state, option])):
                        yield [np.array([row]), *rest]

        if self.count:
            yield from walk(0, 0)

    @cached_property
    def _tile_rows(self) -> list[Ints]:
        """Per dimension the tile sizes that its rows stand for: [row, entry x (temporal, spatial)]."""
        result = []
        for table in self.dimensions:
            tiles = np.ones((len(table.rows), 2 * len(self.space.skeleton)), dtype=np.int64)
            place = {(slot.entry, slot.spatial): index for index, slot in enumerate(self.slots)}
            tile = np.ones(len(table.rows), dtype=np.int64)
            for entry in range(len(self.space.skeleton) - 1, -1, -1):
                tiles[:, 2 * entry + 1] = tile
                if (entry, True) in place:
                    tile = tile * table.rows[:, place[entry, True]]
                tiles[:, 2 * entry] = tile
                if (entry, False) in place:
                    tile = tile * table.rows[:, place[entry, False]]
            result.append(tiles)
        return result

    def tiles(self, rows: list[Ints]) -> tuple[Ints, Ints]:
        """(temporal, spatial) tile sizes [n, entry, dimension] of drawn rows."""
        n, entries = len(rows[0]), len(self.space.skeleton)
        both = np.empty((len(rows), n, entries, 2), dtype=np.int64)
        for dim, (row, tiles) in enumerate(zip(rows, self._tile_rows, strict=True)):
            np.take(tiles, row, axis=0, out=both[dim].reshape(n, 2 * entries))
        return both[..., 0].transpose(1, 2, 0), both[..., 1].transpose(1, 2, 0)


def _cumulate(weights: list[list[int]], after: list[list[int]]) -> tuple[NDArray[np.float64], Ints]:
    """One sorted array of limits, state by state, so that one search finds the option of every mapping.

    A state without a way on has no share; it is never reached.
    """
    limits = np.empty((len(weights), len(weights[0]) if weights else 0))
    for state, line in enumerate(weights):
        total = sum(line)
        shares = list(itertools.accumulate(line))
        limits[state] = [state + (share / total if total else 1.0) for share in shares]
    return limits.reshape(-1), np.array(after, dtype=np.int64)


def factorizations(size: int, bounds: list[tuple[int, int]]) -> Ints:
    """All ordered factorisations of `size` within bounds (lowest, highest) per slot: trips [row, slot].

    Raises:
        SpaceTooLargeError: there are more than MAX_TABLE.
    """
    rows = np.ones((1, 0), dtype=np.int64)
    rest = np.array([size], dtype=np.int64)
    whole = divisors(size)
    for lowest, highest in bounds:
        able = [d for d in whole if lowest <= d <= highest]
        blocks = [(d, rest % d == 0) for d in able]
        if sum(int(fits.sum()) for _, fits in blocks) > MAX_TABLE:
            raise SpaceTooLargeError(
                f"a dimension of size {size} has more than {MAX_TABLE} factorisations over {len(bounds)} slots",
                hint="constrain where it may be tiled",
            )
        rows = np.concatenate(
            [np.column_stack([rows[fits], np.full(int(fits.sum()), d)]) for d, fits in blocks]
            or [np.ones((0, rows.shape[1] + 1), dtype=np.int64)]
        )
        rest = np.concatenate([rest[fits] // d for d, fits in blocks] or [np.ones(0, dtype=np.int64)])
    return np.asarray(rows[rest == 1], dtype=np.int64)
