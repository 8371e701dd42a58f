"""Constructive placement: from factors that all stand outside, every way to move some inwards, one slot after another.

What constructive mappers share. A step moves factors from where they stand, their home, into one slot, and keeps what
fits the memories.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import NoValidMappingError
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Problem


def outermost(space: MapSpace, rng: np.random.Generator) -> Candidates:
    """One candidate with every factor in the outermost loops that the rules let it have.

    Raises:
        NoValidMappingError: the space is empty.
    """
    row = Candidates(space, space.sample(rng, 1).trips)
    if space.factors == "ragged":
        return _outermost_ragged(row)
    ranks = [*space.temporal_slots, *space.spatial_slots]
    moved = True
    while moved:
        moved = False
        for dim, size in enumerate(space.problem.sizes):
            for prime, _ in prime_powers(size):
                for b, outer in enumerate(ranks):
                    for inner in reversed(ranks[b + 1 :]):
                        while prime > 1 and len(after := moves_of(row, dim, [prime], inner, outer)):
                            row, moved = after, True
    return row


def _outermost_ragged(row: Candidates) -> Candidates:
    """The same: each slot gives what it may to the outermost loops that may take it."""
    slots, space = row.space.slots, row.space
    ranks = [*space.temporal_slots, *space.spatial_slots]
    for dim, (b, outer) in itertools.product(range(len(space.problem.sizes)), enumerate(ranks)):
        for inner in reversed(ranks[b + 1 :]):
            for trips in range(slots[inner].lowest[dim], int(row.trips[0, inner, dim])):
                after = row.give(dim, np.array([trips]), outer, inner)
                if space.within(after.trips)[0]:
                    row = after
                    break
    return row


def moves_of(rows: Candidates, dim: int, factors: Sequence[int], source: int, target: int) -> Candidates:
    """Each factor of a dimension moved from one slot to another, in all rows where it stands and the rules allow it.

    In a ragged space, of the factors that leave the same trips in the source only the smallest.
    """
    able = np.array([factor for factor in factors if factor <= rows.space.slots[target].highest[dim]], dtype=np.int64)
    given = rows.trips[:, source, dim]
    good = rows.space.divides(able[:, None], given)
    if rows.space.factors == "ragged":
        left = -(-given // able[:, None])
        good &= -(-given // left) == able[:, None]
    number, row = np.nonzero(good)
    after = rows.take(row).move(dim, able[number], source, target)
    if rows.space.factors == "ragged":  # an outer slot may shrink, too
        good = rows.space.within(after.trips)
    else:
        good = rows.space.allowed(after.trips, source, dim) & rows.space.allowed(after.trips, target, dim)
    return after if good.all() else after.take(good)


def slots_by_cluster(space: MapSpace, slots: Sequence[int]) -> list[list[int]]:
    """Slots of loops, those inside the memories of one cluster together, innermost first."""
    clusters = {memory.name: cluster.name for cluster in space.architecture.clusters for memory in cluster.memories}
    groups: dict[str, list[int]] = {}
    for slot in reversed(slots):
        inside = space.skeleton.entries[space.slots[slot].entry].inside
        groups.setdefault(clusters.get(inside or "", ""), []).append(slot)
    return list(groups.values())


def used(rows: Candidates) -> Ints:
    """How many compute units work, [n]."""
    return np.asarray(rows.trips[:, rows.space.spatial_slots].prod(axis=(1, 2)), dtype=np.int64)


@dataclass
class Placement:
    """Moves factors inwards from where they stand outside.

    Attributes:
        start: one candidate with every factor as far out as it may be, and with what is to be kept.
        home: per dimension the slot of loops that gives its factors; -1: none.
        most: of more rows than this, as many are drawn and the rest is dropped.
        thinned: whether that has happened.
    """

    space: MapSpace
    rng: np.random.Generator
    start: Candidates
    home: Ints
    most: int = 4096
    thinned: bool = False

    @classmethod
    def of(cls, space: MapSpace, rng: np.random.Generator, keep: Bools | None = None, most: int = 4096) -> Placement:
        """With everything outside; without `keep`, [entry, tensor], what is free is bypassed.

        Raises:
            NoValidMappingError: the space is empty.
        """
        start = outermost(space, rng)
        loops = np.array(space.temporal_slots, dtype=np.int64)
        home = loops[start.trips[0, loops].argmax(axis=0)] if len(loops) else np.full(start.trips.shape[2], -1)
        return cls(space, rng, start.keeping(keep), home, most)

    @classmethod
    def each(cls, space: MapSpace, rng: np.random.Generator, most: int = 4096) -> list[Placement]:
        """One for each choice of what is kept with which something fits.

        Raises:
            NoValidMappingError: nothing fits, or the space is empty.
        """
        first = cls.of(space, rng, most=most)
        choices = [replace(first, start=first.start.keeping(keep))._fitting() for keep in keep_choices(space)]
        found = [each for each in choices if each.start.fits()[0]]
        if not found:
            raise NoValidMappingError(
                f"{space.problem.name} on {space.architecture.name}: no mapping to start from; the tiles do not fit even "
                "with all factors as far outside as the rules let them, or unrolled",
                hint="loosen the constraints, let memories bypass tensors, or try --mapper random",
            )
        return found

    def _fitting(self) -> Placement:
        """With factors that no outer loops may have unrolled, where the tiles fit only then; the fewest that do."""
        if self.start.fits()[0]:
            return self
        rows = self.start
        for dim, home in enumerate(self.home.tolist()):
            for slot in self.space.spatial_slots if home not in (-1, self.space.temporal_slots[0]) else ():
                rows = Candidates.join([rows, moves_of(rows, dim, self.space.whole_factors(dim), home, slot)])
                rows = self.thin(rows)
        rows = rows.take(rows.fits())
        return replace(self, start=rows.take(used(rows).argsort(kind="stable")[:1])) if len(rows) else self

    def into(self, slot: int, rows: Candidates, dims: Sequence[int] | None = None) -> Candidates:
        """All ways to move factors of `dims` (None: all) of each row from home into a slot, so that the tiles fit."""
        for dim in range(len(self.home)) if dims is None else dims:
            source = int(self.home[dim])
            if source in (-1, slot) or self.space.slots[slot].highest[dim] == 1:
                continue
            grown = Candidates.join([rows, moves_of(rows, dim, self.space.whole_factors(dim), source, slot)])
            rows = self.thin(grown.take(grown.fits()) if len(grown) > len(rows) else rows)
        return rows

    def unroll(self, rows: Candidates, dims: Sequence[int] | None = None) -> Candidates:
        """All ways to unroll rows over the fanouts, the innermost fanout first."""
        for slot in reversed(self.space.spatial_slots):
            rows = self.into(slot, rows, dims)
        return rows

    def fullest(self, rows: Candidates) -> Candidates:
        """The rows that use most compute units."""
        units = used(rows)
        return rows.take(units == units.max())

    def thin(self, rows: Candidates, most: int | None = None) -> Candidates:
        """At most so many of the rows, drawn."""
        most = most or self.most
        if len(rows) <= most:
            return rows
        self.thinned = True
        return rows.take(np.sort(self.rng.choice(len(rows), most, replace=False)))

    def fill(self, rows: Candidates, slot: int) -> Floats:
        """The share that the tiles take of the memory right around a slot's loops, [n]; 1 if it is unlimited."""
        memory = self.memory(slot)
        usable = None if memory is None else self.space.usable_words(memory)
        if memory is None or usable is None:
            return np.ones(len(rows), dtype=np.float64)
        return np.asarray(rows.words(memory), dtype=np.float64) / max(1, usable)

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


def with_orders(rows: Candidates, choices: Sequence[Positions]) -> Candidates:
    """Every row with every combination of orders, `choices` [k, position] per block of loops.

    Combinations that differ only in loops of one trip are made once.
    """
    for block, able in enumerate(choices):
        rows = with_order(rows, block, able)
    return rows


def with_order(rows: Candidates, block: int, choices: Positions) -> Candidates:
    """Every row with every order [k, position] of the loops of one block, others as they are."""
    slot = rows.space.temporal_slots[block]
    choices = rows.space.lawful_block(choices, slot)
    bits = 1 << np.arange(choices.shape[1])
    patterns, which = np.unique((rows.trips[:, slot] > 1) @ bits, return_inverse=True)
    distinct = [_distinct((pattern & bits) > 0, choices) for pattern in patterns]
    if not distinct:
        return rows
    count = np.array([len(each) for each in distinct], dtype=np.int64)
    start = np.cumsum(count) - count
    each = count[which]
    line = np.repeat(np.arange(len(rows)), each)
    number = np.arange(len(line)) - np.repeat(np.cumsum(each) - each, each)
    order = rows.orders[line]
    order[:, block] = np.concatenate(distinct)[start[which][line] + number]
    return replace(rows.take(line), order=order)


def _distinct(non_unit: Bools, orders: Positions) -> Positions:
    """Those orders that differ among the non-unit loops [dimension]; the others stand first, as in the problem."""
    idle = [dim for dim in range(len(non_unit)) if not non_unit[dim]]
    return np.array(
        list(dict.fromkeys((*idle, *(int(d) for d in each if non_unit[d])) for each in orders)), dtype=np.int8
    )
