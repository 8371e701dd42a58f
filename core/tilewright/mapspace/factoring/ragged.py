"""Ragged factorisations: tile sizes of a dimension divide one another, except for the whole dimension.

The size of the dimension need not be a multiple of the outermost tile size. A dimension has too many such
factorisations for a table. Dimensions are processed in sequence, and the slots of each from the inside out. The state
is the remaining size of the dimension (see `cuts`) and the remaining fanouts (see `fanouts`).
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
from tilewright.mapspace.counting import MAX_EXACT, exactly
from tilewright.mapspace.factoring import faults
from tilewright.mapspace.factoring.cuts import quotients, trip_intervals
from tilewright.mapspace.factoring.fanouts import (
    RemainingFanout,
    fanout_uses,
    reachable_fanouts,
    remaining_fanout,
    tighten_single_dimension_fanouts,
)
from tilewright.mapspace.skeleton import Slot

MAX_CHANCES = 100_000_000
"""Maximum number of sampling probabilities, which must fit in memory."""


@dataclass(frozen=True)
class SlotChoices:
    """Choices of trips of one slot for one dimension.

    A state combines the remaining size with the remaining fanout. Its index is the index of the size, times
    `fanout_states`, plus the index of the fanout. State s has the choices start[s] to start[s + 1] - 1. A choice
    represents the `count` trip counts from `first` on, which all lead to state `after`.
    """

    axis: int | None
    """Index of the fanout among those that several dimensions use; None if the slot uses none of them."""
    fanout_states: int
    start: Ints
    first: Ints
    count: Ints
    after: Ints

    @classmethod
    def of(cls, size: int, lowest: int, highest: int, axis: int | None, whole: RemainingFanout) -> SlotChoices:
        """Return the choices of `lowest` to `highest` trips; `whole` is the unused fanout."""
        left = quotients(size)
        number = {remainder: index for index, remainder in enumerate(left)}
        fanout_states = reachable_fanouts(whole)
        place = {fanout_state: index for index, fanout_state in enumerate(fanout_states)}
        start, options = [0], []
        for remainder in left:
            for fanout_state in fanout_states:
                for interval in trip_intervals(remainder, "ragged"):
                    uses = fanout_uses(fanout_state) if axis is not None else ()
                    for low, high, after in [(s.first, s.last, place[s.remaining]) for s in uses] or [(1, highest, 0)]:
                        first, last = max(interval.first, low, lowest), min(interval.last, high, highest)
                        if first <= last:
                            options.append(
                                (first, last - first + 1, number[interval.left] * len(fanout_states) + after)
                            )
                start.append(len(options))
        columns = np.array(options, dtype=np.int64).reshape(-1, 3).T
        return cls(axis, len(fanout_states), np.array(start, dtype=np.int64), *columns)

    def of_states(self, ways: NDArray[Any]) -> NDArray[Any]:
        """Return an array [size, remaining use of each fanout] as a matrix [state, all other fanouts]."""
        if self.axis is not None:
            ways = np.moveaxis(ways, 1 + self.axis, 1)
        return ways.reshape(ways.shape[0] * self.fanout_states, -1)


class Ragged:
    """Ragged factorisations of `sizes` over `slots`."""

    def __init__(self, sizes: Sequence[int], slots: Sequence[Slot]) -> None:
        self.sizes, self.slots = sizes, slots
        self.inside_out = list(reversed(range(len(slots))))
        self.spatial = [index for index, slot in enumerate(slots) if slot.spatial]
        self.temporal = [index for index, slot in enumerate(slots) if not slot.spatial]
        self.tightened, self.shared = tighten_single_dimension_fanouts(slots, sizes)
        self.whole = [remaining_fanout(slots[index]) for index in self.shared]

    @cached_property
    def _slot_choices(self) -> list[list[SlotChoices | None]]:
        """Choices of each slot per dimension, from the inside out.

        None means that the slot has exactly one trip.
        """
        made: dict[tuple[int, int, int, int | None], SlotChoices] = {}
        slot_choices: list[list[SlotChoices | None]] = []
        for dim, size in enumerate(self.sizes):
            slot_choices.append([])
            for index in self.inside_out:
                slot = self.tightened[index]
                axis = self.shared.index(index) if index in self.shared else None
                key = size, slot.lowest[dim], slot.highest[dim], axis
                still = key[1] == 1 and (key[2] == 1 or (slot.spatial and slot.most == 1))
                if not still and key not in made:
                    made[key] = SlotChoices.of(*key, RemainingFanout(1, 0) if axis is None else self.whole[axis])
                slot_choices[-1].append(None if still else made[key])
        return slot_choices

    def _ways(self, kind: Any, modulus: int | None = None) -> list[list[NDArray[Any]]]:
        """Return the ways to finish from each state, per dimension and slot, from the inside out.

        Each list begins with the states before the first slot and ends with those after the last.
        Arrays are [remaining size, remaining use of each fanout].
        """
        fanout_states = [reachable_fanouts(whole) for whole in self.whole]
        end = np.ones([len(state) for state in fanout_states], dtype=kind)
        for axis, state in enumerate(fanout_states):
            end[(slice(None),) * axis + ([not fanout_state.enough for fanout_state in state],)] = 0
        result = []
        for size, slot_choices in reversed(list(zip(self.sizes, self._slot_choices, strict=True))):
            ways = np.zeros((len(quotients(size)), *end.shape), dtype=kind)
            ways[0] = end
            arrays = [ways]
            for choices in reversed(slot_choices):
                ways = ways if choices is None else _before(choices, ways, modulus)
                arrays.append(ways)
            result.append(arrays[::-1])
            end = np.asarray(ways[-1], dtype=kind)  # without fanouts, the element is an object and not an array
        return result[::-1]

    def _all(self, ways: list[list[NDArray[Any]]]) -> Any:
        """Return the number of ways from the initial state."""
        return ways[0][0][(-1, *(reachable_fanouts(whole).index(whole) for whole in self.whole))]

    @cached_property
    def _chances(self) -> list[list[NDArray[np.float64]]]:
        return self._ways(np.float64)

    @cached_property
    def count(self) -> int:
        """Exact number of factorisations."""
        about = float(self._all(self._chances))
        if about < 2**53:  # the sums are exact: all terms are integers
            return int(about)
        return exactly(lambda prime: int(self._all(self._ways(np.int64, prime))), 2 * int(about))

    # -- rows ------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, count: int) -> list[Ints]:
        """Draw `count` factorisations uniformly; return their trips [n, slot], one array per dimension."""
        draft = _Draft(self, count)
        rows = []
        for slot_choices, tables in zip(self._slot_choices, self._tables, strict=True):
            for slot, choices, table in zip(self.inside_out, slot_choices, tables, strict=True):
                if choices is not None and table is not None:
                    line = draft.line(choices)
                    wanted = line + np.minimum(rng.random(count), 1 - 1e-9)
                    option = np.searchsorted(table, wanted, side="right") - draft.others(choices) * len(choices.first)
                    draft.take(slot, choices, option, (rng.random(count) * choices.count[option]).astype(np.int64))
            rows.append(draft.finish())
        return rows

    @cached_property
    def _tables(self) -> list[list[Floats | None]]:
        """Cumulative probabilities of all choices, per dimension and slot, flat [other fanouts, choice].

        They are summed within each state and shifted by the state's index. One sorted search then serves all states.
        """
        size = sum(
            len(choices.first)
            * math.prod(len(reachable_fanouts(fanout)) for fanout in self.whole)
            // choices.fanout_states
            for choices in {
                id(choices): choices for slot_choices in self._slot_choices for choices in slot_choices if choices
            }.values()
        )
        if size > MAX_CHANCES:
            raise SpaceTooLargeError(
                f"{size} probabilities for drawing ragged factors do not fit in memory",
                hint="constrain what is unrolled where",
            )
        return [
            [
                None if choices is None else _summed(choices, *pair)
                for choices, pair in zip(slot_choices, pairwise(ways), strict=True)
            ]
            for slot_choices, ways in zip(self._slot_choices, self._chances, strict=True)
        ]

    def unrank(self, start: int, stop: int) -> list[Ints]:
        """Return trips [n, slot] of factorisations `start` to `stop` - 1, one array per dimension."""
        kind = np.int64 if self.count < MAX_EXACT else np.object_
        rest: NDArray[Any] = np.arange(start, stop, dtype=kind)
        draft = _Draft(self, len(rest))
        rows = []
        for slot_choices, ways in zip(self._slot_choices, self._exact, strict=True):
            for slot, choices, after in zip(self.inside_out, slot_choices, ways[1:], strict=True):
                if choices is None:
                    continue
                line, table = draft.line(choices), choices.of_states(after)
                states = draft.state(choices)
                option, more = np.zeros((2, len(rest)), dtype=np.int64)
                for row in np.unique(line).tolist():
                    here = np.flatnonzero(line == row)
                    options = slice(*choices.start[states[here[0]] :][:2].tolist())
                    way = table[choices.after[options], draft.others(choices)[here[0]]]
                    ends = np.cumsum(way * choices.count[options].astype(kind))
                    place = np.searchsorted(ends, rest[here], side="right")
                    rest[here] -= np.append(np.zeros(1, dtype=kind), ends)[place]
                    option[here] = choices.start[states[here[0]]] + place
                    more[here] = rest[here] // way[place]
                    rest[here] = rest[here] % way[place]
                draft.take(slot, choices, option, more)
            rows.append(draft.finish())
        return rows

    @cached_property
    def _exact(self) -> list[list[NDArray[Any]]]:
        return self._ways(np.int64 if self.count < MAX_EXACT else np.object_)

    # -- decoding rows -------------------------------------------------------------------------------------

    def trips(self, rows: list[Ints]) -> Ints:
        """Return the trip counts [n, slot, dimension] of rows."""
        return np.stack(rows, axis=2)

    @cached_property
    def able(self) -> list[tuple[int, ...]]:
        """Dimensions that may have a non-unit loop in each temporal slot."""
        return [
            tuple(dim for dim, size in enumerate(self.sizes) if min(size, self.slots[index].highest[dim]) > 1)
            for index in self.temporal
        ]

    def patterns(self, rows: list[Ints]) -> Ints:
        """Return the dimensions with a non-unit loop in each temporal slot, as bits: [n, temporal slot].

        `OrderTable` defines the bits.
        """
        result = np.zeros((len(rows[0]), len(self.temporal)), dtype=np.int64)
        for column, (index, able) in enumerate(zip(self.temporal, self.able, strict=True)):
            for bit, dim in enumerate(able):
                result[:, column] |= (rows[dim][:, index] > 1).astype(np.int64) << bit
        return result

    # -- explaining an empty space -------------------------------------------------------------------------

    def fault(self, names: Sequence[str], describe: Sequence[str]) -> str:
        """Return the reason why there is no factorisation.

        `names` are those of the dimensions, and `describe` those of the slots.
        """
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


class _Draft:
    """Progress of `n` factorisations that are built slot by slot."""

    def __init__(self, space: Ragged, n: int) -> None:
        self.space, self.n = space, n
        self.sizes = [len(reachable_fanouts(whole)) for whole in space.whole]
        self.fanout_state = [np.full(n, reachable_fanouts(whole).index(whole), dtype=np.int64) for whole in space.whole]
        self.finished = 0
        self._begin()

    def _begin(self) -> None:
        size = self.space.sizes[self.finished] if self.finished < len(self.space.sizes) else 1
        self.left = np.full(self.n, len(quotients(size)) - 1, dtype=np.int64)
        self.trips = np.ones((self.n, len(self.space.slots)), dtype=np.int64)

    def state(self, choices: SlotChoices) -> Ints:
        """Return the state of each factorisation, [n]."""
        return (
            self.left if choices.axis is None else self.left * choices.fanout_states + self.fanout_state[choices.axis]
        )

    def others(self, choices: SlotChoices) -> Ints:
        """Return the remaining use of all other fanouts as one index, [n]."""
        number = np.zeros(self.n, dtype=np.int64)
        for axis, (fanout_state, size) in enumerate(zip(self.fanout_state, self.sizes, strict=True)):
            if axis != choices.axis:
                number = number * size + fanout_state
        return number

    def line(self, choices: SlotChoices) -> Ints:
        """Return the state and the remaining use of the other fanouts as one index, [n]."""
        return self.others(choices) * (len(choices.start) - 1) + self.state(choices)

    def take(self, slot: int, choices: SlotChoices, option: Ints, more: Ints) -> None:
        """Apply one choice to each factorisation, with its first trip count plus `more` trips."""
        self.trips[:, slot] = choices.first[option] + more
        self.left, fanout_state = np.divmod(choices.after[option], choices.fanout_states)
        if choices.axis is not None:
            self.fanout_state[choices.axis] = fanout_state

    def finish(self) -> Ints:
        """Return the trips of the current dimension, [n, slot], and begin the next one."""
        trips = self.trips
        self.finished += 1
        self._begin()
        return trips


def _before(choices: SlotChoices, ways: NDArray[Any], modulus: int | None) -> NDArray[Any]:
    """Return the ways to finish from before a slot, given the ways from after it."""
    after = choices.of_states(ways)
    before = np.zeros_like(after)
    for state, (start, stop) in enumerate(zip(choices.start[:-1].tolist(), choices.start[1:].tolist(), strict=True)):
        if start < stop:
            before[state] = choices.count[start:stop].astype(after.dtype) @ after[choices.after[start:stop]]
    if modulus is not None:
        before %= modulus
    if choices.axis is None:
        return before.reshape(ways.shape)
    shape = np.moveaxis(ways, 1 + choices.axis, 1).shape
    return np.moveaxis(before.reshape(shape), 1, 1 + choices.axis)


def _summed(choices: SlotChoices, before: NDArray[np.float64], after: NDArray[np.float64]) -> Floats:
    """Return the table of one slot, as described at `Ragged._tables`."""
    options = np.diff(choices.start)
    states = np.repeat(np.arange(len(options)), options)
    total = choices.of_states(before)[states]
    chances = choices.of_states(after)[choices.after] * choices.count[:, None] / np.where(total > 0, total, 1.0)
    sums = np.cumsum(np.concatenate([np.zeros((1, chances.shape[1])), chances]), axis=0)
    limits = sums[1:] - sums[choices.start[:-1]][states] + states[:, None]
    return np.asarray((limits + len(options) * np.arange(chances.shape[1])).T.reshape(-1))
