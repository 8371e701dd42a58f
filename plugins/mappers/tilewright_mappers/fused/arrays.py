"""Branches of one layer in a fused group, on an array of units inside the buffer.

The buffer's loops and nodes are those of `parts`. The tile that they leave is mapped by `inside`.
Of the orders of a branch's loops, those are listed that let different stationary tensors stay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.mapspace.batch import Floats, Ints
from tilewright.prices import is_limited, operations_pj, tensor_pj
from tilewright.schema.objective import Objective
from tilewright_mappers.fused.inside import Choice, Inside, Sizes
from tilewright_mappers.fused.parts import FAR, HOME, Branch, FusedLayer, LayerTile, Node, States, undominated

Segment = tuple[tuple[int, int, int], ...]
"""Dimension, tile and trips of the loops in front of a node."""
Moved = tuple[int, int, int, int]
"""Slices that the outermost memory reads and writes, then the buffer."""


@dataclass(frozen=True, slots=True)
class ArrayBranch(Branch):
    """A branch, and the choice inside its nest."""

    choice: Choice


@dataclass(frozen=True, slots=True)
class _Inner:
    """A nest inside the shared part, and the choice inside it: pJ of both, and slices that both move."""

    nodes: tuple[Node, ...]
    choice: Choice
    slices: int
    energy_pj: float
    moved: Moved


@dataclass(frozen=True)
class ArrayLayer(FusedLayer):
    """A layer of a group, on an architecture of two memories and an array."""

    def branches(self, tile: LayerTile, states: States, room: float, objective: Objective) -> list[Branch]:
        """Return all nests of a branch whose figures no other nest beats."""
        energy, moved = operations_pj(self.architecture.compute, self.problem.macs), (0, 0, 0, 0)
        for tensor, state in enumerate(states):
            if state not in (FAR, HOME):
                more, slices = self._filled(tensor, state)
                energy, moved = energy + more, _sum(moved, slices)
        outside = tuple(at for at, state in enumerate(states) if state != FAR)
        fitting = [inner for inner in self._branches_inside(tile, outside, objective) if inner.slices <= room]
        ports = self.port_cycles(
            np.array([_sum(moved, inner.moved) for inner in fitting], dtype=np.int64).reshape(-1, 4)
        )
        branches = list[Branch]()
        for inner, needed in zip(fitting, ports.tolist(), strict=True):
            cycles = max(inner.choice.cycles, needed)
            total = energy + inner.energy_pj + self.leaked(cycles)
            branches.append(ArrayBranch(total, cycles, inner.slices, inner.nodes, inner.choice))
        rows = [(*objective.needed(branch.energy_pj, branch.cycles), branch.slices) for branch in branches]
        return [branches[at] for at in undominated(np.array(rows), self.limits)] if rows else []

    def home_is_least(self, objective: Objective) -> bool:
        """Return whether no tensor costs less if it is not at home in the buffer."""
        cheaper = all(
            tensor_pj(self.buffer, tensor, *accesses) <= tensor_pj(self.outer, tensor, *accesses)
            for tensor in self.problem.tensors
            for accesses in ((1, 0, 0), (0, 0, 1))
        )
        timed = self.leaks or objective.cycle_power > 0
        return cheaper and not (timed and is_limited(self.prices[1]))

    def least(self, tiles: Ints, states: States) -> tuple[Floats, Floats]:
        """Return a lower bound on energy and cycles inside tiles [n, dimension] for all nests inside."""
        macs, compute = self.problem.macs, self.architecture.compute
        energy, moved = (
            np.full(len(tiles), operations_pj(compute, macs)),
            np.zeros((len(tiles), 4), dtype=np.int64),
        )
        for tensor, state in enumerate(states):
            if state != HOME:
                words = self._filled_at_least(tensor, tiles) if state == FAR else np.full(len(tiles), state)
                first, read, update, _, outer, _ = self._links[tensor]
                energy += (words - first) * read + words * (update or 0.0)
                moved[:, 0] += (words - first) * outer
                moved[:, 1] += 0 if update is None else words * outer
        working = macs * compute.cycles_per_operation / self.architecture.compute_instances
        cycles = np.maximum(self.port_cycles(moved), working)
        return energy + self.leaked(cycles), cycles

    def inner_entries(self, branch: Branch) -> list[dict[str, Any]]:
        """Return the entries inside the nest of a branch."""
        assert isinstance(branch, ArrayBranch)
        return list(self._inside.entries(branch.choice))

    def _branches_inside(self, tile: LayerTile, outside: tuple[int, ...], objective: Objective) -> list[_Inner]:
        """Return the undominated branches for tiles of the shared part, which keeps the tensors `outside`."""
        key = tile, outside, objective
        if key not in self._known_inside:
            options, tensors = list[_Inner](), range(len(self.widths))
            able = [at for at in tensors if at not in outside]
            for order in (
                permutation for count in range(len(able) + 1) for permutation in itertools.permutations(able, count)
            ):
                in_buffer = tuple(at in outside or at in order for at in tensors)
                for segments, words, inner in self._segments(order, tile, 0, ()):
                    options += self._priced_inside(order, tile, segments, words, inner, in_buffer, objective)
            self._known_inside[key] = [options[at] for at in self._best(options, objective)]
        return self._known_inside[key]

    def _best(self, options: Sequence[_Inner], objective: Objective) -> Iterator[int]:
        """Yield the numbers of the branches that no other one beats in what later costs depend on."""
        memories = (self.outer, self.buffer)
        timed = objective.cycle_power > 0 or self.leaks
        rows = list[tuple[float, ...]]()
        for inner in options:
            row: list[float] = [inner.slices]
            if objective.energy_power:
                row.append(inner.energy_pj)
            if timed:
                row.append(inner.choice.cycles)
                for at, memory in enumerate(memories):
                    demands = memory.demands(inner.moved[2 * at], inner.moved[2 * at + 1])
                    row += [slices for _, slices, bandwidth in demands if bandwidth is not None]
            rows.append(tuple(row))
        return map(int, undominated(np.array(rows), self.limits)) if options else iter(())

    def _segments(
        self, order: tuple[int, ...], tile: Sizes, used: int, outside: tuple[Segment, ...]
    ) -> Iterator[tuple[tuple[Segment, ...], Sizes, Sizes]]:
        """Yield for kept tensors in an order the loops in front of each node, the node's slices, and the innermost tile.

        A node moves in through loops that move it, since it then needs less room. It moves out through others, since it is
        then filled less often.
        """
        if len(outside) == len(order):
            yield outside, (), tile
            return
        tensor = order[len(outside)]
        moved = self._inside.moving[order[len(outside) - 1]] if outside else ()
        able = [at for at in self._inside.moving[tensor] if at not in moved]
        most = (self.buffer.usable_slices - used) // self.widths[tensor]  # larger tiles do not fit
        for sizes in itertools.product(*(self.limits.divisors(tile[at], most) for at in able)):
            self.limits.check()
            inner = list(tile)
            for at, size in zip(able, sizes, strict=True):
                inner[at] = size
            slices = self.widths[tensor] * math.prod(inner[at] for at in self._inside.moving[tensor])
            if used + slices <= self.buffer.usable_slices:
                segment = tuple((at, n, tile[at] // n) for at, n in zip(able, sizes, strict=True) if n < tile[at])
                more = self._segments(order, tuple(inner), used + slices, (*outside, segment))
                for segments, others, innermost in more:
                    yield segments, (slices, *others), innermost

    def _priced_inside(
        self,
        order: tuple[int, ...],
        tile: Sizes,
        segments: tuple[Segment, ...],
        slices: Sizes,
        inner: Sizes,
        in_buffer: tuple[bool, ...],
        objective: Objective,
    ) -> Iterator[_Inner]:
        """Yield branches with some loops, and the best choices inside them."""
        visits, moved, energy = self.visits(tile), (0, 0, 0, 0), 0.0
        for tensor, segment, words in zip(order, segments, slices, strict=True):
            visits *= math.prod(trips for _, _, trips in segment)
            more, their = self._filled(tensor, visits * words // self.widths[tensor])
            energy, moved = energy + more, _sum(moved, their)
        ends = tuple(itertools.accumulate(map(len, segments)))
        for loops, trips in self._ordered(segments, (1,) * len(in_buffer), frozenset(range(len(in_buffer)))):
            self.limits.check()
            sizes = [(at, n) for at, n, _ in loops]
            nodes = tuple(
                Node(tensor, tuple(sizes[end - len(segment) : end]))
                for tensor, segment, end in zip(order, segments, ends, strict=True)
            )
            for choice in self._choices(inner, in_buffer, trips, objective):
                total = _sum(moved, self._near_slices(choice, in_buffer))
                yield _Inner(nodes, choice, sum(slices), energy + choice.energy_pj, total)

    def _ordered(
        self, segments: tuple[Segment, ...], trips: Sizes, still: frozenset[int]
    ) -> Iterator[tuple[Segment, Sizes]]:
        """Yield orders of the loops, and for each tensor the trips of the innermost ones that do not move it.

        Args:
            still: the tensors that the loops inside these do not move.
        """
        while segments and not segments[-1]:
            segments = segments[:-1]
        moved = [still.difference(self._stepped[at]) for at, _, _ in segments[-1]] if segments else []
        if not any(moved):
            yield tuple(itertools.chain(*segments)), trips
        for number, left in enumerate(moved):
            if left:
                loop, last = segments[-1][number], segments[-1]
                longer = tuple(trip * loop[2] if at in left else trip for at, trip in enumerate(trips))
                rest = (*segments[:-1], last[:number] + last[number + 1 :])
                for loops, trips_left in self._ordered(rest, longer, left):
                    yield (*loops, loop), trips_left

    def _choices(self, tile: Sizes, in_buffer: tuple[bool, ...], trips: Sizes, objective: Objective) -> list[Choice]:
        key = tile, in_buffer, trips, objective
        if key not in self._known_choices:
            self._known_choices[key] = list(self._inside.priced(*key))
        return self._known_choices[key]

    @cached_property
    def _known_choices(self) -> dict[tuple[Sizes, tuple[bool, ...], Sizes, Objective], list[Choice]]:
        return {}

    @cached_property
    def _known_inside(self) -> dict[tuple[LayerTile, tuple[int, ...], Objective], list[_Inner]]:
        return {}

    @cached_property
    def _inside(self) -> Inside:
        return Inside(self.problem, self.architecture, self.limits)

    @cached_property
    def _stepped(self) -> list[set[int]]:
        """For each dimension the tensors that it moves."""
        return [
            {number for number, dims in enumerate(self._inside.moving) if at in dims}
            for at in range(len(self.problem.dimensions))
        ]

    def _filled(self, tensor: int, words: int) -> tuple[float, Moved]:
        """Return pJ and slices of words between the outermost memory and the buffer."""
        first, read, update, fill, outer, buffer = self._links[tensor]
        again, updates = words - first, words if update is not None else 0
        return again * (read + fill) + updates * (update or 0.0), (again * outer, updates * outer, 0, again * buffer)

    @cached_property
    def _links(self) -> list[tuple[int, float, float | None, float, int, int]]:
        """Words of each tensor that are not read first, pJ of a word, and its slices in both memories.

        The pJ are those of reading and updating it in the outermost memory, and of filling it into the buffer.
        """
        links = []
        for tensor in self.problem.tensors:
            first = self.problem.tensor_words(tensor) if tensor.is_output else 0
            update = tensor_pj(self.outer, tensor, 0, 0, 1) if tensor.is_output else None
            read, fill = tensor_pj(self.outer, tensor, 1, 0, 0), tensor_pj(self.buffer, tensor, 0, 1, 0)
            widths = self.outer.slices_of(tensor), self.buffer.slices_of(tensor)
            links.append((first, read, update, fill, *widths))
        return links

    def _near_slices(self, choice: Choice, in_buffer: tuple[bool, ...]) -> Moved:
        """Return the slices that pass between the array and the memories outside it."""
        words_moved = [0, 0, 0, 0]
        for link, words, inner in zip(self._links, choice.near, in_buffer, strict=True):
            first, _, update, _, *widths = link
            words_moved[2 * inner] += (words - first) * widths[inner]
            words_moved[2 * inner + 1] += 0 if update is None else words * widths[inner]
        return tuple(words_moved)  # type: ignore[return-value]


def _sum(one: Moved, other: Moved) -> Moved:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]
