"""Constructive placement: move factors from the outermost loops into inner slots, one slot at a time.

The constructive mappers share this module. A step moves factors from their source slot (`source_slot`)
into one inner slot, in all possible ways, and keeps the results that fit the memories.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import NoValidMappingError
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Problem

LISTED = 1 << 17
"""Factorisations that are tried if no constructed start fits."""
PART = 1 << 14
"""Factorisations that are tried at once."""


def outermost(space: MapSpace, rng: np.random.Generator) -> Candidates:
    """Return one candidate with every factor in the outermost loops that the rules allow.

    Raises:
        NoValidMappingError: The space is empty.
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
                    able = row.trips[0, ranks[b + 1 :], dim] % prime == 0  # a deep machine has few such slots
                    for inner in reversed([ranks[b + 1 + number] for number in np.flatnonzero(able)]):
                        while prime > 1 and len(after := moves_of(row, dim, [prime], inner, outer)):
                            row, moved = after, True
    return row


def _outermost_ragged(row: Candidates) -> Candidates:
    """Move trips of a ragged space outwards, as far as the rules allow."""
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
    """Return the rows after moving each factor of a dimension between two slots, where that is allowed.

    In a ragged space, only the smallest of several factors with the same remaining trips is used.
    """
    able = np.array([factor for factor in factors if factor <= rows.space.slots[target].highest[dim]], dtype=np.int64)
    given = rows.trips[:, source, dim]
    good = rows.space.divides(able[:, None], given)
    if rows.space.factors == "ragged":
        left = -(-given // able[:, None])
        good &= -(-given // left) == able[:, None]
    number, row = np.nonzero(good)
    after = rows.take(row).move(dim, able[number], source, target)
    if rows.space.factors == "ragged":  # the outermost slot may shrink as well
        good = rows.space.within(after.trips)
    else:
        good = rows.space.allowed(after.trips, source, dim) & rows.space.allowed(after.trips, target, dim)
    return after if good.all() else after.take(good)


def slots_by_cluster(space: MapSpace, slots: Sequence[int]) -> list[list[int]]:
    """Group loop slots by the cluster whose memories contain them, innermost first."""
    clusters = {memory.name: cluster.name for cluster in space.architecture.clusters for memory in cluster.memories}
    groups: dict[str, list[int]] = {}
    for slot in reversed(slots):
        inside = space.skeleton.entries[space.slots[slot].entry].inside
        groups.setdefault(clusters.get(inside or "", ""), []).append(slot)
    return list(groups.values())


def used(rows: Candidates) -> Ints:
    """Return the number of compute units in use, [n]."""
    return np.asarray(rows.trips[:, rows.space.spatial_slots].prod(axis=(1, 2)), dtype=np.int64)


def _sources(space: MapSpace, start: Candidates) -> Ints:
    """Return for each dimension the temporal slot with the most trips; -1 if there is none."""
    loops = np.array(space.temporal_slots, dtype=np.int64)
    return loops[start.trips[0, loops].argmax(axis=0)] if len(loops) else np.full(start.trips.shape[2], -1)


@dataclass
class Placement:
    """Search for placements: moves factors from their source slots into inner slots.

    Attributes:
        start: One candidate with every factor as far out as allowed, and the tensors to keep.
        source_slot: Source slot of each dimension; -1 if there is none.
        most: Maximum number of rows. Larger sets are subsampled at random.
        subsampled: Whether a set of rows was subsampled.
    """

    space: MapSpace
    rng: np.random.Generator
    start: Candidates
    source_slot: Ints
    most: int = 4096
    subsampled: bool = False

    @classmethod
    def of(cls, space: MapSpace, rng: np.random.Generator, keep: Bools | None = None, most: int = 4096) -> Placement:
        """Return a placement that begins with all factors outside.

        `keep` [entry, tensor] selects the kept tensors. By default optional tensors are bypassed.

        Raises:
            NoValidMappingError: The space is empty.
        """
        start = outermost(space, rng)
        return cls(space, rng, start.keeping(keep), _sources(space, start), most)

    @classmethod
    def each(cls, space: MapSpace, rng: np.random.Generator, most: int = 4096) -> list[Placement]:
        """Return one placement for each choice of kept tensors whose start fits the memories.

        If the constructed starts fit for no choice, all factorisations are tried; of more than `LISTED`, as many random ones.

        Raises:
            NoValidMappingError: No start fits, or the space is empty.
        """
        first = cls.of(space, rng, most=most)
        choices = [replace(first, start=first.start.keeping(keep))._fitting() for keep in keep_choices(space)]
        fitting = [choice for choice in choices if choice.start.fits()[0]] or list(first._of_any())
        if not fitting:
            tried = "all factorisations" if space.factorizations <= LISTED else f"{LISTED:,} random factorisations"
            raise NoValidMappingError(
                f"{space.problem.name} on {space.architecture.name}: no start mapping fits: the tiles exceed the memories in "
                f"{tried}, and with all factors in the outermost loops that the rules allow",
                hint="loosen the constraints, let memories bypass tensors, or try --mapper random",
            )
        return fitting

    def _fitting(self) -> Placement:
        """Return a placement whose start fits, if some factors must be unrolled for that.

        These are factors that the outer loops may not have. As few as possible are unrolled.
        """
        if self.start.fits()[0]:
            return self
        rows = self.start
        for dim, source_slot in enumerate(self.source_slot.tolist()):
            for slot in self.space.spatial_slots if source_slot not in (-1, self.space.temporal_slots[0]) else ():
                rows = Candidates.join([rows, moves_of(rows, dim, self.space.whole_factors(dim), source_slot, slot)])
                rows = self.subsample(rows)
        rows = rows.take(rows.fits())
        return replace(self, start=rows.take(used(rows).argsort(kind="stable")[:1])) if len(rows) else self

    def _of_any(self) -> Iterator[Placement]:
        """Yield a placement for each choice of kept tensors, from factorisations that fit; none if none is found.

        A factorisation that fits for some choice fits without optional tensors.
        """
        space, choices = self.space, keep_choices(self.space)
        drawn = (space.sample(self.rng, PART) for _ in range(LISTED // PART))
        for part in space.factorings(PART) if space.factorizations <= LISTED else drawn:
            rows = part.keeping(choices[0])
            rows = rows.take(rows.fits())
            if len(rows):
                for keep in choices:
                    able = rows.keeping(keep)
                    able = able.take(able.fits())
                    if len(able):
                        yield self._from(able.take(used(able).argsort(kind="stable")[:1]))
                return

    def _from(self, start: Candidates) -> Placement:
        """Return a placement that begins with another start."""
        return replace(self, start=start, source_slot=_sources(self.space, start))

    def into(self, slot: int, rows: Candidates, dims: Sequence[int] | None = None) -> Candidates:
        """Move factors of `dims` (None: all) from their source slots into `slot`, in all ways that fit."""
        for dim in range(len(self.source_slot)) if dims is None else dims:
            source = int(self.source_slot[dim])
            if source in (-1, slot) or self.space.slots[slot].highest[dim] == 1:
                continue
            grown = Candidates.join([rows, moves_of(rows, dim, self.space.whole_factors(dim), source, slot)])
            rows = self.subsample(grown.take(grown.fits()) if len(grown) > len(rows) else rows)
        return rows

    def unroll(self, rows: Candidates, dims: Sequence[int] | None = None) -> Candidates:
        """Unroll rows over the fanouts in all ways, starting with the innermost fanout."""
        for slot in reversed(self.space.spatial_slots):
            rows = self.into(slot, rows, dims)
        return rows

    def fullest(self, rows: Candidates) -> Candidates:
        """Return the rows that use the most compute units."""
        units = used(rows)
        return rows.take(units == units.max())

    def subsample(self, rows: Candidates, most: int | None = None) -> Candidates:
        """Return at most `most` of the rows, sampled at random."""
        most = most or self.most
        if len(rows) <= most:
            return rows
        self.subsampled = True
        return rows.take(np.sort(self.rng.choice(len(rows), most, replace=False)))

    def fill(self, rows: Candidates, slot: int) -> Floats:
        """Return the fraction of the memory around a slot's loops that the tiles fill, [n].

        The fraction is 1 for a memory of unlimited capacity.
        """
        memory = self.memory(slot)
        usable = None if memory is None else self.space.usable_words(memory)
        if memory is None or usable is None:
            return np.ones(len(rows), dtype=np.float64)
        return np.asarray(rows.words(memory), dtype=np.float64) / max(1, usable)

    def memory(self, slot: int) -> Memory | None:
        """Return the memory directly around a slot's loops."""
        inside = self.space.skeleton.entries[self.space.slots[slot].entry].inside
        return next((memory for memory in self.space.architecture.memories if memory.name == inside), None)


def keep_choices(space: MapSpace, most: int = 16) -> list[Bools]:
    """Return the possible choices of kept tensors, bool [entry, tensor] each.

    If there are more than `most`, return two: no optional tensor, and all of them.
    """
    always, optional = space.keeps
    places = np.argwhere(optional)
    if 2 ** len(places) > most:
        return [always, always | optional]
    choices = []
    for number in range(2 ** len(places)):
        keep = always.copy()
        for bit, (entry, tensor) in enumerate(places):
            keep[entry, tensor] = bool(number >> bit & 1)
        choices.append(keep)
    return choices


def reuse_orders(problem: Problem) -> Positions:
    """Return distinct loop orders, int8 [k, position], one per tensor.

    The dimensions that do not index the tensor are innermost.
    """
    dims = range(len(problem.dimensions))
    orders = []
    for tensor in problem.tensors:
        indexing = {problem.dimension_names.index(name) for name in tensor.dimensions}
        orders.append([*(d for d in dims if d in indexing), *(d for d in dims if d not in indexing)])
    return np.unique(np.array(orders, dtype=np.int8), axis=0)


def with_orders(rows: Candidates, choices: Sequence[Positions]) -> Candidates:
    """Return every row with every combination of `choices`, which are orders [k, position] per block.

    Combinations that differ only in loops of one trip appear once.
    """
    for block, able in enumerate(choices):
        rows = with_order(rows, block, able)
    return rows


def with_order(rows: Candidates, block: int, choices: Positions) -> Candidates:
    """Return every row with every order [k, position] of one block; other blocks do not change."""
    slot = rows.space.temporal_slots[block]
    choices = rows.space.lawful_block(choices, slot)
    bits = 1 << np.arange(choices.shape[1])
    patterns, which = np.unique((rows.trips[:, slot] > 1) @ bits, return_inverse=True)
    distinct = [_distinct((pattern & bits) > 0, choices) for pattern in patterns]
    if not distinct:
        return rows
    count = np.array([len(orders) for orders in distinct], dtype=np.int64)
    start = np.cumsum(count) - count
    number_of = count[which]
    line = np.repeat(np.arange(len(rows)), number_of)
    number = np.arange(len(line)) - np.repeat(np.cumsum(number_of) - number_of, number_of)
    order = rows.orders[line]
    order[:, block] = np.concatenate(distinct)[start[which][line] + number]
    return replace(rows.take(line), order=order)


def _distinct(non_unit: Bools, orders: Positions) -> Positions:
    """Return the orders that differ in their non-unit loops [dimension]; unit loops come first."""
    idle = [dim for dim in range(len(non_unit)) if not non_unit[dim]]
    return np.array(
        list(dict.fromkeys((*idle, *(int(d) for d in order if non_unit[d])) for order in orders)), dtype=np.int8
    )
