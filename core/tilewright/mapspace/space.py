"""MapSpace: every mapping of a problem over one skeleton, perfect or ragged, counted, sampled and enumerated.

A point is a factorisation of every dimension over the slots of the skeleton (one temporal slot per entry that steps,
one spatial slot per entry that unrolls over its fanout), an order of the loops of every stepping entry, and a choice of what is kept
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
from tilewright.mapspace.counting import EXACT, count_mappings
from tilewright.mapspace.factoring.perfect import Perfect
from tilewright.mapspace.factoring.ragged import Ragged
from tilewright.mapspace.limits import Limits
from tilewright.mapspace.looporders import OrderTable, arrange, by_rank, count_orders
from tilewright.mapspace.moves import Moves
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting, Variant
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
        factors: Cutting = "perfect",
    ) -> MapSpace:
        """The space under these rules (None: all that the hardware can do), by default over the architecture's own
        skeleton. `tilewright.space` knows the architecture's published dataflow; this does not."""
        skeleton = skeleton or Skeleton.for_architecture(architecture)
        return cls(problem, architecture, rules or Variant(), skeleton, factors)

    # -- counting --------------------------------------------------------------------------------------------

    @cached_property
    def size(self) -> int:
        """Exactly how many different mappings there are (the order of loops of one trip makes no difference)."""
        bound = self.factorizations * math.factorial(len(self.problem.dimensions)) ** len(self.temporal_slots)
        return count_mappings(self.problem.sizes, self.slots, self.factors, bound) << int(self.keeps[1].sum())

    @cached_property
    def factorizations(self) -> int:
        """Exactly how many ways there are to give the dimensions' trips to the slots."""
        return self._factoring.count

    @cached_property
    def _factoring(self) -> Perfect | Ragged:
        kind = Perfect if self.factors == "perfect" else Ragged
        return kind(self.problem.sizes, self.slots)

    # -- sampling --------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator, count: int) -> Candidates:
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
        patterns = self._factoring.patterns(rows)
        order = self._problem_order(count)
        for block, table in enumerate(self._orders):
            if len(table.able) > 1:
                order[:, block] = table.draw(rng, patterns[:, block])
        return Candidates(self, self._factoring.trips(rows), order, self._draw_keeps(rng, count))

    @cached_property
    def _orders(self) -> tuple[OrderTable, ...]:
        """Per temporal slot; slots alike share a table."""
        dims = len(self.problem.dimensions)
        made: dict[tuple[tuple[int, ...], tuple[int, ...]], OrderTable] = {}
        return tuple(
            made.setdefault((able, self.slots[slot].order), OrderTable(dims, able, self.slots[slot].order))
            for slot, able in zip(self.temporal_slots, self._factoring.able, strict=True)
        )

    def _problem_order(self, count: int) -> Positions:
        """Dimensions as the problem has them, int8 [count, block, position]."""
        dims = len(self.problem.dimensions)
        order = np.empty((count, len(self.temporal_slots), dims), dtype=np.int8)
        order[:] = np.arange(dims, dtype=np.int8)
        return order

    def _draw_keeps(self, rng: np.random.Generator, count: int) -> Bools | None:
        always, free = self.keeps
        if not free.any():
            return None
        return np.asarray(always | (free & rng.integers(0, 2, (count, *free.shape)).astype(np.bool_)))

    # -- enumeration -----------------------------------------------------------------------------------------

    def enumerate(self, chunk: int = 4096) -> Iterator[Candidates]:
        """Every different mapping exactly once, in parts of at most `chunk`; none are made before they are asked
        for. Loops of one trip stand first, in the problem's order."""
        for start in range(0, self.factorizations, chunk):
            rows = self._factoring.unrank(start, min(start + chunk, self.factorizations))
            yield from self._arrangements(rows, chunk)

    def factorings(self, chunk: int = 32768) -> Iterator[Candidates]:
        """Every factorisation exactly once, in parts of at most `chunk`; orders and keeps as the space has them."""
        for start in range(0, self.factorizations, chunk):
            rows = self._factoring.unrank(start, min(start + chunk, self.factorizations))
            yield Candidates(self, self._factoring.trips(rows))

    def _arrangements(self, rows: list[Ints], chunk: int) -> Iterator[Candidates]:
        """All orders and keeps of some factorisations."""
        trips = self._factoring.trips(rows)
        patterns = self._factoring.patterns(rows)
        non_unit = [table.non_unit(patterns[:, block]) for block, table in enumerate(self._orders)]
        ways = [
            count_orders(here, table.named)  # exact: seven loops in three slots are 10**11 already
            for here, table in zip(non_unit, self._orders, strict=True)
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
            order, keep = self._problem_order(len(number)), np.repeat(self.keeps[0][None], len(number), axis=0)
            for block, (table, count) in enumerate(zip(self._orders, ways, strict=True)):
                here = count[which].astype(kind)
                order[:, block] = arrange(non_unit[block][which], table.named, by_rank(rest % here))
                rest = rest // here
            for entry, tensor in places:
                keep[:, entry, tensor] = rest % 2 > 0
                rest = rest // 2
            yield Candidates(self, trips[which], order, keep)

    def reordered(self, candidates: Candidates, most: int | Ints) -> Candidates:
        """Each with the first `most` orders of its loops, one number for all or [n], or all if there are fewer, as `enumerate`
        has them.

        The innermost block of loops changes fastest; keeps stay.
        """
        non_unit = candidates.trips > 1
        ways = [count_orders(non_unit[:, slot], self.slots[slot].order) for slot in self.temporal_slots]
        each = np.minimum(np.prod(ways, axis=0), most).astype(np.int64)
        which = np.repeat(np.arange(len(candidates)), each)
        rest = np.arange(len(which)) - np.repeat(np.cumsum(each) - each, each)
        order = self._problem_order(len(which))
        for block, slot in reversed(list(enumerate(self.temporal_slots))):
            here = np.minimum(ways[block], EXACT).astype(np.int64)[which]
            order[:, block] = arrange(non_unit[which, slot], self.slots[slot].order, by_rank(rest % here))
            rest = rest // here
        return replace(candidates.take(which), order=order)

    # -- neighbours ------------------------------------------------------------------------------------------

    @cached_property
    def _moves(self) -> dict[bool, Moves]:
        """Made when first asked for, without and with powers."""
        return {}

    def neighbours(self, of: Candidates | Mapping, powers: bool = False) -> tuple[Candidates, Ints]:
        """All that move one prime factor of one dimension to another slot, and the row each came from, [n].

        `powers`: or several equal ones at once. In a ragged space 2 and 3 are factors of every dimension, a slot may also take
        one trip more, and the other one is left the fewest trips that still cover the dimension.
        Orders and keeps stay, but that a loop which becomes longer than one trip stands where the rules want it.

        Raises:
            InvalidMappingError: a mapping given as an object is not of this space. (Candidates are taken at their word.)
        """
        start = of if isinstance(of, Candidates) else self._of(of)
        if powers not in self._moves:
            self._moves[powers] = Moves.of(self, powers=powers)
        moves = self._moves[powers]
        rows, source, move = moves.apply(start)
        if rows.order is not None and any(slot.order for slot in self.slots):
            order = rows.order.copy()
            self._reorder(order, rows.trips, np.column_stack([moves.target[move], moves.dimension[move]]))
            rows = replace(rows, order=order)
        return rows, source

    def _reorder(self, order: Positions, trips: Ints, grown: Ints) -> None:
        """Move the loop that grew (slot, dimension per row) to where its slot's rule wants it, in place."""
        for block, index in enumerate(self.temporal_slots):
            rule = self.slots[index].order
            for number, dim in enumerate(rule):
                rows = np.flatnonzero((grown[:, 0] == index) & (grown[:, 1] == dim))
                if not len(rows):
                    continue
                place = np.argsort(order[rows, block], axis=1).astype(np.float64)
                non_unit = trips[rows, index] > 1
                before, after = list(rule[:number]), list(rule[number + 1 :])
                low = np.where(non_unit[:, before], place[:, before], -1.0).max(axis=1, initial=-1.0)
                high = np.where(non_unit[:, after], place[:, after], np.inf).min(axis=1, initial=np.inf)
                place[:, dim] = np.where(place[:, dim] < low, low + 0.5, place[:, dim])
                place[:, dim] = np.where(place[:, dim] > high, high - 0.5, place[:, dim])
                order[rows, block] = np.argsort(place, axis=1)

    def _of(self, mapping: Mapping) -> Candidates:
        verdict = self.contains(mapping)
        if not verdict:
            raise InvalidMappingError(verdict.reasons)
        return Candidates.of(self, MappingBatch.pack(self.problem, [mapping]))
