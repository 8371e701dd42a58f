"""Configuration of a run: architecture, plugins and budget."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.application.run.evaluation import BuiltModel
from tilewright.digests import of_data
from tilewright.files import RunFolder
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.guard.hosted import packages_of
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.result import Stop
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload

DEFAULT_EVALUATIONS = 100_000
"""Mappings per search without a limit on time or evaluations."""


def with_default(budget: Budget, mapper: MapperSpec | None) -> Budget:
    """Return the budget, with the default limit if the user set none.

    Mappers that terminate on their own get no default.
    """
    if budget.seconds is not None or budget.evaluations is not None or (mapper and mapper.ends):
        return budget
    return replace(budget, evaluations=DEFAULT_EVALUATIONS)


def limit_of(stop: Stop, budget: Budget) -> str | None:
    """Return the limit that cut a search short, as an option; None if no limit did."""
    match stop:
        case "deadline" if budget.seconds is not None:
            return f"--seconds {budget.seconds:g}"
        case "evaluations" if budget.evaluations is not None:
            return f"--evaluations {budget.evaluations}"
        case "patience" if budget.patience is not None:
            return f"--patience {budget.patience}"
    return None


def limit_message(limit: str, which: str) -> str:
    """Return a message on a limit that cut searches short, with the option to continue.

    >>> limit_message("--evaluations 300", "n0, n3 (2 of 18 layers)")
    'stopped by --evaluations 300: n0, n3 (2 of 18 layers); --evaluations 3000 lets it go on'
    """
    option, _, value = limit.partition(" ")
    default = " (the default)" if limit == f"--evaluations {DEFAULT_EVALUATIONS}" else ""
    return f"stopped by {limit}{default}{which and f': {which}'}; {option} {10 * float(value) or 10:.10g} lets it go on"


@dataclass(frozen=True)
class RunConfiguration:
    """Configuration of a run.

    `mapper_capabilities` are those that the mapper declares. `fallback` is the configuration for problems where the
    mapper can prove nothing. Mappings with more than `most_cycles` cycles are invalid. Any tensor may bypass the memory
    `optional`, unless a rule keeps it there.
    """

    architecture: Architecture
    constraints: Constraints
    mapper: Mapper
    mapper_record: PluginRecord
    model: BuiltModel
    objective: Objective
    budget: Budget
    seed: int
    mapper_capabilities: Capabilities = Capabilities()
    fallback: RunConfiguration | None = None
    most_cycles: float = math.inf
    network_bits: bool = False
    """Values are as wide as the network states."""
    optional: str | None = None
    expressible: tuple[str, Capabilities] | None = None
    """The notation whose files must express the mapping, and what it declares."""

    @property
    def rules(self) -> str:
        """The name of the constraints, and of the notation that must express the mappings."""
        return self.constraints.name + (f"; expressible in {self.expressible[0]}" if self.expressible else "")

    def architecture_for(self, problem: Problem) -> Architecture:
        """Return the architecture on which a problem is mapped."""
        return self.architecture.with_value_bits(problem) if self.network_bits else self.architecture

    def on_architecture(self, architecture: Architecture) -> RunConfiguration:
        """Return the configuration for another architecture."""
        fallback = None if self.fallback is None else self.fallback.on_architecture(architecture)
        return replace(self, architecture=architecture, fallback=fallback)

    def with_optional(self, memory: str) -> RunConfiguration:
        """Return the configuration in which any tensor may bypass a memory, unless a rule keeps it there."""
        fallback = None if self.fallback is None else self.fallback.with_optional(memory)
        return replace(self, optional=memory, fallback=fallback)

    def with_objective(self, objective: Objective, most_cycles: float) -> RunConfiguration:
        """Return the configuration for another objective and limit on cycles."""
        fallback = None if self.fallback is None else self.fallback.with_objective(objective, most_cycles)
        return replace(self, objective=objective, most_cycles=most_cycles, fallback=fallback)

    @property
    def packages(self) -> frozenset[str]:
        """Packages with the code of a search: the mapper's, its warm-start mappers', the cost model's."""
        return frozenset((*packages_of(self.mapper), *packages_of(self.model.model)))

    @property
    def data(self) -> dict[str, object]:
        """Everything that determines a search, apart from the problem and the code, as JSON data."""
        data: dict[str, object] = {
            "architecture": self.architecture.model_dump(mode="json"),
            "constraints": self.constraints.model_dump(mode="json"),
            "mapper": self.mapper_record.model_dump(mode="json"),
            "model": self.model.record.model_dump(mode="json"),
            "objective": self.objective.name,
            "budget": dataclasses.asdict(self.budget),
            "seed": self.seed,
        }
        if self.most_cycles < math.inf:
            data["most_cycles"] = self.most_cycles
        if self.network_bits:
            data["network_bits"] = True
        if self.optional is not None:
            data["optional"] = self.optional
        return data if self.fallback is None else data | {"otherwise": self.fallback.data}


def acquire(
    folder: RunFolder,
    workload: Workload,
    points: Sequence[tuple[str, RunConfiguration | None]],
    *,
    fused: bool = False,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Acquire a folder for the run of these searches for each layer of the workload.

    See `RunFolder.acquire`. A fused network is other work than its layers.
    """
    layers = [(layer.name, layer.problem.content_key) for layer in workload.layers]
    content = of_data([layers, "fused"] if fused else layers)
    searches = [(name, None if point is None else point.data) for name, point in points]
    names = ", ".join(dict.fromkeys(name for name, _ in points))
    run = of_data([content, searches])
    folder.acquire(f"{workload.name} by {names}", content, run, resume=resume, force=force)
