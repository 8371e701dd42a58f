"""Ragged factorisations: tile sizes of a dimension divide one another, but its size need not be a multiple of the outermost.

A dimension has too many of them for a table. The slots are taken from the inside out, dimension by dimension; the state is
what is left of the dimension (see `cuts`) and the room left in every fanout (see `rooms`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace.batch import Floats, Ints
from tilewright.mapspace.counting import EXACT, exactly
from tilewright.mapspace.factoring import faults
from tilewright.mapspace.factoring.cuts import quotients, takes
from tilewright.mapspace.factoring.rooms import Room, room_of, rooms_of, settled, shares_of
from tilewright.mapspace.skeleton import Slot

MAX_CHANCES = 100_000_000
"""Chances of all choices that fit in memory."""


@dataclass(frozen=True)
class Step:
    """What a slot may take of a dimension.

    A state is `left` x `room`: number of what is left, times the rooms of the slot's fanout, plus the number of the room.
    Options of state s are those from start[s] to start[s + 1] - 1: `first` and `count - 1` more trips lead to state `after`.
    """

    axis: int | None
    """The fanout, by its number among those that dimensions share; None: all else, for which there is one room."""
    rooms: int
    start: Ints
    first: Ints
    count: Ints
    after: Ints

    @classmethod
    def of(cls, size: int, lowest: int, highest: int, axis: int | None, whole: Room) -> Step:
        """With `lowest` to `highest` trips; `whole`: the fanout's room when it is not used yet."""
        left = quotients(size)
        number = {each: index for index, each in enumerate(left)}
        rooms = rooms_of(whole)
        place = {room: index for index, room in enumerate(rooms)}
        start, options = [0], []
        for each in left:
            for room in rooms:
                for take in takes(each, "ragged"):
                    shares = shares_of(room) if axis is not None else ()
                    for low, high, after in [(s.first, s.last, place[s.room]) for s in shares] or [(1, highest, 0)]:
                        first, last = max(take.first, low, lowest), min(take.last, high, highest)
                        if first <= last:
                            options.append((first, last - first + 1, number[take.left] * len(rooms) + after))
                start.append(len(options))
        columns = np.array(options, dtype=np.int64).reshape(-1, 3).T
        return cls(axis, len(rooms), np.array(start, dtype=np.int64), *columns)

    def of_states(self, ways: NDArray[Any]) -> NDArray[Any]:
        """An array [left, room of each fanout] as a matrix [state, all other rooms]."""
        if self.axis is not None:
            ways = np.moveaxis(ways, 1 + self.axis, 1)
        return ways.reshape(ways.shape[0] * self.rooms, -1)


class Ragged:
    """All ragged factorisations of `sizes` over `slots`."""

    def __init__(self, sizes: Sequence[int], slots: Sequence[Slot]) -> None:
        self.sizes, self.slots = sizes, slots
        self.inside_out = list(reversed(range(len(slots))))
        self.spatial = [index for index, slot in enumerate(slots) if slot.spatial]
        self.temporal = [index for index, slot in enumerate(slots) if not slot.spatial]
        self.settled, self.shared = settled(slots, sizes)
        self.whole = [room_of(slots[index]) for index in self.shared]

    @cached_property
    def _steps(self) -> list[list[Step | None]]:
        """Per dimension, from the inside out; None where nothing can be taken and nothing has to."""
        made: dict[tuple[int, int, int, int | None], Step] = {}
        steps: list[list[Step | None]] = []
        for dim, size in enumerate(self.sizes):
            steps.append([])
            for index in self.inside_out:
                slot = self.settled[index]
                axis = self.shared.index(index) if index in self.shared else None
                key = size, slot.lowest[dim], slot.highest[dim], axis
                still = key[1] == 1 and (key[2] == 1 or (slot.spatial and slot.most == 1))
                if not still and key not in made:
                    made[key] = Step.of(*key, Room(1, 0) if axis is None else self.whole[axis])
                steps[-1].append(None if still else made[key])
        return steps

    def _ways(self, kind: Any, modulus: int | None = None) -> list[list[NDArray[Any]]]:
        """Per dimension and slot, from the inside out, the ways to finish from every state before it and, at last, after
        the last slot: [left, room of each fanout]."""
        rooms = [rooms_of(whole) for whole in self.whole]
        end = np.ones([len(each) for each in rooms], dtype=kind)
        for axis, each in enumerate(rooms):
            end[(slice(None),) * axis + ([not room.enough for room in each],)] = 0
        result = []
        for size, steps in reversed(list(zip(self.sizes, self._steps, strict=True))):
            ways = np.zeros((len(quotients(size)), *end.shape), dtype=kind)
            ways[0] = end
            found = [ways]
            for step in reversed(steps):
                ways = ways if step is None else _before(step, ways, modulus)
                found.append(ways)
            result.append(found[::-1])
            end = np.asarray(ways[-1], dtype=kind)  # without fanouts an object, not an array
        return result[::-1]

    def _all(self, ways: list[list[NDArray[Any]]]) -> Any:
        """The ways from the very first state."""
        return ways[0][0][(-1, *(rooms_of(whole).index(whole) for whole in self.whole))]

    @cached_property
    def _chances(self) -> list[list[NDArray[np.float64]]]:
        return self._ways(np.float64)

    @cached_property
    def count(self) -> int:
        """How many factorisations there are, exactly."""
        about = float(self._all(self._chances))
        if about < 2**53:  # sums of integers, all of them exact
            return int(about)
        return exactly(lambda prime: int(self._all(self._ways(np.int64, prime))), 2 * int(about))

    # -- rows ------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, count: int) -> list[Ints]:
        """Trips [n, slot] of `count` factorisations, each equally likely: one array per dimension."""
        walk = _Walk(self, count)
        rows = []
        for steps, tables in zip(self._steps, self._tables, strict=True):
            for slot, step, table in zip(self.inside_out, steps, tables, strict=True):
                if step is not None and table is not None:
                    line = walk.line(step)
                    wanted = line + np.minimum(rng.random(count), 1 - 1e-9)
                    option = np.searchsorted(table, wanted, side="right") - walk.others(step) * len(step.first)
                    walk.take(slot, step, option, (rng.random(count) * step.count[option]).astype(np.int64))
            rows.append(walk.finish())
        return rows

    @cached_property
    def _tables(self) -> list[list[Floats | None]]:
        """Per dimension and slot the chances of all options, summed up within each state and shifted by the state's
        number, so that one sorted search serves all states: [other rooms, option], flat."""
        size = sum(
            len(step.first) * math.prod(len(rooms_of(each)) for each in self.whole) // step.rooms
            for step in {id(step): step for steps in self._steps for step in steps if step}.values()
        )
        if size > MAX_CHANCES:
            raise SpaceTooLargeError(
                f"{size} chances are too many to draw ragged factors from", hint="constrain what is unrolled where"
            )
        return [
            [None if step is None else _summed(step, *pair) for step, pair in zip(steps, pairwise(ways), strict=True)]
            for steps, ways in zip(self._steps, self._chances, strict=True)
        ]

    def unrank(self, start: int, stop: int) -> list[Ints]:
        """Trips [n, slot] of the factorisations number `start` to `stop`, none twice: one array per dimension."""
        kind = np.int64 if self.count < EXACT else np.object_
        rest: NDArray[Any] = np.arange(start, stop, dtype=kind)
        walk = _Walk(self, len(rest))
        rows = []
        for steps, ways in zip(self._steps, self._exact, strict=True):
            for slot, step, after in zip(self.inside_out, steps, ways[1:], strict=True):
                if step is None:
                    continue
                line, table = walk.line(step), step.of_states(after)
                states = walk.state(step)
                option, more = np.zeros((2, len(rest)), dtype=np.int64)
                for each in np.unique(line).tolist():
                    here = np.flatnonzero(line == each)
                    options = slice(*step.start[states[here[0]] :][:2].tolist())
                    way = table[step.after[options], walk.others(step)[here[0]]]
                    ends = np.cumsum(way * step.count[options].astype(kind))
                    found = np.searchsorted(ends, rest[here], side="right")
                    rest[here] -= np.append(np.zeros(1, dtype=kind), ends)[found]
                    option[here] = step.start[states[here[0]]] + found
                    more[here] = rest[here] // way[found]
                    rest[here] = rest[here] % way[found]
                walk.take(slot, step, option, more)
            rows.append(walk.finish())
        return rows

    @cached_property
    def _exact(self) -> list[list[NDArray[Any]]]:
        return self._ways(np.int64 if self.count < EXACT else np.object_)

    # -- what rows stand for ---------------------------------------------------------------------------------

    def trips(self, rows: list[Ints]) -> Ints:
        """Trip counts [n, slot, dimension] of rows."""
        return np.stack(rows, axis=2)

    @cached_property
    def able(self) -> list[tuple[int, ...]]:
        """Per temporal slot the dimensions that may have a non-unit loop there."""
        return [
            tuple(dim for dim, size in enumerate(self.sizes) if min(size, self.slots[index].highest[dim]) > 1)
            for index in self.temporal
        ]

    def patterns(self, rows: list[Ints]) -> Ints:
        """Which dimensions have a non-unit loop in each temporal slot, as bits (see `OrderTable`): [n, temporal slot]."""
        result = np.zeros((len(rows[0]), len(self.temporal)), dtype=np.int64)
        for column, (index, able) in enumerate(zip(self.temporal, self.able, strict=True)):
            for bit, dim in enumerate(able):
                result[:, column] |= (rows[dim][:, index] > 1).astype(np.int64) << bit
        return result

    # -- why there is none -----------------------------------------------------------------------------------

    def fault(self, names: Sequence[str], describe: Sequence[str]) -> str:
        """Why there is no factorisation; `names` of the dimensions, `describe` the slots."""
        free = [replace(slot, least=1) for slot in self.slots]
        for dim, size in enumerate(self.sizes):
            alone = [replace(slot, lowest=(slot.lowest[dim],), highest=(slot.highest[dim],)) for slot in free]
            if not Ragged([size], alone).count:
                return faults.of_dimension(names[dim], size, dim, self.slots, describe)
        for index in self.spatial:
            slot = self.slots[index]

            def uses(least: int, index: int = index, slot: Slot = slot) -> bool:
                return Ragged(self.sizes, [*free[:index], replace(slot, least=least), *free[index + 1 :]]).count > 0

            if uses(1) and not uses(slot.least):
                reached = next(least for least in range(slot.least - 1, 0, -1) if uses(least))
                return faults.of_fanout(slot, reached, describe[index])
        return faults.of_fanouts([self.slots[index] for index in self.spatial], [describe[i] for i in self.spatial])


class _Walk:
    """Where `n` factorisations stand that are made slot by slot."""

    def __init__(self, space: Ragged, n: int) -> None:
        self.space, self.n = space, n
        self.sizes = [len(rooms_of(whole)) for whole in space.whole]
        self.room = [np.full(n, rooms_of(whole).index(whole), dtype=np.int64) for whole in space.whole]
        self.finished = 0
        self._begin()

    def _begin(self) -> None:
        size = self.space.sizes[self.finished] if self.finished < len(self.space.sizes) else 1
        self.left = np.full(self.n, len(quotients(size)) - 1, dtype=np.int64)
        self.trips = np.ones((self.n, len(self.space.slots)), dtype=np.int64)

    def state(self, step: Step) -> Ints:
        """The state of each, [n]."""
        return self.left if step.axis is None else self.left * step.rooms + self.room[step.axis]

    def others(self, step: Step) -> Ints:
        """The rooms of all other fanouts, as one number, [n]."""
        number = np.zeros(self.n, dtype=np.int64)
        for axis, (room, size) in enumerate(zip(self.room, self.sizes, strict=True)):
            if axis != step.axis:
                number = number * size + room
        return number

    def line(self, step: Step) -> Ints:
        """State and other rooms as one number, [n]."""
        return self.others(step) * (len(step.start) - 1) + self.state(step)

    def take(self, slot: int, step: Step, option: Ints, more: Ints) -> None:
        """An option each, and so many more than its first trips."""
        self.trips[:, slot] = step.first[option] + more
        self.left, room = np.divmod(step.after[option], step.rooms)
        if step.axis is not None:
            self.room[step.axis] = room

    def finish(self) -> Ints:
        """The trips of a dimension, [n, slot]; the next one begins."""
        trips = self.trips
        self.finished += 1
        self._begin()
        return trips


def _before(step: Step, ways: NDArray[Any], modulus: int | None) -> NDArray[Any]:
    """Ways to finish from before a step, if `ways` are those from after it."""
    after = step.of_states(ways)
    before = np.zeros_like(after)
    for state, (start, stop) in enumerate(zip(step.start[:-1].tolist(), step.start[1:].tolist(), strict=True)):
        if start < stop:
            before[state] = step.count[start:stop].astype(after.dtype) @ after[step.after[start:stop]]
    if modulus is not None:
        before %= modulus
    if step.axis is None:
        return before.reshape(ways.shape)
    shape = np.moveaxis(ways, 1 + step.axis, 1).shape
    return np.moveaxis(before.reshape(shape), 1, 1 + step.axis)


def _summed(step: Step, before: NDArray[np.float64], after: NDArray[np.float64]) -> Floats:
    """See `Ragged._tables`."""
    options = np.diff(step.start)
    states = np.repeat(np.arange(len(options)), options)
    total = step.of_states(before)[states]
    chances = step.of_states(after)[step.after] * step.count[:, None] / np.where(total > 0, total, 1.0)
    sums = np.cumsum(np.concatenate([np.zeros((1, chances.shape[1])), chances]), axis=0)
    limits = sums[1:] - sums[step.start[:-1]][states] + states[:, None]
    return np.asarray((limits + len(options) * np.arange(chances.shape[1])).T.reshape(-1))
