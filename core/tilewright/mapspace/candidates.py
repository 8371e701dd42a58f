"""Candidates: mappings of one map space as trip counts, loop orders and kept tensors.

Mappers work in this form. `Candidates.batch` converts it into tile sizes, the form that is stored and exchanged.

One candidate, a row of each array. Its dimensions are m, n, k; its blocks are the temporal slots 0 and 2.

    slot   trips m, n, k   order of the block   order that `batch` writes
    0      2, 4, 1         m, k, n              k, m, n
    1      1, 1, 2         -                    -
    2      2, 1, 2         m, n, k              n, m, k

Slot 0 has loops m x 2 and n x 4. The loop over k has one trip, so `batch` lists it first, and the order of the others stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiled import LANES, compiled, for_kernel
from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, Positions
from tilewright.mapspace.chains import rebalanced
from tilewright.mapspace.feasible_region import FeasibleRegion
from tilewright.mapspace.rules.legality_kernel import TripBatch, check_trips
from tilewright.mapspace.rules.scratch import Scratch, hold_all, lay_out, scratch_of, to_lanes
from tilewright.mapspace.rules.tables import Orders, Rules
from tilewright.schema.architecture import Memory
from tilewright.schema.mapping import Mapping


@dataclass(frozen=True, eq=False)
class Candidates:
    """`n` mappings of one map space. They are not checked against its rules; see `FeasibleRegion.allowed`.

    Attributes:
        space: Map space that defines slots, skeleton and rules.
        trips: Trip counts, int64 [n, slot, dimension], with the slots of `space.slots`. The tile
            inside a slot is the product of all inner trips. The product over all slots is the size
            of the dimension. In a ragged space it may exceed the size. The outermost slot of
            more than one trip then has the size divided by its inner tile, rounded up.
        order: Dimension indices, outermost first, int8 [n, block, position], with one block per
            temporal slot. None: the default order of the space. Where loops of one trip stand does not matter.
        keep: Kept tensors, bool [n, entry, tensor]. None: optional tensors are bypassed.

    Example:
        >>> import tilewright as tw
        >>> import numpy as np
        >>> space = tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss")
        >>> candidates = space.sample(np.random.default_rng(0), 4)
        >>> len(candidates), len(candidates.take(slice(0, 2)))
        (4, 2)
    """

    space: FeasibleRegion
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
    def of(cls, space: FeasibleRegion, batch: MappingBatch) -> Candidates:
        """Return the candidates with the tile sizes of `batch`; the inverse of `batch()`.

        The batch must have the skeleton of the space, and its tiles must divide as in the space.
        """
        trips = np.empty((len(batch), len(space.slots), len(space.problem.sizes)), dtype=np.int64)
        for index, slot in enumerate(space.slots):
            outer, inner = (batch.temporal, batch.spatial) if slot.spatial else (batch.incoming, batch.temporal)
            trips[:, index] = -(-outer[:, slot.entry] // inner[:, slot.entry])
        return cls(space, trips, batch.order[:, [space.slots[slot].entry for slot in space.temporal_slots]], batch.keep)

    def __len__(self) -> int:
        return len(self.trips)

    def __getitem__(self, index: int) -> Mapping:
        """Return one candidate as a mapping."""
        return self.take(np.array([range(len(self))[index]], dtype=np.int64)).batch()[0]

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self.batch())

    def take(self, index: Ints | Bools | slice) -> Candidates:
        """Return the candidates that an index array, a mask or a slice selects."""
        return Candidates(
            self.space,
            self.trips[index],
            None if self.order is None else self.order[index],
            None if self.keep is None else self.keep[index],
        )

    @classmethod
    def join(cls, parts: Sequence[Candidates]) -> Candidates:
        """Concatenate one or more parts, all of one space."""
        if len(parts) == 1:
            return parts[0]
        ordered, kept = (
            any(part is not None for part in column)
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
        """Loop orders, with None replaced by the default order."""
        plain = self.space.plain_order
        return np.broadcast_to(plain, (len(self), *plain.shape)) if self.order is None else self.order

    @property
    def written_orders(self) -> Positions:
        """Loop orders of the mappings: loops of one trip first, in the problem's order."""
        written, slots = np.empty(self.orders.shape, dtype=np.int8), np.array(self.space.temporal_slots, dtype=np.int64)
        _write_orders(for_kernel(slots), for_kernel(self.trips), for_kernel(self.orders), written)
        return written

    @property
    def keeps(self) -> Bools:
        """Kept tensors, with None replaced by the default."""
        always, _ = self.space.keeps
        return np.broadcast_to(always, (len(self), *always.shape)) if self.keep is None else self.keep

    @property
    def kept(self) -> Bools:
        """Kept tensors as in `keeps`, but with one row if all candidates keep the same tensors."""
        if self.keep is None:
            always, _ = self.space.keeps
            return always[None]
        return self.keep if self.keep.strides[0] else self.keep[:1]

    def keeping(self, keep: Bools | None) -> Candidates:
        """Return the same trips and orders, all with the kept tensors `keep`, [entry, tensor]."""
        return replace(self, keep=None if keep is None else np.broadcast_to(keep, (len(self), *keep.shape)))

    def move(self, dimension: int | Ints, factor: int | Ints, source: int | Ints, target: int | Ints) -> Candidates:
        """Move trips of a dimension from slot `source` to slot `target`.

        Each argument is one number for all rows, or an array [n]. In a ragged space, the target gets `factor` times its
        trips, and the source keeps the fewest that still cover the dimension.

        Raises:
            ValueError: The source slot cannot give a factor away.
        """
        line = np.arange(len(self))
        if not self.space.divides(factor, self.trips[line, source, dimension]).all():
            raise ValueError("a factor does not divide the trips of its source slot")
        if self.space.factors == "ragged":
            return self.give(dimension, self.trips[line, target, dimension] * factor, source, target)
        trips = self.trips.copy()
        trips[line, source, dimension] //= factor
        trips[line, target, dimension] *= factor
        return replace(self, trips=trips)

    def give(self, dimension: int | Ints, trips: Ints, source: int | Ints, target: int | Ints) -> Candidates:
        """Set the trips of a dimension in slot `target`, in a ragged space.

        Slot `source` gets the fewest trips that still cover the dimension. `trips` is an array [n];
        the other arguments are one number for all rows, or arrays [n].
        """
        line, result = np.arange(len(self)), self.trips.copy()
        sizes = np.array(self.space.problem.sizes, dtype=np.int64)[np.broadcast_to(dimension, len(self))]
        chosen = (np.broadcast_to(slot, len(self)) for slot in (source, target))
        result[line, :, dimension] = rebalanced(sizes, self.trips[line, :, dimension], trips, *chosen)
        return replace(self, trips=result)

    def legal(self) -> Bools:
        """Return whether each candidate is legal, bool [n], assuming that tiles divide as in the space."""
        rules, legal = self.space.tile_rules, np.ones(len(self), dtype=np.bool_)
        _check_all(
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
        """Return whether the tiles fit the memories and the unrolled loops are allowed, bool [n]."""
        return self.holders() >= 0

    def holders(self) -> Ints:
        """Return the first machine of the space that holds the tiles, [n], -1 if none; 0 is a space's only machine."""
        need, holder = self._slices(), np.full(len(self), -1)
        for number, usable in reversed(list(enumerate(self.space.usable_slices))):
            holder[(need <= usable).all(axis=1)] = number
        if self.space.max_unrolled_loops is not None:
            unrolled = (self.trips[:, self.space.unrolled_slots] > 1).sum(axis=1) @ self.space.loop_weights
            holder[unrolled > self.space.max_unrolled_loops] = -1
        return holder

    def words(self, memory: Memory) -> Floats:
        """Return the words [n] that the tiles need in a memory of limited capacity."""
        return self._slices()[:, self.space.architecture.memories.index(memory)] / memory.slices_per_word

    def _slices(self) -> Floats:
        """Return the slices that the tiles need in every memory of limited capacity, [n, memory]."""
        rules = self.space.room_rules
        need = np.empty((len(self), len(rules.usable)), dtype=np.float64)
        arrays = for_kernel(self.trips), for_kernel(self.kept)
        _count_slices(rules, self.space.slots_of_entries, *arrays, need, scratch_of(rules, self.trips.shape[1]))
        return need

    def batch(self) -> MappingBatch:
        """Return the tile sizes of all candidates."""
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
        order[:, [space.slots[slot].entry for slot in space.temporal_slots]] = self.written_orders
        return MappingBatch(space.problem, space.skeleton, temporal, spatial, order, self.keeps)


@compiled
def _write_orders(slots: Ints, trips: Ints, order: Positions, written: Positions) -> None:
    """Write orders [n, block, position]: first the loops of one trip, in the problem's order."""
    for n in range(len(order)):
        for block in range(len(slots)):
            row, place = trips[n, slots[block]], 0
            for d in range(len(row)):
                if row[d] == 1:
                    written[n, block, place] = d
                    place += 1
            for d in order[n, block]:
                if row[d] != 1:
                    written[n, block, place] = d
                    place += 1


@compiled
def _check_all(
    rules: Rules, slots: Ints, trips: Ints, order: Orders, keep: Bools, legal: Bools, scratch: Scratch
) -> None:
    """Clear `legal` for mappings that break a rule; see `check_trips` for the arguments."""
    for first in range(0, len(trips), LANES):
        check_trips(rules, slots, TripBatch(trips, trips[:0], order, keep), False, first, legal, scratch)


@compiled
def _count_slices(rules: Rules, slots: Ints, trips: Ints, keep: Bools, need: Floats, scratch: Scratch) -> None:
    """Write the slices needed in every memory of limited capacity, [n, M]; see `check_trips` for the arguments."""
    for first in range(0, len(trips), LANES):
        to_lanes(trips, first, scratch.trips)
        to_lanes(keep, first, scratch.kept)
        lay_out(rules.sizes, scratch)
        hold_all(rules, slots, scratch)
        for n in range(first, min(first + LANES, len(trips))):
            for memory in range(need.shape[1]):
                need[n, memory] = scratch.need[memory, n - first]
