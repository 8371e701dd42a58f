"""Branch table of a group: the best mapping of each visit of a layer, searched when a group mapper asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.application.run.case_costs import CaseCosts, LayerCost, Search, home_of
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.resident_cases import Case
from tilewright.application.run.resident_group import layer_entries
from tilewright.plugin.groupmapper import BranchCase, BranchCost
from tilewright.schema.architecture import Memory
from tilewright.schema.objective import Objective
from tilewright.schema.workload import DistinctProblem


@dataclass
class BranchTable:
    """The host's `BranchMapper`: visits are cases of a layer, as those of a network whose results stay whole."""

    configuration: RunConfiguration
    search: Search
    tables: dict[Objective, CaseCosts] = field(default_factory=dict)

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

    def branches(self, cases: Sequence[BranchCase], objective: Objective) -> list[BranchCost]:
        if objective not in self.tables:
            configuration = self.configuration.with_objective(objective, self.configuration.most_cycles)
            self.tables[objective] = CaseCosts(configuration, self.search)
        table = self.tables[objective]
        asked = [Case(case.problem.content_key, case.at_home, case.reserved_bits) for case in cases]
        for key, case in zip(asked, cases, strict=True):
            table.distinct.setdefault(key.problem, DistinctProblem(case.problem, (case.problem.name,), 1))
        table.ask(asked)
        known = [table.costs[case] for case in asked if case in table.costs]
        return [self._branch(cost, case) for cost, case in zip(known, cases, strict=False)]

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
        return BranchCost(cost.energy_pj, cost.cycles, cost.bound, bits, tuple(entries))
