"""Branch table of a group: the best mapping of each visit of a layer, searched when a group mapper asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.application.run.case_costs import CaseCosts, LayerCost, Search, home_of
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.resident_cases import Case, is_cheaper
from tilewright.application.run.resident_group import layer_entries
from tilewright.plugin.groupmapper import BranchCase, BranchCost
from tilewright.schema.architecture import Memory
from tilewright.schema.constraints import Constraints
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.workload import DistinctProblem


@dataclass
class BranchTable:
    """The host's `BranchMapper`: visits are cases of a layer, as those of a network whose results stay whole.

    `origins`: name of a layer -> the layer in its network, and its dimensions -> those of the group that are parts of each.
    """

    configuration: RunConfiguration
    search: Search
    origins: Mapping[str, tuple[Problem, FrozenDict[str, tuple[str, ...]]]] = field(default_factory=dict)
    tables: dict[tuple[Objective, Constraints], CaseCosts] = field(default_factory=dict)

    @property
    def home(self) -> Memory | None:
        return home_of(self.configuration.architecture)

    @property
    def is_free(self) -> bool:
        outside, architecture = set[str](), self.configuration.architecture
        for cluster in architecture.clusters:
            outside |= {memory.name for memory in cluster.memories}
            if self.home is not None and self.home.name in outside:
                break
        variants = self.configuration.constraints.variants
        temporal = (rule.memory in outside for variant in variants for rule in variant.temporal)
        spatial = (trips.min > 1 for variant in variants for rule in variant.spatial for trips in rule.factors.values())
        return not any(temporal) and not any(spatial)

    def home_is_least(self, objective: Objective) -> bool:
        return self.home is not None and is_cheaper(self.home, self.configuration.architecture, objective)

    def share(self, known: CaseCosts) -> None:
        """Share the cases that a network has searched for the same objective and rules."""
        self.tables[known.configuration.objective, known.configuration.constraints] = known

    def branches(self, cases: Sequence[BranchCase], objective: Objective) -> list[BranchCost]:
        cases = [replace(case, problem=_in_order(case.problem)) for case in cases]
        rules = [self._rules(case) for case in cases]
        tables = {rule: self._table(objective, rule) for rule in rules if rule is not None}
        asked = [Case(case.problem.content_key, case.at_home, case.reserved_bits) for case in cases]
        for shared, table in tables.items():
            places = [at for at, other in enumerate(rules) if other == shared]
            for at in places:
                problem = cases[at].problem
                table.distinct.setdefault(asked[at].problem, DistinctProblem(problem, (problem.name,), 1))
            table.ask([asked[at] for at in places])
        results = list[BranchCost]()
        for case, key, rule in zip(cases, asked, rules, strict=True):
            if rule is None:
                results.append(BranchCost())
                continue
            cost = tables[rule].costs.get(key)
            if cost is None:
                break
            results.append(self._branch(cost, case))
        return results

    def _rules(self, case: BranchCase) -> Constraints | None:
        """Return the rules of a visit; None if rules for exact sizes do not cover its layer."""
        rules = self.configuration.constraints
        if not any(variant.is_for_some for variant in rules.variants):
            return rules
        layer = case.layer or case.problem
        origin, parts = self.origins.get(layer.name, (layer, None))
        variant = rules.variant_for(origin)
        if variant is None:
            return None
        form = variant if parts is None else variant.renamed(parts)
        return rules.model_copy(update={"variants": (form.for_any(),)})

    def _table(self, objective: Objective, rules: Constraints) -> CaseCosts:
        if (objective, rules) not in self.tables:
            configuration = self.configuration.with_objective(objective, self.configuration.most_cycles)
            self.tables[objective, rules] = CaseCosts(replace(configuration, constraints=rules), self.search)
        return self.tables[objective, rules]

    def _branch(self, cost: LayerCost, case: BranchCase) -> BranchCost:
        home, layer = self.home, cost.layer
        if home is None or layer is None or layer.report is None or layer.result is None or layer.result.best is None:
            return BranchCost(bound=cost.bound)
        cluster = self.configuration.architecture.cluster_of(home.name).name
        entries = layer_entries(layer.result.best, self.configuration.architecture, cluster, case.at_home)
        bits = sum(
            counts.tile_words * home.bits_of(case.problem.tensor(name))
            for level in layer.report.levels
            if level.name == home.name
            for name, counts in level.tensors.items()
        )
        return BranchCost(cost.energy_pj, cost.cycles, cost.bound, bits, tuple(entries), layer.report.limits)


def _in_order(problem: Problem) -> Problem:
    """Return a problem with the coordinates of each tensor in the order of its dimensions, which changes no cost.

    So a layer whose group has other orders of coordinates is searched once.
    """
    order = list(problem.dimensions)

    def ordered(tensor: Tensor) -> Tensor:
        ranks = sorted(tensor.projection, key=lambda rank: min((order.index(name) for name in rank.terms), default=0))
        return tensor.model_copy(update={"projection": tuple(ranks)})

    return problem.model_copy(update={"tensors": tuple(map(ordered, problem.tensors))})
