"""Run configuration: where to map, with what, for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.mapper import Budget, Mapper
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
    if budget.seconds is not None or budget.evaluations is not None or (mapper and mapper.exhausts):
        return budget
    return replace(budget, evaluations=DEFAULT_EVALUATIONS)


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
