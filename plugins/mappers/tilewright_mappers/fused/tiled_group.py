"""Groups on any hierarchy: the best cut of the layers into intervals, each fused by `tiles`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright.interrupts import mark_result_found
from tilewright.mapspace.sliding import words_of_boxes
from tilewright.plugin.groupmapper import BranchCase, BranchMapper, GroupResult, GroupTask
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.reports import Report
from tilewright.schema.architecture import Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright.schema.read import shape_of
from tilewright_mappers.fused.limits import Limits, OutOfTime
from tilewright_mappers.fused.solution import Axis, AxisNames, Shared, axis_within, ranked
from tilewright_mappers.fused.tiles import Branches, Choice, Fused, TiledInterval, fused_interval

SPACE = (
    "layers in order, in intervals of one nest of shared loops around tiles at home; results stay whole between intervals; "
    "tiles divide, no sum crosses; inside, the layers' map spaces"
)
"""Space of the search, for users."""
BEYOND = "; the mapping itself has ragged tiles, which are outside this space"
MAX_LAYERS = 8
"""Layers of the longest interval that is fused. Longer ones are cut."""


@dataclass(frozen=True)
class _Cut:
    """The first layers, cut into intervals: costs of the best ones."""

    energy_pj: float
    cycles: float
    parts: tuple[Fused, ...]


Whole = frozenset[int]
"""Results that stay whole at home from the interval that makes them to the last one that reads them, by number."""
NOTHING = Whole()


class TiledGroup:
    """The best sequence of fused intervals, between which results may stay whole at home.

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
        self.sums = (objective,) if objective.is_additive else (ENERGY, CYCLES)
        """Objectives that add up over the layers; bounds on these bound a product."""
        self.objectives = dict.fromkeys((*self.sums, objective))
        self.branches = {one: Branches(mapper, task.group.architecture, home, one, limits) for one in self.objectives}
        self.known: dict[tuple[int, int, Whole, Objective], Fused] = {}
        self.ragged: dict[tuple[int, int, Whole, Objective], Fused] = {}
        self.ending: list[list[tuple[int, Whole, Objective]]] = [[] for _ in problems]
        self.whole_bits = {
            number: bits for number, tensor in enumerate(shared) if (bits := self._whole_bits(tensor)) is not None
        }
        self.start = Whole(number for number, tensor in enumerate(shared) if tensor.name in task.stays)
        self.floors: dict[Objective, list[float]] = {}
        self.most = math.inf

    def result(self) -> GroupResult:
        """Return the best group mapping in sequence of fused intervals.

        Raises:
            NotConformableError: A layer has no mapping, or the cost model refuses the group.
        """
        best, bound, plain = self.search()
        unfused = Tree(self, plain).group()
        plain_report = self.task.evaluate(unfused)
        tree, report = self._counted(best) or (unfused, plain_report)
        value, without = (one.of(self.objective) for one in (report, plain_report))
        if value is None or without is None:
            raise NotConformableError("the search of fused groups", report.reasons or plain_report.reasons)
        if without < value:
            tree, report, value = unfused, plain_report, without
        space = SPACE
        if self.ragged:  # their costs are estimates
            ragged = self._counted(self._best(ragged=True), ragged=True)
            cost = None if ragged is None else ragged[1].of(self.objective)
            if ragged is not None and cost is not None and cost < value:
                tree, report, value, space = *ragged, cost, SPACE + BEYOND
        assert report.energy_pj is not None and report.cycles is not None
        sure = [self.known[at, at, NOTHING, self.sums[0]] for at in range(len(self.problems))]
        return GroupResult(
            group=tree,
            energy_pj=report.energy_pj,
            cycles=report.cycles,
            unfused=unfused,
            bound=0.0 if self.padded else min(bound, value),
            space=space,
            by_branches=True,
            proved=not self.padded and bound >= value * (1 - PROOF_TOLERANCE),
            unfused_proved=not self.padded
            and self.objective.is_additive
            and all(
                part.bound >= self.objective.value(part.energy_pj, part.cycles) * (1 - PROOF_TOLERANCE) for part in sure
            ),
        )

    def _counted(self, best: _Cut, ragged: bool = False) -> tuple[GroupMapping, Report] | None:
        """Return the best mapping that the cost model counts, with its report; None if there is none of several layers.

        Intervals of layers that it does not count, such as those whose neighbours forward words, are left out. For a reason
        without a layer, such as tiles that do not fit together, the last interval is.
        """
        while shared := [part for part in best.parts if part.choice and (len(part.entries) > 1 or part.whole)]:
            tree = Tree(self, best).group()
            report = self.task.evaluate(tree)
            if report.valid:
                return tree, report
            refused = {reason.where.partition(",")[0] for reason in report.reasons}
            lost = [
                part
                for part in best.parts
                if any(problem.name in refused for problem in self.problems[part.first :][: len(part.entries)])
            ] or shared[-1:]
            dropped = [
                (known, key)
                for known in (self.known, self.ragged)
                for key, part in known.items()
                if any(part is one for one in lost) and (key[1] > key[0] or part.whole)
            ]
            if not dropped:
                return None
            for known, key in dropped:
                if known is self.ragged:
                    del known[key]  # tiles that divide may be counted
                else:
                    known[key] = replace(known[key], energy_pj=math.inf, cycles=math.inf)
            best = self._best(ragged=ragged)
        return None

    def search(self) -> tuple[_Cut, float, _Cut]:
        """Return the best cut, a lower bound on the objective of all, and the best cut without fusion.

        Raises:
            NotConformableError: A layer has no mapping.
        """
        count, ends = len(self.problems), self.limits.ends
        self.limits.ends = math.inf  # without these there is no mapping at all
        try:
            for at in range(count):
                for objective in self.sums:
                    self._solve(at, at, NOTHING, objective)
        except OutOfTime:  # the user has interrupted
            raise KeyboardInterrupt from None
        self.limits.ends = ends
        if not math.isfinite(self._plain().energy_pj):
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
            # groups of few layers need none: all their intervals are searched
            for objective in self.sums if math.isfinite(self.limits.ends) or count > MAX_LAYERS else ():
                self.floors[objective] = [self._floor(at, objective) for at in range(count)]
            for objective in self.sums:
                self._solve_all(objective)
            self.most = math.inf
            for at in range(count) if self.objective not in self.sums else ():
                self._solve(at, at, NOTHING, self.objective)
            if self._bound() < self._most(self.objective) * (1 - PROOF_TOLERANCE):
                self._solve_all(self.objective)
            for key in list(self.known):
                self._solve_ragged(*key)
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            mark_result_found()
        return self._best(), self._bound(), self._plain()

    def _plain(self) -> _Cut:
        """Return the best known cut into single layers, without tensors that stay whole."""
        cuts = [_Cut(0.0, 0.0, ())]
        for at in range(len(self.problems)):
            parts = [self.known[key] for one in self.objectives if (key := (at, at, NOTHING, one)) in self.known]
            cuts = _front([_joined(cut, part) for cut in cuts for part in parts], self.objective)
        return min(cuts, key=lambda cut: ranked(self.objective, cut.energy_pj, cut.cycles))

    def _solve_all(self, objective: Objective) -> None:
        """Search all intervals for an objective, short ones first.

        With a known mapping, intervals with the results that are whole in it come first.

        Raises:
            OutOfTime: The time is over, or the user has interrupted.
        """
        count = len(self.problems)
        lengths = range(1, min(count, MAX_LAYERS) + 1)
        for is_start, length in itertools.product((True, False) if self.start else (False,), lengths):
            self.most = self._most(objective)
            for first in range(count + 1 - length):
                last = first + length - 1
                if length > 1 and any(problem.name in self.padded for problem in self.problems[first : last + 1]):
                    continue
                sets = self._wholes(first, last)
                for whole in [max((one for one in sets if one <= self.start), key=len)] if is_start else sets:
                    if (first, last, whole, objective) not in self.known:
                        self._solve(first, last, whole, objective)

    def _is_mapped(self, at: int) -> bool:
        return math.isfinite(self.known[at, at, NOTHING, self.sums[0]].energy_pj)

    def _whole_bits(self, tensor: Shared) -> int | None:
        """Return the room of a whole result at home; None if it may not stay there."""
        if not tensor.made or any(self.problems[at].name in self.padded for at in tensor.users):
            return None
        uses = [(self.problems[at], self.problems[at].tensors[tensor_at]) for at, tensor_at in tensor.users.items()]
        if not all(self.home.may_hold(operand) for _, operand in uses):
            return None
        boxes = [tensor.box(at, self.problems[at], self.problems[at].dimensions) for at in tensor.users]
        bits = words_of_boxes(boxes) * max(self.home.bits_of(operand) for _, operand in uses)
        return bits if bits <= self.home.usable_bits else None

    def _wholes(self, first: int, last: int) -> Iterator[Whole]:
        """Yield the sets of results that may be whole at home during an interval, and are needed before or after it."""
        able = [
            number
            for number in self.whole_bits
            if self.shared[number].first <= last
            and self.shared[number].last >= first
            and (self.shared[number].first < first or self.shared[number].last > last)
        ]
        for count in range(len(able) + 1):
            for some in itertools.combinations(able, count):
                if sum(self.whole_bits[number] for number in some) <= self.home.usable_bits:
                    yield Whole(some)

    def _before(self, whole: Whole, first: int) -> Whole:
        return Whole(number for number in whole if self.shared[number].first < first)

    def _after(self, whole: Whole, last: int) -> Whole:
        return Whole(number for number in whole if self.shared[number].last > last)

    def interval(self, first: int, last: int, whole: Whole) -> TiledInterval:
        """Return the layers from one to another, which may share loops while some results are whole at home."""
        within, leaving = self.within(first, last, whole)
        stays = {
            (at - first, place)
            for number in whole
            for at, place in self.shared[number].users.items()
            if first <= at <= last
        }
        return TiledInterval(
            self.problems[first : last + 1],
            within,
            leaving,
            self._axes(first, last) if self._may_share(first, last) else (),
            self.group.architecture,
            self.home,
            frozenset(stays),
            sum(self.whole_bits[number] for number in whole),
        )

    def _solve(self, first: int, last: int, whole: Whole, objective: Objective) -> None:
        most = min(self._separate(first, last, whole, objective), self._allowed(first, last, objective))
        floors = self.floors.get(objective)
        least = math.fsum(floors[first : last + 1]) if floors else 0.0
        if objective.is_additive and least >= most:
            part = Fused(first, math.inf, math.inf, least, None, ())
        else:
            interval = self.interval(first, last, whole)
            part = fused_interval(interval, first, self.branches[objective], objective, most, self.limits)
        self.known[first, last, whole, objective] = replace(part, whole=whole)
        self.ending[last].append((first, whole, objective))

    def _solve_ragged(self, first: int, last: int, whole: Whole, objective: Objective) -> None:
        """Search the choices with ragged tiles that seem to cost less than the best one of an interval."""
        best = self.known[first, last, whole, objective]
        interval = self.interval(first, last, whole)
        if not any(pace.ragged_tiles() for pace in interval.paces.values()):
            return
        most = min(objective.value(best.energy_pj, best.cycles), self._separate(first, last, whole, objective))
        part = fused_interval(interval, first, self.branches[objective], objective, most, self.limits, ragged=True)
        if objective.value(part.energy_pj, part.cycles) < most:
            self.ragged[first, last, whole, objective] = replace(part, whole=whole)

    def _allowed(self, first: int, last: int, objective: Objective) -> float:
        """Return the cost of an interval from which on no tree of all layers is better than the best one."""
        floors = self.floors.get(objective)
        if not objective.is_additive:
            return self.most if (first, last) == (0, len(self.problems) - 1) else math.inf
        if floors is None:
            return math.inf
        return self.most - math.fsum([*floors[:first], *floors[last + 1 :]])

    def _most(self, objective: Objective) -> float:
        best = self._best(objective)
        return objective.value(best.energy_pj, best.cycles)

    def _may_share(self, first: int, last: int) -> bool:
        """Return whether the layers of an interval may share loops."""
        names = {problem.name for problem in self.problems[first : last + 1]}
        return last > first and not any(set(pair) <= names for pair in self.apart)

    def _separate(self, first: int, last: int, whole: Whole, objective: Objective) -> float:
        """Return the least cost of an interval that is cut further; no tree of one nest needs to be found above it."""
        if not objective.is_additive or first == last:
            return math.inf
        rows = self._rows(first, last, self._before(whole, first), objective).get(self._after(whole, last), [])
        return min((objective.value(row.energy_pj, row.cycles) for row in rows), default=math.inf)

    def _rows(
        self, first: int, last: int, before: Whole, objective: Objective | None, ragged: bool = False
    ) -> dict[Whole, list[_Cut]]:
        """Return the best cuts of some layers by the results that are whole at home after them.

        Args:
            before: the results that are whole at home before them.
            objective: of the parts; None: of all.
            ragged: parts may have ragged tiles.
        """
        rows: list[dict[Whole, list[_Cut]]] = [{before: [_Cut(0.0, 0.0, ())]}]
        for end in range(first, last + 1):
            grown = dict[Whole, list[_Cut]]()
            for start, whole, one in self.ending[end]:
                key = start, end, whole, one
                part = self.ragged.get(key, self.known[key]) if ragged else self.known[key]
                if start < first or objective not in (None, one) or not math.isfinite(part.energy_pj):
                    continue
                for row in rows[start - first].get(self._before(whole, start), ()):
                    grown.setdefault(self._after(whole, end), []).append(_joined(row, part))
            rows.append({live: _front(some, objective or self.objective) for live, some in grown.items()})
        return rows[-1]

    def within(self, first: int, last: int, whole: Whole = NOTHING) -> tuple[list[Shared], list[Shared]]:
        """Return the tensors that several layers of an interval use, and its results that go out or stay whole.

        A result of an earlier layer is an input of the interval.
        """
        within, leaving = list[Shared](), list[Shared]()
        for number, tensor in enumerate(self.shared):
            users = {at - first: place for at, place in tensor.users.items() if first <= at <= last}
            added = frozenset(at - first for at in tensor.added if first <= at <= last)
            made = tensor.made and first <= tensor.first <= last
            if len(users) + len(added) * made < 2:
                continue
            steps = tuple(
                {at - first: dimension for at, dimension in steps.items() if first <= at <= last}
                for steps in tensor.steps
            )
            windows = tuple(
                {at - first: window for at, window in windows.items() if first <= at <= last} if made else {}
                for windows in tensor.windows
            )
            offsets = FrozenDict({at - first: offset for at, offset in tensor.offsets.items() if first <= at <= last})
            inside = replace(
                tensor,
                users=users,
                steps=steps,
                made=made,
                windows=windows,
                offsets=offsets,
                added=added if made else frozenset(),
            )
            if tensor.made and not made:
                problems = {at: self.problems[first + at] for at in users}
                shapes = {shape_of(problem, problem.tensors[users[at]].name) for at, problem in problems.items()}
                inside = replace(inside, alike=len(shapes) == 1)
            if number in whole and not made:
                continue  # each layer reads it at home
            (leaving if made and len(inside.needs) < len(tensor.needs) else within).append(inside)
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
        able = [tensor.name for tensor in problem.tensors if self.home.may_hold(tensor)]
        sets = itertools.chain.from_iterable(itertools.combinations(able, count) for count in range(len(able), -1, -1))
        cases = [BranchCase(problem, frozenset(some), 0, problem) for some in sets]
        users = {tensor.users[at]: tensor for tensor in self.shared if at in tensor.users}
        fills = dict[str, float]()
        for place, tensor in enumerate(problem.tensors):
            shared = users.get(place)
            if not tensor.is_output and (shared is None or not shared.made):
                pairs = [(at, place)] if shared is None else list(shared.users.items())
                fills[tensor.name] = min(everything.fill_once_pj(*pair) for pair in pairs) / len(pairs)

        def least(case: BranchCase) -> float:
            energy, cycles = branches.least(case)
            return objective.value(energy + sum(fills.get(name, 0.0) for name in case.at_home), cycles)

        branches.ask_largest(cases)
        while not branches.is_known(lowest := min(cases, key=least)):
            branches.ask([lowest])
        return least(lowest)

    def _best(self, objective: Objective | None = None, ragged: bool = False) -> _Cut:
        """Return the best cut of all layers among the intervals that are known."""
        rows = self._rows(0, len(self.problems) - 1, NOTHING, objective, ragged).get(NOTHING, [])
        chosen = objective or self.objective
        return min(
            rows, key=lambda row: ranked(chosen, row.energy_pj, row.cycles), default=_Cut(math.inf, math.inf, ())
        )

    def _bound(self) -> float:
        """Return a lower bound on the objective of all cuts."""
        if self.objective.is_additive:
            return self._least_sum(self.objective)
        return self.objective.value(self._least_sum(ENERGY), self._least_sum(CYCLES))

    def _least_sum(self, objective: Objective) -> float:
        """Return the least sum of bounds over all cuts; intervals that were not searched cost their layers' floors."""
        floors = self.floors.get(objective, [0.0] * len(self.problems))
        least: list[dict[Whole, float]] = [{NOTHING: 0.0}]
        for end in range(len(self.problems)):
            sums = dict[Whole, float]()
            for start in range(end + 1):
                alone = math.fsum(floors[start : end + 1])
                for whole in self._wholes(start, end):
                    before, after = self._before(whole, start), self._after(whole, end)
                    if before in least[start]:
                        known = self.known.get((start, end, whole, objective))
                        part = alone if known is None else max(known.bound, alone if end > start else 0.0)
                        sums[after] = min(sums.get(after, math.inf), least[start][before] + part)
            least.append(sums)
        return least[-1].get(NOTHING, math.inf)


def _joined(cut: _Cut, part: Fused) -> _Cut:
    return _Cut(cut.energy_pj + part.energy_pj, cut.cycles + part.cycles, (*cut.parts, part))


def _front(rows: list[_Cut], objective: Objective) -> list[_Cut]:
    """Return the cuts that no other one beats in energy and cycles; the best one if the objective adds up."""
    if objective.is_additive:
        return [min(rows, key=lambda row: ranked(objective, row.energy_pj, row.cycles))] if rows else []
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
        self.names = {(layer, tensor): t for t, users in search.group.users.items() for layer, tensor in users.items()}
        self.names_of_axes = AxisNames()
        self.paces: dict[str, dict[str, dict[str, int]]] = {}

    def group(self) -> GroupMapping:
        whole = {self.search.shared[number].name for part in self.cut.parts for number in part.whole}
        at_home = set(whole)
        branches = list[dict[str, Any]]()
        for part in self.cut.parts:
            branches += self._part(part, at_home)
        kept = [user for user in self.group_before.users if user not in at_home]
        tree: dict[str, Any] = {"entries": [{"target": self.outer, "keep": kept}]}
        if whole:
            tree["entries"].append(
                {"target": self.inner, "keep": [user for user in self.group_before.users if user in whole]}
            )
        if len(branches) == 1 and "branches" in branches[0]:
            tree = {"entries": tree["entries"] + branches[0]["entries"], "branches": branches[0]["branches"]}
        elif len(branches) == 1:
            names = [name for user in kept for name in self.group_before.users[user].values()]
            tree = {
                "layer": branches[0]["layer"],
                "entries": [{"target": self.outer, "keep": names}, *branches[0]["entries"]],
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
        interval = self.search.interval(part.first, part.first + len(choice.cases) - 1, part.whole)
        pace = interval.paces[axis]
        if not pace.slides and set(pace.rows) == {1}:
            return
        starts = choice.starts if axis == choice.loops[-1][0] else (0,) * len(choice.starts)
        for problem, rows, start in zip(interval.problems, pace.rows, starts, strict=True):
            self.paces.setdefault(name, {})[problem.name] = {"rows": rows, "start": start}

    def _homes(self, part: Fused, choice: Choice) -> list[str]:
        within, _ = self.search.within(part.first, part.first + len(choice.cases) - 1, part.whole)
        return [within[at].name for at in choice.homes]

    def _kept(self, part: Fused, choice: Choice, depth: int) -> list[str]:
        result = list[str]()
        for kept in choice.kept:
            if kept.depth == depth:
                at, place = kept.users[0]
                problem = self.search.problems[part.first + at]
                result.append(self.names[problem.name, problem.tensor_names[place]])
        return result
