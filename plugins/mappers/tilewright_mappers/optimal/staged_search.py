"""Staged search: a layered dynamic program over states, from the compute units outwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import for_kernel
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright_mappers.optimal.kernel import stages
from tilewright_mappers.optimal.kernel.forwarding import PER_DIMENSION
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    CYCLES,
    DEFERRED,
    DEMAND,
    FIRST_TENSOR,
    FORWARDING_OPEN,
    LOOP_MASK,
    MIN_DEFERRED,
    MIN_DEMAND,
    NO_LOOP_YET,
    PER_TENSOR,
    RELAXED,
    ROUNDED_FIRST_READS,
    STATUS,
    UNDERCOUNTED,
    USED,
)
from tilewright_mappers.optimal.kernel.structures import (
    STATIONARY,
    FanoutLevel,
    OuterContext,
    SearchContext,
    SearchScratch,
    Stage,
    StateRows,
    StateTable,
)
from tilewright_mappers.optimal.problem_arrays import ints
from tilewright_mappers.optimal.search_instance import SearchInstance
from tilewright_mappers.optimal.state_tables import States, StateTables

MAX_SUBCLUSTERS = 1024
"""Maximum sub-clusters of a fanout that are laid out to find neighbours (Lemma 14)."""
DECISIONS_SHARE = 8
"""Inverse of the fraction of the memory that decisions take at most."""
PARTS = 8
"""Parts of the states inside a fanout, which are searched one after the other if its states do not fit at once."""
INSIDE_SHARE = 16
"""Inverse of the fraction of the width that states inside such a fanout take at most; a copy of them is kept."""
CHUNK = 1 << 18
"""States times trips per loop that one kernel call expands. Between calls the search checks the time limit."""

PER_TENSOR_ARRAYS = (
    "base_demand", "refetch_factor", "multicast_factor", "copies", "max_log_factor", "min_log_factor", "log_slope",
    "cycles_per_value", "other_cycles", "slope",
)  # fmt: skip
"""Scratch arrays with one value per tensor."""


@dataclass
class DecisionTrace:
    """Decisions that led to each state: rows with a predecessor, a slot and a decision code."""

    predecessor: list[NDArray[np.int32]] = field(default_factory=lambda: [np.array([-1], np.int32)])
    slot: list[NDArray[np.int32]] = field(default_factory=lambda: [np.array([-1], np.int32)])
    decision_code: list[NDArray[np.int32]] = field(default_factory=lambda: [np.array([0], np.int32)])
    count: int = 1
    most: int = 1
    """Maximum number of rows before any were removed."""

    @property
    def bytes(self) -> int:
        """Bytes of all decisions."""
        return 12 * self.count

    @property
    def peak_bytes(self) -> int:
        """Maximum of `bytes` so far."""
        return 12 * max(self.count, self.most)

    def add(self, before: Ints, slot: int, what: Ints) -> Ints:
        """Append rows and return their indices."""
        for rows, column in (
            (self.predecessor, before),
            (self.slot, np.full(len(before), slot)),
            (self.decision_code, what),
        ):
            rows.append(column.astype(np.int32))
        self.count += len(before)
        return np.arange(self.count - len(before), self.count)

    def forget(self, count: int) -> None:
        """Remove all rows but the first `count`, which end with those of one call of `add`."""
        self.most = max(self.most, self.count)
        while self.count > count:
            self.count -= len(self.predecessor.pop())
            self.slot.pop()
            self.decision_code.pop()


@dataclass
class CompleteMappings:
    """Complete mappings with their lower bounds, in ascending order of these."""

    candidates: Candidates
    bounds: Floats
    undercounted: Bools
    """Undercounted: the mapping, or another order of its loops, may cost more than the bound."""
    relaxed: Bools
    """The bound is also one of mappings that an undercounted state dominated (Lemma 18)."""
    may_dominate: Bools
    """The mapping may dominate mappings that were pruned."""
    dominated_cost_factor: float
    """Cost of a dominated mapping divided by the cost of this mapping, at least (Lemma 4)."""


class StagedSearch:
    """One pass of the staged search.

    Args:
        instance: the task as arrays.
        cutoff: the cutoff; states with a higher bound are pruned.
        width: maximum states kept per stage. `truncation_bound` is the lowest bound of a truncated state.
        over: returns whether the time has run out; the search then truncates all states.
        known: a lower bound that is proved; the search ends once its truncated states leave no higher one.
        aims: lower bounds that are enough, if truncated states would leave lower ones; the best one first.
        soon: returns whether it is time for the last of the aims.
        most_bytes: maximum bytes of the tables and decisions. `short_of_memory` tells whether more would have kept
            more states.
    """

    def __init__(
        self,
        instance: SearchInstance,
        cutoff: float,
        width: int,
        over: Callable[[], bool],
        most_bytes: int = 1 << 30,
        known: float = -math.inf,
        aims: Sequence[float] = (),
        soon: Callable[[], bool] = lambda: False,
    ) -> None:
        self.instance, self.width, self.over, self.known, self.soon = instance, width, over, known, soon
        self.aims = [aim for aim in aims if aim > known]
        self.kept_bytes = 0
        self.truncation_bound = math.inf
        self.decisions = DecisionTrace()
        self.counts = np.zeros(3, np.int64)
        self.widest = 0
        free = max(0, most_bytes - instance.outer_traffic.bytes)
        self.most_decisions = free // DECISIONS_SHARE
        self.tables = StateTables(instance.layout, instance.problem.trip.shape, width, free - self.most_decisions)
        self.short_of_memory = False
        self.peak_bytes = 0
        side = max(
            (int((instance.problem.coefficient[t] * instance.problem.sizes)[instance.problem.window_index[t] == r].sum())
             for t in range(instance.tensors) for r in set(instance.problem.window_index[t]) if r >= 0), default=0,
        )  # fmt: skip
        memories = len(instance.space.architecture.memories)
        self.scratch = SearchScratch(
            offsets=np.zeros(2 * side + 2, np.bool_),
            memory_reads=np.zeros(memories),
            memory_writes=np.zeros(memories),
            port_words=np.zeros(len(instance.ports)),
            tiles=np.zeros(instance.dims),
            open_tiles=np.zeros(instance.dims),
            usable=np.zeros(len(instance.space.slots)),
            position=np.zeros(MAX_SUBCLUSTERS, np.int64),
            group=np.zeros(MAX_SUBCLUSTERS, np.int64),
            delivery_size=np.zeros(MAX_SUBCLUSTERS, np.int64),
            hash_table=np.zeros(4 * MAX_SUBCLUSTERS, np.int64),
            has_neighbour=np.zeros(MAX_SUBCLUSTERS, np.int64),
            placed=np.zeros(PER_DIMENSION + 2 * instance.dims, np.int64),
            weight=np.zeros(instance.dims, np.int64),
            **{name: np.zeros(instance.tensors) for name in PER_TENSOR_ARRAYS},
            log_tiles=np.zeros(instance.dims),
            gain=np.zeros(instance.dims),
            along=np.ones(instance.dims),
            within=np.ones(instance.dims),
        )
        self.context = SearchContext(instance.problem, instance.layout, instance.costs, self.scratch, cutoff)

    def run(self) -> CompleteMappings:
        """Run all stages and return the complete mappings that are left."""
        bounds, row, flags = self._outwards(self._start(), len(self.instance.space.skeleton) - 1)
        order = np.argsort(bounds, kind="stable")
        self.short_of_memory |= self.tables.short_of_memory
        filled = self.tables.bytes + self.decisions.peak_bytes + self.kept_bytes
        self.peak_bytes = self.instance.outer_traffic.bytes + filled
        self.tables.tables = []  # frees large arrays
        return self._complete(bounds[order], row[order], flags[order])

    def _outwards(self, states: States, first: int, *, part: bool = False) -> tuple[Floats, Ints, Ints]:
        """Expand states by all entries from one outwards, and return bounds, decisions and flags of the complete ones.

        Args:
            first: index of the innermost entry.
            part: the states are some of those inside the fanout of that entry, without others in a table.
        """
        space, levels = self.instance.space, self.instance.levels
        place = {(slot.entry, slot.spatial): number for number, slot in enumerate(space.slots)}
        number = len(levels) - 1 - sum(entry.holds for entry in space.skeleton.entries[first + 1 :])
        level, outside = self.instance.fanout_level(number), len(space.slots)
        for entry in range(first, -1, -1):
            spatial = levels[number][1]
            if spatial and place.get((entry, True)) == spatial[0]:
                level = self.instance.fanout_level(number)
                if number < len(levels) - 1:
                    states = self._close_forwarding(states)
                aims = [aim for aim in self.aims if aim <= self.truncation_bound]
                if aims and len(states) * INSIDE_SHARE <= self.width:
                    inside, row, before = self._part(states, 0, 1), self.decisions.count, self.truncation_bound
                    known, self.known = self.known, aims[0]  # ends if truncated states leave no higher bound
                    states = self._unroll(states, number, level)
                    self.known = known
                    if self.truncation_bound < aims[0]:
                        self.decisions.forget(row)
                        self.truncation_bound = before
                        return self._in_parts(inside, entry, aims)
                else:
                    states = self._unroll(states, number, level, windows_first=not (part and entry == first))
                outside = spatial[0]
            if space.skeleton.entries[entry].holds:
                states = self._store(states, entry, level, outside)
                number -= 1
            if (entry, False) in place:
                outside = place[entry, False]
                states = self._place_loops(states, entry, outside, level)
        layout = self.instance.layout
        integers = states.integers
        return states.numbers[:, BOUND].copy(), integers[:, layout.decision].copy(), integers[:, layout.flags].copy()

    def _in_parts(self, states: States, entry: int, aims: list[float]) -> tuple[Floats, Ints, Ints]:
        """Expand states inside the fanout of an entry, a part of them after another, up to the best aim that truncation allows.

        All states above an aim are pruned, so it is a truncated bound if it is below the cutoff.
        """
        self.aims, self.kept_bytes = [], states.numbers.nbytes + states.integers.nbytes
        over, known, row, before = self.over, self.known, self.decisions.count, self.truncation_bound
        parts: list[tuple[Floats, Ints, Ints]] = []
        while len(parts) < PARTS:
            self.truncation_bound = min(before, aims[0] if aims[0] < self.context.cutoff else math.inf)
            self.context = self.context._replace(cutoff=min(self.context.cutoff, self.truncation_bound))
            # ends if truncated states leave no more than the next aim
            self.over, self.known = (over, known) if len(aims) == 1 else (self.soon, aims[1])
            part = self._outwards(self._part(states, len(parts), PARTS), entry, part=True)
            if len(aims) > 1 and self.truncation_bound <= aims[1]:
                self.decisions.forget(row)
                aims = aims[1:]
            else:
                parts.append(part)
                row, before = self.decisions.count, self.truncation_bound
        self.over, self.known = over, known
        bounds, rows, flags = zip(*parts, strict=True)
        return np.concatenate(bounds), np.concatenate(rows), np.concatenate(flags)

    def _part(self, states: States, number: int, parts: int) -> States:
        """Return one of several parts of equal size of some states, which no table contains."""
        return States(states.numbers[number::parts].copy(), states.integers[number::parts].copy())

    def _start(self) -> States:
        """Return the state of the compute units, inside all loops."""
        instance, layout = self.instance, self.instance.layout
        numbers, integers = np.zeros((1, layout.numbers)), np.zeros((1, layout.integers), np.int64)
        numbers[0, CYCLES] = instance.relaxation.cycles_per_operation
        open_forwarding = 0
        for t in range(instance.tensors):
            at, demand = FIRST_TENSOR + PER_TENSOR * t, math.prod(instance.space.problem.sizes)
            numbers[0, at + DEMAND] = numbers[0, at + MIN_DEMAND] = 0.0 if instance.problem.unmodelled[t] else demand
            if instance.costs.forwarding and instance.levels[-1][1]:  # the next stages decide which words units share
                integers[0, STATUS] |= STATIONARY << 2 * t
                if instance.problem.ragged:
                    numbers[0, at + MIN_DEMAND] = 0.0
                    open_forwarding |= 1 << FORWARDING_OPEN + t
        integers[0, USED : USED + instance.max_slots] = 1
        integers[0, layout.unrolling : layout.full_key] = 1
        integers[0, layout.tile : layout.integers] = 1
        numbers[0, layout.last_steps : layout.port] = 1.0
        integers[0, layout.flags] = (
            open_forwarding | UNDERCOUNTED * instance.undercounts | ROUNDED_FIRST_READS * instance.rounds_first_reads
        )
        return States(numbers, integers)

    # -- stages ----------------------------------------------------------------------------------------------

    def _unroll(self, states: States, number: int, level: FanoutLevel, *, windows_first: bool = True) -> States:
        """Expand states by all spatial slots of a level.

        Windowed dimensions come first, because forwarding and the full key of Lemma 3 depend on them only. In a part of
        the states the others come first: they leave fewer states, but all need the full key.
        """
        instance, layout = self.instance, self.instance.layout
        spatial, entry = instance.levels[number][1], instance.space.slots[instance.levels[number][1][-1]].entry
        outer, links = instance.outer_context(entry + 1, spatial[0], number), instance.costs.forwarding
        units = links and number == len(instance.levels) - 1
        windowed = np.asarray((instance.problem.window_index >= 0).any(axis=0))
        able = instance.open_trips.copy()
        if not windows_first:
            self._open_forwarding(states, spatial)
        for windows in (windows_first, not windows_first):
            for k in range(len(spatial) - 1, -1, -1):
                for d in range(instance.dims):
                    if windowed[d] == windows and (
                        instance.open_trips[spatial[k], d] or not instance.trips[spatial[k], d, 0]
                    ):
                        full = windows or units or not windows_first
                        key_length = layout.full_key if full else layout.unrolling
                        able[spatial[k], d] = False  # no longer available for later stages
                        outer = outer._replace(open_trips=for_kernel(able.copy()))
                        stage = self._stage(stages.UNROLL, level, outer, spatial[k])
                        stage = stage._replace(dimension=d, position=k, key_length=key_length)
                        states = self._expand(stage, states, spatial[k])
            if windows and links and windowed.any() and not units:
                states = self._expand(self._stage(stages.FIND_FORWARDING, level, outer), states)
        stage = self._stage(stages.END_FANOUT, level, instance.outer_context_of_fanout(number))
        return self._expand(stage._replace(feeds_units=units), states)

    def _open_forwarding(self, states: States, spatial: list[int]) -> None:
        """Let neighbours forward words of all windows that these slots may unroll: minima are lowered from here on."""
        problem = self.instance.problem
        for t in range(self.instance.tensors if self.instance.costs.forwarding else 0):
            able = self.instance.open_trips[spatial] & (problem.window_index[t] >= 0)
            if able.any() and not problem.unmodelled[t] and not problem.ragged_window[t]:
                states.integers[:, self.instance.layout.flags] |= 1 << FORWARDING_OPEN + t

    def _close_forwarding(self, states: States) -> States:
        """Close the forwarding of the last fanout, which no temporal loop separates from the next.

        Each tensor takes the lower bounds of its demand and energy (Lemma 14). The state is undercounted then.
        """
        layout, integers, numbers = self.instance.layout, states.integers, states.numbers
        for t in range(self.instance.tensors):
            some = np.flatnonzero(integers[:, layout.flags] >> (FORWARDING_OPEN + t) & 1)
            at = FIRST_TENSOR + PER_TENSOR * t
            numbers[some, at + DEFERRED] = numbers[some, at + MIN_DEFERRED]
            numbers[some, at + DEMAND] = numbers[some, at + MIN_DEMAND]
            numbers[some, layout.deferred_words[t] : layout.deferred_words[t + 1]] = 0.0
            integers[some, layout.flags] |= UNDERCOUNTED
        integers[:, layout.flags] &= (1 << FORWARDING_OPEN) - 1
        integers[:, STATUS] &= ~NO_LOOP_YET
        integers[:, layout.unrolling : layout.full_key] = 1
        integers[:, layout.fanout_tile : layout.integers] = integers[:, layout.tile : layout.fanout_tile]
        return states

    def _place_loops(self, states: States, entry: int, slot: int, level: FanoutLevel) -> States:
        """Expand states by a block of temporal loops.

        Loops that matter are placed in every order; the others follow in one order (Lemma 2).
        """
        instance = self.instance
        outer = instance.outer_context(entry, slot)
        rule = instance.space.slots[slot].order
        # loops that do not matter follow outside, so those matter that a rule puts there
        ordered = np.full(instance.dims, bool(rule.outermost))
        ordered[list(rule.named)] = True
        surrounding = np.zeros((instance.dims, instance.dims), np.bool_)
        for d in range(instance.dims):
            surrounding[d, list(rule.before(d, instance.dims))] = True
        stage = self._stage(stages.PLACE_LOOP, level, outer, slot)
        stage = stage._replace(ordered=for_kernel(ordered), surrounding=for_kernel(surrounding))
        complete, table = states, self.tables.empty(states)
        while len(states):
            complete = self._expand(stage._replace(kind=stages.CLOSE_BLOCK), states, slot, table)
            states = self._expand(stage, states, slot, self.tables.empty(states, table))
        states = complete
        for d in range(instance.dims):
            able = instance.open_trips[slot, d] or not instance.trips[slot, d, 0]
            if able and (states.integers[:, LOOP_MASK] >> d & 1).any():
                states = self._expand(stage._replace(kind=stages.PLACE_REST, dimension=d), states, slot)
        states.integers[:, LOOP_MASK] = 0
        return states

    def _store(self, states: States, entry: int, level: FanoutLevel, slot: int) -> States:
        """Expand states by a storage entry, once for each set of tensors that it may keep."""
        instance = self.instance
        always = sum(1 << t for t in range(instance.tensors) if instance.always[entry, t])
        free = [1 << t for t in range(instance.tensors) if instance.optional[entry, t]]
        choices = [
            always + sum(chosen) for count in range(len(free) + 1) for chosen in itertools.combinations(free, count)
        ]
        stage = self._stage(stages.STORE, level, instance.outer_context(entry, slot))
        stage = stage._replace(storage=instance.storage_entry(entry), choices=ints(choices))
        return self._expand(stage, states, -1 - entry)

    def _stage(self, kind: int, level: FanoutLevel, outer: OuterContext, slot: int = 0) -> Stage:
        """Return a stage; the caller replaces the fields that its kind needs."""
        instance = self.instance
        return Stage(
            kind=kind,
            outer=outer,
            level=level,
            storage=instance.storage_entry(0),
            choices=ints([0]),
            trips=instance.trips[slot],
            iterable_tiles=instance.iterable_tiles[slot],
            ordered=for_kernel(np.zeros(instance.dims, np.bool_)),
            surrounding=for_kernel(np.zeros((instance.dims, instance.dims), np.bool_)),
            dimension=0,
            position=0,
            feeds_units=False,
            key_length=instance.layout.unrolling,
        )

    def _expand(self, stage: Stage, states: States, decision: int = -1, table: StateTable | None = None) -> States:
        """Expand all states into a table, prune, and truncate.

        Args:
            decision: slot of the stage, or -1 - its entry, as recorded in the decisions.
            table: the table to add successors to; an empty one by default.
        """
        layout, trips = self.instance.layout, self.instance.problem.trip.shape[1]
        table = table or self.tables.empty(states)
        start, count = 0, int(table.counters[0])
        if not len(states) or self._is_over():
            self.truncation_bound = min(self.truncation_bound, states.numbers[:, BOUND].min(initial=math.inf))
            return States(table.rows.numbers[:count], table.rows.integers[:count])
        self.counts[0] -= count  # states already in the table are counted again below
        table.unrollable[:] = stage.outer.open_trips[stage.outer.slot_index > -2].any(axis=0)
        rows = StateRows(states.numbers, states.integers)
        while start < len(states):
            if self._is_over():
                self.truncation_bound = min(self.truncation_bound, states.numbers[start:, BOUND].min())
                break
            stop = min(len(states), start + max(1, CHUNK // trips))
            reached = stages.expand_states(self.context, stage, rows, table, start, stop)
            if reached < stop:
                self._leave_best(table, stage.kind)
                self.counts[0] -= table.counters[0]
            start = reached
        self._leave_best(table, stage.kind)
        count = int(table.counters[0])
        self.widest = max(self.widest, count)
        numbers, integers, codes = table.rows.numbers[:count], table.rows.integers[:count], table.decision_code[:count]
        if stage.kind in (stages.UNROLL, stages.PLACE_LOOP, stages.PLACE_REST, stages.STORE):
            # a loop of one trip, which has index 0, is no decision
            new = np.flatnonzero((codes % trips > 0) | (stage.kind == stages.STORE))
            integers[new, layout.decision] = self.decisions.add(integers[new, layout.decision], decision, codes[new])
        return States(numbers, integers)

    def _is_over(self) -> bool:
        """Return whether time or memory has run out, or nothing more can be proved."""
        full = self.decisions.bytes + self.kept_bytes > self.most_decisions or not self.tables.room
        self.short_of_memory |= full or self.tables.short_of_memory
        return full or self.truncation_bound <= self.known or self.over()

    def _leave_best(self, table: StateTable, kind: int) -> None:
        """Truncate a table, and count its states."""
        before = int(table.counters[0])
        displaced = before - int(np.count_nonzero(table.alive[:before]))
        self.counts += (before, table.counters[1], table.counters[2] + displaced)
        table.counters[1:] = 0
        # the rest of a block expands the states that a closed block leaves
        width = 2 * self.width if kind == stages.CLOSE_BLOCK else self.width
        self.truncation_bound = min(self.truncation_bound, self.tables.leave_best(table, width))

    # -- what comes out --------------------------------------------------------------------------------------

    def _complete(self, bounds: Floats, row: Ints, flags: Ints) -> CompleteMappings:
        """Return the complete mappings of the last states, reconstructed from their decisions.

        Args:
            bounds: [n]: bounds of the states, ascending.
            row: [n]: row of the last decision.
            flags: [n]: flags.
        """
        instance, space = self.instance, self.instance.space
        before, slots, whats = (
            np.concatenate(part)
            for part in (self.decisions.predecessor, self.decisions.slot, self.decisions.decision_code)
        )
        self.decisions = DecisionTrace()
        n, most = len(bounds), instance.problem.trip.shape[1]
        trips = np.ones((n, len(space.slots), instance.dims), np.int64)
        keep = np.broadcast_to(instance.always, (n, *instance.always.shape)).copy()
        temporal = list(space.temporal_slots)
        block = np.full(len(space.slots), -1)
        block[temporal] = np.arange(len(temporal))
        # loops that do not matter are outermost; of the placed loops the outermost is read first
        place = np.broadcast_to(np.arange(-instance.dims, 0), (n, len(temporal), instance.dims)).copy()
        placed = np.zeros((n, len(temporal)), np.int64)
        unfinished = np.arange(n)
        while len(unfinished := unfinished[row[unfinished] > 0]):
            slot, what = slots[row[unfinished]], whats[row[unfinished]]
            held, looped = slot < 0, slot >= 0
            keep[unfinished[held], -1 - slot[held]] = what[held, None] >> np.arange(instance.tensors) & 1
            i, s, (d, j) = unfinished[looped], slot[looped], np.divmod(what[looped], most)
            trips[i, s, d] = instance.problem.trip[d, j]
            i, b, d = (numbers[block[s] >= 0] for numbers in (i, block[s], d))
            place[i, b, d] = placed[i, b]
            placed[i, b] += 1
            row[unfinished] = before[row[unfinished]]
        orders = np.argsort(place, axis=2).astype(np.int8)
        bytes_held = sum(array.nbytes for array in (before, slots, whats, trips, place, orders, keep))
        self.peak_bytes = max(self.peak_bytes, instance.outer_traffic.bytes + bytes_held)
        undercounted = flags & ~ROUNDED_FIRST_READS > 0
        # where first reads are rounded, an undercounted mapping may have dominated others before it was (Lemma 4)
        may_dominate = ~undercounted | instance.rounds_first_reads
        return CompleteMappings(
            Candidates(space, trips, orders, keep),
            bounds,
            undercounted,
            flags & RELAXED > 0,
            may_dominate & (instance.costs.dominance and instance.costs.margin == 0.0),
            instance.dominated_cost_factor(),
        )
