"""Run configuration: where to map, with what, for how long."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plugin.mapper import Budget, Mapper
from tilewright.run.evaluation import BuiltModel
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.report import Objective


@dataclass(frozen=True)
class RunConfiguration:
    """How to map. The records say which plugins mapper and model are."""

    architecture: Architecture
    constraints: Constraints
    mapper: Mapper
    mapper_record: PluginRecord
    model: BuiltModel
    objective: Objective
    budget: Budget
    seed: int
