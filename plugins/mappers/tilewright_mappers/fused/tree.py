"""Exact search of loop trees: the least cost of layers that share loops, interval by interval.

A group mapping is a tree. A *sequence* has branches. A branch is a nest of one layer, or a *level* of several layers.
A level has tiles that the buffer keeps, loops that all its layers share, and a level or a sequence inside. What is
best inside depends on three facts: the layers, their tiles, and the states of their tensors. Figures of a
solution are costs, and the slices that it keeps. Those that another one beats in all figures are dropped. This is
exact, since costs and room only grow outward.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tilewright.interrupts import mark_result_found
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright_mappers.fused.least import OPEN, LeastCosts, SharedAxes, slidable
from tilewright_mappers.fused.limits import ALONE, FEW, SHARES, SLICE, Limits, OutOfTime
from tilewright_mappers.fused.parts import FAR, HOME, Branch, FusedLayer, LayerTile, States, subsets
from tilewright_mappers.fused.solution import (
    Axis,
    Found,
    Leaf,
    Row,
    Sequenced,
    Shared,
    SharedLoops,
    Solution,
    best_of,
    in_sequence,
    thinned,
)
from tilewright_mappers.fused.spans import SpanBounds, homes_by_layer

Span = tuple[int, int, tuple[LayerTile, ...], tuple[States, ...]]
"""First and last layer, and the tiles and the states of their tensors."""


class TreeSearch:
    """The best trees of layers in an order.

    Args:
        axes: sets of dimensions (layer, dimension) that one loop may step.
        limits: those that the layers have, too.
        spans: bounds that are known; without them those of short intervals are searched.
        tiles: sizes to which shared loops are restricted.
    """

    _before: dict[int, tuple[float, float]]
    _after: dict[int, tuple[float, float]]
    _closer: SpanBounds | None
    most: float
    nested: bool
    known: Solution
    proved: float
    end: float
    is_cut: bool
    alone: dict[tuple[int, int], Solution]

    def __init__(
        self,
        layers: Sequence[FusedLayer],
        shared: Sequence[Shared],
        axes: Sequence[frozenset[tuple[int, int]]],
        objective: Objective,
        limits: Limits,
        spans: SpanBounds | None = None,
        tiles: frozenset[int] | None = None,
    ) -> None:
        self.layers, self.shared, self.axes, self.limits = layers, shared, axes, limits
        self.spans, self.tiles = spans, tiles
        self.objective = objective
        self.capacity = layers[0].buffer.usable_slices
        self.leasts, self.agreed = LeastCosts(layers, objective), SharedAxes(layers, axes)
        self.users = {(at, number): [at] for at, layer in enumerate(layers) for number in range(len(layer.widths))}
        self.users |= {pair: list(tensor.users) for tensor in shared for pair in tensor.users.items()}
        self._leaves: dict[tuple[int, LayerTile, States, Objective], list[Branch]] = {}
        self._known: dict[tuple[str, Span, bool], list[Solution]] = {}
        self.floor = dict[tuple[int, int], tuple[float, float]]()

    def unfused(self) -> Solution:
        """Return the best sequence of layers that share nothing."""
        return self._unfused(0, len(self.layers) - 1, FAR)

    def bounded(self, parts: int) -> SpanBounds | None:
        """Return bounds by the states of tensors; None on arrays, with windows, or if axes are not certain.

        Raises:
            OutOfTime: It takes too long, or too much memory.
        """
        if any(type(layer) is not FusedLayer or any(layer.windows) for layer in self.layers):
            return None

        def axes_of(first: int, last: int, inputs: Sequence[Shared]) -> list[Axis]:
            return self.agreed.between(first, last, [*self._made_and_read(first, last), *inputs])

        homes = homes_by_layer(len(self.layers), self.shared, axes_of)
        return None if homes is None else SpanBounds(self.layers, homes, axes_of, self.limits, parts)

    def guided(self, spans: SpanBounds) -> TreeSearch:
        """Return a search of trees with the tensors at home, and the sizes of shared tiles, where the bound is."""
        homes = list(spans.best(0 if self.objective.energy_power else 1))
        names = {tensor.name for tensor, _ in homes}
        shared = [replace(tensor, alike=tensor.alike and tensor.name in names) for tensor in self.shared]
        tiles = frozenset(size for _, sizes in homes for size in sizes)
        return TreeSearch(self.layers, shared, self.axes, self.objective, self.limits, spans, tiles)

    def best(self, known: Solution, end: float = math.inf) -> Found:
        """Return the best tree of all layers, with a lower bound.

        If the time ends, or the user interrupts, it is the best tree so far.

        Args:
            known: some sequence of layers, or some tree.
            end: time limit on the clock of the limits.
        """
        last, objective = len(self.layers) - 1, self.objective
        self.known, self.proved, self.alone, is_cut, plain, interrupted = known, 0.0, {}, True, None, False
        self.end = self.limits.ends = end
        seconds = None if end == math.inf else max(0.0, end - self.limits.now())
        slices = math.inf if seconds is None else seconds * SLICE
        whole = self._whole(0, last, HOME)
        for at, (tile, states) in enumerate(zip(*whole[2:], strict=True)):
            energy, cycles = self.leasts.of(at, np.array([tile], dtype=np.int64), states)
            self.floor[at, at] = float(energy[0]), float(cycles[0])
        try:
            plain = self.unfused()
            self.known = best_of(self.objective, [self.known, plain])
            for at in range(last + 1):
                self.floor[at, at] = self._least(at, self.shared)
            is_worst = self._value(self.known.energy_pj, self.known.cycles) >= self._value(
                plain.energy_pj, plain.cycles
            )
            for length in range(1, last + 1):
                if length <= ALONE and (seconds is not None or last >= FEW) and (self.spans is None or is_worst):
                    self._join(length, 2 * slices)
                if length > 1 and self.spans is None and all(self.leasts.home_is_least):  # else homes may cost more
                    self._bound_all(length, slices)
            self.limits.check()
            self.known, self.proved = self._solved(0, last, HOME, self.known, math.inf)
            is_cut = self.is_cut
        except OutOfTime:
            self.objective = objective
        except KeyboardInterrupt:
            mark_result_found()
            self.objective, interrupted = objective, True
        self._sum_floors(0, last, self.floor)
        least = max(self.proved, self._value(*self._after[-1]))
        bound = min(least, self._value(self.known.energy_pj, self.known.cycles))
        return Found(self.known, bound, not is_cut, plain, interrupted or self.end == -math.inf)

    def _join(self, length: int, slices: float) -> None:
        """Solve the intervals of some length as groups of their own, and find the best sequence of all solved ones.

        Args:
            slices: time limit for each.
        """
        count = len(self.layers)
        with suppress(OutOfTime):
            for first in range(count + 1 - length):
                self.limits.check()
                last = first + length - 1
                parts = [in_sequence(self.alone[first, at], self.alone[at + 1, last]) for at in range(first, last)]
                best = best_of(self.objective, [self._unfused(first, last, FAR), *parts])
                if self._within(first, last):
                    best, _ = self._solved(first, last, FAR, best, slices)
                self.alone[first, last] = best
        self.limits.ends = math.inf  # a sequence of what is solved takes no time
        rows = {-1: [Solution(0.0, 0.0, 0, Sequenced((), ()))]}
        for at in range(count):
            starts = [start for start in range(at + 1) if (start, at) in self.alone]
            rows[at] = thinned(
                self.objective,
                self.limits.check,
                [in_sequence(row, self.alone[start, at]) for start in starts for row in rows[start - 1]],
            )
        self.known = best_of(self.objective, [self.known, *rows[count - 1]])
        self.limits.ends = self.end

    def _bound_all(self, length: int, slices: float) -> None:
        """Bound the least energy and cycles of the intervals of some length, wherever the tensors of others are at home.

        Args:
            slices: time limit for each.
        """
        objective = self.objective
        for first in range(len(self.layers) + 1 - length):
            last = first + length - 1
            self.limits.check()
            if self._within(first, last):
                costs = [0.0, 0.0]
                for at, alone in enumerate((ENERGY, CYCLES)):
                    if objective.powers[at]:
                        self.objective = alone
                        _, costs[at] = self._solved(first, last, HOME, self._unfused(first, last, HOME), slices)
                self.objective = objective
                self.floor[first, last] = costs[0], costs[1]

    def _solved(self, first: int, last: int, others: int, known: Solution, seconds: float) -> tuple[Solution, float]:
        """Return the best tree of some layers, or a known one that is no worse, and a lower bound on its objective.

        Args:
            others: state of the tensors of other layers. At home they take no room.
            seconds: time limit. The bound is lower then.
        """
        floors = self.floor
        if others == FAR:
            inside = self._within(first, last)
            floors = floors | {(at, at): self._least(at, inside) for at in range(first, last + 1)}
        self._sum_floors(first, last, floors)
        cost = known, self._value(*self._after[first - 1])
        self.limits.ends, self.is_cut = min(self.end, self.limits.now() + seconds), True
        try:
            for better in self._better(self._whole(first, last, others), *cost):
                cost = better
            self.is_cut = False
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            mark_result_found()
            self.end = -math.inf
        self.limits.ends = self.end
        return cost

    def _better(self, place: Span, best: Solution, floor: float) -> Iterator[tuple[Solution, float]]:
        """Yield better trees and bounds until they are equal.

        The first bounds on costs are low. They grow until there is a tree. Simple trees are tried first: their costs
        are bounds, too.
        """
        top = least = self._value(best.energy_pj, best.cycles)
        proved = floor
        for share in SHARES:
            most = min(least, floor + (top - floor) * share)
            for nested in (False, True):
                solutions = self._found(place, most, nested)
                if solutions:
                    best = best_of(self.objective, [best, *solutions])
                    most = least = self._value(best.energy_pj, best.cycles)
                    yield best, proved
                if least <= floor * (1 + 1e-9) or (nested and solutions):
                    yield best, least
                    return
            proved = most
            yield best, proved

    def _found(self, place: Span, most: float, nested: bool) -> list[Solution]:
        """Return the best trees that cost no more than a bound.

        Args:
            nested: whether branches inside shared loops may have shared loops, too.
        """
        self.most, self.nested = most * (1 + 1e-9), nested
        self._known.clear()
        return [*self._sequence(place, needs_home=False, root=True), *self._deeper(place, entry=True)]

    def _whole(self, first: int, last: int, others: int) -> Span:
        """Return some layers with whole tiles; the tensors of other layers, too, have one state."""
        states = [[FAR] * len(member.widths) for member in self.layers]
        for tensor in self.shared:
            inside = first <= tensor.first and tensor.last <= last
            for layer, number in tensor.users.items():
                states[layer][number] = FAR if not tensor.alike else OPEN if inside else others
        tiles = tuple(member.whole for member in self.layers[first : last + 1])
        return first, last, tiles, tuple(map(tuple, states[first : last + 1]))

    def _unfused(self, first: int, last: int, others: int) -> Solution:
        """Return the best sequence of branches, given the state of the tensors of other layers."""
        _, _, tiles, states = self._whole(first, last, others)
        rows = [Row(0.0, 0.0, 0, (), ())]
        for at, (tile, opened) in enumerate(zip(tiles, states, strict=True), first):
            closed = tuple(FAR if state == OPEN else state for state in opened)
            solutions = [
                Solution(branch.energy_pj, branch.cycles, 0, Leaf(at, branch))
                for branch in self._leaf(at, tile, closed)
            ]
            rows = thinned(
                self.objective,
                self.limits.check,
                list(self._extended(rows, thinned(self.objective, self.limits.check, solutions), 0, ())),
            )
        return best_of(
            self.objective, [Solution(row.energy_pj, row.cycles, 0, Sequenced((), row.branches)) for row in rows]
        )

    def _sum_floors(self, first: int, last: int, floor: dict[tuple[int, int], tuple[float, float]]) -> None:
        """Bound the costs of the first layers of an interval, and of the last ones, by the costs of shorter intervals."""
        self._before, self._after = {first: (0.0, 0.0)}, {last: (0.0, 0.0)}
        for at in range(first, last + 1):
            ends = [(self._before[start], floor[start, at]) for start in range(first, at + 1) if (start, at) in floor]
            self._before[at + 1] = max(a[0] + b[0] for a, b in ends), max(a[1] + b[1] for a, b in ends)
        for at in range(last, first - 1, -1):
            ends = [(self._after[end], floor[at, end]) for end in range(at, last + 1) if (at, end) in floor]
            self._after[at - 1] = max(a[0] + b[0] for a, b in ends), max(a[1] + b[1] for a, b in ends)
        self._closer = self.spans if last - first + 1 == len(self.layers) else None
        if self._closer is not None:
            for at in range(first, last + 1):
                self._before[at + 1] = _largest(self._before[at + 1], self._closer.before(at + 1))
                self._after[at - 1] = _largest(self._after[at - 1], self._closer.after(at))

    def _value(self, energy: float, cycles: float) -> float:
        """Return the objective."""
        return self.objective.value(energy, cycles)

    def _may(self, others: tuple[float, float], energy: float, cycles: float) -> bool:
        """Return whether some layers with these costs may be part of a solution, given the least costs of others."""
        return self._value(energy + others[0], cycles + others[1]) <= self.most

    def _others(
        self, place: Span, end: int | None = None, fused: Mapping[Shared, bool] = MappingProxyType({})
    ) -> tuple[float, float]:
        """Return the least energy and cycles of all layers outside of a place, or outside of its first layers.

        Args:
            end: the last of these layers.
            fused: whether tensors are at home, besides those whose state the place tells.
        """
        first, last = place[0], place[1] if end is None else end
        before, after = self._before[first], self._after[last]
        if self._closer is not None:
            flags = [
                tuple(self._is_home(tensor, place, fused) for tensor in self._crossing[at]) for at in (first, last + 1)
            ]
            before = _largest(before, self._closer.before(first, flags[0]))
            after = _largest(after, self._closer.after(last + 1, flags[1]))
        return before[0] + after[0], before[1] + after[1]

    @cached_property
    def _crossing(self) -> list[list[Shared]]:
        """For each number of first layers the tensors that they and others use, in the order of the bounds."""
        assert self.spans is not None
        named = {tensor.name: tensor for tensor in self.shared}
        return [[named[name] for name in self.spans.crossing(at)] for at in range(len(self.layers) + 1)]

    def _is_home(self, tensor: Shared, place: Span, fused: Mapping[Shared, bool]) -> bool | None:
        """Return whether a tensor is at home; None if it is not known."""
        if tensor in fused:
            return fused[tensor]
        first, last, _, states = place
        state = next((states[at - first][number] for at, number in tensor.users.items() if first <= at <= last), OPEN)
        if state == OPEN or (state > HOME and not tensor.made):
            return None
        return state == HOME

    def _least(self, number: int, shared: Sequence[Shared]) -> tuple[float, float]:
        """Return the least energy and cycles of a layer, wherever these shared tensors are at home."""
        layer = self.layers[number]
        opened = {tensor.users[number] for tensor in shared if number in tensor.users and tensor.alike}
        states = tuple(OPEN if t in opened else FAR for t in range(len(layer.widths)))
        if any(layer.windows):
            energy, cycles = self.leasts.of(number, np.array([layer.whole]), states)
            return float(energy[0]), float(cycles[0])
        branches = [
            branch
            for closed in self.leasts.closed(number, states)
            for branch in self._leaf(number, layer.whole, closed)
        ]
        return min(branch.energy_pj for branch in branches), min(branch.cycles for branch in branches)

    def _leaf(self, number: int, tile: LayerTile, states: States) -> list[Branch]:
        key = self.leasts.kinds[number], tile, states, self.objective
        self.limits.check()
        if key not in self._leaves:
            self._leaves[key] = self.layers[number].branches(tile, states, self.capacity, self.objective)
        return self._leaves[key]

    def _branch(self, place: Span) -> list[Solution]:
        """Return the best branches of an interval."""
        key = "branch", place, True
        if key not in self._known:
            first, last, (tile, *_), (states, *_) = place
            if first < last:
                self._known[key] = self._deeper(place, entry=True)
            else:
                others = self._others(place)
                solutions = [
                    Solution(branch.energy_pj, branch.cycles, branch.slices, Leaf(first, branch))
                    for branch in self._leaf(first, tile, states)
                ]
                self._known[key] = [
                    solution for solution in solutions if self._may(others, solution.energy_pj, solution.cycles)
                ]
        return self._known[key]

    def _inside(self, place: Span, homed: bool) -> list[Solution]:
        """Return the best trees inside the loops of a level; `homed`: a tensor is at home there."""
        key = "inside", place, homed
        if key not in self._known:
            solutions = self._sequence(place, needs_home=not homed)
            self._known[key] = thinned(
                self.objective, self.limits.check, [*solutions, *self._deeper(place, entry=homed)]
            )
        return self._known[key]

    def _sequence(self, place: Span, needs_home: bool, root: bool = False) -> list[Solution]:
        """Return the best sequences of branches.

        Args:
            needs_home: whether some tensor has to be at home right above them. Otherwise nothing would be lost
                if the loops outside were in the branches.
        """
        first, last, tiles, states = place
        able = [
            tensor
            for tensor in self._within(first, last)
            if states[tensor.first - first][tensor.users[tensor.first]] == OPEN
        ]
        rows: list[dict[tuple[tuple[tuple[Shared, bool], ...], bool], list[Row]]] = [
            {} for _ in range(last - first + 2)
        ]
        rows[0][(), not needs_home] = [Row(0.0, 0.0, 0, (), ())]
        alone = first == last
        for start in range(first, last + 1):
            for (chosen, homed), before in rows[start - first].items():
                before = thinned(self.objective, self.limits.check, before)
                known = dict(chosen)
                spent = min(row.energy_pj for row in before), min(row.cycles for row in before)
                for end in range(start, last + 1):
                    if (start, end) == (first, last) and not alone:
                        continue
                    if start < end and not root and not self.nested:
                        continue
                    new = [tensor for tensor in able if start <= tensor.first <= end < tensor.last]
                    for fused in itertools.product((False, True), repeat=len(new)):
                        now = known | dict(zip(new, fused, strict=True))
                        homes = tuple(tensor.name for tensor, is_fused in zip(new, fused, strict=True) if is_fused)
                        kept = sum(self._home_slices(tensor, place) for tensor, is_fused in now.items() if is_fused)
                        if kept > self.capacity:
                            continue
                        there = self._narrowed(place, start, end, now)
                        least = self._least_inside(there, kept)
                        others = self._others(place, end, now)
                        if not self._may(others, spent[0] + least[0], spent[1] + least[1]):
                            continue
                        branches = self._branch(there)
                        later = tuple((tensor, is_fused) for tensor, is_fused in now.items() if tensor.last > end)
                        grown = [
                            row
                            for row in self._extended(before, branches, kept, homes)
                            if self._may(others, row.energy_pj, row.cycles)
                        ]
                        if grown:
                            rows[end - first + 1].setdefault((later, homed or bool(homes)), []).extend(grown)
        ends = thinned(self.objective, self.limits.check, rows[-1].get(((), True), []))
        return [Solution(row.energy_pj, row.cycles, row.slices, Sequenced(row.homes, row.branches)) for row in ends]

    def _extended(
        self, rows: Iterable[Row], branches: Iterable[Solution], kept: int, homes: tuple[str, ...]
    ) -> Iterator[Row]:
        """Yield rows with one more branch that fits beside kept slices."""
        for row in rows:
            self.limits.check()
            for branch in branches:
                slices = max(row.slices, branch.slices + kept)
                if slices <= self.capacity:
                    assert not isinstance(branch.tree, Sequenced)
                    costs = row.energy_pj + branch.energy_pj, row.cycles + branch.cycles
                    yield Row(*costs, slices, (*row.branches, branch.tree), (*row.homes, *homes))

    def _narrowed(self, place: Span, start: int, end: int, fused: dict[Shared, bool]) -> Span:
        """Return some layers of a place, given which tensors of several branches are fused."""
        first, _, tiles, states = place
        narrowed = [list(state) for state in states[start - first : end - first + 1]]
        for tensor, is_fused in fused.items():
            for layer, number in tensor.users.items():
                if start <= layer <= end:
                    filled = is_fused and layer == tensor.first and not tensor.made
                    narrowed[layer - start][number] = tensor.words if filled else HOME if is_fused else FAR
        return start, end, tiles[start - first : end - first + 1], tuple(map(tuple, narrowed))

    def _within(self, first: int, last: int) -> list[Shared]:
        """Return the tensors all of whose layers are in an interval."""
        return [tensor for tensor in self.shared if first <= tensor.first and tensor.last <= last]

    def _made_and_read(self, first: int, last: int) -> list[Shared]:
        """Return the tensors that a layer of an interval makes, and another one there reads, wherever they are at home."""
        return [
            tensor
            for tensor in self.shared
            if tensor.made and first <= tensor.first and any(tensor.first < user <= last for user in tensor.users)
        ]

    def _home_slices(self, tensor: Shared, place: Span) -> int:
        """Return the slices of a tensor's tile at home, with the rows that stay."""
        first, _, tiles, _ = place
        slices = tensor.width
        for size, steps, halo in zip(tensor.sizes, tensor.steps, tensor.halos, strict=True):
            dimension = steps.get(tensor.first)
            tile = size if dimension is None else tiles[tensor.first - first][dimension]
            whole = size if dimension is None else self.layers[tensor.first].whole[dimension]
            slices *= tile + halo if tile < whole else size
        return slices

    def _deeper(self, place: Span, entry: bool) -> list[Solution]:
        """Return the best levels of an interval.

        Args:
            entry: whether no loops are right outside. Otherwise the level has to keep some tensor outside its loops, since
                they could be one level.
        """
        key = "deeper", place, entry
        if key not in self._known:
            self._known[key] = thinned(self.objective, self.limits.check, list(self._levels(place, entry)))
        return self._known[key]

    def _levels(self, place: Span, entry: bool) -> Iterator[Solution]:
        first, last, _, _ = place
        if first == last:
            return
        for homes, inner in self._committed(place):
            able = [tensor for tensor in self._within(first, last) if self._is_open(tensor, inner)]
            if not able:
                continue  # nothing would be at home inside the loops
            axes = self.agreed.between(
                first, last, [*self._made_and_read(first, last), *(tensor for tensor in able if not tensor.made)]
            )
            for chosen in subsets(axes, 1):
                uneven = [axis for axis in chosen if any(self._has_halo(first, axis, tensor) for tensor in able)]
                if len(uneven) > 1:
                    continue  # homes are right inside each of these loops
                free = [axis for axis in chosen if axis not in uneven] or chosen  # they may be outermost
                if any(tensor.stepped(first, axis) is not None for tensor in homes for axis in free):
                    continue  # its home can move in
                kept_homes = sum(self._home_slices(tensor, place) for tensor in homes)
                still = [pair for pair in self._keepable(inner) if not self._moves_in(first, free, *pair)]
                for kept in subsets(still):
                    self.limits.check()
                    slices = kept_homes + sum(self._slices(place, *pair) for pair in kept)
                    if (kept or homes or entry) and slices <= self.capacity:
                        names = tuple(tensor.name for tensor in homes)
                        yield from self._looped(inner, chosen, uneven, kept, names, slices)

    def _keepable(self, place: Span) -> Iterator[tuple[int, int]]:
        """Yield the tensors of layers that the buffer may keep for one of them.

        A tensor of several layers inside would be kept for all of them.
        """
        first, last, _, states = place
        for layer in range(first, last + 1):
            for tensor, state in enumerate(states[layer - first]):
                if state == FAR and sum(first <= user <= last for user in self.users[layer, tensor]) == 1:
                    yield layer, tensor

    def _is_open(self, tensor: Shared, place: Span) -> bool:
        first, _, _, states = place
        return states[tensor.first - first][tensor.users[tensor.first]] == OPEN

    def _committed(self, place: Span) -> Iterator[tuple[tuple[Shared, ...], Span]]:
        """Yield inputs that are at home here, and the place where these and some others are not open any more.

        Results stay open until branches part them: their homes can move in that far.
        """
        first, last, _, _ = place
        able = [tensor for tensor in self._within(first, last) if not tensor.made and self._is_open(tensor, place)]
        for choice in itertools.product((None, False, True), repeat=len(able)):
            known = {tensor: is_fused for tensor, is_fused in zip(able, choice, strict=True) if is_fused is not None}
            homes = tuple(tensor for tensor, is_fused in known.items() if is_fused)
            yield homes, self._narrowed(place, first, last, known)

    def _moves_in(self, first: int, axes: Sequence[Axis], layer: int, tensor: int) -> bool:
        """Return whether a tensor could be kept inside some of the loops at no cost."""
        moving = self.layers[layer].moving[tensor] - self.layers[layer].sliding[tensor]
        return any(axis[layer - first] in moving for axis in axes)

    def _slices(self, place: Span, layer: int, tensor: int) -> int:
        tables = self.layers[layer]
        return tables.words(tensor, place[2][layer - place[0]]) * tables.widths[tensor]

    def _looped(
        self,
        place: Span,
        axes: Sequence[Axis],
        uneven: Sequence[Axis],
        kept: tuple[tuple[int, int], ...],
        homes: tuple[str, ...],
        slices: int,
    ) -> Iterator[Solution]:
        """Yield the levels with loops over all axes inside some kept tensors.

        Args:
            uneven: the axis, if any, along which homes keep a halo. It is the last one.
            homes: tensors at home outside the loops.
            slices: those of kept tensors and homes.
        """
        first, last, tiles, states = place
        homed = [
            tensor
            for axis in uneven
            for tensor in self._within(first, last)
            if self._is_open(tensor, place) and self._has_halo(first, axis, tensor)
        ]
        filled = [list(layer_states) for layer_states in states]
        for layer, number in kept:
            tile = tiles[layer - first]
            filled[layer - first][number] = self.layers[layer].filling(number, tile)
        new_states = tuple(map(tuple, filled))
        lasts = uneven or list(axes)
        for sizes, inner in self._tilings(place, axes, new_states, slices):
            for last_axis in lasts:
                loops = tuple((axis, size) for axis, size in zip(axes, sizes, strict=True) if axis != last_axis) + (
                    (last_axis, sizes[list(axes).index(last_axis)]),
                )
                able = list(slidable(self.layers, first, tiles, inner, new_states, last_axis))
                for sliding in subsets(able):
                    if not sliding and last_axis != lasts[0]:
                        continue
                    slid = [list(layer_states) for layer_states in new_states]
                    more = 0
                    for layer, number in sliding:
                        at, dimension = layer - first, last_axis[layer - first]
                        slid[at][number] = self.layers[layer].slid(number, tiles[at][dimension], inner[at], dimension)
                        more += self.layers[layer].words(number, inner[at]) * self.layers[layer].widths[number]
                    there: Span = first, last, inner, tuple(map(tuple, slid))
                    for choice in itertools.product((False, True), repeat=len(homed)):
                        self.limits.check()
                        known = dict(zip(homed, choice, strict=True))
                        names = tuple(tensor.name for tensor, is_fused in known.items() if is_fused)
                        room = (
                            slices + more + sum(self._home_slices(tensor, there) for tensor in homed if known[tensor])
                        )
                        if room > self.capacity:
                            continue
                        for solution in self._inside(self._narrowed(there, first, last, known), bool(names)):
                            if solution.slices + room <= self.capacity:
                                assert not isinstance(solution.tree, Leaf)
                                level = SharedLoops(first, kept, homes, loops, sliding, names, solution.tree)
                                yield Solution(solution.energy_pj, solution.cycles, solution.slices + room, level)

    def _has_halo(self, first: int, axis: Axis, tensor: Shared) -> bool:
        number = tensor.stepped(first, axis)
        return number is not None and tensor.halos[number] > 0

    def _tilings(
        self, place: Span, axes: Sequence[Axis], states: tuple[States, ...], slices: int
    ) -> Iterator[tuple[tuple[int, ...], tuple[LayerTile, ...]]]:
        """Yield the tile of each axis, and the tiles of all layers inside loops over them, where the costs may be optimal."""
        first, last, tiles, _ = place
        options = []
        for axis in axes:
            sizes = [tile[dimension] for tile, dimension in zip(tiles, axis, strict=True)]
            able = [divisor for divisor in self.limits.divisors(math.gcd(*sizes)) if divisor < min(sizes)]
            options.append(able if self.tiles is None else [size for size in able if size in self.tiles])
        every = tuple(itertools.product(*options))
        if not every:
            return
        bounds = [
            self.leasts.inside(first + at, tile, tuple(axis[at] for axis in axes), every, states[at])
            for at, tile in enumerate(tiles)
        ]
        others = self._others((first, last, tiles, states))
        energy = sum((bound.energy_pj for bound in bounds), start=np.full(len(every), others[0]))
        cycles = sum((bound.cycles for bound in bounds), start=np.full(len(every), others[1]))
        for row in np.flatnonzero(self.objective.value(energy, cycles) <= self.most):
            self.limits.check()
            inner_tiles = tuple(bound.tiles[row] for bound in bounds)
            if self._may(others, *self._least_inside((first, last, inner_tiles, states), slices)):
                yield every[row], inner_tiles

    def _least_inside(self, place: Span, slices: int) -> tuple[float, float]:
        """Return a lower bound on energy and cycles of layers, beside kept slices."""
        first, last, tiles, states = place
        energy, cycles = 0.0, 0.0
        for at, (tile, opened) in enumerate(zip(tiles, states, strict=True), first):
            if any(self.layers[at].windows):
                known = self.leasts.inside(at, tile, (), ((),), opened)
                energy, cycles = energy + float(known.energy_pj[0]), cycles + float(known.cycles[0])
            else:  # loops inside, shared or not, are those of a nest inside the tile
                branches = [
                    branch
                    for closed in self.leasts.closed(at, opened)
                    for branch in self._leaf(at, tile, closed)
                    if branch.slices + slices <= self.capacity
                ]
                if not branches:
                    return math.inf, math.inf
                energy += min([branch.energy_pj for branch in branches])
                cycles += min([branch.cycles for branch in branches])
        floor = self.floor.get((first, last), (0.0, 0.0))
        return max(energy, floor[0]), max(cycles, floor[1])


def _largest(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return max(one[0], other[0]), max(one[1], other[1])
