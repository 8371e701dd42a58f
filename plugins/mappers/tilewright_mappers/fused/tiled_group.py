"""Groups on any hierarchy: the best cut of the layers into intervals, each fused by `tiles`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright.interrupts import mark_result_found
from tilewright.plugin.groupmapper import BranchCase, BranchMapper, GroupResult, GroupTask
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.schema.architecture import Memory
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright.schema.read import shape_of
from tilewright_mappers.fused.limits import Limits, OutOfTime
from tilewright_mappers.fused.solution import Axis, AxisNames, Shared, axis_within
from tilewright_mappers.fused.tiles import Branches, Choice, Fused, TiledInterval, fused_interval

SPACE = (
    "layers in order, in intervals of one nest of shared loops around tiles at home; tiles divide, no sum crosses; "
    "inside, the layers' map spaces"
)
"""Space of the search, for users."""
MAX_LAYERS = 4
"""Layers of the longest interval that is fused. Longer ones are cut."""


@dataclass(frozen=True)
class _Cut:
    """The first layers, cut into intervals: costs of the best ones."""

    energy_pj: float
    cycles: float
    parts: tuple[Fused, ...]


class TiledGroup:
    """The best sequence of fused intervals.

    Args:
        problems: the layers, in order.
        shared: the tensors that several of them use.
        axes: sets of dimensions (layer, dimension) that one loop may step.
        padded: layers with words that do not exist. A group does not move them, but their branches do: they are not fused, and
            there is no bound.
    """

    def __init__(
        self,
        task: GroupTask,
        mapper: BranchMapper,
        home: Memory,
        problems: Sequence[Problem],
        shared: Sequence[Shared],
        axes: Sequence[frozenset[tuple[int, int]]],
        padded: frozenset[str],
        limits: Limits,
    ) -> None:
        self.task, self.group, self.problems, self.shared, self.axes = task, task.group, problems, shared, axes
        self.home, self.mapper, self.limits = home, mapper, limits
        self.apart, self.padded = task.apart, padded
        self.objective = objective = task.objective
        self.objectives = (objective,) if objective.is_additive else (objective, ENERGY, CYCLES)
        self.branches = {one: Branches(mapper, task.group.architecture, home, one, limits) for one in self.objectives}
        self.known: dict[tuple[int, int, Objective], Fused] = {}
        self.floors: dict[Objective, list[float]] = {}

    def result(self) -> GroupResult:
        """Return the best group mapping in sequence of fused intervals.

        Raises:
            NotConformableError: A layer has no mapping, or the cost model refuses the group.
        """
        best, bound, plain = self.search()
        tree, unfused = Tree(self, best).group(), Tree(self, plain).group()
        report, plain_report = self.task.evaluate(tree), self.task.evaluate(unfused)
        value, without = (one.of(self.objective) for one in (report, plain_report))
        if value is None or without is None:
            raise NotConformableError("the search of fused groups", report.reasons or plain_report.reasons)
        if without < value:
            tree, report, value = unfused, plain_report, without
        assert report.energy_pj is not None and report.cycles is not None
        sure = [self.known[at, at, one] for at in range(len(self.problems)) for one in self.objectives]
        return GroupResult(
            group=tree,
            energy_pj=report.energy_pj,
            cycles=report.cycles,
            unfused=unfused,
            bound=0.0 if self.padded else min(bound, value),
            space=SPACE,
            by_branches=True,
            proved=not self.padded and bound >= value * (1 - PROOF_TOLERANCE),
            unfused_proved=not self.padded
            and self.objective.is_additive
            and all(
                part.bound >= self.objective.value(part.energy_pj, part.cycles) * (1 - PROOF_TOLERANCE) for part in sure
            ),
        )

    def search(self) -> tuple[_Cut, float, _Cut]:
        """Return the best cut, a lower bound on the objective of all, and the best cut without fusion.

        Raises:
            NotConformableError: A layer has no mapping.
        """
        count, ends = len(self.problems), self.limits.ends
        self.limits.ends = math.inf  # without these there is no mapping at all
        try:
            for at in range(count):
                for objective in self.objectives:
                    self._solve(at, at, objective)
        except OutOfTime:  # the user has interrupted
            raise KeyboardInterrupt from None
        self.limits.ends = ends
        plain = self._best()
        if not math.isfinite(plain.energy_pj):
            names = [problem.name for at, problem in enumerate(self.problems) if not self._is_mapped(at)]
            reasons = [
                Reason(code="mapping", where=name, message="no mapping without fusion was found") for name in names
            ]
            hint = (
                "map these layers without --fuse, whose message tells why; "
                "groups on this hierarchy need a cost model under which `optimal` searches, such as timeloop"
            )
            raise NotConformableError(f"architecture {self.group.architecture.name}", reasons, hint=hint)
        try:
            for objective in self.objectives if math.isfinite(self.limits.ends) or count > MAX_LAYERS else ():
                self.floors[objective] = [self._floor(at, objective) for at in range(count)]
            for length in range(2, min(count, MAX_LAYERS) + 1):
                for first in range(count + 1 - length):
                    if any(problem.name in self.padded for problem in self.problems[first : first + length]):
                        continue
                    for objective in self.objectives:
                        self._solve(first, first + length - 1, objective)
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            mark_result_found()
        return self._best(), self._bound(), plain

    def _is_mapped(self, at: int) -> bool:
        return math.isfinite(self.known[at, at, self.objective].energy_pj)

    def interval(self, first: int, last: int) -> TiledInterval:
        """Return the layers from one to another, which may share loops."""
        return TiledInterval(
            self.problems[first : last + 1],
            *self.within(first, last),
            self._axes(first, last) if self._may_share(first, last) else (),
            self.group.architecture,
            self.home,
        )

    def _solve(self, first: int, last: int, objective: Objective) -> None:
        self.known[first, last, objective] = fused_interval(
            self.interval(first, last),
            first,
            self.branches[objective],
            objective,
            self._separate(first, last, objective),
            self.limits,
        )

    def _may_share(self, first: int, last: int) -> bool:
        """Return whether the layers of an interval may share loops."""
        names = {problem.name for problem in self.problems[first : last + 1]}
        return last > first and not any(set(pair) <= names for pair in self.apart)

    def _separate(self, first: int, last: int, objective: Objective) -> float:
        """Return the least cost of an interval that is cut further; no tree of one nest needs to be found above it."""
        if not objective.is_additive or first == last:
            return math.inf
        least = {first - 1: 0.0}
        for end in range(first, last + 1):
            starts = [start for start in range(first, end + 1) if (start, end, objective) in self.known]
            parts = {start: self.known[start, end, objective] for start in starts}
            sums = (least[start - 1] + objective.value(part.energy_pj, part.cycles) for start, part in parts.items())
            least[end] = min(sums, default=math.inf)
        return least[last]

    def within(self, first: int, last: int) -> tuple[list[Shared], list[Shared]]:
        """Return the tensors that several layers of an interval use, and its results that layers outside read, too.

        A result of an earlier layer is an input of the interval.
        """
        within, leaving = list[Shared](), list[Shared]()
        for tensor in self.shared:
            users = {at - first: own for at, own in tensor.users.items() if first <= at <= last}
            if len(users) < 2:
                continue
            steps = tuple(
                {at - first: dimension for at, dimension in own.items() if first <= at <= last} for own in tensor.steps
            )
            made = tensor.made and first <= tensor.first
            windows = tuple(
                {at - first: window for at, window in own.items() if first <= at <= last} if made else {}
                for own in tensor.windows
            )
            inside = replace(tensor, users=users, steps=steps, made=made, windows=windows)
            if tensor.made and not made:
                problems = {at: self.problems[first + at] for at in users}
                shapes = {shape_of(problem, problem.tensors[users[at]].name) for at, problem in problems.items()}
                inside = replace(inside, alike=len(shapes) == 1)
            (leaving if made and len(users) < len(tensor.users) else within).append(inside)
        return within, leaving

    def _axes(self, first: int, last: int) -> list[Axis]:
        """Return the axes on which every layer of an interval has a dimension."""
        axes = list[Axis]()
        for every in self.axes:
            axis = axis_within(every, first, last)
            axes += [axis] if axis is not None and axis not in axes else []
        return axes

    def _floor(self, at: int, objective: Objective) -> float:
        """Return a lower bound on a layer in every interval: its least cost over all sets of tensors at home, without room.

        Operands that no layer makes are filled once at least, by one of their readers.
        """
        if not self.mapper.is_free:
            return 0.0
        everything = TiledInterval(self.problems, (), (), (), self.group.architecture, self.home)
        problem, branches = self.problems[at], self.branches[objective]
        cases = []
        able = [tensor for tensor in problem.tensors if self.home.may_hold(tensor)]
        for bits in range(1 << len(able)):
            some = frozenset(tensor.name for number, tensor in enumerate(able) if bits >> number & 1)
            cases.append(BranchCase(problem, some, 0, problem))
        branches.ask(cases)
        users = {tensor.users[at]: tensor for tensor in self.shared if at in tensor.users}
        least = math.inf
        for case in cases:
            energy, cycles = branches.least(case)
            for own, tensor in enumerate(problem.tensors):
                shared = users.get(own)
                if tensor.name not in case.at_home or tensor.is_output or (shared is not None and shared.made):
                    continue
                pairs = [(at, own)] if shared is None else list(shared.users.items())
                energy += min(everything.fill_once_pj(*pair) for pair in pairs) / len(pairs)
            least = min(least, objective.value(energy, cycles))
        return least

    def _best(self) -> _Cut:
        """Return the best cut of all layers among the intervals that are known."""
        rows = {-1: [_Cut(0.0, 0.0, ())]}
        for end in range(len(self.problems)):
            grown = [
                _Cut(row.energy_pj + part.energy_pj, row.cycles + part.cycles, (*row.parts, part))
                for (first, last, _), part in self.known.items()
                if last == end and math.isfinite(part.energy_pj)
                for row in rows[first - 1]
            ]
            rows[end] = _front(grown, self.objective)
        best = rows[len(self.problems) - 1]
        return min(
            best, key=lambda row: self.objective.value(row.energy_pj, row.cycles), default=_Cut(math.inf, math.inf, ())
        )

    def _bound(self) -> float:
        """Return a lower bound on the objective of all cuts."""
        if self.objective.is_additive:
            return self._least_sum(self.objective)
        return self.objective.value(self._least_sum(ENERGY), self._least_sum(CYCLES))

    def _least_sum(self, objective: Objective) -> float:
        """Return the least sum of bounds over all cuts; intervals that were not searched cost their layers' floors."""
        floors, least = self.floors.get(objective, [0.0] * len(self.problems)), {-1: 0.0}
        for end in range(len(self.problems)):
            sums = []
            for start in range(end + 1):
                known = self.known.get((start, end, objective))
                own = math.fsum(floors[start : end + 1])
                sums.append(
                    least[start - 1] + (own if known is None else max(known.bound, own if end > start else 0.0))
                )
            least[end] = min(sums)
        return least[len(self.problems) - 1]


def _front(rows: list[_Cut], objective: Objective) -> list[_Cut]:
    """Return the cuts that no other one beats in energy and cycles; the best one if the objective adds up."""
    if objective.is_additive:
        return [min(rows, key=lambda row: objective.value(row.energy_pj, row.cycles))] if rows else []
    kept: list[_Cut] = []
    for row in sorted(rows, key=lambda row: (row.energy_pj, row.cycles)):
        if not kept or row.cycles < kept[-1].cycles:
            kept.append(row)
    return kept


class Tree:
    """The group mapping of a cut."""

    def __init__(self, search: TiledGroup, cut: _Cut) -> None:
        self.search, self.cut, self.group_before = search, cut, search.group
        self.outer = search.group.architecture.clusters[0].name
        self.inner = search.group.architecture.cluster_of(search.home.name).name
        self.names = {(layer, own): t for t, users in search.group.users.items() for layer, own in users.items()}
        self.names_of_axes = AxisNames()
        self.paces: dict[str, dict[str, dict[str, int]]] = {}

    def group(self) -> GroupMapping:
        at_home = set[str]()
        branches = list[dict[str, Any]]()
        for part in self.cut.parts:
            branches += self._part(part, at_home)
        kept = [user for user in self.group_before.users if user not in at_home]
        tree: dict[str, Any] = {"entries": [{"target": self.outer, "keep": kept}]}
        if len(branches) == 1 and "branches" in branches[0]:
            tree = {"entries": tree["entries"] + branches[0]["entries"], "branches": branches[0]["branches"]}
        elif len(branches) == 1:
            own = [own for user in kept for own in self.group_before.users[user].values()]
            tree = {
                "layer": branches[0]["layer"],
                "entries": [{"target": self.outer, "keep": own}, *branches[0]["entries"]],
            }
        else:
            tree["branches"] = branches
        return GroupMapping.model_validate(
            self.group_before.to_data() | {"axes": self.names_of_axes.axes, "paces": self.paces, "tree": tree}
        )

    def _part(self, part: Fused, at_home: set[str]) -> list[dict[str, Any]]:
        """Return the branches of an interval; without shared tiles one for each layer."""
        choice = part.choice
        assert choice is not None, "intervals without a choice are not taken"
        names = [problem.name for problem in self.search.problems[part.first :]]
        branches = [
            {"layer": name, "entries": [dict(entry) for entry in entries]}
            for name, entries in zip(names, part.entries, strict=False)
        ]
        if not choice.loops and not choice.homes and not choice.kept:
            return list(branches)
        homes = self._homes(part, choice)
        at_home |= set(homes)
        entries: list[dict[str, Any]] = [{"target": self.inner, "keep": self._kept(part, choice, 0)}]
        for depth, (axis, tile) in enumerate(choice.loops, 1):
            name = self.names_of_axes.of(self.search.problems[part.first :], axis)
            self._note_paces(part, choice, name, axis)
            kept = self._kept(part, choice, depth)
            entries.append({"target": self.inner, "keep": kept, "temporal_tile_sizes": {name: tile}})
        entries[-1]["keep"] += homes
        return [{"entries": entries, "branches": branches}]

    def _note_paces(self, part: Fused, choice: Choice, name: str, axis: Axis) -> None:
        """Take note of the rows that layers take for each row of an axis, and of their starts."""
        interval = self.search.interval(part.first, part.first + len(choice.cases) - 1)
        pace = interval.paces[axis]
        if not pace.slides and set(pace.rows) == {1}:
            return
        starts = choice.starts if axis == choice.loops[-1][0] else (0,) * len(choice.starts)
        for problem, rows, start in zip(interval.problems, pace.rows, starts, strict=True):
            self.paces.setdefault(name, {})[problem.name] = {"rows": rows, "start": start}

    def _homes(self, part: Fused, choice: Choice) -> list[str]:
        within, _ = self.search.within(part.first, part.first + len(choice.cases) - 1)
        return [within[at].name for at in choice.homes]

    def _kept(self, part: Fused, choice: Choice, depth: int) -> list[str]:
        result = list[str]()
        for kept in choice.kept:
            if kept.depth == depth:
                at, own = kept.users[0]
                problem = self.search.problems[part.first + at]
                result.append(self.names[problem.name, problem.tensor_names[own]])
        return result
