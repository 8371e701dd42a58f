"""Candidates: mappings of one map space as mappers think of them, in trip counts, loop orders and keeps.

Tile sizes, the form that is stored and exchanged, are made once, by `Candidates.batch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiled import LANES, compiled, for_kernel
from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.chains import reshared
from tilewright.mapspace.limits import Limits
from tilewright.mapspace.rules.judge import judge
from tilewright.mapspace.rules.scratch import Scratch, hold_all, lay_out, scratch_of, spread
from tilewright.mapspace.rules.tables import Orders, Rules
from tilewright.schema.architecture import Memory
from tilewright.schema.mapping import Mapping


@dataclass(frozen=True, eq=False)
class Candidates:
    """`n` mappings of one map space. Nothing asks whether they keep to its rules; see `Limits.allowed`.

    Attributes:
        space: whose slots, skeleton and rules they have.
        trips: int64 [n, slot, dimension], slots as in `space.slots`. The tile inside a slot is the product of all trips
            further in; that product over all slots is the dimension's size. In a ragged space it may be more: the outermost
            slot of more than one trip then takes the size over the tile inside it, rounded up.
        order: dimension indices outermost first, int8 [n, block, position], one block of loops per temporal slot; None:
            as the problem and the rules have them.
        keep: bool [n, entry, tensor]; None: what is free is bypassed.
    """

    space: Limits
    trips: Ints
    order: Positions | None = None
    keep: Bools | None = None

    def __post_init__(self) -> None:
        n, space = len(self.trips), self.space
        dims = len(space.problem.dimensions)
        for name, kind, shape in (
            ("trips", np.int64, (n, len(space.slots), dims)),
            ("order", np.int8, (n, len(space.temporal_slots), dims)),
            ("keep", np.bool_, (n, len(space.skeleton), len(space.problem.tensors))),
        ):
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != shape or array.dtype != kind:
                raise ValueError(
                    f"{name} has shape {array.shape} and type {array.dtype}; expected {shape} and {np.dtype(kind)}"
                )
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of(cls, space: Limits, batch: MappingBatch) -> Candidates:
        """Mappings given by their tile sizes, which divide as in the space, over its skeleton; the inverse of `batch`."""
        trips = np.empty((len(batch), len(space.slots), len(space.problem.sizes)), dtype=np.int64)
        for index, slot in enumerate(space.slots):
            outer, inner = (batch.temporal, batch.spatial) if slot.spatial else (batch.incoming, batch.temporal)
            trips[:, index] = -(-outer[:, slot.entry] // inner[:, slot.entry])
        return cls(space, trips, batch.order[:, [space.slots[slot].entry for slot in space.temporal_slots]], batch.keep)

    def __len__(self) -> int:
        return len(self.trips)

    def __getitem__(self, index: int) -> Mapping:
        """One mapping as an object."""
        return self.take(np.array([range(len(self))[index]], dtype=np.int64)).batch()[0]

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self.batch())

    def take(self, index: Ints | Bools | slice) -> Candidates:
        """Those that an index, a mask or a slice selects."""
        return Candidates(
            self.space,
            self.trips[index],
            None if self.order is None else self.order[index],
            None if self.keep is None else self.keep[index],
        )

    @classmethod
    def join(cls, parts: Sequence[Candidates]) -> Candidates:
        """Several of one space, one after another; at least one part."""
        if len(parts) == 1:
            return parts[0]
        ordered, kept = (
            any(each is not None for each in column)
            for column in zip(*((part.order, part.keep) for part in parts), strict=True)
        )
        return cls(
            parts[0].space,
            np.concatenate([part.trips for part in parts]),
            np.concatenate([part.orders for part in parts]) if ordered else None,
            np.concatenate([part.keeps for part in parts]) if kept else None,
        )

    @property
    def orders(self) -> Positions:
        """`order`, spelled out where it is None."""
        plain = self.space.plain_order
        return np.broadcast_to(plain, (len(self), *plain.shape)) if self.order is None else self.order

    @property
    def keeps(self) -> Bools:
        """`keep`, spelled out where it is None."""
        always, _ = self.space.keeps
        return np.broadcast_to(always, (len(self), *always.shape)) if self.keep is None else self.keep

    @property
    def kept(self) -> Bools:
        """`keeps`, of one mapping where all keep the same."""
        if self.keep is None:
            always, _ = self.space.keeps
            return always[None]
        return self.keep if self.keep.strides[0] else self.keep[:1]

    def keeping(self, keep: Bools | None) -> Candidates:
        """The same trips and orders, all with one choice of what is kept, [entry, tensor]."""
        return replace(self, keep=None if keep is None else np.broadcast_to(keep, (len(self), *keep.shape)))

    def move(self, dimension: int | Ints, factor: int | Ints, source: int | Ints, target: int | Ints) -> Candidates:
        """Trips of a dimension moved from one slot into another; each of the arguments one for all, or [n].

        In a ragged space the target takes `factor` times as many, and the source the fewest that still cover the dimension.

        Raises:
            ValueError: a factor is not there to be moved.
        """
        line = np.arange(len(self))
        if not self.space.divides(factor, self.trips[line, source, dimension]).all():
            raise ValueError("a factor does not divide the trips of the slot that it is to leave")
        if self.space.factors == "ragged":
            return self.give(dimension, self.trips[line, target, dimension] * factor, source, target)
        trips = self.trips.copy()
        trips[line, source, dimension] //= factor
        trips[line, target, dimension] *= factor
        return replace(self, trips=trips)

    def give(self, dimension: int | Ints, trips: Ints, source: int | Ints, target: int | Ints) -> Candidates:
        """In a ragged space, so many trips [n] of a dimension for the slot `target`, and the fewest that still cover the
        dimension for `source`; the other arguments one for all, or [n]."""
        line, result = np.arange(len(self)), self.trips.copy()
        sizes = np.array(self.space.problem.sizes, dtype=np.int64)[np.broadcast_to(dimension, len(self))]
        chosen = (np.broadcast_to(slot, len(self)) for slot in (source, target))
        result[line, :, dimension] = reshared(sizes, self.trips[line, :, dimension], trips, *chosen)
        return replace(self, trips=result)

    def legal(self) -> Bools:
        """Whether they break no rule of legality, in a space whose tiles divide; bool [n]."""
        rules, legal = self.space.tile_rules, np.ones(len(self), dtype=np.bool_)
        _judge_all(
            rules=rules,
            slots=self.space.slots_of_entries,
            trips=for_kernel(self.trips),
            order=for_kernel(self.orders.view(np.uint8)),
            keep=for_kernel(self.kept),
            legal=legal,
            scratch=scratch_of(rules, self.trips.shape[1]),
        )
        return legal

    def fits(self) -> Bools:
        """Whether the tiles fit the memories and the unrolled loops are not too many, bool [n]."""
        good = (self._slices() <= self.space.usable_slices).all(axis=1)
        if self.space.max_unrolled_loops is not None:
            unrolled = (self.trips[:, self.space.unrolled_slots] > 1).sum(axis=1) @ self.space.loop_weights
            good &= unrolled <= self.space.max_unrolled_loops
        return np.asarray(good)

    def words(self, memory: Memory) -> Floats:
        """Words that the tiles take in a memory of limited capacity, [n]."""
        return self._slices()[:, self.space.architecture.memories.index(memory)] / memory.slices_per_word

    def _slices(self) -> Floats:
        """In every memory of limited capacity, [n, memory]."""
        rules = self.space.room_rules
        need = np.empty((len(self), len(rules.usable)), dtype=np.float64)
        arrays = for_kernel(self.trips), for_kernel(self.kept)
        _count_slices(rules, self.space.slots_of_entries, *arrays, need, scratch_of(rules, self.trips.shape[1]))
        return need

    def batch(self) -> MappingBatch:
        """Their tile sizes."""
        space = self.space
        n, entries, dims = len(self), len(space.skeleton), self.trips.shape[2]
        sizes = np.array(space.problem.sizes, dtype=np.int64)
        temporal, spatial = np.empty((2, n, entries, dims), dtype=np.int64)
        tile = np.ones((n, dims), dtype=np.int64)
        place = {(slot.entry, slot.spatial): index for index, slot in enumerate(space.slots)}
        for entry in range(entries - 1, -1, -1):
            for tiles, is_spatial in ((spatial, True), (temporal, False)):
                tiles[:, entry] = tile
                if (entry, is_spatial) in place:
                    tile = np.minimum(tile * self.trips[:, place[entry, is_spatial]], sizes)
        order = np.empty((n, entries, dims), dtype=np.int8)
        order[:] = np.arange(dims, dtype=np.int8)
        order[:, [space.slots[slot].entry for slot in space.temporal_slots]] = self.orders
        return MappingBatch(space.problem, space.skeleton, temporal, spatial, order, self.keeps)


@compiled
def _judge_all(
    rules: Rules, slots: Ints, trips: Ints, order: Orders, keep: Bools, legal: Bools, scratch: Scratch
) -> None:
    """Those that break a rule are not `legal`; see `judge`."""
    for first in range(0, len(trips), LANES):
        judge(rules, slots, trips, trips[:0], order, keep, False, first, legal, scratch)


@compiled
def _count_slices(rules: Rules, slots: Ints, trips: Ints, keep: Bools, need: Floats, scratch: Scratch) -> None:
    """Write the slices that their tiles take in every memory of limited capacity, [n, M]; arguments as of `judge`."""
    for first in range(0, len(trips), LANES):
        spread(trips, first, scratch.trips)
        spread(keep, first, scratch.kept)
        lay_out(rules.sizes, scratch)
        hold_all(rules, slots, scratch)
        for n in range(first, min(first + LANES, len(trips))):
            for memory in range(need.shape[1]):
                need[n, memory] = scratch.need[memory, n - first]
