"""Costs of a layer in the cases of a home: which of its tensors start there, and how much room others take.

docs/fusion_proof.md ("Room beside residents") has the lemmas.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import evaluate
from tilewright.application.run.network import LayerSearch, MappedLayer, space_of
from tilewright.application.run.resident_cases import Case, counted, on_chip, priced_by_port, shared_port
from tilewright.errors import TilewrightError
from tilewright.mapspace.room import slices_of_each
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.prices import least_cycles
from tilewright.reports import Limit, Report
from tilewright.schema.architecture import Architecture, Memory, Network
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright.schema.workload import DistinctProblem

Search = Callable[[Sequence[LayerSearch]], Iterator[MappedLayer]]
"""Maps problems, each with a configuration of its own, in order."""


@dataclass(frozen=True)
class LayerCost:
    """Cost of a layer in a case.

    `value` and `cycles` are those found, `bound` is a lower bound of the objective. All are inf if nothing fits.
    """

    value: float
    bound: float
    energy_pj: float = math.inf
    cycles: float = math.inf
    layer: MappedLayer | None = None


def home_of(architecture: Architecture) -> Memory | None:
    """Return the memory for resident tensors: the outermost single one, inside the outermost cluster, for all roles but weights."""
    for number, cluster in enumerate(architecture.clusters):
        if architecture.instances[number] > 1 or (
            number and architecture.clusters[number - 1].fanout.network != Network()
        ):
            return None
        for memory in cluster.memories if number else ():
            if memory.holds is None or {"input", "output"} <= set(memory.holds):
                return memory
    return None


@dataclass
class CaseCosts:
    """Costs of problems by case, searched when they are asked for.

    The configuration lets any tensor bypass the home. `distinct` has each problem by its content.
    """

    configuration: RunConfiguration
    search: Search
    distinct: dict[str, DistinctProblem] = field(default_factory=dict)
    costs: dict[Case, LayerCost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cases, self._listed = dict[str, list[Case]](), 0
        self.home = home_of(self.configuration.architecture)
        if self.home is not None:
            self.configuration = self.configuration.with_optional(self.home.name)

    def ask(self, cases: Sequence[Case]) -> None:
        """Search the cases that are not known.

        Those with less room are searched with all room first: such a mapping is the best one, too, if it fits
        (docs/fusion_proof.md, Lemma 2).
        """
        cases = [case for case in dict.fromkeys(cases) if case not in self.costs]
        crowded = [case for case in cases if case.reserved]
        if crowded:
            self.ask([_with_all_room(case) for case in crowded])
            for case in crowded:
                self._fit(case)
        todo = []
        for case in cases:
            if case in self.costs:
                continue
            architecture = self.architecture(case)
            if architecture is None:
                self.costs[case] = LayerCost(math.inf, math.inf)
            else:
                search = LayerSearch(self.distinct[case.problem], self.configuration.on_architecture(architecture))
                todo.append((case, search))
        for (case, _), layer in zip(todo, self.search([task for _, task in todo]), strict=False):
            self.costs[case] = self._cost(layer)
        self._share_ports([case for case, _ in todo if case in self.costs])

    def of_problem(self, problem: str) -> list[tuple[Case, LayerCost]]:
        """Return the known cases of a problem."""
        for case in list(self.costs)[self._listed :] if self._listed < len(self.costs) else ():  # none is ever removed
            self._cases.setdefault(case.problem, []).append(case)
            self._listed += 1
        return [(case, self.costs[case]) for case in self._cases.get(problem, ())]

    def _fit(self, case: Case) -> None:
        """Take the mapping with all room for a case with less, if it fits and costs the same."""
        roomy, architecture = self.costs.get(_with_all_room(case)), self.architecture(case)
        layer = None if roomy is None else roomy.layer
        if roomy is None or layer is None or layer.result is None or layer.result.best is None or architecture is None:
            return
        with suppress(TilewrightError):  # the search reports it
            space, _ = space_of(layer.distinct, self.configuration.on_architecture(architecture))
            report = evaluate(self.configuration.model, space.problem, space.architecture, layer.result.best)
            if self.counted(space.problem, report) == (roomy.energy_pj, roomy.cycles):
                fitted = dataclasses.replace(layer, architecture=space.architecture, report=report)
                self.costs[case] = dataclasses.replace(roomy, layer=fitted)

    def _share_ports(self, cases: Sequence[Case]) -> None:
        """Search further for cases that ports of the home slow down, which their searches counted apart.

        Bisection finds the fewest cycles (docs/fusion_proof.md, Lemma 5). Where a gap is left, mappings of the other objective
        are tried, too.
        """
        slow = [case for case in cases if self._is_slowed(case)]
        if self.configuration.objective == CYCLES:
            limits = {
                case: int(cost.layer.result.value)
                for case in slow
                if (cost := self.costs[case]).layer and cost.layer.result
            }
            while limits:
                better = self._with_fewer_words(limits)
                limits = {case: int(self.costs[case].bound + self.costs[case].value) // 2 for case in better}
        others: tuple[tuple[Objective, bool], ...] = ((ENERGY, True), (ENERGY, False), (CYCLES, False))
        tried = [
            (case, self.configured(case).with_objective(objective, self.costs[case].cycles - 1 if faster else math.inf))
            for case in slow
            for objective, faster in others
            if self._has_gap(case) and (faster or objective != self.configuration.objective)
        ]
        searches = [LayerSearch(self.distinct[case.problem], configuration) for case, configuration in tried]
        for (case, _), layer in zip(tried, self.search(searches), strict=False):
            self.improve(case, layer)

    def _has_gap(self, case: Case) -> bool:
        cost = self.costs[case]
        return math.isfinite(cost.value) and cost.bound < cost.value * (1 - PROOF_TOLERANCE)

    def _is_slowed(self, case: Case) -> bool:
        """Return whether a gap is left, and a port of the home takes all cycles of the mapping found."""
        port = self._port(case)
        return self._has_gap(case) and port is not None and port.cycles >= self.costs[case].cycles

    def _port(self, case: Case) -> Limit | None:
        """Return the slowest port of the home in the mapping found; None if there is none."""
        cost, problem = self.costs[case], self.distinct[case.problem].problem
        if self.home is None or cost.layer is None or cost.layer.report is None:
            return None
        return shared_port(self.home_for(problem), problem, cost.layer.report)

    def configured(self, case: Case) -> RunConfiguration:
        architecture = self.architecture(case)
        assert architecture is not None, "a mapping is known"
        return self.configuration.on_architecture(architecture)

    def _with_fewer_words(self, limits: dict[Case, int]) -> list[Case]:
        """Search mappings with the least words at the slowest port, within the limits on cycles of other parts.

        Return the cases for which that helped, and which have a gap left.
        """
        asked = []
        for case, most in limits.items():
            port, distinct, plain = self._port(case), self.distinct[case.problem], self.configured(case)
            if port is not None:
                home = self.home_for(distinct.problem)
                priced = plain.on_architecture(priced_by_port(plain.architecture, home, port.action))
                asked.append((case, port, most, LayerSearch(distinct, priced.with_objective(ENERGY, most))))
        better = []
        for (case, port, most, _), layer in zip(asked, self.search([row[-1] for row in asked]), strict=False):
            before = self.costs[case]
            if layer.result is not None and layer.result.lower_bound is not None:
                at_once = (port.words_per_cycle or math.inf) * self.home_for(layer.problem).slices_per_word
                least = min(most + 1, least_cycles(at_once, layer.result.lower_bound))
                self.costs[case] = dataclasses.replace(before, bound=min(max(before.bound, least), before.value))
            self.improve(case, layer)
            now = self.costs[case]
            if (now.bound, now.value) != (before.bound, before.value) and self._has_gap(case):
                better.append(case)
        return better

    def improve(self, case: Case, other: MappedLayer) -> None:
        """Take the mapping of another search of a case if it costs less."""
        cost = self.costs[case]
        if other.result is None or other.result.best is None or cost.layer is None or cost.layer.result is None:
            return
        mapping, space = other.result.best, space_of(other.distinct, self.configured(case))[0]
        report = evaluate(self.configuration.model, space.problem, space.architecture, mapping)
        costs = self.counted(space.problem, report)
        if costs is None:
            return
        value = self.configuration.objective.value(*costs)
        if (value, *costs) < (cost.value, cost.energy_pj, cost.cycles):
            result = dataclasses.replace(
                cost.layer.result, best=mapping, value=report.of(self.configuration.objective) or value
            )
            layer = dataclasses.replace(cost.layer, result=result, report=report)
            self.costs[case] = LayerCost(value, min(cost.bound, value), *costs, layer)

    def architecture(self, case: Case) -> Architecture | None:
        """Return the architecture on which a case is searched; None if it has no mapping."""
        if self.home is None or not (case.resident or case.reserved):
            return self.configuration.architecture
        distinct = self.distinct[case.problem]
        home = self.home_for(distinct.problem)
        architecture = on_chip(self.configuration.architecture_for(distinct.problem), distinct.problem, home, case)
        if architecture is None or self._must_keep_more(distinct, architecture):
            return None
        # a capacity of 0 is no valid one; a memory without capacity holds nothing
        return architecture.with_memories(
            lambda memory: (
                memory
                if memory.capacity_words != 0
                else memory.model_copy(update={"holds": (), "capacity_words": None})
            )
        )

    def _must_keep_more(self, distinct: DistinctProblem, architecture: Architecture) -> bool:
        """Return whether the rules keep tensors in the home that it has no room for."""
        assert self.home is not None
        with suppress(TilewrightError):  # the search reports it
            space, _ = space_of(distinct, self.configuration.on_architecture(architecture))
            left = next(memory for memory in space.architecture.memories if memory.name == self.home.name)
            here = [at for at, entry in enumerate(space.skeleton.entries) if left.name in entry.memories]
            kept = [t for number, t in enumerate(space.problem.tensors) if space.keeps[0][here, number].any()]
            return slices_of_each(left, kept) > left.usable_slices
        return False

    def _cost(self, layer: MappedLayer) -> LayerCost:
        """Return the cost of a mapped layer."""
        report, result = layer.report, layer.result
        costs = None if report is None else self.counted(layer.problem, report)
        if result is None or costs is None:
            return LayerCost(
                math.inf, 0.0 if result is None or result.lower_bound is None else result.lower_bound, layer=layer
            )
        value = self.configuration.objective.value(*costs)
        bound = 0.0 if result.lower_bound is None else min(result.lower_bound, value)
        return LayerCost(value, bound, *costs, layer)

    def counted(self, problem: Problem, report: Report) -> tuple[float, float] | None:
        return counted(None if self.home is None else self.home_for(problem), problem, report)

    def home_for(self, problem: Problem) -> Memory:
        """Return the home, with the widths of a layer's values."""
        assert self.home is not None
        name = self.home.name
        return next(memory for memory in self.configuration.architecture_for(problem).memories if memory.name == name)


def _with_all_room(case: Case) -> Case:
    return dataclasses.replace(case, reserved=0)
