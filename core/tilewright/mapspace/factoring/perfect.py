"""Perfect factorisations: the trips of a dimension multiply to its size.

A table lists the factorisations of each dimension. Only fanouts couple the dimensions, because they bound the product
of an unrolling. The dimensions are therefore processed in sequence, and the state is the used product of every fanout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SpaceTooLargeError
from tilewright.mapspace.batch import Floats, Ints
from tilewright.mapspace.counting import MAX_EXACT, prime_powers
from tilewright.mapspace.factoring import faults
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.skeleton import Slot

MAX_ROWS = 2_000_000
"""Maximum number of rows in a table of factorisations."""
MAX_TRIPS = 40_000_000
"""Maximum number of trips in a table of factorisations, 8 bytes each."""
PRIMEWISE_ROWS = 50_000
"""Number of rows above which a table is split into prime powers, where the bounds allow it."""


@dataclass(frozen=True)
class Component:
    """Factorisations of one dimension, or of one of its prime powers, grouped by their spatial trips.

    `rows` holds trips [row, slot]. Rows `start` to `start + count` share the spatial trips
    `spatial` [option, 1 + spatial slot], whose first column contains ones.
    """

    dimension: int
    rows: Ints
    spatial: Ints
    start: Ints
    count: Ints


@dataclass(frozen=True)
class ComponentChoice:
    """Choices of one component's spatial trips: in `state`, `option` leads to state `after`.

    Attributes:
        after: Next state, [state, option]; -1 if the option does not fit the fanouts.
        shares: Exact number of ways to finish with this or an earlier option, [state, option].
        limits: `shares` as fractions, shifted by the state index. One sorted search then serves all states.
        last: Last option of each state that fits.
        ways: Number of ways to finish from each state after this choice.
    """

    after: Ints
    shares: NDArray[Any]
    limits: Floats
    last: Ints
    ways: NDArray[Any]


class Perfect:
    """Perfect factorisations of `sizes` over `slots`."""

    def __init__(self, sizes: Sequence[int], slots: Sequence[Slot]) -> None:
        self.sizes, self.slots = sizes, slots
        self.spatial = [index for index, slot in enumerate(slots) if slot.spatial]
        self.temporal = [index for index, slot in enumerate(slots) if not slot.spatial]
        self.components = [
            self._component(dim, part) for dim, size in enumerate(sizes) for part in self._parts(dim, size)
        ]

    def _bounds(self, dim: int) -> list[tuple[int, int]]:
        size = self.sizes[dim]
        return [
            (slot.lowest[dim], min(slot.highest[dim], slot.most if slot.spatial and slot.most else size))
            for slot in self.slots
        ]

    def _parts(self, dim: int, size: int) -> list[int]:
        """Return the whole dimension, or its prime powers if that keeps tables small.

        Splitting requires that no bound couples the prime powers.
        """
        able = sum(highest > 1 for _, highest in self._bounds(dim))
        powers = prime_powers(size)
        rows = math.prod(math.comb(power + max(able, 1) - 1, power) for _, power in powers)
        free = all(slot.lowest[dim] == 1 and slot.highest[dim] in (1, size) for slot in self.slots)
        return [prime**power for prime, power in powers] if free and rows > PRIMEWISE_ROWS else [size]

    def _component(self, dim: int, size: int) -> Component:
        rows = factorizations(size, self._bounds(dim))
        spatial = np.column_stack([np.ones(len(rows), dtype=np.int64), rows[:, self.spatial]])
        spatial, which = np.unique(spatial, axis=0, return_inverse=True)
        which = which.reshape(-1)
        count = np.bincount(which, minlength=len(spatial)).astype(np.int64)
        return Component(dim, rows[np.argsort(which, kind="stable")], spatial, np.cumsum(count) - count, count)

    # -- states ----------------------------------------------------------------------------------------------

    @cached_property
    def _follow(self) -> tuple[list[Ints], Ints]:
        """State after each (state, option) per component, or -1; and the used products of the last states."""
        most = np.array([1, *(self.slots[index].most or 1 for index in self.spatial)], dtype=np.int64)
        states = np.ones((1, len(most)), dtype=np.int64)
        follow = []
        for component in self.components:
            fits = (component.spatial[None] <= most // states[:, None]).all(axis=2)
            which = np.nonzero(fits)
            after = np.full(fits.shape, -1, dtype=np.int64)
            states, number = np.unique(states[which[0]] * component.spatial[which[1]], axis=0, return_inverse=True)
            after[which] = number.reshape(-1)
            follow.append(after)
        return follow, states

    @cached_property
    def _choices(self) -> list[ComponentChoice]:
        follow, states = self._follow
        bound = math.prod(max(1, len(component.rows)) for component in self.components)
        exact = np.int64 if bound < MAX_EXACT else np.object_
        least = np.array([1, *(self.slots[index].least for index in self.spatial)], dtype=np.int64)
        ways: NDArray[Any] = np.asarray((states >= least).all(axis=1), dtype=np.int64).astype(exact)
        choices = []
        for component, after in zip(reversed(self.components), reversed(follow), strict=True):
            ends = np.append(ways, np.zeros(1, dtype=exact))  # index -1: no way to finish
            shares = np.cumsum(ends[after] * component.count.astype(exact), axis=1)
            total: NDArray[Any] = shares[:, -1] if shares.size else np.zeros(len(shares), dtype=exact)
            fractions = (shares / np.where(total == 0, 1, total)[:, None]).astype(np.float64)
            limits = (fractions + np.arange(len(shares))[:, None]).reshape(-1)
            last = (shares < total[:, None]).sum(axis=1)
            choices.append(ComponentChoice(after, shares, limits, last, ends))
            ways = np.asarray(total)
        return choices[::-1]

    @cached_property
    def count(self) -> int:
        """Exact number of factorisations."""
        shares = self._choices[0].shares
        return int(shares[0, -1]) if shares.size else 0

    # -- rows ------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, count: int) -> list[Ints]:
        """Draw `count` factorisations uniformly; return their row indices, one array [n] per component."""
        state = np.zeros(count, dtype=np.int64)
        rows = []
        for component, choice in zip(self.components, self._choices, strict=True):
            if len(component.rows) == 1:  # the component has a single factorisation
                rows.append(np.zeros(count, dtype=np.int64))
                state = choice.after[state, 0]
                continue
            first = state * choice.after.shape[1]
            place = choice.limits.searchsorted(state + rng.random(count), side="right")
            option = np.minimum(place - first, choice.last.take(state))
            state = choice.after.take(first + option)
            within = (rng.random(count) * component.count.take(option)).astype(np.int64)
            rows.append(component.start.take(option) + within)
        return rows

    def unrank(self, start: int, stop: int) -> list[Ints]:
        """Return the row indices of factorisations `start` to `stop` - 1, one array [n] per component."""
        rest: NDArray[Any] = np.arange(start, stop, dtype=np.int64 if stop < MAX_EXACT else np.object_)
        state = np.zeros(len(rest), dtype=np.int64)
        line = np.arange(len(rest))
        rows = []
        for component, choice in zip(self.components, self._choices, strict=True):
            shares = choice.shares[state]
            option = (shares <= rest[:, None]).sum(axis=1)
            rest = rest - np.where(option > 0, shares[line, option - 1], 0)
            state = choice.after[state, option]
            ways = choice.ways[state]
            rows.append(component.start[option] + (rest // ways).astype(np.int64))
            rest = rest % ways
        return rows

    # -- decoding rows -------------------------------------------------------------------------------------

    def trips(self, rows: list[Ints]) -> Ints:
        """Return the trip counts [n, slot, dimension] of rows."""
        result = np.ones((len(rows[0]), len(self.slots), len(self.sizes)), dtype=np.int64)
        for component, row in zip(self.components, rows, strict=True):
            if len(component.rows) > 1 or component.rows.max(initial=1) > 1:
                result[:, :, component.dimension] *= component.rows.take(row, axis=0)
        return result

    @cached_property
    def able(self) -> list[tuple[int, ...]]:
        """Dimensions that may have a non-unit loop in each temporal slot."""
        return [
            tuple(sorted({c.dimension for c in self.components if (c.rows[:, index] > 1).any()}))
            for index in self.temporal
        ]

    @cached_property
    def _bits(self) -> list[Ints]:
        """Bits of the dimensions with non-unit loops, as in `OrderTable`.

        One array [row, temporal slot] per component.
        """
        result = []
        for component in self.components:
            able = [1 << dims.index(component.dimension) if component.dimension in dims else 0 for dims in self.able]
            bits = np.where(component.rows[:, self.temporal] > 1, np.array(able, dtype=np.int64), 0)
            result.append(bits)
        return result

    def patterns(self, rows: list[Ints]) -> Ints:
        """Return the dimensions with a non-unit loop in each temporal slot, as bits: [n, temporal slot].

        `OrderTable` defines the bits.
        """
        result = np.zeros((len(rows[0]), len(self.temporal)), dtype=np.int64)
        for bits, row in zip(self._bits, rows, strict=True):
            result |= bits.take(row, axis=0)
        return result

    # -- explaining an empty space -------------------------------------------------------------------------

    def fault(self, names: Sequence[str], describe: Sequence[str]) -> str:
        """Return the reason why there is no factorisation.

        `names` are those of the dimensions, and `describe` those of the slots.
        """
        for component in self.components:
            if not len(component.rows):
                dim = component.dimension
                return faults.of_dimension(names[dim], self.sizes[dim], dim, self.slots, describe)
        _, states = self._follow
        for column, index in enumerate(self.spatial, start=1):
            slot = self.slots[index]
            if not len(states):
                break
            reached = int(states[:, column].max())
            if reached < slot.least:
                return faults.of_fanout(slot, reached, describe[index])
        return faults.of_fanouts([self.slots[index] for index in self.spatial], [describe[i] for i in self.spatial])


def factorizations(size: int, bounds: Sequence[tuple[int, int]]) -> Ints:
    """Return all ordered factorisations of `size` within bounds: trips [row, slot].

    They are counted first, from the outermost slot inwards, so that no branch without an end is listed. The trips of
    the last slot change slowest.

    Args:
        bounds: (lowest, highest) trips per slot.

    Raises:
        SpaceTooLargeError: There are more than MAX_ROWS factorisations, or they have more than MAX_TRIPS trips.
    """
    whole = divisors(size)
    able = [[d for d in whole if lowest <= d <= highest] for lowest, highest in bounds]
    ways: list[dict[int, int]] = [{1: 1}]  # per number of outer slots: the factorisations of each size over them
    for allowed in able:
        inner = ways[-1]
        reached = {left: sum(inner.get(left // d, 0) for d in allowed if left % d == 0) for left in whole}
        ways.append({left: count for left, count in reached.items() if count})
    count = ways[-1].get(size, 0)
    if count > MAX_ROWS or count * len(bounds) > MAX_TRIPS:
        raise SpaceTooLargeError(
            f"a dimension of size {size} has {count:,} factorisations over {len(bounds)} slots, too many for a table",
            hint="constrain where it may be tiled",
        )
    rows = np.ones((count, len(bounds)), dtype=np.int64)
    state = np.full(min(count, 1), whole.index(size))  # index of the remaining size, one per branch
    for slot in reversed(range(len(bounds))):
        options = [[d for d in able[slot] if left % d == 0 and left // d in ways[slot]] for left in whole]
        number = np.array([len(choices) for choices in options])
        trips = np.array([d for choices in options for d in choices], dtype=np.int64)
        after = np.array(
            [whole.index(left // d) for left, choices in zip(whole, options, strict=True) for d in choices]
        )
        taken = number[state]
        option = np.arange(taken.sum()) + np.repeat(
            (np.cumsum(number) - number)[state] - np.cumsum(taken) + taken, taken
        )
        state = after[option] if len(option) else state
        ends = np.array([min(ways[slot].get(left, 0), MAX_ROWS) for left in whole])
        rows[:, slot] = np.repeat(trips[option], ends[state])
    return rows
