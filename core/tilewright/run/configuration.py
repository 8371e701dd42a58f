"""Run configuration: where to map, with what, for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.result import Stop
from tilewright.plugin.specs import MapperSpec
from tilewright.run.evaluation import BuiltModel
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.report import Objective

DEFAULT_EVALUATIONS = 100_000
"""Mappings per search where the user limits neither their number nor the time."""


def with_default(budget: Budget, mapper: MapperSpec | None) -> Budget:
    """The budget, with the default limit where the user set none, unless the mapper is known to end by itself."""
    if budget.seconds is not None or budget.evaluations is not None or (mapper and mapper.ends):
        return budget
    return replace(budget, evaluations=DEFAULT_EVALUATIONS)


def limit_of(stop: Stop, budget: Budget) -> str | None:
    """The limit that ended a search which would have gone on, as it is typed; None: it ended otherwise."""
    match stop:
        case "deadline" if budget.seconds is not None:
            return f"--seconds {budget.seconds:g}"
        case "evaluations" if budget.evaluations is not None:
            return f"--evaluations {budget.evaluations}"
        case "patience" if budget.patience is not None:
            return f"--patience {budget.patience}"
    return None


def told(limit: str, which: str) -> str:
    """That a limit ended some searches, and what to type to let them go on.

    >>> told("--evaluations 300", "n0, n3 (2 of 18 layers)")
    'stopped by --evaluations 300: n0, n3 (2 of 18 layers); --evaluations 3000 lets it go on'
    """
    option, _, value = limit.partition(" ")
    default = " (the default)" if limit == f"--evaluations {DEFAULT_EVALUATIONS}" else ""
    return f"stopped by {limit}{default}{which and f': {which}'}; {option} {10 * float(value):.10g} lets it go on"


@dataclass(frozen=True)
class RunConfiguration:
    """How to map. The records say which plugins mapper and model are; `mapper_capabilities`: what the mapper declares."""

    architecture: Architecture
    constraints: Constraints
    mapper: Mapper
    mapper_record: PluginRecord
    model: BuiltModel
    objective: Objective
    budget: Budget
    seed: int
    mapper_capabilities: Capabilities = Capabilities()
