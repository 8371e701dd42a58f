"""Words that move between memories in the program: tile sizes, loop orders, and their savings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.looporders import distinct_reuse_orders
from tilewright.prices import value_pj
from tilewright.schema.architecture import Memory
from tilewright_mappers.cosa.program import Linear, total
from tilewright_mappers.cosa.tiling import SLACK, Tiling

NEVER = 60.0
"""Below the logarithm of any number of words."""


@dataclass(frozen=True)
class Transfer:
    """Values of a tensor that a memory reads or writes over the whole run.

    Attributes:
        log_words: logarithm of their number over all instances, as the program models it.
        energy_pj: pJ per value.
        instances: logarithm of the number of instances in use.
        values_per_cycle: maximum values per cycle and instance; None if unlimited.
        log_most, log_spared: the words are exp(log_most) - exp(log_spared), because the first
            partial sum is not read; None: they are exp(log_words).
    """

    tensor: int
    log_words: Linear
    energy_pj: float
    instances: Linear
    values_per_cycle: float | None
    log_most: Linear | None = None
    log_spared: Linear | None = None

    def words(self, values: Floats) -> float:
        """Return the words of a solution."""
        if self.log_most is None or self.log_spared is None:
            return math.exp(self.log_words.at(values))
        return math.exp(self.log_most.at(values)) - math.exp(self.log_spared.at(values))


@dataclass
class Traffic:
    """Adds loop orders to a tiling, and counts the words that move."""

    tiling: Tiling
    orders: dict[int, tuple[Positions, list[Linear]]] = field(default_factory=dict)
    """Temporal slot -> (orders [k, position], indicators of the chosen one)."""
    _indicators: dict[tuple[int, int], Linear] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.space, self.program = self.tiling.space, self.tiling.program
        self.problem = self.space.problem
        self.loops = self.space.temporal_slots
        names = self.problem.dimension_names
        self.indexing = [frozenset(names.index(d) for d in tensor.dimensions) for tensor in self.problem.tensors]
        for slot in self.loops:
            self._order(slot)

    @property
    def keep(self) -> Bools:
        """Kept tensors, bool [entry, tensor]."""
        return self.tiling.keep

    def product(self, slot: int) -> Linear:
        return self.tiling.product(slot)

    def words(self, entry: int, tensor: int) -> Linear:
        return self.tiling.words(entry, tensor)

    # -- orders ----------------------------------------------------------------------------------------------

    def _order(self, slot: int) -> None:
        distinct = distinct_reuse_orders(self.problem)[:, None]
        lawful = self.space.lawful(np.repeat(distinct, len(self.loops), axis=1))[:, self.loops.index(slot)]
        able = {dim for dim in range(len(self.problem.sizes)) if (slot, dim) in self.tiling.exponents}
        kept = {tuple(self._staying(order, t) & able for t in range(len(self.indexing))): order for order in lawful}
        best = [
            order
            for stays, order in kept.items()
            if not any(stays != other and all(a <= b for a, b in zip(stays, other, strict=True)) for other in kept)
        ]
        self.orders[slot] = (np.array(best, dtype=np.int8), self.program.one_of(len(best)))

    def _staying(self, order: Positions, tensor: int) -> frozenset[int]:
        """Return the innermost dimensions of an order that do not index a tensor."""
        staying = set()
        for dim in reversed(order.tolist()):
            if dim in self.indexing[tensor]:
                break
            staying.add(dim)
        return frozenset(staying)

    def chosen(self, values: Floats) -> Positions:
        """Return the orders of a solution [block, position]."""
        order = self.space.plain_order.copy()
        for slot, (orders, taken) in self.orders.items():
            order[self.loops.index(slot)] = orders[int(np.argmax([linear.at(values) for linear in taken]))]
        return order

    def read(self, points: Floats) -> Candidates:
        """Return the mappings of solutions [n, variable]."""
        return replace(
            self.tiling.read(points), order=np.array([self.chosen(point) for point in points], dtype=np.int8)
        )

    # -- reuse -----------------------------------------------------------------------------------------------

    def _non_unit(self, slot: int, tensor: int) -> Linear:
        """Return 1 if a non-unit loop of a slot indexes the tensor."""
        if (slot, tensor) not in self._indicators:
            non_unit = self.program.variable()
            for dim in sorted(self.indexing[tensor]):
                for _, exponent in self.tiling.exponents.get((slot, dim), []):
                    (variable,) = exponent.terms
                    self.program.require(exponent - non_unit * self.program.upper[variable], upper=0.0)
            self._indicators[slot, tensor] = non_unit
        return self._indicators[slot, tensor]

    def passes(self, entry: int, tensor: int) -> Linear:
        """Return the logarithm of how often one instance of an entry receives a tile.

        A tile is stationary while the innermost outer loops do not index it. Blocks without an
        indexing loop are skipped, and the next block counts.
        """
        outside = [slot for slot in self.loops if self.space.slots[slot].entry <= entry]
        idle = [dim for dim in range(len(self.problem.sizes)) if dim not in self.indexing[tensor]]
        count, inside = Linear(), None
        for slot in reversed(outside):
            count += total(self.tiling.trips(slot, dim) for dim in sorted(self.indexing[tensor]))
            count += self._repeats(slot, tensor, idle, inside)
            non_unit = self._non_unit(slot, tensor)
            if inside is None:
                inside = non_unit
            else:
                either = self.program.variable()
                self.program.require(either - inside, lower=0.0)
                self.program.require(either - non_unit, lower=0.0)
                inside = either
        return count

    def _repeats(self, slot: int, tensor: int, idle: list[int], inside: Linear | None) -> Linear:
        """Return the trips of loops that do not index a tensor, but where it is not stationary."""
        most = sum(math.log(self.problem.sizes[dim]) for dim in idle if (slot, dim) in self.tiling.exponents)
        if not most:
            return Linear()
        repeats = self.program.variable(0.0, most, whole=False)
        every = total(self.tiling.trips(slot, dim) for dim in idle)
        if inside is not None:
            self.program.require(repeats - every - inside * most, lower=-most)
        orders, taken = self.orders[slot]
        for order, one in zip(orders, taken, strict=True):
            stays = self._staying(order, tensor)
            leaving = [dim for dim in idle if dim not in stays]
            above = sum(math.log(self.problem.sizes[dim]) for dim in leaving)
            rest = total(self.tiling.trips(slot, dim) for dim in leaving)
            if rest.terms:
                non_unit = self._non_unit(slot, tensor)
                self.program.require(repeats - rest - one * above - non_unit * above, lower=-2 * above)
        return repeats

    # -- words -----------------------------------------------------------------------------------------------

    def moves(self) -> list[Transfer]:
        """Return all transfers: between consecutive memories that keep a tensor, and to compute."""
        moves = []
        for tensor in range(len(self.problem.tensors)):
            entries = [int(entry) for entry in np.flatnonzero(self.tiling.keep[:, tensor])]
            for outer, inner in zip(entries, [*entries[1:], None], strict=True):
                moves += self._moves(tensor, outer, inner)
        return moves

    def _moves(self, tensor: int, outer: int, inner: int | None) -> list[Transfer]:
        giver, taker = self._memory(outer, tensor), None if inner is None else self._memory(inner, tensor)
        if inner is None:
            once = total(self.tiling.product(slot) for slot in self.loops)
        else:
            once = self.passes(inner, tensor) + self.tiling.words(inner, tensor)
        shared, every, above = Linear(), Linear(), Linear()
        for slot in self.space.spatial_slots:
            entry = self.space.slots[slot].entry
            used = self.tiling.product(slot)
            if entry < outer:
                above += used
            if inner is None or entry < inner:
                every += used
                shared += used if entry < outer else self._apart(slot, tensor)
        moves = self._given(tensor, giver, once + shared, above, self._summed(tensor, outer))
        if inner is not None and taker is not None:
            moves.append(self._taken(tensor, taker, once + every, every, self._summed(tensor, inner)))
        return moves

    def _given(
        self, tensor: int, memory: Memory, log_words: Linear, instances: Linear, first: Linear
    ) -> list[Transfer]:
        """Return the transfers of a memory to its inside: reads, and for outputs also updates."""
        reading = value_pj(memory, self.problem.tensors[tensor], 1, 0, 0)
        if not self.problem.tensors[tensor].is_output:
            return [
                Transfer(
                    tensor,
                    log_words,
                    reading,
                    instances,
                    self._at_once(tensor, memory, memory.read_bandwidth_words_per_cycle),
                )
            ]
        written = value_pj(memory, self.problem.tensors[tensor], 0, 0, 1)
        return [
            Transfer(
                tensor,
                log_words,
                written,
                instances,
                self._at_once(tensor, memory, memory.write_bandwidth_words_per_cycle),
            ),
            Transfer(tensor, self._again(log_words, first), reading, instances, None, log_words, first),
        ]

    def _taken(self, tensor: int, memory: Memory, log_words: Linear, instances: Linear, first: Linear) -> Transfer:
        """Return the fills from the outer memory; for outputs only the values that existed before.

        Values that an output returns outwards are among the reads of its updates.
        """
        cost, speed = (
            value_pj(memory, self.problem.tensors[tensor], 0, 1, 0),
            self._at_once(tensor, memory, memory.write_bandwidth_words_per_cycle),
        )
        if not self.problem.tensors[tensor].is_output:
            return Transfer(tensor, log_words, cost, instances, speed)
        return Transfer(tensor, self._again(log_words, first), cost, instances, speed, log_words, first)

    def _at_once(self, tensor: int, memory: Memory, words: float | None) -> float | None:
        """Return values per cycle for a number of words; None if unlimited."""
        return None if words is None else words / memory.words_of(self.problem.tensors[tensor])

    def _summed(self, tensor: int, entry: int) -> Linear:
        """Return the logarithm of the different partial sums in the instances of an entry.

        Each of them has one first value.
        """
        spatial = [slot for slot in self.space.spatial_slots if self.space.slots[slot].entry < entry]
        idle = [dim for dim in range(len(self.problem.sizes)) if dim not in self.indexing[tensor]]
        words = self.problem.tensor_words(self.problem.tensors[tensor])
        return total(self.tiling.trips(slot, dim) for slot in spatial for dim in idle) + math.log(words)

    def _again(self, log_words: Linear, first: Linear) -> Linear:
        """Approximate the logarithm of exp(log_words) - exp(first).

        It is nothing if both are equal, half if one is twice the other, and 0.8 above that.
        """
        times = log_words - first
        most = math.log(self.problem.macs) + SLACK
        moved = self.program.variable(-NEVER, NEVER, whole=False)
        for known, part in ((0.0, 0.5), (math.log(2), 0.8)):
            more = self.program.variable()
            self.program.require(times - more * most, upper=known + SLACK)
            self.program.require(moved - log_words - more * (2 * NEVER), lower=math.log(part) - 2 * NEVER)
        return moved

    def _apart(self, slot: int, tensor: int) -> Linear:
        """Return the logarithm of the different tiles of a tensor in a spatial slot."""
        entry = self.space.skeleton.entries[self.space.slots[slot].entry]
        architecture = self.space.architecture
        fanout = architecture.cluster(entry.target).fanout
        if not (fanout.reduction if self.problem.tensors[tensor].is_output else fanout.multicast):
            return self.tiling.product(slot)
        return total(self.tiling.trips(slot, dim) for dim in sorted(self.indexing[tensor]))

    def _memory(self, entry: int, tensor: int) -> Memory:
        target = self.space.skeleton.entries[entry].target
        cluster = self.space.architecture.cluster(target)
        memory = cluster.memory_for(self.problem.tensors[tensor])
        assert memory is not None, "a kept tensor has a memory"
        return memory
