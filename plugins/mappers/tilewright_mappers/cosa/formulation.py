"""CoSA's program for one map space and one choice of what is kept: tiles, splits and orders, all in logarithms.

Differences to the paper: exponents of prime factors instead of a 0/1 variable for each copy of a prime, exact windows,
exact capacities of shared memories, an order in every block of loops, any problem and any architecture.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tilewright.architecture import Memory
from tilewright.batch import Bools, Ints
from tilewright.costmodel import Objective
from tilewright.counting import divisors, prime_powers
from tilewright.looporders import Prefix, ordering_trie, promising
from tilewright.mapspace import MapSpace
from tilewright.problem import Rank
from tilewright_mappers.cosa.linear import Linear, Program, Values

Goal = Literal["published", "model"]
MAX_TILES = 400
"""Combinations of tile sizes of one window that get a variable each."""


@dataclass(frozen=True)
class Flow:
    """Words of one tensor between two memories that keep it, next to one another: entries `outer` and `inner`."""

    tensor: int
    outer: int
    inner: int


class Formulation:
    """Builds the program; `exponents[slot, dimension]` are (prime, variable) pairs."""

    def __init__(self, space: MapSpace, keep: Bools) -> None:
        self.space, self.keep = space, keep
        self.problem, self.program = space.problem, Program()
        self.dims = range(len(space.problem.sizes))
        self.tensors = range(len(space.problem.tensors))
        names = space.problem.dimension_names
        self.coupled = [[d for d in self.dims if names[d] in tensor.dimensions] for tensor in space.problem.tensors]
        self.output = next(t for t in self.tensors if space.problem.tensors[t].is_output)
        self.exponents: dict[tuple[int, int], list[tuple[int, Linear]]] = {}
        self._one_hot: dict[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], Linear] = {}
        self._factors()
        self._capacities()

    # -- factors ---------------------------------------------------------------------------------------------

    def _factors(self) -> None:
        """Every prime factor stands in one slot; trips stay within the rules and the fanouts."""
        for dim, size in enumerate(self.problem.sizes):
            for prime, power in prime_powers(size) if size > 1 else []:
                for index, slot in enumerate(self.space.slots):
                    most = min(power, int(math.log(slot.highest[dim] + 0.5, prime)))
                    if most:
                        variable = self.program.variable(0, most, integer=True)
                        self.exponents.setdefault((index, dim), []).append((prime, variable))
                everywhere = [v for (_, d), pairs in self.exponents.items() if d == dim for p, v in pairs if p == prime]
                self.program.equal(Linear.total(everywhere), power)
        for index, slot in enumerate(self.space.slots):
            for dim in self.dims:
                several = len(self.exponents.get((index, dim), [])) > 1
                if slot.lowest[dim] > 1 or (several and slot.highest[dim] < self.problem.sizes[dim]):
                    low, high = math.log(slot.lowest[dim] - 0.5), math.log(slot.highest[dim] + 0.5)
                    self.program.between(low, self.log_trips(index, dim), high)
            if slot.spatial:
                used = Linear.total(self.log_trips(index, dim) for dim in self.dims)
                self.program.between(math.log(slot.least - 0.5), used, math.log((slot.most or 1) + 0.5))

    def log_trips(self, slot: int, dim: int) -> Linear:
        return Linear.total(v * math.log(prime) for prime, v in self.exponents.get((slot, dim), []))

    def logs(self, slots: Sequence[int], dims: Sequence[int] | None = None) -> Linear:
        """Log of the product of trips."""
        return Linear.total(self.log_trips(s, d) for s in slots for d in (self.dims if dims is None else dims))

    def inside(self, entry: int) -> tuple[int, ...]:
        """Slots whose loops and splits make up the tile that an entry holds."""
        return tuple(
            index
            for index, slot in enumerate(self.space.slots)
            if slot.entry > entry or (slot.entry == entry and slot.spatial)
        )

    def outside(self, entry: int) -> list[int]:
        inner = self.inside(entry)
        return [index for index in range(len(self.space.slots)) if index not in inner]

    # -- tiles -----------------------------------------------------------------------------------------------

    def log_words(self, tensor: int, entry: int) -> Linear:
        """Log of the words of a tensor's tile at an entry."""
        slots = self.inside(entry)
        return Linear.total(self._log_extent(slots, rank) for rank in self.problem.tensors[tensor].projection)

    def _log_extent(self, slots: tuple[int, ...], rank: Rank) -> Linear:
        terms = tuple((self.problem.dimension_names.index(name), c) for name, c in rank.terms.items())
        terms = tuple((dim, c) for dim, c in terms if self._sizes(slots, dim) != [1])
        if len(terms) == 1 and terms[0][1] == 1:
            return self.logs(slots, [terms[0][0]])
        if math.prod(len(self._sizes(slots, dim)) for dim, _ in terms) > MAX_TILES and len(terms) > 1:
            # no less than the window: 1 + a + b + ... <= (1 + a)(1 + b)...
            return Linear.total(self._tabulated(slots, (term,)) for term in terms)
        return self._tabulated(slots, terms)

    def _sizes(self, slots: tuple[int, ...], dim: int) -> list[int]:
        """Sizes that a tile can have along a dimension."""
        size = self.problem.sizes[dim]
        return [1] if not any((slot, dim) in self.exponents for slot in slots) else divisors(size)

    def _tabulated(self, slots: tuple[int, ...], terms: tuple[tuple[int, int], ...]) -> Linear:
        """Log of 1 + sum of coefficient x (size - 1), with a 0/1 variable for each combination of sizes."""
        if not terms:
            return Linear()
        if (slots, terms) not in self._one_hot:
            tiles = list(itertools.product(*(self._sizes(slots, dim) for dim, _ in terms)))
            chosen = [self.program.variable(0, 1, integer=True) for _ in tiles]
            self.program.equal(Linear.total(chosen), 1)
            for place, (dim, _) in enumerate(terms):
                for prime, _ in prime_powers(self.problem.sizes[dim]):
                    of_tile = Linear.total(
                        one * _power(tile[place], prime) for one, tile in zip(chosen, tiles, strict=True)
                    )
                    of_slots = Linear.total(
                        v for slot in slots for p, v in self.exponents.get((slot, dim), []) if p == prime
                    )
                    self.program.equal(of_tile - of_slots, 0)
            self._one_hot[slots, terms] = Linear.total(
                one * math.log(1 + sum(c * (size - 1) for (_, c), size in zip(terms, tile, strict=True)))
                for one, tile in zip(chosen, tiles, strict=True)
            )
        return self._one_hot[slots, terms]

    def memory(self, entry: int, tensor: int) -> Memory:
        """The memory in which an entry holds a tensor."""
        target = self.space.skeleton.entries[entry].target
        cluster = self.space.architecture.clusters[self.space.architecture.cluster_index[target]]
        return next(each for each in cluster.memories if each.may_hold(self.problem.tensors[tensor]))

    @cached_property
    def held(self) -> list[tuple[int, int]]:
        """(entry, tensor) of all tiles."""
        return [
            (entry, tensor)
            for entry in range(len(self.space.skeleton))
            for tensor in self.tensors
            if self.keep[entry, tensor]
        ]

    def _capacities(self) -> None:
        for memory in self.space.architecture.memories:
            tiles = [self.log_words(t, e) for e, t in self.held if self.memory(e, t).name == memory.name]
            if memory.usable_words is not None and tiles:
                self.program.sum_at_most(tiles, math.log(memory.usable_words + 0.5))

    # -- orders and traffic ----------------------------------------------------------------------------------

    @cached_property
    def flows(self) -> list[Flow]:
        found = []
        for tensor in self.tensors:
            entries = [entry for entry, held in self.held if held == tensor]
            found += [Flow(tensor, outer, inner) for outer, inner in itertools.pairwise(entries)]
        return found

    @cached_property
    def _orders(self) -> dict[int, list[tuple[Prefix, Linear]]]:
        """Per block of loops the orders that differ in reuse, each with a 0/1 variable; one is chosen."""
        result = {}
        for index, slot in enumerate(self.space.slots):
            if not slot.spatial:
                kept = [t for t in self.tensors if self.keep[slot.entry :, t].any()]
                found = promising(ordering_trie(self.problem, kept))
                pairs = [(prefix, self.program.variable(0, 1, integer=True)) for prefix in found]
                if pairs:
                    self.program.equal(Linear.total(v for _, v in pairs), 1)
                result[index] = pairs
        return result

    @cached_property
    def _reuse(self) -> dict[Flow, tuple[Linear, Linear]]:
        """Log of how often a tile is used again in time: (in all loops, in loops that are summed over)."""
        return {flow: self._reused(flow) for flow in self.flows}

    def _reused(self, flow: Flow) -> tuple[Linear, Linear]:
        free = [d for d in self.dims if d not in self.coupled[flow.tensor] and self.problem.sizes[d] > 1]
        blocks = [slot for slot in reversed(self.outside(flow.inner)) if not self.space.slots[slot].spatial]
        saved: list[Linear] = []
        still: Linear | None = None  # None: surely no loop further in has changed the tile
        for number, block in enumerate(blocks):
            for dim in free:
                able = [v for prefix, v in self._orders[block] if (flow.tensor, dim) in prefix.reuse]
                if (block, dim) not in self.exponents or not able:
                    continue
                most = math.log(self.problem.sizes[dim])
                again = self.program.variable(0, most)
                self.program.at_most(again, self.log_trips(block, dim))
                self.program.at_most(again, Linear.total(able) * most)
                if still is not None:
                    self.program.at_most(again, still * most)
                saved.append(again)
            changes = self.logs([block], self.coupled[flow.tensor])
            if number < len(blocks) - 1 and changes.terms:
                onward = self.program.variable(0, 1, integer=True)
                most = sum(math.log(self.problem.sizes[d]) for d in self.coupled[flow.tensor])
                self.program.at_most(changes + onward * most, most)
                if still is not None:
                    self.program.at_most(onward, still)
                still = onward
        total = Linear.total(saved)
        return total, total

    def log_moved(self, flow: Flow) -> tuple[Linear, Linear]:
        """Log of the words (given or taken by all outer, by all inner instances)."""
        slots = self.space.slots
        outside = self.outside(flow.inner)
        loops = [slot for slot in outside if not slots[slot].spatial]
        words = self.log_words(flow.tensor, flow.inner) + self.logs(loops) - self._reuse[flow][0]
        splits = [slot for slot in outside if slots[slot].spatial]
        shared = [slot for slot in splits if slot in self.inside(flow.outer) and self._shares(slot, flow.tensor)]
        apart = [slot for slot in splits if slot not in shared]
        given = words + self.logs(apart) + self.logs(shared, self.coupled[flow.tensor])
        return given, words + self.logs(splits)

    def _shares(self, slot: int, tensor: int) -> bool:
        target = self.space.skeleton.entries[self.space.slots[slot].entry].target
        fanout = self.space.architecture.clusters[self.space.architecture.cluster_index[target]].fanout
        return fanout.reduction if tensor == self.output else fanout.multicast

    def log_operands(self, tensor: int, entry: int) -> Linear:
        """Log of the words that compute takes from, or gives to, the innermost entry that keeps a tensor."""
        splits = [slot for slot in self.inside(entry) if self.space.slots[slot].spatial and self._shares(slot, tensor)]
        free = [d for d in self.dims if d not in self.coupled[tensor]]
        return self.logs(splits, free) * -1.0 + math.log(self.problem.macs)

    def _returned(self, flow: Flow, moved: Linear) -> Linear:
        """Log of partial sums that come back: next to nothing where no loop outside sums."""
        summing = [d for d in self.dims if d not in self.coupled[flow.tensor]]
        loops = [slot for slot in self.outside(flow.inner) if not self.space.slots[slot].spatial]
        again = self.logs(loops, summing) - self._reuse[flow][1]
        most = sum(math.log(self.problem.sizes[d]) for d in summing)
        back = self.program.variable(0, 1, integer=True)
        self.program.at_most(again, back * (most + 1e-3))
        return moved + back * 30.0 - 30.0

    # -- objectives ------------------------------------------------------------------------------------------

    def accesses(self) -> tuple[dict[tuple[int, int], list[Linear]], dict[tuple[int, int], list[Linear]]]:
        """Logs of words (read, written) at each (entry, tensor), by all instances."""
        read: dict[tuple[int, int], list[Linear]] = {place: [] for place in self.held}
        written: dict[tuple[int, int], list[Linear]] = {place: [] for place in self.held}
        for flow in self.flows:
            outer, inner = (flow.outer, flow.tensor), (flow.inner, flow.tensor)
            given, taken = self.log_moved(flow)
            if flow.tensor != self.output:
                read[outer].append(given)
                written[inner].append(taken)
            else:
                written[outer].append(given)
                read[inner].append(taken)
                read[outer].append(self._returned(flow, given))
                written[inner].append(self._returned(flow, taken))
        for tensor in self.tensors:
            entry = max(entry for entry, held in self.held if held == tensor)
            operands = self.log_operands(tensor, entry)
            read[entry, tensor].append(operands)
            if tensor == self.output:
                written[entry, tensor].append(operands)
        return read, written

    def minimise(self, goal: Goal, objective: Objective, weights: tuple[float, float, float]) -> None:
        """Set what is made small: CoSA's weighted sum (utilization, compute, traffic), or the task's objective as
        energies and bandwidths of the architecture give it."""
        loops = [index for index, slot in enumerate(self.space.slots) if not slot.spatial]
        compute = self.logs(loops)
        if goal == "published":
            filled = Linear.total(self.log_words(t, e) for e, t in self.held if e)
            traffic = Linear.total(self.log_moved(flow)[0] for flow in self.flows)
            self.program.objective = filled * -weights[0] + compute * weights[1] + traffic * weights[2]
            return
        read, written = self.accesses()
        parts = []
        if objective != "cycles":
            parts.append(self._log_energy(read, written))
        if objective != "energy":
            parts.append(self._log_cycles(compute, read, written))
        self.program.objective = Linear.total(parts)

    def _log_energy(
        self, read: dict[tuple[int, int], list[Linear]], written: dict[tuple[int, int], list[Linear]]
    ) -> Linear:
        unit = self.space.architecture.compute
        terms = [Linear(constant=math.log(self.problem.macs * max(1e-9, unit.energy_per_operation_pj)))]
        for (entry, tensor), words in read.items():
            memory = self.memory(entry, tensor)
            terms += [
                each + _log(memory.read_energy_pj / memory.block_words) for each in words if memory.read_energy_pj
            ]
        for (entry, tensor), words in written.items():
            memory = self.memory(entry, tensor)
            energy = memory.write_energy_pj
            if tensor == self.output and memory.update_energy_pj is not None:
                energy = memory.update_energy_pj
            terms += [each + _log(energy / memory.block_words) for each in words if energy]
        total = self.program.variable(-50, 300)
        self.program.sum_at_most(terms, total)
        return total

    def _log_cycles(
        self,
        compute: Linear,
        read: dict[tuple[int, int], list[Linear]],
        written: dict[tuple[int, int], list[Linear]],
    ) -> Linear:
        total = self.program.variable(0, 300)
        self.program.at_most(compute + _log(self.space.architecture.compute.cycles_per_operation), total)
        for memory in self.space.architecture.memories:
            for words, bandwidth in (
                (read, memory.read_bandwidth_words_per_cycle),
                (written, memory.write_bandwidth_words_per_cycle),
            ):
                places = [place for place in words if self.memory(*place).name == memory.name]
                terms = [each for place in places for each in words[place]]
                if bandwidth is not None and terms:
                    splits = [slot for slot in self.outside(places[0][0]) if self.space.slots[slot].spatial]
                    self.program.sum_at_most(terms, total + self.logs(splits) + _log(bandwidth))
        return total

    # -- back to mappings ------------------------------------------------------------------------------------

    def trips(self, values: Values) -> Ints:
        """Trip counts [slot, dimension] of a solution."""
        result = np.ones((len(self.space.slots), len(self.problem.sizes)), dtype=np.int64)
        for (slot, dim), pairs in self.exponents.items():
            for prime, variable in pairs:
                result[slot, dim] *= prime ** round(variable.at(values))
        return result

    def values(self, trips: Ints) -> Values:
        """The exponents of a mapping; NaN for all other variables."""
        result = np.full(len(self.program.lower), np.nan)
        for (slot, dim), pairs in self.exponents.items():
            for prime, variable in pairs:
                result[next(iter(variable.terms))] = _power(int(trips[slot, dim]), prime)
        return result


def _power(number: int, prime: int) -> int:
    power = 0
    while prime > 1 and number % prime == 0:
        number, power = number // prime, power + 1
    return power


def _log(value: float) -> float:
    return math.log(max(value, 1e-12))
