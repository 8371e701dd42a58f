"""Partial mappings of one layer in a fused group, on an array of units inside the buffer.

The buffer's loops and nodes are those of `fused_parts`. The tile that they leave is mapped by `fused_inside`.
Of the orders of a branch's loops, those are listed that let different stationary tensors stay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.plugin.group_report import energy_of
from tilewright.run.fused_inside import Choice, Inside, Sizes
from tilewright.run.fused_parts import Fusable, FusedLayer, Homes, Nest, Part, undominated
from tilewright.schema.report import Objective

Segment = tuple[tuple[int, int, int], ...]
"""Dimension, tile and trips of the loops in front of a node."""
Moved = tuple[int, int, int, int]
"""Slices that the outermost memory reads and writes, then the buffer."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A nest inside the shared part, and the choice inside it: pJ of both, and slices that both move."""

    nest: Nest
    choice: Choice
    slices: int
    energy_pj: float
    moved: Moved


@dataclass(frozen=True)
class ArrayLayer(FusedLayer):
    """A layer of a group, on an architecture of two memories and an array."""

    objective: Objective

    def parts(self) -> dict[Homes, list[Part]]:
        """Return the partial mappings that no other one of their class beats."""
        found: dict[Homes, list[tuple[Part, Choice]]] = {}
        several = {each.name for each in self.alive}
        for count in range(len(self.alive) + 1):
            for fused in itertools.combinations(self.alive, count):
                at_home = frozenset(each.name for each in fused)
                # in a shared part, a tile of another tensor with several users would be one of the other layers, too
                others = [name for name in self.names.values() if name not in several]
                for kept in _subsets(others) if fused else [()]:
                    for order in itertools.permutations(sorted(at_home.union(kept))):
                        if order and order[-1] not in at_home:
                            continue
                        for outer, tile in self._shared_parts(at_home, order, dict(self.problem.dimensions), Nest()):
                            homes, parts = self._combined(fused, outer, tile)
                            found.setdefault(homes, []).extend(parts)
        return {homes: self._thinned(parts) for homes, parts in found.items() if parts}

    def _thinned(self, parts: list[tuple[Part, Choice]]) -> list[Part]:
        chosen = (parts[at] for at in undominated(np.array([self._columns(part) for part, _ in parts])))
        return [replace(part, leaf=tuple(self._inside.entries(choice))) for part, choice in chosen]

    def _columns(self, part: Part) -> tuple[float, ...]:
        """Return what later layers, and the objective, depend on."""
        costs = {"energy": (part.energy_pj,), "cycles": (part.cycles,), "edp": (part.energy_pj, part.cycles)}
        return (*costs[self.objective], *part.outside, part.inside)

    def _combined(
        self, fused: tuple[Fusable, ...], outer: Nest, tile: dict[str, int]
    ) -> tuple[Homes, list[tuple[Part, Choice]]]:
        """Return the class of a shared part, and its partial mappings without entries inside."""
        depth = dict(zip(outer.kept, outer.depths, strict=True))
        at_home = {each.name: each for each in fused}
        shared = len(outer.loops)
        outside, inside, energy, moved = [0.0] * shared, 0, 0.0, (0, 0, 0, 0)
        for name, words, fills in zip(outer.kept, outer.slices, outer.fills, strict=True):
            home = at_home.get(name)
            if home is None and depth[name] < shared:
                outside[depth[name]] += words
            elif home is None:
                inside += words
            elif home.made or home.first != self.number:
                continue  # the outermost memory does not serve it here
            more, slices = self._filled(name, fills)
            energy, moved = energy + more, _sum(moved, slices)
        energy += self._macs * self.architecture.compute.energy_per_operation_pj
        parts, room = list[tuple[Part, Choice]](), self._capacity - sum(outer.slices)
        for branch in self._branches_inside(tile, frozenset(outer.kept)):
            if branch.slices > room:
                continue
            cycles = max(branch.choice.cycles, self._port_cycles(_sum(moved, branch.moved)))
            leaked = cycles * sum(memory.leakage_pj_per_cycle for memory in (self.outer, self.buffer))
            costs = energy + branch.energy_pj + leaked, cycles
            part = Part(outer.followed_by(branch.nest), *costs, tuple(outside), inside + branch.slices)
            parts.append((part, branch.choice))
        loops = tuple((self.axes[dimension], size) for dimension, size in outer.loops)
        return Homes(loops, tuple((each.name, depth[each.name]) for each in fused)), parts

    def _branches_inside(self, tile: dict[str, int], outside: frozenset[str]) -> list[Branch]:
        """Return the undominated branches for tiles of the shared part, which keeps the tensors `outside`."""
        key = tuple(tile.values()), outside
        if key not in self._known_inside:
            found = list[Branch]()
            for kept in _subsets([name for name in self.names.values() if name not in outside]):
                in_buffer = tuple(self.names[each.name] in outside.union(kept) for each in self.problem.tensors)
                for order in itertools.permutations(kept):
                    for segments, words, inner in self._segments(order, tuple(tile.values()), 0, ()):
                        found += self._priced_inside(order, tuple(tile.values()), segments, words, inner, in_buffer)
            self._known_inside[key] = [found[at] for at in self._best(found)]
        return self._known_inside[key]

    def _best(self, found: Sequence[Branch]) -> Iterator[int]:
        """Yield the numbers of the branches that no other one beats in what later costs depend on."""
        memories = (self.outer, self.buffer)
        timed = self.objective != "energy" or any(each.leakage_pj_per_cycle for each in memories)
        rows = list[tuple[float, ...]]()
        for each in found:
            row: list[float] = [each.slices]
            if self.objective != "cycles":
                row.append(each.energy_pj)
            if timed:
                row.append(each.choice.cycles)
                for at, memory in enumerate(memories):
                    demands = memory.demands(each.moved[2 * at], each.moved[2 * at + 1])
                    row += [slices for _, slices, bandwidth in demands if bandwidth is not None]
            rows.append(tuple(row))
        return map(int, undominated(np.array(rows))) if found else iter(())

    def _segments(
        self, order: tuple[str, ...], tile: Sizes, used: int, outside: tuple[Segment, ...]
    ) -> Iterator[tuple[tuple[Segment, ...], Sizes, Sizes]]:
        """Yield for kept tensors in an order the loops in front of each node, the node's slices, and the innermost tile.

        A node moves in through loops that move it, since it then needs less room. It moves out through others, since it is
        then filled less often.
        """
        if len(outside) == len(order):
            yield outside, (), tile
            return
        name = order[len(outside)]
        able = self._dimensions[name]
        if outside:
            able = [at for at in able if at not in self._dimensions[order[len(outside) - 1]]]
        for sizes in itertools.product(*(_divisors(tile[at]) for at in able)):
            inner = list(tile)
            for at, size in zip(able, sizes, strict=True):
                inner[at] = size
            slices = self._widths[name] * math.prod(inner[at] for at in self._dimensions[name])
            if used + slices <= self._capacity:
                segment = tuple((at, n, tile[at] // n) for at, n in zip(able, sizes, strict=True) if n < tile[at])
                more = self._segments(order, tuple(inner), used + slices, (*outside, segment))
                for segments, others, innermost in more:
                    yield segments, (slices, *others), innermost

    def _priced_inside(
        self,
        order: tuple[str, ...],
        tile: Sizes,
        segments: tuple[Segment, ...],
        slices: Sizes,
        inner: Sizes,
        in_buffer: tuple[bool, ...],
    ) -> Iterator[Branch]:
        """Yield branches with some loops, and the best choices inside them."""
        visits, fills, moved, energy = 1, list[int](), (0, 0, 0, 0), 0.0
        for name, segment, words in zip(order, segments, slices, strict=True):
            visits *= math.prod(trips for _, _, trips in segment)
            fills.append(visits * words // self._widths[name])
            more, their = self._filled(name, fills[-1] * (self._macs // math.prod(tile)))
            energy, moved = energy + more, _sum(moved, their)
        depths, names = tuple(itertools.accumulate(map(len, segments))), tuple(self.problem.dimensions)
        for loops, trips in self._ordered(segments, (1,) * len(in_buffer), frozenset(range(len(in_buffer)))):
            nest = Nest(tuple((names[at], n) for at, n, _ in loops), order, depths, visits, slices, tuple(fills))
            for choice in self._choices(inner, in_buffer, trips):
                total = _sum(moved, self._near_slices(choice, in_buffer))
                yield Branch(nest, choice, sum(slices), energy + choice.energy_pj, total)

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
                longer = tuple(each * loop[2] if at in left else each for at, each in enumerate(trips))
                rest = (*segments[:-1], last[:number] + last[number + 1 :])
                for loops, found in self._ordered(rest, longer, left):
                    yield (*loops, loop), found

    def _choices(self, tile: Sizes, in_buffer: tuple[bool, ...], trips: Sizes) -> list[Choice]:
        key = tile, in_buffer, trips
        if key not in self._known_choices:
            self._known_choices[key] = list(self._inside.priced(*key, self.objective))
        return self._known_choices[key]

    @cached_property
    def _known_choices(self) -> dict[tuple[Sizes, tuple[bool, ...], Sizes], list[Choice]]:
        return {}

    @cached_property
    def _known_inside(self) -> dict[tuple[Sizes, frozenset[str]], list[Branch]]:
        return {}

    @cached_property
    def _inside(self) -> Inside:
        return Inside(self.problem, self.architecture)

    @cached_property
    def _dimensions(self) -> dict[str, list[int]]:
        """Tensor of the group -> positions of its dimensions."""
        return {
            self.names[tensor.name]: list(own)
            for tensor, own in zip(self.problem.tensors, self._inside.moving, strict=True)
        }

    @cached_property
    def _stepped(self) -> list[set[int]]:
        """For each dimension the tensors that it moves."""
        return [
            {number for number, own in enumerate(self._inside.moving) if at in own}
            for at in range(len(self.problem.dimensions))
        ]

    def _filled(self, name: str, words: int) -> tuple[float, Moved]:
        """Return pJ and slices of words between the outermost memory and the buffer."""
        first, read, update, fill, outer, buffer = self._links[name]
        again, updates = words - first, words if update is not None else 0
        return again * (read + fill) + updates * (update or 0.0), (again * outer, updates * outer, 0, again * buffer)

    @cached_property
    def _links(self) -> dict[str, tuple[int, float, float | None, float, int, int]]:
        """Tensor of the group -> words that are not read first, pJ of a word, and its slices in both memories.

        The pJ are those of reading and updating it in the outermost memory, and of filling it into the buffer.
        """
        found = {}
        for tensor in self.problem.tensors:
            first = self.problem.tensor_words(tensor) if tensor.is_output else 0
            update = energy_of(self.outer, tensor, 0, 0, 1) if tensor.is_output else None
            read, fill = energy_of(self.outer, tensor, 1, 0, 0), energy_of(self.buffer, tensor, 0, 1, 0)
            widths = self.outer.slices_of(tensor), self.buffer.slices_of(tensor)
            found[self.names[tensor.name]] = first, read, update, fill, *widths
        return found

    def _near_slices(self, choice: Choice, in_buffer: tuple[bool, ...]) -> Moved:
        """Return the slices that pass between the array and the memories outside it."""
        found = [0, 0, 0, 0]
        for name, words, inner in zip(self.names.values(), choice.near, in_buffer, strict=True):
            first, _, update, _, *widths = self._links[name]
            found[2 * inner] += (words - first) * widths[inner]
            found[2 * inner + 1] += 0 if update is None else words * widths[inner]
        return tuple(found)  # type: ignore[return-value]


def _sum(one: Moved, other: Moved) -> Moved:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for count in range(len(names) + 1):
        yield from itertools.combinations(names, count)


def _divisors(size: int) -> list[int]:
    return [each for each in range(1, size + 1) if size % each == 0]
