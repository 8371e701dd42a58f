"""Spreading: from factors that all stand outside, every way to move some inwards, one slot after another.

What constructive mappers share. Trip counts are arrays [n, slot, dimension] over the slots of a map space; a step moves
factors from where they stand, their home, into one slot, and keeps what fits the memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import NoValidMappingError
from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.counting import divisors, prime_powers
from tilewright.mapspace.legality import words_needed
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Problem


def bare(space: MapSpace, rng: np.random.Generator) -> Ints:
    """Trip counts [slot, dimension] with every factor in the outermost loops that the rules let it have.

    Raises:
        NoValidMappingError: the space is empty.
    """
    trips = space.trips(space.sample(rng, 1))
    ranks = [*temporal_slots(space), *spatial_slots(space)]
    moved = True
    while moved:
        moved = False
        for dim, size in enumerate(space.problem.sizes):
            for prime, _ in prime_powers(size):
                for b, outer in enumerate(ranks):
                    for inner in reversed(ranks[b + 1 :]):
                        while prime > 1 and _move(space, trips, prime, dim, inner, outer):
                            moved = True
    return np.asarray(trips[0])


def _move(space: MapSpace, trips: Ints, prime: int, dim: int, source: int, target: int) -> bool:
    """Move one prime factor of the only row, in place, if it is there and the rules allow it."""
    if trips[0, source, dim] % prime:
        return False
    after = trips.copy()
    after[:, source, dim] //= prime
    after[:, target, dim] *= prime
    allowed = bool((space.allowed(after, source, dim) & space.allowed(after, target, dim))[0])
    if allowed:
        trips[:] = after
    return allowed


def temporal_slots(space: MapSpace) -> list[int]:
    """Indices of the slots of loops, outermost first."""
    return [index for index, slot in enumerate(space.slots) if not slot.spatial]


def spatial_slots(space: MapSpace) -> list[int]:
    """Indices of the slots of splits, outermost first."""
    return [index for index, slot in enumerate(space.slots) if slot.spatial]


def slots_by_cluster(space: MapSpace, slots: Sequence[int]) -> list[list[int]]:
    """Slots of loops, those inside the memories of one cluster together, innermost first."""
    clusters = {memory.name: cluster.name for cluster in space.architecture.clusters for memory in cluster.memories}
    groups: dict[str, list[int]] = {}
    for slot in reversed(slots):
        inside = space.skeleton.entries[space.slots[slot].entry].inside
        groups.setdefault(clusters.get(inside or "", ""), []).append(slot)
    return list(groups.values())


def used(space: MapSpace, trips: Ints) -> Ints:
    """How many compute units work, [n]."""
    return np.asarray(trips[:, spatial_slots(space)].prod(axis=(1, 2)), dtype=np.int64)


@dataclass
class Spreading:
    """Moves factors inwards from where they stand outside.

    Attributes:
        start: trip counts [1, slot, dimension] with every factor as far out as it may be.
        home: per dimension the slot of loops that gives its factors; -1: none.
        keep: what is kept, [entry, tensor].
        most: of more rows than this, as many are drawn and the rest is dropped.
        thinned: whether that has happened.
    """

    space: MapSpace
    rng: np.random.Generator
    start: Ints
    home: Ints
    keep: Bools
    most: int = 4096
    thinned: bool = False

    @classmethod
    def of(cls, space: MapSpace, rng: np.random.Generator, keep: Bools | None = None, most: int = 4096) -> Spreading:
        """With everything outside; without `keep` what is free is bypassed.

        Raises:
            NoValidMappingError: the space is empty.
        """
        start = bare(space, rng)
        loops = np.array(temporal_slots(space), dtype=np.int64)
        home = loops[start[loops].argmax(axis=0)] if len(loops) else np.full(start.shape[1], -1)
        return cls(space, rng, start[None], home, space.keeps[0] if keep is None else keep, most)

    @classmethod
    def each(cls, space: MapSpace, rng: np.random.Generator, most: int = 4096) -> list[Spreading]:
        """One for each choice of what is kept with which something fits.

        Raises:
            NoValidMappingError: nothing fits, or the space is empty.
        """
        first = cls.of(space, rng, most=most)
        choices = [replace(first, keep=keep) for keep in keep_choices(space)]
        found = [each for each in choices if each.fits(each.start)[0]]
        if not found:
            raise NoValidMappingError(
                f"{space.problem.name} on {space.architecture.name}: no mapping to start from; the tiles do not fit even "
                "with all factors as far outside as the rules let them",
                hint="loosen the constraints, let memories bypass tensors, or try a mapper that draws its mappings (--mapper)",
            )
        return found

    def into(self, slot: int, rows: Ints, dims: Sequence[int] | None = None) -> Ints:
        """All ways to move factors of `dims` (None: all) of each row from home into a slot, so that the tiles fit."""
        for dim in range(rows.shape[2]) if dims is None else dims:
            source = int(self.home[dim])
            if source in (-1, slot) or self.space.slots[slot].highest[dim] == 1:
                continue
            parts = [rows]
            for factor in divisors(self.space.problem.sizes[dim])[1:]:
                after = rows[rows[:, source, dim] % factor == 0]
                after[:, source, dim] //= factor
                after[:, slot, dim] *= factor
                parts.append(after[self.space.allowed(after, source, dim) & self.space.allowed(after, slot, dim)])
            rows = np.concatenate(parts)
            rows = self.thin(rows[self.fits(rows)] if len(rows) > len(parts[0]) else rows)
        return rows

    def unroll(self, rows: Ints, dims: Sequence[int] | None = None) -> Ints:
        """All ways to split rows over the fanouts, the innermost fanout first."""
        for slot in reversed(spatial_slots(self.space)):
            rows = self.into(slot, rows, dims)
        return rows

    def fullest(self, rows: Ints) -> Ints:
        """The rows that use most compute units."""
        units = used(self.space, rows)
        return np.asarray(rows[units == units.max()])

    def thin(self, rows: Ints, most: int | None = None) -> Ints:
        """At most so many of the rows, drawn."""
        most = most or self.most
        if len(rows) <= most:
            return rows
        self.thinned = True
        return rows[np.sort(self.rng.choice(len(rows), most, replace=False))]

    def batch(self, rows: Ints, order: Positions | None = None) -> MappingBatch:
        """The rows as mappings."""
        return self.space.build(rows, order, np.broadcast_to(self.keep, (len(rows), *self.keep.shape)))

    def fits(self, rows: Ints) -> Bools:
        """Whether the tiles fit the memories, bool [n]."""
        return self.space.fits(self.batch(rows))

    def fill(self, rows: Ints, slot: int) -> Floats:
        """The share that the tiles take of the memory right around a slot's loops, [n]; 1 if it is unlimited."""
        memory = self.memory(slot)
        if memory is None or memory.usable_words is None:
            return np.ones(len(rows), dtype=np.float64)
        words = words_needed(self.space.architecture, self.batch(rows), memory)
        return np.asarray(words, dtype=np.float64) / max(1, memory.usable_words)

    def memory(self, slot: int) -> Memory | None:
        """The memory right around a slot's loops."""
        inside = self.space.skeleton.entries[self.space.slots[slot].entry].inside
        return next((each for each in self.space.architecture.memories if each.name == inside), None)


def keep_choices(space: MapSpace, most: int = 16) -> list[Bools]:
    """What may be kept, [entry, tensor] each: all choices, or, if more than `most`, nothing free and everything free."""
    always, free = space.keeps
    places = np.argwhere(free)
    if 2 ** len(places) > most:
        return [always, always | free]
    choices = []
    for number in range(2 ** len(places)):
        keep = always.copy()
        for bit, (entry, tensor) in enumerate(places):
            keep[entry, tensor] = bool(number >> bit & 1)
        choices.append(keep)
    return choices


def reuse_orders(problem: Problem) -> Positions:
    """One order of loops per tensor, the dimensions that do not index it innermost: int8 [k, position], no two alike."""
    dims = range(len(problem.dimensions))
    orders = []
    for tensor in problem.tensors:
        indexing = {problem.dimension_names.index(name) for name in tensor.dimensions}
        orders.append([*(d for d in dims if d in indexing), *(d for d in dims if d not in indexing)])
    return np.unique(np.array(orders, dtype=np.int8), axis=0)


def with_orders(space: MapSpace, trips: Ints, choices: Sequence[Positions]) -> tuple[Ints, Positions]:
    """Every row with every combination of orders, `choices` [k, position] per slot of loops: (trips, orders).

    Combinations that differ only in loops of one trip are made once.
    """
    dims = trips.shape[2]
    order = np.empty((len(trips), len(space.skeleton), dims), dtype=np.int8)
    order[:] = np.arange(dims, dtype=np.int8)
    for slot, able in zip(temporal_slots(space), choices, strict=True):
        trips, order = with_order(space, trips, order, slot, able)
    return trips, order


def with_order(space: MapSpace, trips: Ints, order: Positions, slot: int, choices: Positions) -> tuple[Ints, Positions]:
    """Every row with every order [k, position] of the loops of one slot, others as they are: (trips, orders)."""
    turns, pattern = np.unique(trips[:, slot] > 1, axis=0, return_inverse=True)
    distinct = [_distinct(each, choices) for each in turns]
    if not distinct:
        return trips, order
    count = np.array([len(each) for each in distinct], dtype=np.int64)
    start = np.cumsum(count) - count
    each = count[pattern.reshape(-1)]
    which = np.repeat(np.arange(len(trips)), each)
    number = np.arange(len(which)) - np.repeat(np.cumsum(each) - each, each)
    trips, order = trips[which], order[which]
    order[:, space.slots[slot].entry] = np.concatenate(distinct)[start[pattern.reshape(-1)][which] + number]
    return trips, order


def _distinct(turns: Bools, orders: Positions) -> Positions:
    """Those orders that differ among the loops that turn [dimension]; the others stand first, as in the problem."""
    idle = [dim for dim in range(len(turns)) if not turns[dim]]
    return np.array(list(dict.fromkeys((*idle, *(int(d) for d in each if turns[d])) for each in orders)), dtype=np.int8)
