"""Feasible region: the choices that skeleton, fanouts and constraints allow, and membership tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import InputError, Reason, Verdict
from tilewright.mapspace.batch import Bools, Floats, Ints, Positions
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.factoring.cuts import lefts
from tilewright.mapspace.legality import legality
from tilewright.mapspace.room import slices_of_each, spanning, usable_slices, usable_words
from tilewright.mapspace.rules.tables import Rules, rules_of, slots_of_entries
from tilewright.mapspace.skeleton import OrderRule, Skeleton, Slot
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.constraints import Cutting, Factors, StorageRule, Variant
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor


@dataclass(frozen=True)
class FeasibleRegion:
    """Bounds on the mappings of a problem on an architecture, under rules in the problem's dimensions.

    Like capacity, `tile_copies` and the attributes after it do not bound the space. `Candidates.fits` checks them.

    Attributes:
        factors: "perfect" if every tile size divides the enclosing one. "ragged" if a tile cut from
            the whole dimension need not divide it.
        tile_copies: Number of copies of every tile in a memory inside the outermost cluster.
        max_unrolled_loops: Maximum number of loops unrolled outside the innermost storage entry. A
            loop over a window counts twice.
        outputs_span_windows: Whether an output tile occupies as many rows and columns as the input tile.
        machines: Machines that differ in the sizes of memories, cheapest first. A mapping belongs to the first that
            holds its tiles, and `architecture` has the largest size of each memory. Empty: `architecture` alone.
    """

    problem: Problem
    architecture: Architecture
    rules: Variant
    skeleton: Skeleton
    factors: Cutting = "perfect"
    tile_copies: int = 1
    max_unrolled_loops: int | None = None
    outputs_span_windows: bool = False
    machines: tuple[Architecture, ...] = ()

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Temporal and spatial slots, outermost first."""
        slots = []
        for index, entry in enumerate(self.skeleton.entries):
            if entry.steps and index:
                slots.append(self._temporal_slot(index))
            if entry.unrolls:
                slots.append(self._spatial_slot(index))
        return tuple(slots)

    @cached_property
    def temporal_slots(self) -> tuple[int, ...]:
        """Indices of the temporal slots, outermost first. Each is a block of loops with its own order."""
        return tuple(index for index, slot in enumerate(self.slots) if not slot.spatial)

    @cached_property
    def spatial_slots(self) -> tuple[int, ...]:
        """Indices of the spatial slots, outermost first."""
        return tuple(index for index, slot in enumerate(self.slots) if slot.spatial)

    @cached_property
    def slots_of_entries(self) -> Ints:
        """Indices of the temporal and the spatial slot of every entry, [entry, 2]; -1 if there is none."""
        return slots_of_entries(self.slots, len(self.skeleton))

    @cached_property
    def tile_rules(self) -> Rules:
        """Arrays that the compiled legality rules read."""
        return rules_of(self.problem, self.architecture, self.skeleton)

    def usable_words(self, memory: Memory) -> int | None:
        """Return the capacity of a memory for one copy of the tiles, in words; None if unlimited."""
        return usable_words(memory, self.architecture, self.tile_copies)

    @cached_property
    def usable_slices(self) -> Floats:
        """Capacity of every memory for one copy of the tiles, in slices, [machine, memory]; inf if unlimited."""
        return np.array([usable_slices(machine, self.tile_copies) for machine in self.machines or (self.architecture,)])

    @cached_property
    def held(self) -> tuple[Tensor, ...]:
        """Tensors of the problem, with the coordinates that determine the capacity their tiles need."""
        return spanning(self.problem) if self.outputs_span_windows else self.problem.tensors

    @cached_property
    def room_rules(self) -> Rules:
        """Arrays that compiled rules read to count the capacity that tiles need."""
        return rules_of(self.problem.model_copy(update={"tensors": self.held}), self.architecture, self.skeleton)

    @cached_property
    def unrolled_slots(self) -> tuple[int, ...]:
        """Indices of the spatial slots outside the innermost storage entry."""
        last = max(index for index, entry in enumerate(self.skeleton.entries) if entry.holds)
        return tuple(index for index in self.spatial_slots if self.slots[index].entry < last)

    @cached_property
    def loop_weights(self) -> Ints:
        """Weight of an unrolled loop of each dimension in `max_unrolled_loops`, [dimension]."""
        return np.array([1 + (name in self.problem.windows) for name in self.problem.dimension_names])

    @cached_property
    def plain_order(self) -> Positions:
        """Default loop order of every block, int8 [block, position].

        It is the problem's order, with the loops that a rule orders in the rule's order.
        """
        dims = len(self.problem.dimensions)
        plain = np.arange(dims, dtype=np.int8)[None, None].repeat(len(self.temporal_slots), axis=1)
        return np.asarray(self.lawful(plain)[0])

    def lawful(self, order: Positions) -> Positions:
        """Return orders [n, block, position] that satisfy the order rules.

        Outermost and innermost loops move there. The other loops that a rule names are permuted among their positions.
        """
        blocks = [self.lawful_block(order[:, block], slot) for block, slot in enumerate(self.temporal_slots)]
        return np.stack(blocks, axis=1) if blocks else order

    def lawful_block(self, order: Positions, slot: int) -> Positions:
        """Return orders [n, position] of one slot that satisfy its order rule."""
        rule = self.slots[slot].order
        if not rule:
            return order
        key = np.zeros(order.shape[1], np.int64)
        key[list(rule.outermost)] = np.arange(len(rule.outermost)) - len(rule.outermost)
        key[list(rule.innermost)] = np.arange(len(rule.innermost)) + 1
        order = np.take_along_axis(order, np.argsort(key[order], axis=1, kind="stable"), axis=1)
        others = np.ones(order.shape[1], np.bool_)
        others[list(rule.relative)] = False
        places = np.argsort(others[order], axis=1, kind="stable")[:, : len(rule.relative)]
        np.put_along_axis(order, places, np.array(rule.relative, dtype=np.int8)[None], axis=1)
        return order

    def __post_init__(self) -> None:
        """Raise InputError if a rule concerns loops or fanouts that the skeleton lacks."""
        blocks = [entry.inside for entry in self.skeleton.entries[1:] if entry.steps and entry.inside]
        for rule in self.rules.temporal:
            if rule.memory not in blocks:
                raise InputError(
                    f"no loops are directly inside memory {rule.memory}, so no rule can bound them",
                    hint=f"memories with loops inside: {', '.join(blocks)}",
                )
        orders = [rule.memory for rule in self.rules.temporal if rule.has_order]
        for memory in sorted({memory for memory in orders if orders.count(memory) > 1}):
            raise InputError(f"two rules order the loops inside memory {memory}", hint="write one")
        for storage in self.rules.storage:
            self._check_storage(storage)
        unrolling = [entry.target for entry in self.skeleton.entries if entry.unrolls]
        for spatial in self.rules.spatial:
            least = [name for name, trips in spatial.factors.items() if trips.min > 1]
            if spatial.cluster not in unrolling and least:
                raise InputError(
                    f"a rule unrolls {', '.join(least)} over cluster {spatial.cluster}, which has one sub-cluster",
                    hint=f"clusters that fan out: {', '.join(unrolling)}",
                )

    def _check_storage(self, rule: StorageRule) -> None:
        """Raise InputError unless each tensor that a memory of the cluster may keep is in one of the entries."""
        cluster = self.architecture.cluster(rule.cluster)
        for tensor in self.problem.tensors:
            memory = next((candidate for candidate in cluster.memories if candidate.may_hold(tensor)), None)
            if memory is None or self._kept(memory, tensor) == "bypass":
                continue
            names = {tensor.name, tensor.role}
            count = sum(entry.memory == memory.name and bool(names & set(entry.tensors)) for entry in rule.entries)
            if count != 1:
                raise InputError(
                    f"the storage rule of cluster {cluster.name} has {count} entries for {tensor.name} ({tensor.role}) "
                    f"in memory {memory.name}, expected one",
                    hint="list every tensor once, by its name or its role",
                )

    def _temporal_slot(self, index: int) -> Slot:
        inside = self.skeleton.entries[index].inside
        rules = [rule for rule in self.rules.temporal if rule.memory == inside]
        lowest, highest = self._bounds([(rule.only, rule.factors) for rule in rules])
        parts = next(((rule.outermost, rule.order, rule.innermost) for rule in rules if rule.has_order), ((), (), ()))
        order = OrderRule(*(tuple(map(self.problem.dimension_names.index, part)) for part in parts))
        return Slot(index, False, lowest, highest, order=order)

    def _spatial_slot(self, index: int) -> Slot:
        target = self.skeleton.entries[index].target
        size = self.architecture.cluster(target).fanout.size
        rules = [rule for rule in self.rules.spatial if rule.cluster == target]
        lowest, highest = self._bounds([(rule.only, rule.factors) for rule in rules])
        # utilizations are rounded decimals: 0.7 of 10 must give 7
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

    @cached_property
    def bounds(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Bounds of all slots, as arrays (lowest, highest, least, most).

        `lowest` and `highest` bound the trips, [slot, dimension]. `least` and `most` bound the
        number of sub-clusters in use, [slot]; temporal slots have no such bound.
        """
        lowest = np.array([slot.lowest for slot in self.slots], dtype=np.int64)
        highest = np.array([slot.highest for slot in self.slots], dtype=np.int64)
        spatial = [(slot.least, slot.most or 1) if slot.spatial else (-(2**63), 2**63 - 1) for slot in self.slots]
        least, most = np.array(spatial, dtype=np.int64).reshape(-1, 2).T
        return lowest, highest, least, most

    def allowed(self, trips: Ints, slot: int, dim: int) -> Bools:
        """Return whether the trips of `dim` in one slot are within bounds, bool [n].

        For a spatial slot, the product of its trips is checked as well.
        """
        bounds = self.slots[slot]
        here = trips[:, slot, dim]
        good: Bools = (here >= bounds.lowest[dim]) & (here <= bounds.highest[dim])
        if bounds.spatial:
            used = trips[:, slot].prod(axis=1)
            good &= (used >= bounds.least) & (used <= (bounds.most or 1))
        return good

    def within(self, trips: Ints) -> Bools:
        """Return whether all trips, and the products of all spatial slots, are within bounds, bool [n]."""
        lowest, highest, least, most = self.bounds
        used = trips.prod(axis=2)
        good = ((trips >= lowest) & (trips <= highest)).all(axis=(1, 2)) & ((used >= least) & (used <= most)).all(
            axis=1
        )
        return np.asarray(good)

    def divides(self, factor: int | Ints, trips: Ints) -> Bools:
        """Return whether `factor` can be taken out of `trips`, bool [n].

        In a ragged space any factor up to the number of trips can.
        """
        return np.asarray(factor <= trips if self.factors == "ragged" else trips % factor == 0)

    def primes(self, dim: int) -> dict[int, int]:
        """Return the prime factors of a dimension with their powers.

        In a ragged space, 2 and 3 are added to the factors of every dimension, with the largest powers up to its size.
        """
        size = self.problem.sizes[dim]
        primes = {prime: power for prime, power in prime_powers(size) if prime > 1}
        if self.factors == "ragged" and size > 1:
            primes |= {
                prime: next(p for p in range(64) if prime ** (p + 1) > size) for prime in (2, 3) if prime <= size
            }
        return dict(sorted(primes.items()))

    def whole_factors(self, dim: int) -> tuple[int, ...]:
        """Return the factors above 1 that a slot can give away at once.

        These are the divisors of the dimension. In a ragged space they are its rounded quotients:
        among factors with the same remaining tile, the smallest suffices.
        """
        return lefts(self.problem.sizes[dim], self.factors)[1:]

    # -- kept tensors ---------------------------------------------------------------------------------------

    @cached_property
    def keeps(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tensors that are always kept, and tensors that are optional: two arrays, bool [entry, tensor].

        Raises:
            InputError: A tensor has no memory in the outermost cluster, or two siblings may hold it.
        """
        shape = (len(self.skeleton), len(self.problem.tensors))
        always, optional = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        for index, entry in enumerate(self.skeleton.entries):
            if not entry.holds:
                continue
            cluster = self.architecture.cluster(entry.target)
            for number, tensor in enumerate(self.problem.tensors):
                try:
                    memory = cluster.memory_for(tensor)
                except ValueError as error:
                    raise InputError(str(error)) from None
                if memory is None or not entry.may_keep(memory, tensor):
                    if not index:
                        raise InputError(
                            f"the outermost cluster {cluster.name} has no memory that may hold {tensor.name} "
                            f"({tensor.role}), but every tensor needs one"
                        )
                    continue
                choice = self._kept(memory, tensor) if index else "keep"
                always[index, number] = choice == "keep"
                optional[index, number] = choice == "free"
        return always, optional

    def _kept(self, memory: Memory, tensor: Tensor) -> str:
        """Return "keep", "bypass" or "free" for a tensor, as the rules specify.

        Without a rule, the memory keeps the tensors it may hold, if it has room for one value of each.
        """
        for rule in self.rules.keep:
            if rule.memory == memory.name:
                for choice, words in (("keep", rule.keep), ("bypass", rule.bypass), ("free", rule.free)):
                    if tensor.name in words or tensor.role in words:
                        return choice
        return "keep" if slices_of_each(memory, self.problem.tensors) <= memory.usable_slices else "free"

    def describe(self, slot: Slot) -> str:
        """Return the name of a slot for messages."""
        entry = self.skeleton.entries[slot.entry]
        if slot.spatial:
            return f"the spatial unrolling of {entry.target}"
        return f"the loops inside {entry.inside}" if entry.inside else f"the loops of entry {slot.entry}"

    # -- membership ------------------------------------------------------------------------------------------

    def contains(self, mapping: Mapping) -> Verdict:
        """Return whether the mapping belongs to this space, with the broken rules as reasons.

        Codes are those of `legality` except `capacity`, and the following:

        - `skeleton`: The entries differ from the space's.
        - `perfect`, `ragged`: A tile does not divide the enclosing tile.
        - `factors`: Trips are out of bounds, or in an entry without a slot.
        - `loop_order`, `keeps`: Loop order or kept tensors break a rule.
        - `unicast`: The mapping decides which tensors are sent by unicast.
        """
        other = self._other_skeleton(mapping)
        if not other:
            return other
        broken = legality(self.problem, self.architecture, mapping).reasons
        broken = tuple(reason for reason in broken if reason.code != "capacity")
        if broken:
            return Verdict(reasons=broken)
        undivided = tuple(self._undivided(mapping))
        if undivided:
            return Verdict(reasons=undivided)
        return Verdict(
            reasons=(
                *self._rule_faults(mapping),
                *self._order_faults(mapping, spatial=True),
                *_unicast_faults(mapping),
            )
        )

    def obeyed(self, mapping: Mapping) -> Verdict:
        """Return whether a legal mapping satisfies the rules, even if the space does not contain it.

        Skeleton, bounds, loop orders and keeps are checked. A tile that does not divide the enclosing one counts with
        its trips rounded up. Without rules every mapping passes. Codes are as in `contains`.
        """
        if self.rules == Variant():
            return Verdict()
        other = self._other_skeleton(mapping)
        if not other:
            return other
        return Verdict(reasons=tuple(self._rule_faults(mapping)))

    def _undivided(self, mapping: Mapping) -> Iterator[Reason]:
        """Yield a reason for each tile that must divide the enclosing tile but does not."""
        if self.factors == "perfect" and not mapping.is_perfect:
            text = "a tile does not divide the enclosing tile"
            yield Reason(code="perfect", where="mapping", message=text)
        for name, size in self.problem.dimensions.items() if self.factors == "ragged" else ():
            tiles = [
                sizes[name]
                for entry in mapping.entries
                for sizes in (entry.temporal_tile_sizes, entry.spatial_tile_sizes)
            ]
            for outer, inner in itertools.pairwise(tiles):
                if outer % inner and outer < size:
                    text = f"a tile of {inner} does not divide the enclosing tile of {outer}; only the whole dimension of {size} may be cut unevenly"
                    yield Reason(code="ragged", where=f"dimension {name}", message=text)

    def _rule_faults(self, mapping: Mapping) -> Iterator[Reason]:
        yield from self._factor_faults(mapping)
        yield from self._order_faults(mapping, spatial=False)
        yield from self._keep_faults(mapping)

    def _other_skeleton(self, mapping: Mapping) -> Verdict:
        entries = [(entry.target, entry.keep is not None) for entry in mapping.entries]
        wanted = [(entry.target, entry.holds) for entry in self.skeleton.entries]
        if entries == wanted:
            return Verdict()
        text = f"entries are on {_targets(entries)}, the space has {_targets(wanted)}"
        return Verdict(reasons=(Reason(code="skeleton", where="mapping", message=text),))

    def _factor_faults(self, mapping: Mapping) -> Iterator[Reason]:
        names, factors = self.problem.dimension_names, mapping.factors()
        open_slots = {(slot.entry, slot.spatial) for slot in self.slots}
        for (index, pair), spatial in itertools.product(enumerate(factors), (False, True)):
            stray = [name for name, trips in pair[spatial].items() if trips > 1]
            if stray and (index, spatial) not in open_slots:
                what = "unrolls" if spatial else "steps"
                text = f"{what} {', '.join(stray)}, but this space has no such loops here"
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

    def _order_faults(self, mapping: Mapping, spatial: bool) -> Iterator[Reason]:
        """Yield a reason for each slot whose loop order the space does not allow.

        Spatial loops must be in the problem's order.
        """
        names, factors = self.problem.dimension_names, mapping.factors()
        for slot in self.slots:
            if slot.spatial != spatial:
                continue
            trips = [factors[slot.entry][spatial][name] for name in names]
            entry = mapping.entries[slot.entry]
            order = (entry.spatial_order or names) if spatial else entry.temporal_order
            rule = OrderRule(relative=tuple(range(len(names)))) if spatial else slot.order
            non_unit = [names.index(name) for name in order if trips[names.index(name)] > 1]
            wrong = {
                index
                for place, dim in enumerate(non_unit)
                for inner in non_unit[place + 1 :]
                for index in (dim, inner)
                if inner in rule.before(dim, len(names))
            }
            if wrong:
                text = f"{', '.join(names[dim] for dim in non_unit if dim in wrong)} are in an order that the space does not allow"
                yield Reason(code="loop_order", where=self.describe(slot), message=text)

    def _keep_faults(self, mapping: Mapping) -> Iterator[Reason]:
        always, optional = self.keeps
        for index, entry in enumerate(mapping.entries):
            for number, name in enumerate(self.problem.tensor_names):
                kept = name in (entry.keep or ())
                if kept != always[index, number] and not optional[index, number]:
                    text = (
                        f"{'keeps' if kept else 'bypasses'} {name}, but the space {'bypasses' if kept else 'keeps'} it"
                    )
                    yield Reason(code="keeps", where=f"entry {index} on {entry.target}", message=text)


def _targets(entries: Sequence[tuple[str, bool]]) -> str:
    return ", ".join(f"{target}{' (holds)' if holds else ''}" for target, holds in entries)


def _unicast_faults(mapping: Mapping) -> Iterator[Reason]:
    for index, entry in enumerate(mapping.entries):
        if entry.unicast:
            text = f"sends {', '.join(entry.unicast)} by unicast, but the space leaves this choice to the hardware"
            yield Reason(code="unicast", where=f"entry {index} on {entry.target}", message=text)
