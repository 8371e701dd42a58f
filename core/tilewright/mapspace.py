"""MapSpace: every perfect mapping of a problem over one skeleton, counted, sampled and enumerated.

A point is a factorisation of every dimension over the slots of the skeleton (one temporal slot per entry that steps,
one spatial slot per entry that splits), an order of the loops of every stepping entry, and a choice of what is kept
where that is free. Fanouts and constraints bound the space; capacity does not: cost models and legality judge it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.architecture import Architecture, Memory
from tilewright.batch import Bools, Ints, MappingBatch, Positions
from tilewright.conformability import Reason, Verdict
from tilewright.constraints import Factors, Variant
from tilewright.counting import count_mappings
from tilewright.errors import InputError, InvalidMappingError, NoValidMappingError
from tilewright.factoring import EXACT, Factoring
from tilewright.legality import fits, legality
from tilewright.looporders import OrderTable, arrange, by_rank, count_orders
from tilewright.mapping import Mapping
from tilewright.neighbours import Moves
from tilewright.problem import Problem, Tensor
from tilewright.skeleton import Skeleton


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

    def __post_init__(self) -> None:
        """Raises InputError when a rule speaks of loops or splits that the skeleton has not."""
        blocks = [entry.inside for entry in self.skeleton.entries[1:] if entry.steps and entry.inside]
        for rule in self.rules.temporal:
            if rule.memory not in blocks:
                raise InputError(
                    f"no loops stand right inside memory {rule.memory}, so no rule can bound them",
                    hint=f"memories with loops inside: {', '.join(blocks)}",
                )
        orders = [rule.memory for rule in self.rules.temporal if rule.order]
        for memory in sorted({memory for memory in orders if orders.count(memory) > 1}):
            raise InputError(f"two rules order the loops inside memory {memory}", hint="write one")
        splitting = [entry.target for entry in self.skeleton.entries if entry.splits]
        for split in self.rules.spatial:
            least = [name for name, trips in split.factors.items() if trips.min > 1]
            if split.cluster not in splitting and least:
                raise InputError(
                    f"a rule splits {', '.join(least)} over cluster {split.cluster}, which has one sub-cluster",
                    hint=f"clusters that fan out: {', '.join(splitting)}",
                )

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
        # a utilization is a decimal that was rounded: 0.7 of 10 is 7
        least = max([1, *(math.ceil(rule.min_utilization * size * (1 - 1e-12)) for rule in rules)])
        most = min([size, *(max(1, math.floor(rule.max_utilization * size * (1 + 1e-12))) for rule in rules)])
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
        """(always kept, free to choose), each bool [entry, tensor].

        Raises:
            InputError: a tensor has no place, or two siblings to choose from.
        """
        shape = (len(self.skeleton), len(self.problem.tensors))
        always, free = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        for index, entry in enumerate(self.skeleton.entries):
            if not entry.holds:
                continue
            cluster = self.architecture.clusters[self.architecture.cluster_index[entry.target]]
            for number, tensor in enumerate(self.problem.tensors):
                try:
                    memory = cluster.memory_for(tensor)
                except ValueError as error:
                    raise InputError(str(error)) from None
                if memory is None or (entry.memories and memory.name not in entry.memories):
                    if not index:
                        raise InputError(
                            f"the outermost cluster {cluster.name} has no memory that may hold {tensor.name} "
                            f"({tensor.role}), which must live somewhere"
                        )
                    continue
                choice = self._kept(memory, tensor) if index else "keep"
                always[index, number] = choice == "keep"
                free[index, number] = choice == "free"
        return always, free

    def _kept(self, memory: Memory, tensor: Tensor) -> str:
        """What the rules say; without a word a memory keeps what it may hold, if a word of each has room at all."""
        for rule in self.rules.keep:
            if rule.memory == memory.name:
                for choice, words in (("keep", rule.keep), ("bypass", rule.bypass), ("free", rule.free)):
                    if tensor.name in words or tensor.role in words:
                        return choice
        wanted = sum(memory.may_hold(each) for each in self.problem.tensors)
        return "keep" if memory.usable_words is None or wanted <= memory.usable_words else "free"

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

    def describe(self, slot: Slot) -> str:
        """How messages name a slot."""
        entry = self.skeleton.entries[slot.entry]
        if slot.spatial:
            return f"the split of {entry.target}"
        return f"the loops inside {entry.inside}" if entry.inside else f"the loops of entry {slot.entry}"

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
            order = np.broadcast_to(self._plain_order, (*shape, self._plain_order.shape[1]))
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
        temporal, spatial = self.tiles(trips)
        plain = np.broadcast_to(self._plain_order, (len(trips), *self._plain_order.shape))
        order = plain if order is None else self.lawful(order)
        keep = np.broadcast_to(self.keeps[0], (len(trips), *self.keeps[0].shape)) if keep is None else keep
        return MappingBatch(self.problem, self.skeleton, temporal, spatial, order, keep)

    @cached_property
    def _plain_order(self) -> Positions:
        return np.asarray(self.lawful(self._plain_orders(1))[0])

    def lawful(self, order: Positions) -> Positions:
        """Orders [n, entry, position] with the loops that a rule names put in its order, on the places they have."""
        order = order.copy()
        for slot in self._temporal:
            if slot.order:
                named = np.isin(order[:, slot.entry], slot.order)
                places = np.argsort(~named, axis=1, kind="stable")[:, : len(slot.order)]
                block = order[:, slot.entry].copy()
                np.put_along_axis(block, places, np.array(slot.order, dtype=np.int8)[None], axis=1)
                order[:, slot.entry] = block
        return order

    def neighbours(self, of: MappingBatch | Mapping, powers: bool = False) -> tuple[MappingBatch, Ints]:
        """All mappings that move one prime factor of one dimension to another slot, and the row each came from, [n].

        `powers`: or several equal ones at once.
        Orders and keeps stay, but that a loop which begins to turn stands where the rules want it.

        Raises:
            InvalidMappingError: a mapping given as an object is not of this space. (A batch is taken at its word.)
        """
        batch = of if isinstance(of, MappingBatch) else self._pack(of)
        trips = self.trips(batch)
        moves = Moves.of(self, powers=powers)
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

    def contains(self, mapping: Mapping) -> Verdict:
        """Whether a mapping is of this space, and if not, by which rules.

        Codes: those of `legality` but `capacity`, and `skeleton` (other entries), `perfect` (a tile that does not
        divide), `factors` (trips out of bounds or where there are none), `loop_order`, `keeps`, `unicast`.
        """
        found = [(entry.target, entry.keep is not None) for entry in mapping.entries]
        wanted = [(entry.target, entry.holds) for entry in self.skeleton.entries]
        if found != wanted:
            text = f"entries are on {_targets(found)}, the space has {_targets(wanted)}"
            return Verdict(reasons=(Reason(code="skeleton", where="mapping", message=text),))
        broken = legality(self.problem, self.architecture, mapping).reasons
        broken = tuple(reason for reason in broken if reason.code != "capacity")
        if broken:
            return Verdict(reasons=broken)
        if not mapping.is_perfect:
            text = "a tile does not divide the one it is cut from"
            return Verdict(reasons=(Reason(code="perfect", where="mapping", message=text),))
        return Verdict(reasons=(*self._factor_faults(mapping), *self._keep_faults(mapping)))

    def _factor_faults(self, mapping: Mapping) -> Iterator[Reason]:
        names, factors = self.problem.dimension_names, mapping.factors()
        open_slots = {(slot.entry, slot.spatial) for slot in self.slots}
        for (index, pair), spatial in itertools.product(enumerate(factors), (False, True)):
            stray = [name for name, trips in pair[spatial].items() if trips > 1]
            if stray and (index, spatial) not in open_slots:
                what = "splits" if spatial else "steps"
                text = f"{what} {', '.join(stray)}, which it never does in this space"
                yield Reason(code="factors", where=f"entry {index}", message=text)
        for slot in self.slots:
            trips = [factors[slot.entry][slot.spatial][name] for name in names]
            for dim, name in enumerate(names):
                if not slot.allows(dim, trips[dim]):
                    text = f"{trips[dim]} trips of {name}, {slot.lowest[dim]} to {slot.highest[dim]} allowed"
                    yield Reason(code="factors", where=self.describe(slot), message=text)
            if slot.spatial and not slot.least <= math.prod(trips) <= (slot.most or 1):
                text = f"uses {math.prod(trips)} sub-clusters, {slot.least} to {slot.most} allowed"
                yield Reason(code="factors", where=self.describe(slot), message=text)
            entry = mapping.entries[slot.entry]
            order = (entry.spatial_order or names) if slot.spatial else entry.temporal_order
            rule = range(len(names)) if slot.spatial else slot.order
            turning = [name for name in order if trips[names.index(name)] > 1 and names.index(name) in rule]
            if turning != [names[dim] for dim in rule if trips[dim] > 1]:
                text = f"{', '.join(turning)} stand in another order than the space has them"
                yield Reason(code="loop_order", where=self.describe(slot), message=text)

    def _keep_faults(self, mapping: Mapping) -> Iterator[Reason]:
        always, free = self.keeps
        for index, entry in enumerate(mapping.entries):
            for number, name in enumerate(self.problem.tensor_names):
                kept = name in (entry.keep or ())
                if kept != always[index, number] and not free[index, number]:
                    text = f"{'keeps' if kept else 'bypasses'} {name}, which the space does not"
                    yield Reason(code="keeps", where=f"entry {index} on {entry.target}", message=text)
            if entry.unicast:
                text = f"sends {', '.join(entry.unicast)} one by one, which the space leaves to the hardware"
                yield Reason(code="unicast", where=f"entry {index} on {entry.target}", message=text)

    def _pack(self, mapping: Mapping) -> MappingBatch:
        verdict = self.contains(mapping)
        if not verdict:
            raise InvalidMappingError(verdict.reasons)
        packed = MappingBatch.pack(self.problem, [mapping])
        return replace(packed, skeleton=self.skeleton, spatial_order=None, unicast=None)


def _targets(entries: Sequence[tuple[str, bool]]) -> str:
    return ", ".join(f"{target}{' (holds)' if holds else ''}" for target, holds in entries)
