"""Map space: all mappings of a problem over one skeleton, with counting, sampling and enumeration.

A point of the space consists of three choices:

- A factorisation of every dimension over the slots of the skeleton.
- A loop order for every temporal slot.
- The kept tensors, where the rules leave that choice open.

An entry has a temporal slot if it may step, and a spatial slot if it may unroll. Fanouts and
constraints bound the space. Capacity does not: cost models and `legality` check it.
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
from tilewright.mapspace.counting import MAX_EXACT, count_mappings
from tilewright.mapspace.factoring.perfect import Perfect
from tilewright.mapspace.factoring.ragged import Ragged
from tilewright.mapspace.feasible_region import FeasibleRegion
from tilewright.mapspace.looporders import OrderTable, arrange, by_rank, count_orders
from tilewright.mapspace.moves import Moves
from tilewright.mapspace.skeleton import OrderRule, Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting, KeepRule, Variant
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class MapSpace(FeasibleRegion):
    """All mappings of a problem on an architecture, under rules written in the problem's dimensions.

    Example:
        >>> import tilewright as tw
        >>> space = tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss")
        >>> space.size, space.problem.macs
        (232, 24)
    """

    @classmethod
    def of(
        cls,
        problem: Problem,
        architecture: Architecture,
        rules: Variant | None,
        skeleton: Skeleton | None = None,
        factors: Cutting = "perfect",
    ) -> MapSpace:
        """Return the space under `rules`, or the unconstrained space if `rules` is None.

        The default skeleton is the standard one of the architecture under `rules.storage`. `tilewright.space` also
        applies the dataflow published for the architecture; this method does not.
        """
        rules = rules or Variant()
        skeleton = skeleton or Skeleton.for_architecture(architecture, rules.storage)
        return cls(problem, architecture, rules, skeleton, factors)

    def with_optional(self, memory: str) -> MapSpace:
        """Return the space in which any tensor may bypass a memory, unless a rule decides that."""
        stored = {
            name
            for rule in self.rules.storage
            for entry in rule.entries
            if entry.memory == memory
            for name in entry.tensors
        }
        names = tuple(tensor.name for tensor in self.problem.tensors if not {tensor.name, tensor.role} & stored)
        free = KeepRule(memory=memory, free=names)
        return replace(self, rules=self.rules.model_copy(update={"keep": (*self.rules.keep, free)}))

    # -- counting --------------------------------------------------------------------------------------------

    @cached_property
    def size(self) -> int:
        """Exact number of distinct mappings; the order of loops of one trip does not count."""
        bound = self.factorizations * math.factorial(len(self.problem.dimensions)) ** len(self.temporal_slots)
        return count_mappings(self.problem.sizes, self.slots, self.factors, bound) << int(self.keeps[1].sum())

    @cached_property
    def factorizations(self) -> int:
        """Exact number of factorisations of all dimensions over the slots."""
        return self._factoring.count

    @cached_property
    def _factoring(self) -> Perfect | Ragged:
        kind = Perfect if self.factors == "perfect" else Ragged
        return kind(self.problem.sizes, self.slots)

    # -- sampling --------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator, count: int) -> Candidates:
        """Draw `count` mappings at random.

        All factorisations are equally likely. Given one, all its loop orders are equally likely,
        and so are all choices of optional tensors.

        Raises:
            NoValidMappingError: The space is empty. The message names a rule that cannot be satisfied.
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

    def plain(self) -> Candidates:
        """Return mappings that need no table of factorisations, outermost loops first; there may be none.

        In each, the loops of one temporal slot make all trips that the rules do not fix. Tiles may not fit.
        """
        lowest, sizes, slots = self.bounds[0], np.array(self.problem.sizes), list(self.temporal_slots)
        fixed = lowest.prod(axis=0)
        trips = np.repeat(lowest[None], len(slots), axis=0)
        trips[np.arange(len(slots)), slots] *= sizes // fixed
        rows = Candidates(self, trips)
        return rows.take(self.within(trips) & (sizes % fixed == 0).all())

    @cached_property
    def _orders(self) -> tuple[OrderTable, ...]:
        """Order table of each temporal slot; slots with equal rules share one table."""
        dims = len(self.problem.dimensions)
        made: dict[tuple[tuple[int, ...], OrderRule], OrderTable] = {}
        return tuple(
            made.setdefault((able, self.slots[slot].order), OrderTable(dims, able, self.slots[slot].order))
            for slot, able in zip(self.temporal_slots, self._factoring.able, strict=True)
        )

    def _problem_order(self, count: int) -> Positions:
        """Return the problem's dimension order for every block, int8 [count, block, position]."""
        dims = len(self.problem.dimensions)
        order = np.empty((count, len(self.temporal_slots), dims), dtype=np.int8)
        order[:] = np.arange(dims, dtype=np.int8)
        return order

    def _draw_keeps(self, rng: np.random.Generator, count: int) -> Bools | None:
        always, optional = self.keeps
        if not optional.any():
            return None
        return np.asarray(always | (optional & rng.integers(0, 2, (count, *optional.shape)).astype(np.bool_)))

    # -- enumeration -----------------------------------------------------------------------------------------

    def enumerate(self, chunk: int = 4096) -> Iterator[Candidates]:
        """Yield every distinct mapping once, in parts of at most `chunk`.

        Each part is built when it is requested. Loops of one trip come first, in the problem's order.
        """
        for start in range(0, self.factorizations, chunk):
            rows = self._factoring.unrank(start, min(start + chunk, self.factorizations))
            yield from self._arrangements(rows, chunk)

    def factorings(self, chunk: int = 32768) -> Iterator[Candidates]:
        """Yield every factorisation once, in parts of at most `chunk`, with default orders and keeps."""
        for start in range(0, self.factorizations, chunk):
            rows = self._factoring.unrank(start, min(start + chunk, self.factorizations))
            yield Candidates(self, self._factoring.trips(rows))

    def _arrangements(self, rows: list[Ints], chunk: int) -> Iterator[Candidates]:
        """Yield all combinations of loop orders and keeps for the given factorisations."""
        trips = self._factoring.trips(rows)
        patterns = self._factoring.patterns(rows)
        non_unit = [table.non_unit(patterns[:, block]) for block, table in enumerate(self._orders)]
        ways = [
            count_orders(here, table.rule)  # Python integers: seven loops in three slots have more than 10**11 orders
            for here, table in zip(non_unit, self._orders, strict=True)
        ]
        places = np.argwhere(self.keeps[1])
        orders = np.full(len(patterns), 1 << len(places), dtype=np.object_)
        for count in ways:
            orders = orders * count
        ends = np.cumsum(orders)
        total = int(ends[-1])
        kind = np.int64 if total < MAX_EXACT else np.object_
        ends, orders = ends.astype(kind), orders.astype(kind)
        for start in range(0, total, chunk):
            number: NDArray[Any] = np.arange(start, min(start + chunk, total), dtype=kind)
            which = np.searchsorted(ends, number, side="right")
            rest = number - (ends - orders)[which]
            order, keep = self._problem_order(len(number)), np.repeat(self.keeps[0][None], len(number), axis=0)
            for block, (table, count) in enumerate(zip(self._orders, ways, strict=True)):
                here = count[which].astype(kind)
                order[:, block] = arrange(non_unit[block][which], table.rule, by_rank(rest % here))
                rest = rest // here
            for entry, tensor in places:
                keep[:, entry, tensor] = rest % 2 > 0
                rest = rest // 2
            yield Candidates(self, trips[which], order, keep)

    def reordered(self, candidates: Candidates, most: int | Ints, blocks: slice = slice(None)) -> Candidates:
        """Return every candidate with up to `most` of its loop orders, in the sequence of `enumerate`.

        `most` is one number for all candidates, or an array [n].

        The order of the innermost block changes fastest. The kept tensors do not change. Nor does the order of other
        blocks of temporal loops than `blocks`, which counts them from the outermost one.
        """
        non_unit = candidates.trips > 1
        reordered = list(enumerate(self.temporal_slots))[blocks]
        ways = {block: count_orders(non_unit[:, slot], self.slots[slot].order) for block, slot in reordered}
        number = np.minimum(math.prod(ways.values(), start=np.ones(len(candidates), np.object_)), most).astype(np.int64)
        which = np.repeat(np.arange(len(candidates)), number)
        rest = np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)
        order = candidates.orders[which]
        for block, slot in reversed(reordered):
            here = np.minimum(ways[block], MAX_EXACT).astype(np.int64)[which]
            # few orders are different, so each is arranged once
            code = (non_unit[:, slot] @ (1 << np.arange(non_unit.shape[2])))[which] * (here.max() + 1) + rest % here
            _, first, like = np.unique(code, return_index=True, return_inverse=True)
            listed = arrange(non_unit[which[first], slot], self.slots[slot].order, by_rank((rest % here)[first]))
            order[:, block] = listed[like]
            rest = rest // here
        return replace(candidates.take(which), order=order)

    # -- neighbours ------------------------------------------------------------------------------------------

    @cached_property
    def _moves(self) -> dict[bool, Moves]:
        """Moves without and with powers, filled on first use."""
        return {}

    def neighbours(self, of: Candidates | Mapping, powers: bool = False) -> tuple[Candidates, Ints]:
        """Return all candidates one move away, and the source row of each, [n].

        A move takes one prime factor of one dimension from one slot to another. In a ragged space,
        2 and 3 count as factors of every dimension, and a slot may also gain a single trip. The
        source slot then keeps the fewest trips that still cover the dimension.

        Orders and keeps do not change, with one exception. A loop that becomes longer than one trip
        moves to the position that its order rule requires.

        Args:
            of: Candidates of this space (not checked), or one mapping (checked).
            powers: Also move several equal prime factors at once.

        Raises:
            InvalidMappingError: `of` is a mapping that does not belong to this space.
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
        """Move each grown loop to the position that its slot's order rule requires, in place.

        `grown` holds the slot and the dimension of the loop in each row.
        """
        for block, index in enumerate(self.temporal_slots):
            rule, dims = self.slots[index].order, range(trips.shape[2])
            if not rule:
                continue
            outside = {dim: rule.before(dim, len(dims)) for dim in dims}
            for dim in dims:
                before, after = list(outside[dim]), [dimension for dimension in dims if dim in outside[dimension]]
                rows = np.flatnonzero((grown[:, 0] == index) & (grown[:, 1] == dim))
                if not len(rows) or not before and not after:
                    continue
                place = np.argsort(order[rows, block], axis=1).astype(np.float64)
                non_unit = trips[rows, index] > 1
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
