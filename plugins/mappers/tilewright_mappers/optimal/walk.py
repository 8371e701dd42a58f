"""Staged search: a layered dynamic program over states, from the compute units outwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import for_kernel
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.candidates import Candidates
from tilewright_mappers.optimal.kernel import stages
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    CYCLES,
    EACH,
    FIRST,
    FRESH,
    INEXACT,
    LEAST_OWED,
    LEAST_PENDING,
    LINKED,
    MASK,
    OWED,
    PENDING,
    ROUNDED,
    STATUS,
    USED,
)
from tilewright_mappers.optimal.kernel.tables import STILL, Ahead, Bag, Keeping, Level, Work
from tilewright_mappers.optimal.setup import Setup
from tilewright_mappers.optimal.states import Bags, States

SUB_CLUSTERS = 1024
"""Maximum sub-clusters of a fanout that are laid out to find neighbours (Lemma 14)."""
PIECE = 1 << 18
"""States times trips per loop that one kernel call expands.

Between calls the search checks the time limit.
"""

BY_TENSOR = "once", "again", "spare", "copies", "most", "need", "steep", "cycles", "beside", "slope"
"""Scratch arrays with one value per tensor."""


@dataclass
class Trace:
    """Decisions that led to each state: rows with a predecessor, a slot and a decision code."""

    before: list[NDArray[np.int32]] = field(default_factory=lambda: [np.array([-1], np.int32)])
    slot: list[NDArray[np.int32]] = field(default_factory=lambda: [np.array([-1], np.int32)])
    what: list[NDArray[np.int32]] = field(default_factory=lambda: [np.array([0], np.int32)])
    count: int = 1

    def add(self, before: Ints, slot: int, what: Ints) -> Ints:
        """Append rows and return their indices."""
        for rows, column in ((self.before, before), (self.slot, np.full(len(before), slot)), (self.what, what)):
            rows.append(column.astype(np.int32))
        self.count += len(before)
        return np.arange(self.count - len(before), self.count)


@dataclass
class Finals:
    """Complete mappings with their lower bounds, in ascending order of these."""

    candidates: Candidates
    bounds: Floats
    inexact: Bools
    """Undercounted: the mapping, or another order of its loops, may cost more than the bound."""
    displaces: Bools
    """The mapping may dominate mappings that were pruned."""


class Walk:
    """One pass of the staged search.

    Args:
        setup: the task as arrays.
        limit: the cutoff; states with a higher bound are pruned.
        width: maximum states kept per stage. `lost` is the lowest bound of a truncated state.
        over: returns whether the time has run out; the search then truncates all states.
    """

    def __init__(self, setup: Setup, limit: float, width: int, over: Callable[[], bool]) -> None:
        self.setup, self.limit, self.width, self.over = setup, limit, width, over
        self.lost = math.inf
        self.trace = Trace()
        self.counts = np.zeros(3, np.int64)
        self.widest = 0
        self.bags = Bags(setup.layout, setup.shape.trip.shape, width)
        self.shared = setup.shared(0)
        side = max(
            (int((setup.shape.coefficient[t] * setup.shape.sizes)[setup.shape.rank[t] == r].sum())
             for t in range(setup.tensors) for r in set(setup.shape.rank[t]) if r >= 0), default=0,
        )  # fmt: skip
        memories = len(setup.space.architecture.memories)
        self.work = Work(
            reached=np.zeros(2 * side + 2, np.bool_),
            words=np.zeros(memories),
            written=np.zeros(memories),
            ports=np.zeros(len(setup.ports)),
            rest=np.zeros(setup.dims),
            room=np.zeros(len(setup.space.slots)),
            place=np.zeros(SUB_CLUSTERS, np.int64),
            group=np.zeros(SUB_CLUSTERS, np.int64),
            size=np.zeros(SUB_CLUSTERS, np.int64),
            table=np.zeros(4 * SUB_CLUSTERS, np.int64),
            meets=np.zeros(SUB_CLUSTERS, np.int64),
            weight=np.zeros(setup.dims, np.int64),
            **{name: np.zeros(setup.tensors) for name in BY_TENSOR},
            log=np.zeros(setup.dims),
            gain=np.zeros(setup.dims),
            along=np.ones(setup.dims),
            within=np.ones(setup.dims),
        )

    def run(self) -> Finals:
        """Run all stages and return the complete mappings that are left."""
        space = self.setup.space
        place = {(slot.entry, slot.spatial): number for number, slot in enumerate(space.slots)}
        number = len(self.setup.levels) - 1
        states, level, outside = self._start(), self.setup.level(number), len(space.slots)
        for entry in range(len(space.skeleton) - 1, -1, -1):
            spatial = self.setup.levels[number][1]
            if spatial and place.get((entry, True)) == spatial[0]:
                level = self.setup.level(number)
                states = self._unroll(states, number, level)
                outside = spatial[0]
            if space.skeleton.entries[entry].holds:
                states = self._hold(states, entry, level, outside)
                number -= 1
            if (entry, False) in place:
                outside = place[entry, False]
                states = self._steps(states, entry, outside, level)
        return self._finals(states)

    def _start(self) -> States:
        setup, layout = self.setup, self.setup.layout
        numbers, integers = np.zeros((1, layout.numbers)), np.zeros((1, layout.integers), np.int64)
        numbers[0, CYCLES] = setup.relaxation.cycles_per_operation
        linked = 0
        for t in range(setup.tensors):
            at, owed = FIRST + EACH * t, math.prod(setup.space.problem.sizes)
            numbers[0, at + OWED] = numbers[0, at + LEAST_OWED] = 0.0 if setup.shape.odd[t] else owed
            if setup.costing.links and setup.levels[-1][1]:  # the next stages decide which words units share
                integers[0, STATUS] |= STILL << 2 * t
                if setup.shape.ragged:
                    numbers[0, at + LEAST_OWED] = 0.0
                    linked |= 1 << LINKED + t
        integers[0, USED : USED + setup.most_slots] = 1
        integers[0, layout.conf : layout.keys] = 1
        integers[0, layout.tile : layout.tile + setup.dims] = 1
        numbers[0, layout.last : layout.port] = 1.0
        integers[0, layout.flag] = linked | INEXACT * setup.counts_in_part | ROUNDED * setup.rounded
        return States(numbers, integers)

    # -- stages ----------------------------------------------------------------------------------------------

    def _unroll(self, states: States, number: int, level: Level) -> States:
        """Expand states by all spatial slots of a level.

        Windowed dimensions come first, because forwarding and the full key of Lemma 3 depend on
        them only.
        """
        setup, layout = self.setup, self.setup.layout
        spatial, entry = setup.levels[number][1], setup.space.slots[setup.levels[number][1][-1]].entry
        ahead, links = setup.ahead(entry + 1, spatial[0], number), setup.costing.links
        units = links and number == len(setup.levels) - 1
        if number < len(setup.levels) - 1:
            states = self._forget_neighbours(states)
        windowed = np.asarray((setup.shape.rank >= 0).any(axis=0))
        able = setup.able.copy()
        self.shared = setup.shared(number)
        for windows in (True, False):
            for k in range(len(spatial) - 1, -1, -1):
                for d in range(setup.dims):
                    if windowed[d] == windows and (setup.able[spatial[k], d] or not setup.trips[spatial[k], d, 0]):
                        keys = layout.keys if windows or units else layout.conf
                        able[spatial[k], d] = False  # no longer available for later stages
                        ahead = ahead._replace(able=for_kernel(able.copy()))
                        states = self._stage(stages.UNROLL, states, level, ahead, spatial[k], d, k, keys=keys)
            if windows and links and windowed.any() and not units:
                states = self._stage(stages.LINKS, states, level, ahead)
        return self._stage(stages.LEAVE, states, level, setup.ahead_of_fanout(number), position=int(units))

    def _forget_neighbours(self, states: States) -> States:
        """Close the forwarding of the last fanout, which no temporal loop separates from the next.

        Each tensor takes the lower bounds of its demand and energy (Lemma 14). The state is
        undercounted then.
        """
        layout, integers, numbers = self.setup.layout, states.integers, states.numbers
        for t in range(self.setup.tensors):
            some = np.flatnonzero(integers[:, layout.flag] >> (LINKED + t) & 1)
            at = FIRST + EACH * t
            numbers[some, at + PENDING] = numbers[some, at + LEAST_PENDING]
            numbers[some, at + OWED] = numbers[some, at + LEAST_OWED]
            numbers[some, layout.pending[t] : layout.pending[t + 1]] = 0.0
            integers[some, layout.flag] |= INEXACT
        integers[:, layout.flag] &= (1 << LINKED) - 1
        integers[:, STATUS] &= ~FRESH
        integers[:, layout.conf : layout.keys] = 1
        return states

    def _steps(self, states: States, entry: int, slot: int, level: Level) -> States:
        """Expand states by a block of temporal loops.

        Loops that matter are placed in every order; the others follow in one order (Lemma 2).
        """
        setup = self.setup
        ahead = setup.ahead(entry, slot)
        named = np.full(setup.dims, -1, np.int64)
        for place, d in enumerate(setup.space.slots[slot].order):
            named[d] = place
        closed, bag = states, self.bags.empty(states)
        while len(states):
            closed = self._stage(stages.CLOSE, states, level, ahead, slot, named=named, bag=bag)
            after = self.bags.empty(states, bag)
            states = self._stage(stages.BRANCH, states, level, ahead, slot, named=named, bag=after)
        states = closed
        for d in range(setup.dims):
            able = setup.able[slot, d] or not setup.trips[slot, d, 0]
            if able and (states.integers[:, MASK] >> d & 1).any():
                states = self._stage(stages.REST, states, level, ahead, slot, d, named=named)
        states.integers[:, MASK] = 0
        return states

    def _hold(self, states: States, entry: int, level: Level, slot: int) -> States:
        """Expand states by a storage entry, once for each set of tensors that it may keep."""
        setup = self.setup
        always = sum(1 << t for t in range(setup.tensors) if setup.always[entry, t])
        free = [1 << t for t in range(setup.tensors) if setup.free[entry, t]]
        choices = [
            always + sum(chosen) for count in range(len(free) + 1) for chosen in itertools.combinations(free, count)
        ]
        keeping, ahead = setup.keeping(entry), setup.ahead(entry, slot)
        return self._stage(stages.HOLD, states, level, ahead, -1 - entry, keeping=keeping, choices=choices)

    def _stage(
        self,
        kind: int,
        states: States,
        level: Level,
        ahead: Ahead,
        slot: int = -1,
        dimension: int = 0,
        position: int = 0,
        named: Ints | None = None,
        keeping: Keeping | None = None,
        choices: list[int] | None = None,
        keys: int | None = None,
        bag: Bag | None = None,
    ) -> States:
        """Run one stage: expand all states into a table, prune, and truncate."""
        setup, layout = self.setup, self.setup.layout
        bag = bag or self.bags.empty(states)
        start, count = 0, int(bag.made[0])
        if not len(states) or self.over():
            self.lost = min(self.lost, states.numbers[:, BOUND].min(initial=math.inf))
            return States(bag.numbers[:count], bag.integers[:count])
        self.counts[0] -= count  # states already in the table are counted again below
        bag.open[:] = ahead.able[ahead.slots > -2].any(axis=0)
        plain = for_kernel(np.full(setup.dims, -1, np.int64) if named is None else named)
        kept = for_kernel(np.array(choices or [0], np.int64))
        numbers, integers = for_kernel(states.numbers), for_kernel(states.integers)
        while start < len(states):
            if self.over():
                self.lost = min(self.lost, states.numbers[start:, BOUND].min())
                break
            stop = min(len(states), start + max(1, PIECE // setup.shape.trip.shape[1]))
            reached = stages.walk(
                kind,
                setup.shape,
                layout,
                level,
                ahead,
                setup.costing,
                keeping or setup.keeping(0),
                self.shared,
                setup.trips[max(0, slot)],
                setup.tiles[max(0, slot)],
                plain,
                kept,
                dimension,
                position,
                self.limit,
                numbers,
                integers,
                layout.conf if keys is None else keys,
                bag,
                self.work,
                start,
                stop,
            )
            if reached < stop:
                self._leave_best(bag, kind)
                self.counts[0] -= bag.made[0]
            start = reached
        self._leave_best(bag, kind)
        count = int(bag.made[0])
        numbers, integers, what = bag.numbers[:count], bag.integers[:count], bag.what[:count]
        self.widest = max(self.widest, count)
        if kind in (stages.UNROLL, stages.BRANCH, stages.REST, stages.HOLD):
            new = np.arange(len(what)) if kind == stages.HOLD else what % setup.shape.trip.shape[1] > 0
            if kind != stages.HOLD:
                new = np.flatnonzero(new)
            integers[new, layout.trace] = self.trace.add(integers[new, layout.trace], slot, what[new])
        return States(numbers, integers)

    def _leave_best(self, bag: Bag, kind: int) -> None:
        before = int(bag.made[0])
        displaced = before - int(np.count_nonzero(bag.alive[:before]))
        self.counts += (before, bag.made[1], bag.made[2] + displaced)
        bag.made[1:] = 0
        width = (
            2 * self.width if kind == stages.CLOSE else self.width
        )  # loops of the rest of the block still multiply these states
        self.lost = min(self.lost, self.bags.leave_best(bag, width))

    # -- what comes out --------------------------------------------------------------------------------------

    def _finals(self, states: States) -> Finals:
        """Return the complete mappings of the last states, reconstructed from their decisions."""
        setup, space = self.setup, self.setup.space
        before, slots, whats = (np.concatenate(part) for part in (self.trace.before, self.trace.slot, self.trace.what))
        n, most = len(states), setup.shape.trip.shape[1]
        order = np.argsort(states.numbers[:, BOUND], kind="stable")
        states = States(states.numbers[order], states.integers[order])
        self.trace, self.bags.bags = Trace(), []  # free large arrays
        trips = np.ones((n, len(space.slots), setup.dims), np.int64)
        keep = np.broadcast_to(setup.always, (n, *setup.always.shape)).copy()
        temporal = list(space.temporal_slots)
        block = np.full(len(space.slots), -1)
        block[temporal] = np.arange(len(temporal))
        # loops that do not matter are outermost; of the placed loops the outermost is read first
        place = np.broadcast_to(np.arange(-setup.dims, 0), (n, len(temporal), setup.dims)).copy()
        named = np.zeros((n, len(temporal)), np.int64)
        row, left = states.integers[:, setup.layout.trace].copy(), np.arange(n)
        while len(left := left[row[left] > 0]):
            slot, what = slots[row[left]], whats[row[left]]
            held, looped = slot < 0, slot >= 0
            keep[left[held], -1 - slot[held]] = what[held, None] >> np.arange(setup.tensors) & 1
            i, s, (d, j) = left[looped], slot[looped], np.divmod(what[looped], most)
            trips[i, s, d] = setup.shape.trip[d, j]
            i, b, d = (numbers[block[s] >= 0] for numbers in (i, block[s], d))
            place[i, b, d] = named[i, b]
            named[i, b] += 1
            row[left] = before[row[left]]
        orders = np.argsort(place, axis=2).astype(np.int8)
        inexact = states.integers[:, setup.layout.flag] & ~ROUNDED > 0
        return Finals(
            Candidates(space, trips, orders, keep),
            states.numbers[:, BOUND],
            inexact,
            ~inexact & (setup.costing.dominate and setup.costing.margin == 0.0),
        )
