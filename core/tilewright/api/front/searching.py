"""`front`: of every layer mappings of which none takes less energy in as few cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

from tilewright import api
from tilewright.api.front.points import Front, front_of
from tilewright.api.front.report import FrontReport, save_points
from tilewright.api.progress import mapping_progress
from tilewright.api.settings import Plan, Settings, Sources, folder_of
from tilewright.api.words import at_least, checked
from tilewright.errors import CallError
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Mapper
from tilewright.run.configuration import RunConfiguration
from tilewright.run.network import MappedLayer, Watch, map_workload
from tilewright.schema.report import Objective
from tilewright.schema.workload import DistinctProblem, Layer, Workload


@checked
def front(
    workload: Sources,
    arch: Sources,
    *,
    points: int = 8,
    mapper: str | Mapper | None = None,
    model: str | CostModel = api.MODEL,
    **settings: Unpack[Settings],
) -> FrontReport:
    """Of every distinct layer the front of energy and cycles: mappings of which none takes less energy in as few cycles; what
    `tilewright map --pareto` does. The first takes the fewest cycles, the last the least energy; each is the mapping of least energy among those
    that take at most so many cycles, proved by mappers that prove.

    Args:
        points: of each layer at most so many, at least 2.
        Everything else: as for `map`; limits count for each point. A front has no `objective`, and its points are searched one
            after another, in this process.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong; the message says what would be right.
        PluginError: mapper or model cannot be built.
        OutputError: the folder cannot be written to.
    """
    at_least(2, points=points)
    if settings.get("objective", "edp") != "edp":
        raise CallError("a front has energy and cycles", hint="leave objective out")
    if settings.get("jobs", 1) != 1:
        raise CallError("the points of a front are searched one after another", hint="leave jobs out")
    plan, configuration = Plan.of_one(workload, arch, mapper, model, settings)
    network = plan.workload
    name = f"{configuration.mapper_record.name}, {points} points"
    folder = folder_of(settings, network, [(name, configuration)])
    fronts: list[Front] = []
    with mapping_progress(network, configuration.budget, "energy", plan.progress) as seen:
        for distinct in network.distinct():
            search = _Searching(distinct, plan, configuration, seen.watch if seen else None)
            found = front_of(distinct, search.least, points)
            fronts.append(found)
            if folder is not None:
                save_points(folder, len(fronts), found, configuration)
            if seen:
                seen.done(distinct)
            if search.interrupted:
                break
    return FrontReport(network, configuration, tuple(fronts)).summarised(folder)


@dataclass
class _Searching:
    """One layer, and how it is mapped."""

    distinct: DistinctProblem
    plan: Plan
    configuration: RunConfiguration
    watch: Watch | None
    interrupted: bool = False

    def least(self, objective: Objective, most_cycles: float) -> MappedLayer:
        """The best mapping of at most so many cycles. After an interruption nothing is searched."""
        if self.interrupted:
            return MappedLayer(self.distinct)
        alone = Workload(name=self.plan.workload.name, layers=(Layer(problem=self.distinct.problem),))
        aimed = self.configuration.aimed(objective, most_cycles)
        (layer,) = map_workload(alone, aimed, self.watch, cache=self.plan.results)
        self.interrupted = layer.result is not None and layer.result.stop == "cancelled"
        return replace(layer, distinct=self.distinct)
