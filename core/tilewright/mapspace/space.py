"""MapSpace: every perfect mapping of a problem over one skeleton, counted, sampled and enumerated.

A point is a factorisation of every dimension over the slots of the skeleton (one temporal slot per entry that steps,
one spatial slot per entry that splits), an order of the loops of every stepping entry, and a choice of what is kept
where that is free. Fanouts and constraints bound the space; capacity does not: cost models and legality judge it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import InvalidMappingError, NoValidMappingError
from tilewright.mapspace.batch import Bools, Ints, MappingBatch, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.counting import count_mappings
from tilewright.mapspace.factoring import EXACT, Factoring
from tilewright.mapspace.legality import fits
from tilewright.mapspace.limits import Limits
from tilewright.mapspace.looporders import OrderTable, arrange, by_rank, count_orders
from tilewright.mapspace.moves import Moves
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Variant
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class MapSpace(Limits):
    """The space of one problem on one architecture under rules already on the problem's dimensions."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        architecture: Architecture,
        rules: Variant | None,
        skeleton: Skeleton | None = None,
    ) -> MapSpace:
        """The space under these rules (None: all that the hardware can do), by default over the architecture's own
        skeleton. `tilewright.space` knows the architecture's published dataflow; this does not."""
        return cls(problem, architecture, rules or Variant(), skeleton or Skeleton.for_architecture(architecture))

    # -- counting --------------------------------------------------------------------------------------------

    @cached_property
    def size(self) -> int:
        """Exactly how many different mappings there are (the order of loops of one trip makes no difference)."""
        bound = self.factorizations * math.factorial(len(self.problem.dimensions)) ** len(self._temporal)
        return count_mappings(self.problem.sizes, self.slots, bound) << int(self.keeps[1].sum())

    @cached_property
    def factorizations(self) -> int:
        """Exactly how many ways there are to spread the dimensions' factors over the slots."""
        return self._factoring.count

    @cached_property
    def _temporal(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if not slot.spatial)

    @cached_property
    def _factoring(self) -> Factoring:
        return Factoring(self.problem.sizes, self.slots, len(self.skeleton))

    # -- sampling --------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator, count: int) -> MappingBatch:
        """`count` mappings: every factorisation equally likely, then every order of its loops, then free keeps.

        Raises:
            NoValidMappingError: the space is empty; the message says which rule cannot be met.
        """
        if self.factorizations == 0:
            reason = self._factoring.fault(self.problem.dimension_names, [self.describe(slot) for slot in self.slots])
            raise NoValidMappingError(
                f"the map space of {self.problem.name} on {self.architecture.name} is empty: {reason}",
                hint="loosen the constraints, or try --constraints none",
            )
        rows = self._factoring.draw(rng, count)
        temporal, spatial = self._factoring.tiles(rows)
        patterns = self._factoring.patterns(rows)
        order = self._plain_orders(count)
        for column, (slot, table) in enumerate(zip(self._temporal, self._orders, strict=True)):
            if len(table.able) > 1:
                order[:, slot.entry] = table.draw(rng, patterns[:, column])
        return MappingBatch(self.problem, self.skeleton, temporal, spatial, order, self._draw_keeps(rng, count))

    @cached_property
    def _orders(self) -> tuple[OrderTable, ...]:
        """Per temporal slot; slots alike share a table."""
        dims = len(self.problem.dimensions)
        made: dict[tuple[tuple[int, ...], tuple[int, ...]], OrderTable] = {}
        return tuple(
            made.setdefault((able, slot.order), OrderTable(dims, able, slot.order))
            for slot, able in zip(self._temporal, self._factoring.able, strict=True)
        )

    def _plain_orders(self, count: int) -> Positions:
        dims = len(self.problem.dimensions)
        order = np.empty((count, len(self.skeleton), dims), dtype=np.int8)
        order[:] = np.arange(dims, dtype=np.int8)
        return order

    def _draw_keeps(self, rng: np.random.Generator, count: int) -> Bools:
        always, free = self.keeps
        if not free.any():
            return np.broadcast_to(always, (count, *always.shape))
        return always | (free & rng.integers(0, 2, (count, *free.shape)).astype(np.bool_))

    # -- enumeration -----------------------------------------------------------------------------------------

    def enumerate(self, chunk: int = 4096) -> Iterator[MappingBatch]:
        """Every different mapping exactly once, in batches of at most `chunk`; none are made before they are asked
        for. Loops of one trip stand first, in the problem's order."""
        for start in range(0, self.factorizations, chunk):
            rows = self._factoring.unrank(start, min(start + chunk, self.factorizations))
            yield from self._arrangements(rows, chunk)

    def factorings(self, chunk: int = 32768) -> Iterator[Ints]:
        """Every factorisation exactly once, as trip counts [n, slot, dimension], in arrays of at most `chunk`."""
        for start in range(0, self.factorizations, chunk):
            rows = self._factoring.unrank(start, min(start + chunk, self.factorizations))
            temporal, spatial = self._factoring.tiles(rows)
            shape = (len(temporal), len(self.skeleton))
            order = np.broadcast_to(self._plain_orders(1), (*shape, len(self.problem.sizes)))
            keep = np.broadcast_to(self.keeps[0], (*shape, self.keeps[0].shape[1]))
            yield self.trips(MappingBatch(self.problem, self.skeleton, temporal, spatial, order, keep))

    def _arrangements(self, rows: list[Ints], chunk: int) -> Iterator[MappingBatch]:
        """All orders and keeps of some factorisations."""
        temporal, spatial = self._factoring.tiles(rows)
        patterns = self._factoring.patterns(rows)
        turning = [table.turning(patterns[:, column]) for column, table in enumerate(self._orders)]
        ways = [
            count_orders(turns, table.named)  # exact: seven loops in three slots are 10**11 already
            for turns, table in zip(turning, self._orders, strict=True)
        ]
        places = np.argwhere(self.keeps[1])
        each = np.full(len(patterns), 1 << len(places), dtype=np.object_)
        for count in ways:
            each = each * count
        ends = np.cumsum(each)
        total = int(ends[-1])
        kind = np.int64 if total < EXACT else np.object_
        ends, each = ends.astype(kind), each.astype(kind)
        for start in range(0, total, chunk):
            number: NDArray[Any] = np.arange(start, min(start + chunk, total), dtype=kind)
            which = np.searchsorted(ends, number, side="right")
            rest = number - (ends - each)[which]
            order, keep = self._plain_orders(len(number)), np.repeat(self.keeps[0][None], len(number), axis=0)
            for slot, table, turns, count in zip(self._temporal, self._orders, turning, ways, strict=True):
                here = count[which].astype(kind)
                order[:, slot.entry] = arrange(turns[which], table.named, by_rank(rest % here))
                rest = rest // here
            for entry, tensor in places:
                keep[:, entry, tensor] = rest % 2 > 0
                rest = rest // 2
            yield MappingBatch(self.problem, self.skeleton, temporal[which], spatial[which], order, keep)

    def reordered(self, batch: MappingBatch, most: int) -> MappingBatch:
        """Each mapping with the first `most` orders of its loops, or all if there are fewer, as `enumerate` has them.

        The innermost block of loops changes fastest; keeps stay.
        """
        turns = self.trips(batch) > 1
        ways = [count_orders(turns[:, index], slot.order) for index, slot in enumerate(self.slots) if not slot.spatial]
        each = np.minimum(np.prod(ways, axis=0), most).astype(np.int64)
        which = np.repeat(np.arange(len(batch)), each)
        rest = np.arange(len(which)) - np.repeat(np.cumsum(each) - each, each)
        order = self._plain_orders(len(which))
        blocks = [(index, slot) for index, slot in enumerate(self.slots) if not slot.spatial]
        for (index, slot), count in reversed(list(zip(blocks, ways, strict=True))):
            here = np.minimum(count, EXACT).astype(np.int64)[which]
            order[:, slot.entry] = arrange(turns[which, index], slot.order, by_rank(rest % here))
            rest = rest // here
        return replace(batch.take(which), order=order)

    # -- neighbours ------------------------------------------------------------------------------------------

    def trips(self, batch: MappingBatch) -> Ints:
        """Trip counts of mappings of this space, [n, slot, dimension]."""
        result = np.empty((len(batch), len(self.slots), len(self.problem.sizes)), dtype=np.int64)
        for index, slot in enumerate(self.slots):
            outer, inner = (batch.temporal, batch.spatial) if slot.spatial else (batch.incoming, batch.temporal)
            result[:, index] = outer[:, slot.entry] // inner[:, slot.entry]
        return result

    def tiles(self, trips: Ints) -> tuple[Ints, Ints]:
        """(temporal, spatial) tile sizes [n, entry, dimension] of trip counts [n, slot, dimension]."""
        shape = (len(trips), len(self.skeleton), trips.shape[2])
        temporal, spatial = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        place = {(slot.entry, slot.spatial): index for index, slot in enumerate(self.slots)}
        tile = np.ones((len(trips), trips.shape[2]), dtype=np.int64)
        for entry in range(len(self.skeleton) - 1, -1, -1):
            for tiles, split in ((spatial, True), (temporal, False)):
                tiles[:, entry] = tile
                if (entry, split) in place:
                    tile = tile * trips[:, place[entry, split]]
        return temporal, spatial

    def build(self, trips: Ints, order: Positions | None = None, keep: Bools | None = None) -> MappingBatch:
        """Mappings of trip counts [n, slot, dimension]; `order` and `keep` as in `MappingBatch`.

        Without `order` loops stand as the problem and the rules have them; without `keep` what is free is bypassed.
        """
        if order is not None:
            order = self.lawful(order[:, [self.slots[slot].entry for slot in self.temporal_slots]])
        return Candidates(self, trips, order, keep).batch()

    def neighbours(self, of: MappingBatch | Mapping, powers: bool = False) -> tuple[MappingBatch, Ints]:
        """All mappings that move one prime factor of one dimension to another slot, and the row each came from, [n].

        `powers`: or several equal ones at once.
        Orders and keeps stay, but that a loop which begins to turn stands where the rules want it.

        Raises:
            InvalidMappingError: a mapping given as an object is not of this space. (A batch is taken at its word.)
        """
        batch = of if isinstance(of, MappingBatch) else self._pack(of)
        trips = self.trips(batch)
        moves = Moves.of(self.problem.sizes, self.slots, powers=powers)
        new, source, move = moves.apply(trips)
        temporal, spatial = self.tiles(new)
        order = batch.order[source]
        self._reorder(order, new, np.column_stack([moves.target[move], moves.dimension[move]]))
        return MappingBatch(self.problem, self.skeleton, temporal, spatial, order, batch.keep[source]), source

    def allowed(self, trips: Ints, index: int, dim: int) -> Bools:
        """Whether a slot's trips of one dimension, and its product if it is a split, are within bounds, bool [n]."""
        slot = self.slots[index]
        good: Bools = (trips[:, index, dim] >= slot.lowest[dim]) & (trips[:, index, dim] <= slot.highest[dim])
        if slot.spatial:
            used = trips[:, index].prod(axis=1)
            good = good & (used >= slot.least) & (used <= (slot.most or 1))
        return good

    def _reorder(self, order: Positions, trips: Ints, grown: Ints) -> None:
        """Move the loop that grew (slot, dimension per row) to where its slot's rule wants it, in place."""
        for index, slot in enumerate(self.slots):
            for number, dim in enumerate(slot.order):
                rows = np.flatnonzero((grown[:, 0] == index) & (grown[:, 1] == dim))
                if not len(rows):
                    continue
                place = np.argsort(order[rows, slot.entry], axis=1).astype(np.float64)
                turns = trips[rows, index] > 1
                before, after = list(slot.order[:number]), list(slot.order[number + 1 :])
                low = np.where(turns[:, before], place[:, before], -1.0).max(axis=1, initial=-1.0)
                high = np.where(turns[:, after], place[:, after], np.inf).min(axis=1, initial=np.inf)
                place[:, dim] = np.where(place[:, dim] < low, low + 0.5, place[:, dim])
                place[:, dim] = np.where(place[:, dim] > high, high - 0.5, place[:, dim])
                order[rows, slot.entry] = np.argsort(place, axis=1)

    # -- membership ------------------------------------------------------------------------------------------

    def fits(self, batch: MappingBatch) -> Bools:
        """Whether the tiles fit the memories, bool [n]; the space itself does not ask."""
        return fits(self.architecture, batch)

    def _pack(self, mapping: Mapping) -> MappingBatch:
        verdict = self.contains(mapping)
        if not verdict:
            raise InvalidMappingError(verdict.reasons)
        packed = MappingBatch.pack(self.problem, [mapping])
        return replace(packed, skeleton=self.skeleton, spatial_order=None, unicast=None)
