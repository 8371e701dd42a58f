"""Run configuration: where to map, with what, for how long."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.digests import of_data
from tilewright.files import RunFolder
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.result import Stop
from tilewright.plugin.specs import MapperSpec
from tilewright.run.evaluation import BuiltModel
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.report import Objective
from tilewright.schema.workload import Workload

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
    return f"stopped by {limit}{default}{which and f': {which}'}; {option} {10 * float(value) or 10:.10g} lets it go on"


@dataclass(frozen=True)
class RunConfiguration:
    """How to map. The records say which plugins mapper and model are; `mapper_capabilities`: what the mapper declares. `otherwise`:
    how to map problems of which a mapper can prove nothing. `most_cycles`: mappings that take more are not valid."""

    architecture: Architecture
    constraints: Constraints
    mapper: Mapper
    mapper_record: PluginRecord
    model: BuiltModel
    objective: Objective
    budget: Budget
    seed: int
    mapper_capabilities: Capabilities = Capabilities()
    otherwise: RunConfiguration | None = None
    most_cycles: float = math.inf

    def on(self, architecture: Architecture) -> RunConfiguration:
        """The same on another machine."""
        otherwise = None if self.otherwise is None else self.otherwise.on(architecture)
        return replace(self, architecture=architecture, otherwise=otherwise)

    def aimed(self, objective: Objective, most_cycles: float) -> RunConfiguration:
        """The same with something else to make small, among mappings of at most so many cycles."""
        otherwise = None if self.otherwise is None else self.otherwise.aimed(objective, most_cycles)
        return replace(self, objective=objective, most_cycles=most_cycles, otherwise=otherwise)

    @property
    def plugins(self) -> tuple[object, ...]:
        """What a search runs, without guards: the mapper, those that it starts with, the cost model."""
        parts = (self.mapper, *getattr(self.mapper, "starters", ()), self.model.model)
        return tuple(getattr(each, "plugin", each) for each in parts)

    @property
    def data(self) -> dict[str, object]:
        """Everything that decides a search, but the problem and the code, as JSON data."""
        found: dict[str, object] = {
            "architecture": self.architecture.model_dump(mode="json"),
            "constraints": self.constraints.model_dump(mode="json"),
            "mapper": self.mapper_record.model_dump(mode="json"),
            "model": self.model.record.model_dump(mode="json"),
            "objective": self.objective,
            "budget": dataclasses.asdict(self.budget),
            "seed": self.seed,
        }
        if self.most_cycles < math.inf:
            found["most_cycles"] = self.most_cycles
        return found if self.otherwise is None else found | {"otherwise": self.otherwise.data}


def claim(
    folder: RunFolder,
    workload: Workload,
    points: Sequence[tuple[str, RunConfiguration | None]],
    *,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Make it the folder of a run: these searches of each layer of this workload. See `RunFolder.acquire`."""
    content = of_data([(each.name, each.problem.content_key) for each in workload.layers])
    searches = [(name, None if point is None else point.data) for name, point in points]
    names = ", ".join(dict.fromkeys(name for name, _ in points))
    run = of_data([content, searches])
    folder.acquire(f"{workload.name} by {names}", content, run, resume=resume, force=force)
