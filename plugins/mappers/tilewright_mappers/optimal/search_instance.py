"""Arrays of one task: ports, layout of states, choices per slot, and the context of each boundary."""

from __future__ import annotations

import copy
import itertools
import math
from functools import cache, cached_property

import numpy as np

from tilewright.compiled import for_kernel
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.feasible_region import FeasibleRegion
from tilewright.plugin import Objective, Relaxation
from tilewright_mappers.optimal.kernel.state import FIRST_TENSOR, PER_TENSOR, USED
from tilewright_mappers.optimal.kernel.structures import (
    ALWAYS,
    NEVER,
    OPTIONAL,
    CostFunction,
    FanoutLevel,
    OuterContext,
    StateLayout,
    StorageEntry,
)
from tilewright_mappers.optimal.outer_traffic import KEPT, LOOPS, UNROLLED, OuterTraffic
from tilewright_mappers.optimal.problem_arrays import ints, problem_arrays

READ, WRITE, BOTH = range(3)
"""Words that a port carries. BOTH: reads and writes share the bandwidth."""


class SearchInstance:
    """Everything about a task that stays constant during a search."""

    def __init__(
        self, space: FeasibleRegion, relaxation: Relaxation, objective: Objective, max_cycles: float = math.inf
    ) -> None:
        self.space, self.relaxation, self.objective = space, relaxation, objective
        self.problem = problem_arrays(space.problem, space.factors == "ragged")
        self.tensors, self.dims = len(self.problem.output), len(self.problem.sizes)
        self.levels = self._levels()
        self.max_slots = max(1, *(len(spatial) for _, spatial in self.levels))
        memories = space.architecture.memories
        self.slices, self.distinct = space.tile_rules.slices, space.tile_rules.distinct
        self.words = self.slices / np.array([[memory.slices_per_word] for memory in memories])
        """[M, T]: words of memory M per value of tensor T."""
        self.moved_words = self.words if relaxation.moved is None else self.words * relaxation.moved
        """[M, T]: those that take bandwidth."""
        unlimited = np.full(len(relaxation.gate), np.inf)
        shared = unlimited if relaxation.shared_bandwidth is None else relaxation.shared_bandwidth
        together = shared <= np.minimum(relaxation.read_bandwidth, relaxation.write_bandwidth)
        """[M]: reads and writes of a memory are one port; no other limit can bind."""
        self.shared_bandwidth = shared
        self.read_bandwidth, self.write_bandwidth = (
            np.minimum(bandwidth, shared) for bandwidth in (relaxation.read_bandwidth, relaxation.write_bandwidth)
        )
        limits = (self.read_bandwidth, self.write_bandwidth, shared)
        ways = [(BOTH,) if one else (READ, WRITE) for one in together]
        self.ports = [
            (m, way) for m, those in enumerate(ways) for way in those if limits[way][m] < self._max_words(m, way)
        ]
        # a shared limit next to lower ones of reads or writes is a bound only
        tracked = all(together[m] or shared[m] >= self._max_words(m, BOTH) for m in range(len(shared)))
        leaks = bool(relaxation.leakage_pj.any())
        self.energy = objective.energy_power > 0
        cycles = objective.cycle_power > 0 or leaks or max_cycles < math.inf
        if not cycles:
            self.ports = []
        kept = np.where(np.logical_or(*space.keeps), relaxation.memory, -1)
        self.ports_of = [[p for p, (m, _) in enumerate(self.ports) if m in kept[:, t]] for t in range(self.tensors)]
        """Per tensor, indices of the ports that its words may use."""
        self.kept_in = np.array([(kept == m).any(axis=1) for m in range(len(memories))])
        """[M, E]: whether an entry may keep tensors in a memory."""
        self.memories_of_several_entries = np.flatnonzero(self.kept_in.sum(axis=1) > 1)
        self.costs = CostFunction(
            energy=self.energy,
            cycles=cycles,
            energy_power=objective.energy_power,
            cycle_power=objective.cycle_power,
            dominance=relaxation.exact and tracked,
            whole_cycles=relaxation.whole_cycles,
            forwarding=relaxation.neighbours,
            outputs=int(self.problem.output.sum()),
            relaxed=False,
            margin=0.0,
            compute_pj=float(relaxation.compute_pj),
            max_cycles=float(max_cycles),
            bandwidth=for_kernel(np.array([limits[way][m] for m, way in self.ports], np.float64)),
        )
        self.layout = self._layout()
        slots = space.slots
        self.max_used = ints([slot.most or 1 if slot.spatial else 1 for slot in slots])
        self.trips = for_kernel(
            np.array(
                [
                    [
                        (slot.lowest[d] <= row) & (row <= slot.highest[d]) & (row > 0)
                        for d, row in enumerate(self.problem.trip)
                    ]
                    for slot in slots
                ],
                np.bool_,
            )
        )
        alone = np.array([slot.spatial and slot.most == 1 for slot in slots])
        self.open_trips = for_kernel(np.asarray(self.trips[:, :, 1:].any(axis=2) & ~alone[:, None]))
        self.rounds_first_reads = relaxation.rounded or self._rounds_first_reads()
        self.iterable_tiles = self._iterable_tiles()
        always, optional = space.keeps
        self.always, self.optional = always, optional
        self.outer_traffic = OuterTraffic(self)
        self.leakage = self._leakage()
        """[E, M]: pJ per cycle of a memory, at the innermost entry that may keep a tensor in it."""
        # all passes of a search use the same context
        self.fanout_level, self.storage_entry, self.outer_context = (
            cache(self._fanout_level),
            cache(self._storage_entry),
            cache(self._outer_context),
        )

    @property
    def undercounts(self) -> bool:
        """Whether every mapping may cost more than its bound."""
        return self.relaxation.order_matters or bool((self.problem.unmodelled | self.problem.ragged_window).any())

    @property
    def innermost_order_matters(self) -> bool:
        """Whether costs may depend on the order of the innermost block of temporal loops (Lemma 13)."""
        temporal, spatial = self.levels[-1]
        inside = max(e for e, entry in enumerate(self.space.skeleton.entries) if entry.holds)
        alike = not self.undercounts and not self.problem.ragged and not self.open_trips[spatial].any()
        return not (temporal and alike and self.always[inside].all())

    def without_dominance(self) -> SearchInstance:
        """Return a copy whose states never dominate each other."""
        return self._with(self.costs._replace(dominance=False))

    @property
    def may_relax(self) -> bool:
        """Whether undercounted states may dominate, too (Lemma 18)."""
        return self.costs.dominance and not self.problem.ragged

    def with_relaxed_dominance(self) -> SearchInstance:
        """Return a copy in which undercounted states dominate, too (Lemma 18)."""
        return self._with(self.costs._replace(relaxed=True))

    def with_rounding_margin(self, cutoff: float) -> SearchInstance:
        """Return a copy whose dominance test tolerates one cycle of rounding (Lemma 4).

        Args:
            cutoff: the cutoff; mappings that cost more need no proof.
        """
        if self.rounds_first_reads:
            return self.without_dominance()
        margin = rounding_margin(self.objective, cutoff, self._min_cycles())
        return self._with(self.costs._replace(margin=margin))

    def dominated_cost_factor(self) -> float:
        """Return the minimum ratio of a dominated mapping's cost to that of the mapping that dominates it (Lemma 4).

        0 states nothing: under a limit on cycles, or if outputs have holes.
        """
        relaxation, problem = self.relaxation, self.problem
        outputs = [self.space.problem.tensors[t] for t in np.flatnonzero(problem.windowed_output)]
        holes = any(max(rank.terms.values()) > 1 for tensor in outputs for rank in tensor.projection)
        if self.costs.max_cycles < math.inf or holes or relaxation.compute_pj <= 0.0 or relaxation.rounded:
            return 0.0
        words = len(self.levels) + 1.0  # one per fanout, and one for the sum
        energy, cycles, architecture = 0.0, 1.0, self.space.architecture
        for memory, entry in zip(relaxation.memory, self.space.skeleton.entries, strict=True):
            instances = architecture.instances[architecture.cluster_index[entry.target]]
            for t in np.flatnonzero(problem.output & (memory >= 0)):
                m, width = memory[t], self.words[memory[t], t]
                energy += instances * words * width * float(relaxation.read_pj[m, t] + relaxation.fill_pj[m, t])
                slowest = min(self.read_bandwidth[m], self.write_bandwidth[m], self.shared_bandwidth[m] / 2)
                cycles = max(cycles, 1.0 + words * width / float(slowest))
        lost = min(1.0, energy / relaxation.compute_pj), min(1.0, cycles / self._min_cycles())
        # leakage grows with the cycles
        energy, cycles = self.objective.powers
        return float((1.0 - lost[0]) ** max(1, energy) * (1.0 - lost[1]) ** max(2, energy + cycles))

    def _min_cycles(self) -> float:
        """Return a lower bound of the cycles of all mappings."""
        relaxation, problem = self.relaxation, self.problem
        first, words = (
            relaxation.memory[0],
            problem.min_distinct * self.moved_words[relaxation.memory[0], range(self.tensors)],
        )
        limits = np.where(problem.output, self.write_bandwidth[first], self.read_bandwidth[first])
        units = float(math.prod(int(self.max_used[s]) for s in self.space.spatial_slots))
        operations = float(math.prod(self.space.problem.sizes))
        inner = [min(np.flatnonzero(self.always[1:, t]) + 1, default=len(self.always)) for t in range(self.tensors)]
        delivered = np.array([self._delivers(t, 0, int(entry)) for t, entry in enumerate(inner)])
        words = np.where(delivered & ~problem.unmodelled, words, 0.0)
        return max(operations * relaxation.cycles_per_operation / units, float((words / limits).max()))

    def _with(self, costs: CostFunction) -> SearchInstance:
        """Return a copy with other costs."""
        result = copy.copy(self)
        result.costs = costs
        return result

    def _levels(self) -> list[tuple[list[int], list[int]]]:
        """Return (temporal, spatial) slots per level, outermost first.

        Raises:
            NotConformableError: temporal loops are inside an unrolling without a memory between.
        """
        levels: list[tuple[list[int], list[int]]] = []
        place = {(slot.entry, slot.spatial): number for number, slot in enumerate(self.space.slots)}
        for index, entry in enumerate(self.space.skeleton.entries):
            if (index, False) in place:
                temporal, spatial = levels[-1]
                if spatial or temporal:
                    message = (
                        "temporal loops inside a spatial unrolling need a memory between them; use --mapper quickflow"
                    )
                    raise NotConformableError("mapper optimal", (Reason(code="skeleton", where="", message=message),))
                temporal.append(place[index, False])
            if entry.holds:
                levels.append(([], []))
            if (index, True) in place:
                levels[-1][1].append(place[index, True])
        return levels

    def _max_words(self, memory: int, way: int) -> float:
        """Return the maximum words per cycle through a port; inf if a fanout is inside its memory.

        Without a fanout a tile has at most one value per iteration, apart from holes. So each entry
        moves at most one value of each tensor per cycle. Outputs are written from both sides.
        """
        if way == BOTH:
            return self._max_words(memory, READ) + self._max_words(memory, WRITE)
        kept = self.relaxation.memory == memory
        entries = np.flatnonzero(kept.any(axis=1))
        if len(entries) == 0 or any(slot.spatial and slot.entry >= entries[0] for slot in self.space.slots):
            return math.inf
        words = 0.0
        for t in np.flatnonzero(kept.any(axis=0)):
            ranks = self.space.problem.tensors[t].projection
            holes = math.prod(max(rank.terms.values()) for rank in ranks)
            values = holes * (2 if way == WRITE and self.problem.output[t] else 1) * len(np.flatnonzero(kept[:, t]))
            words += values * self.words[memory, t]
        return words / self.relaxation.cycles_per_operation

    def _rounds_first_reads(self) -> bool:
        """Return whether first reads of an output are rounded per sub-cluster (Lemma 4).

        That happens if windows, or dimensions with holes, may be unrolled.
        """
        problem = self.space.problem
        places = [
            place.terms for t in np.flatnonzero(self.problem.windowed_output) for place in problem.tensors[t].projection
        ]
        uneven = [d for terms in places if len(terms) > 1 or max(terms.values()) > 1 for d in terms]
        columns = [problem.dimension_names.index(d) for d in uneven]
        return bool(self.open_trips[np.ix_(self.space.spatial_slots, columns)].any())

    def _layout(self) -> StateLayout:
        """Return the columns of a state."""
        tensors, dims, ports = self.tensors, self.dims, len(self.ports)
        ranks = int(self.problem.window_index.max(initial=-1)) + 1
        first_shift = USED + self.max_slots
        unrolling = first_shift + 3 * tensors
        full_key = unrolling + self.max_slots * dims
        unrolled = full_key + 2
        tile_index = unrolled + (tensors + 1 if self.problem.ragged else 0)
        used = FIRST_TENSOR + PER_TENSOR * tensors
        side = used + len(self.memories_of_several_entries)
        last = side + ranks
        port = last + (dims + 1 if self.problem.ragged else 0)
        through = [len(some) for some in self.ports_of]
        deferred = port + ports + np.cumsum([0, *through])
        credit = deferred[-1] + np.cumsum([0, *np.where(self.problem.output, through, 0)])
        flows = sum(self.ports_of, []), sum((self.ports_of[t] for t in np.flatnonzero(self.problem.output)), [])
        return StateLayout(
            used=USED, first_shift=first_shift, total_shift=first_shift + tensors, window=first_shift + 2 * tensors, unrolling=unrolling, full_key=full_key,
            decision=full_key, flags=full_key + 1, unrolled=unrolled, tile_index=tile_index, tile=tile_index + dims,
            fanout_tile=tile_index + 2 * dims, integers=tile_index + 3 * dims,
            tensors=FIRST_TENSOR, used_slices=used, window_side=side, last_steps=last, port=port, deferred_words=ints(deferred), first_reads=ints(credit),
            port_of=ints([*[-1] * port, *range(ports), *flows[0], *flows[1]]), numbers=int(credit[-1]),
        )  # fmt: skip

    def _iterable_tiles(self) -> Bools:
        """Return [S, D, K]: whether the slots outside slot S can iterate that many tiles."""
        problem, slots = self.problem, len(self.space.slots)
        result = np.zeros((slots, self.dims, problem.tile_count.shape[1]), np.bool_)
        for d in range(self.dims):
            counts, trips = problem.tile_count[d][problem.tile_count[d] > 0], problem.trip[d][problem.trip[d] > 0]
            able = counts == 1
            for s in range(slots):
                result[s, d, : len(able)] = able
                before = np.zeros_like(able)
                for k, count in enumerate(counts):
                    taken = trips[self.trips[s, d, : len(trips)] & (trips <= count)]
                    if not problem.ragged:
                        taken = taken[count % taken == 0]
                    before[k] = able[np.searchsorted(-counts, count // -taken)].any()
                able = before
        return for_kernel(result)

    # -- stages ----------------------------------------------------------------------------------------------

    def _fanout_level(self, number: int) -> FanoutLevel:
        """Return the spatial slots of a level."""
        spatial = self.levels[number][1]
        clusters = [
            self.space.architecture.cluster(self.space.skeleton.entries[self.space.slots[s].entry].target)
            for s in spatial
        ]
        vertical = [cluster.fanout.axis == "Y" for cluster in clusters]
        pad = self.max_slots - len(spatial)
        kept, fill_pj = self._inside(number)
        across = [cluster.fanout.size for cluster, down in zip(clusters, vertical, strict=True) if not down]
        return FanoutLevel(
            slot=ints(spatial + [-1] * pad),
            vertical=for_kernel(np.array(vertical + [False] * pad, np.bool_)),
            min_used=ints([self.space.slots[s].least for s in spatial] + [1] * pad),
            row_width=math.prod(across),
            inner_storage=ints(kept),
            fill_pj=for_kernel(fill_pj),
            multicast=self._multicast(number),
            outermost=not any(
                self.open_trips[s].any() for s in self.space.spatial_slots if s < min(spatial, default=0)
            ),
        )

    def _inside(self, number: int) -> tuple[Ints, Floats]:
        """Return whether the entry directly inside a level keeps tensors, and pJ per value written.

        Compute units keep nothing, but may share words (`OPTIONAL`).
        """
        entries = [self.space.slots[s].entry for s in self.levels[number][1]]
        holds = [
            e for e, entry in enumerate(self.space.skeleton.entries) if entry.holds and e > min(entries, default=e)
        ]
        if not holds:
            return np.full(self.tensors, OPTIONAL), np.zeros(self.tensors)
        always, optional, memory = self.always[holds[0]], self.optional[holds[0]], self.relaxation.memory[holds[0]]
        cost = (self.relaxation.fill_pj * self.words)[memory, range(self.tensors)]
        return np.where(always, ALWAYS, np.where(optional, OPTIONAL, NEVER)), np.where(always | optional, cost, 0.0)

    def _multicast(self, number: int) -> Bools:
        """Return [K, T]: whether a spatial slot of a level may multicast a tensor."""
        rows = np.ones((self.max_slots, self.tensors), np.bool_)
        for k, s in enumerate(self.levels[number][1]):
            rows[k] = self.relaxation.shared[self.space.slots[s].entry]
        return for_kernel(rows)

    def _storage_entry(self, entry: int) -> StorageEntry:
        """Return a storage entry as arrays."""
        relaxation, problem = self.relaxation, self.problem
        memory = relaxation.memory[entry]
        here = np.maximum(memory, 0)
        every = here, range(self.tensors)
        words, slices = self.words[every], self.slices[every]

        def port(way: int) -> Ints:
            """Return [T]: the index, among a tensor's ports, of the one that carries these words; -1: none."""
            some = [[self.ports[p] for p in through] for through in self.ports_of]
            return ints(
                [
                    next((p for p, port_key in enumerate(row) if port_key in ((m, way), (m, BOTH))), -1)
                    for row, m in zip(some, memory, strict=True)
                ]
            )

        usable = [memory.usable_slices for memory in self.space.architecture.memories]
        columns = np.full(len(usable), -1)
        columns[self.memories_of_several_entries] = np.arange(self.layout.used_slices, self.layout.window_side)
        return StorageEntry(
            outermost=entry == 0,
            read_pj=for_kernel(relaxation.read_pj[every] * words),
            fill_pj=for_kernel(relaxation.fill_pj[every] * words),
            update_pj=for_kernel(np.where(problem.output, relaxation.update_pj[every] * words, 0.0)),
            read_port=port(READ),
            write_port=port(WRITE),
            leakage=for_kernel(self.leakage[entry]),
            memory=ints(memory),
            words=for_kernel(self.moved_words[every]),
            slices=for_kernel(slices),
            usable=for_kernel(np.array(usable, np.float64)),
            distinct=for_kernel(self.distinct[here]),
            used_slices=ints(columns),
            outermost_of_memory=for_kernel(np.asarray(~self.kept_in[:, :entry].any(axis=1))),
            forwarded=self._forwarded(entry),
        )

    def _forwarded(self, entry: int) -> int:
        """Return the bits of the tensors that an entry may bypass and that neighbours directly outside may forward."""
        number = len(self.levels) - 1 - sum(level.holds for level in self.space.skeleton.entries[entry:])
        outside = self.levels[number][1] if number >= 0 else []
        some = [t for t in range(self.tensors) if self.optional[entry, t]]
        return sum(1 << t for t in some if any(self._may_forward(t, s) for s in outside))

    def _leakage(self) -> Floats:
        """Return [E, M]: pJ per cycle, at the innermost entry that may use a memory.

        Several entries of a cluster may use the same memory, which leaks once.
        """
        zeros = np.zeros((len(self.always), len(self.relaxation.leakage_pj)))
        for m in range(zeros.shape[1]):
            users = np.flatnonzero(((self.always | self.optional) & (self.relaxation.memory == m)).any(axis=1))
            zeros[users[-1:], m] = self.relaxation.leakage_pj[self.relaxation.gate == m].sum()
        return zeros

    def _delivers(self, t: int, outer: int, inner: int) -> bool:
        """Return whether an entry delivers every distinct word of a tensor to another one (Lemma 10).

        Both entries keep the tensor. The exceptions are words whose numbers are averages: neighbours may forward them, or
        sub-clusters have equal boxes of ragged windows.
        """
        if self.problem.ragged_window[t]:
            between = [s for s in self.space.spatial_slots if outer <= self.space.slots[s].entry < inner]
            windows = self.problem.window_index[t][self.open_trips[between].any(axis=0)]
            if any(np.count_nonzero(windows == window) > 1 for window in windows[windows >= 0]):
                return False
        if self.problem.ragged and self.costs.forwarding and inner == len(self.always):
            return False
        return not any(self._averages(t, s) for s in self._forwarding_slots(t, outer, inner))

    def _forwarding_slots(self, t: int, outer: int, inner: int) -> list[int]:
        """Return the slots between two entries where neighbours may forward words of a tensor."""
        return [s for s, entry in self._forwards[t] if outer <= entry < inner]

    @cached_property
    def _forwards(self) -> list[list[tuple[int, int]]]:
        """The slots where neighbours may forward words of a tensor, with their entries."""
        slots = [(s, self.space.slots[s].entry) for s in self.space.spatial_slots]
        return [[(s, entry) for s, entry in slots if self._may_forward(t, s)] for t in range(self.tensors)]

    def _averages(self, t: int, slot: int) -> bool:
        """Return whether forwarded words may be averaged over unequal tiles: ragged ones, or those of a bypassed entry."""
        number = next(number for number, (_, spatial) in enumerate(self.levels) if slot in spatial)
        units = number == len(self.levels) - 1
        return bool(self.problem.ragged or not (units or self._inside(number)[0][t] == ALWAYS))

    def _compulsory_cycles(self, entry: int) -> float:
        """Return the cycles in which the memories outside a boundary move what they have to (Lemmas 10 and 11).

        Args:
            entry: the entries before this one are outside.
        """
        relaxation, spatial = self.relaxation, self.space.spatial_slots
        instances = [
            math.prod(float(self.max_used[s]) for s in spatial if self.space.slots[s].entry < e)
            for e in range(len(self.always))
        ]
        read, written, words = *np.zeros((2, len(self.slices))), self.problem.min_distinct * self.moved_words
        for t in map(int, np.flatnonzero(~self.problem.unmodelled)):
            keepers = [*np.flatnonzero(self.always[:, t]).tolist(), len(self.always)]
            for outer, inner in itertools.pairwise(keepers):
                if outer >= entry or not self._delivers(t, outer, inner) or self._uneven(t, outer):
                    continue
                m, output = relaxation.memory[outer, t], self.problem.output[t]
                (written if output else read)[m] += words[m, t] / instances[outer]
                uneven = inner < entry and self._uneven(t, inner)
                if inner < entry and not output and not uneven and not self._forwarding_slots(t, outer, inner):
                    m = relaxation.memory[inner, t]
                    written[m] += words[m, t] / instances[inner]
        shares = read / self.read_bandwidth, written / self.write_bandwidth, (read + written) / self.shared_bandwidth
        return float(np.max(shares))

    def _uneven(self, t: int, entry: int) -> bool:
        """Return whether the busiest instance of a memory may move fewer words of ragged windows than the average one."""
        outside = (s for s in self.space.spatial_slots if self.space.slots[s].entry < entry)
        return bool(self.problem.ragged_window[t] and any(self.open_trips[s].any() for s in outside))

    def _may_forward(self, t: int, slot: int) -> bool:
        """Return whether a window may be unrolled in a slot, so that neighbours may forward its words."""
        return self.costs.forwarding and bool((self.open_trips[slot] & (self.problem.window_index[t] >= 0)).any())

    def outer_context_of_fanout(self, number: int) -> OuterContext:
        """Return the context outside the spatial slots of a level."""
        first, last = (self.space.slots[self.levels[number][1][k]].entry for k in (0, -1))
        return self.outer_context(last + 1, self.levels[number][1][0], None, (first, KEPT))

    def _outer_context(
        self, entry: int, slot: int, level: int | None = None, place: tuple[int, int] | None = None
    ) -> OuterContext:
        """Return the context outside a boundary: entries before `entry` and slots before `slot`.

        Args:
            entry: 0 at the end of the search, where nothing is left outside.
            slot: the slots before this one are outside.
            level: the level whose spatial slots are open, if any.
            place: the key in the tables of outer traffic, if not the default.
        """
        place = place or ((entry, LOOPS) if level is None else (entry - 1, UNROLLED))
        relaxation, space, problem = self.relaxation, self.space, self.problem
        slots = np.full(len(space.slots), -2, np.int64)
        slots[[s for s in space.spatial_slots if s < slot]] = -1
        if level is not None:
            slots[self.levels[level][1]] = range(len(self.levels[level][1]))
        may_multicast = np.zeros((self.tensors, len(slots), self.dims), np.bool_)
        may_forward, bounded_by_equal_tiles = (
            np.zeros(self.tensors, np.bool_),
            np.zeros((self.tensors, len(slots)), np.bool_),
        )
        for number, (_, spatial) in enumerate(self.levels):
            if spatial and slots[spatial[0]] > -2:
                never = self._inside(number)[0] == NEVER
                bounded_by_equal_tiles[:, spatial[0]] = never if self.costs.forwarding else slots[spatial[0]] == -1
                for t in range(self.tensors):
                    may_forward[t] |= not never[t] and any(self._may_forward(t, s) for s in spatial)
        read_value_pj, update_value_pj, compulsory_pj = np.zeros((3, self.tensors))
        capacity_group, slices, usable = (
            np.full(self.tensors, -1),
            np.zeros(self.tensors),
            np.full(self.tensors, np.inf),
        )
        next_is_outermost, has_inner_storage, distinct, cycles_per_value = (
            *np.zeros((3, self.tensors), np.bool_),
            np.zeros(self.tensors),
        )
        outside_storage = np.zeros((self.tensors, len(slots)), np.bool_)
        compulsory_values, outermost_delivers = np.zeros((2, self.tensors))
        read_pj, fill_pj, update_pj = (
            price * self.words for price in (relaxation.read_pj, relaxation.fill_pj, relaxation.update_pj)
        )
        for t in range(self.tensors if entry else 0):
            sure = max(e for e in range(entry) if self.always[e, t])
            maybe = [e for e in range(sure, entry) if self.always[e, t] or self.optional[e, t]]
            read_value_pj[t] = min(read_pj[relaxation.memory[e, t], t] for e in maybe)
            update_value_pj[t] = min(update_pj[relaxation.memory[e, t], t] for e in maybe)
            next_is_outermost[t] = maybe == [0]
            if maybe == [sure] and not self._uneven(t, sure):
                m = relaxation.memory[sure, t]
                limits = self.write_bandwidth if problem.output[t] else self.read_bandwidth
                cycles_per_value[t] = self.moved_words[m, t] / limits[m] if self.costs.cycles else 0.0
            outside_storage[t] = [slots[s] > -2 and space.slots[s].entry < sure for s in range(len(slots))]
            m, has_inner_storage[t] = relaxation.memory[sure, t], sure > 0
            capacity_group[t] = sure * len(self.slices) + m
            slices[t], usable[t] = self.slices[m, t], space.architecture.memories[m].usable_slices
            distinct[t] = self.distinct[m]
            for s in space.spatial_slots:
                if slots[s] > -2 and space.slots[s].entry >= sure:
                    window = problem.window_index[t] >= 0
                    may_multicast[t, s] = (~problem.relevant[t] | window) & relaxation.shared[space.slots[s].entry, t]
                    may_multicast[t, s] |= window & self.costs.forwarding
            if problem.unmodelled[t]:
                continue
            inside = min((e for e in range(entry, len(self.always)) if self.always[e, t]), default=len(self.always))
            compulsory_values[t] = problem.min_distinct[t] if self._delivers(t, sure, inside) else 0.0
            keepers = [e for e in range(sure + 1) if self.always[e, t]]
            outermost_delivers[t] = len(keepers) > 1 and self._delivers(t, *keepers[:2])
            for outer, inner in itertools.pairwise(keepers):
                given, taken = relaxation.memory[[outer, inner], t]
                if self._delivers(t, outer, inner):
                    compulsory_pj[t] += update_pj[given, t] if problem.output[t] else read_pj[given, t]
                    if not problem.output[t] and not self._forwarding_slots(t, outer, inner):
                        compulsory_pj[t] += fill_pj[taken, t]
        for t in range(self.tensors):
            if (
                problem.values[capacity_group == capacity_group[t]] @ slices[capacity_group == capacity_group[t]]
                <= usable[t]
            ):
                capacity_group[capacity_group == capacity_group[t]] = -1  # the whole tensors fit
        table = self.outer_traffic.tables.get(place)
        counted_pj, enters = np.zeros((2, self.tensors))
        for t, link in self.outer_traffic.each_pair() if table else ():
            if link[1] < entry:
                counted_pj[t] += self.outer_traffic.once_pj(t, link)
            elif link[0] < entry:
                enters[t] = self.outer_traffic.enters_pj(t, link)
        return OuterContext(
            slot_index=for_kernel(slots),
            max_used=self.max_used,
            open_trips=self.open_trips,
            may_multicast=for_kernel(may_multicast),
            may_forward=for_kernel(may_forward),
            bounded_by_equal_tiles=for_kernel(bounded_by_equal_tiles),
            read_pj=for_kernel(read_value_pj),
            update_pj=for_kernel(update_value_pj),
            compulsory_pj=for_kernel(compulsory_pj),
            compulsory_values=for_kernel(compulsory_values),
            outermost_delivers=for_kernel(outermost_delivers),
            next_is_outermost=for_kernel(next_is_outermost),
            has_inner_storage=for_kernel(has_inner_storage),
            cycles_per_value=for_kernel(cycles_per_value),
            compulsory_cycles=self._compulsory_cycles(entry) if self.costs.cycles else 0.0,
            outside_storage=for_kernel(outside_storage),
            outermost_memory=ints(relaxation.memory[0]),
            outermost_words=for_kernel(self.moved_words[relaxation.memory[0], range(self.tensors)] * (entry > 0)),
            read_bandwidth=for_kernel(self.read_bandwidth),
            write_bandwidth=for_kernel(self.write_bandwidth),
            shared_bandwidth=for_kernel(self.shared_bandwidth),
            capacity_group=ints(capacity_group),
            slices=for_kernel(slices),
            usable=for_kernel(usable),
            distinct=for_kernel(distinct),
            outer_pj=for_kernel(table.energy if table else np.zeros((0, 0, 0))),
            multicast_factors=for_kernel(table.multicast_factors if table else np.ones(1)),
            window_multicast=for_kernel(
                self.outer_traffic.window_multicast(table, bounded_by_equal_tiles, slots) if table else np.ones(1)
            ),
            multicast_tensor=table.multicast_tensor if table else -1,
            multicast_slots=for_kernel(
                np.array([s in self.outer_traffic.multicast_slots for s in range(len(space.slots))])
            ),
            row_weight=ints(table.row_weight if table else np.zeros(self.tensors)),
            counted_pj=for_kernel(counted_pj),
            enters_pj=for_kernel(enters),
        )


def rounding_margin(objective: Objective, cutoff: float, least_cycles: float) -> float:
    """Return the pJ that make up for one more cycle in mappings of at least `least_cycles` (Lemma 4).

    Infinite for energy and for cycles alone.
    """
    energy, cycles = objective.powers
    if not (energy and cycles):
        return math.inf
    ratio = cycles / energy
    return float((max(1.0, ratio) + 2.0) * cutoff ** (1 / energy) / least_cycles ** (1 + ratio))
