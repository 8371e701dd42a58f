"""A whole workload mapped: every distinct problem once, as often counted as it occurs."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewright.architecture import Architecture
from tilewright.constraints import Constraints
from tilewright.costmodel import CostModel, Objective
from tilewright.errors import NotConformableError, PluginError, TilewrightError
from tilewright.mapped import Figures, MappedProblem, PluginRecord, Provenance
from tilewright.mapper import Budget, Mapper, Task
from tilewright.mapspace import MapSpace
from tilewright.report import Report
from tilewright.search import Progress, Result, search
from tilewright.workload import DistinctProblem, Workload


@dataclass(frozen=True)
class Method:
    """How to map: where, with what, for how long. The records say which plugins these are."""

    architecture: Architecture
    constraints: Constraints
    mapper: Mapper
    mapper_record: PluginRecord
    model: CostModel
    model_record: PluginRecord
    objective: Objective
    budget: Budget
    seed: int


@dataclass(frozen=True)
class MappedLayer:
    """The outcome for one distinct problem.

    `result` is None when no search could start; `error` then says why. `report` prices the best mapping.
    `constrained` is false where the constraints do not speak of such a problem.
    """

    distinct: DistinctProblem
    result: Result | None = None
    report: Report | None = None
    error: TilewrightError | None = None
    constrained: bool = True

    @property
    def name(self) -> str:
        return self.distinct.problem.name

    @property
    def count(self) -> int:
        return self.distinct.count


def map_workload(
    workload: Workload, method: Method, watch: Callable[[DistinctProblem, Progress], None] | None = None
) -> Iterator[MappedLayer]:
    """Map each distinct problem and yield it when done. After an interrupted search no other is started."""
    for distinct in workload.distinct():
        layer = map_problem(distinct, method, watch)
        yield layer
        if layer.result is not None and layer.result.stop == "cancelled":
            return


def map_problem(
    distinct: DistinctProblem, method: Method, watch: Callable[[DistinctProblem, Progress], None] | None = None
) -> MappedLayer:
    """Search the best mapping of one problem."""
    problem = distinct.problem
    try:
        architecture = method.constraints.shape(method.architecture)
        rules = method.constraints.rules_for(problem, architecture)
        space = MapSpace.of(problem, architecture, rules)
        evaluator = method.model.bind(problem, architecture)
    except (NotConformableError, TilewrightError) as error:
        return MappedLayer(distinct, error=error)
    result = search(
        method.mapper,
        Task(space, method.objective),
        evaluator,
        method.budget,
        seed=method.seed,
        watch=None if watch is None else lambda progress: watch(distinct, progress),
    )
    report = None if result.best is None else evaluator.explain(result.best)
    constrained = rules is not None or not method.constraints.variants
    return MappedLayer(distinct, result, report, _named(result.error, method), constrained)


def _named(error: TilewrightError | None, method: Method) -> TilewrightError | None:
    """A plugin's failure with the names of those that took part."""
    if not isinstance(error, PluginError):
        return error
    mapper, model = (
        f"'{record.name}' of {record.distribution} {record.version}"
        for record in (method.mapper_record, method.model_record)
    )
    named = PluginError(f"{error.message} (mapper {mapper}, cost model {model})", hint=error.hint)
    named.__cause__ = error.__cause__
    return named


def mapping_file(layer: MappedLayer, method: Method) -> MappedProblem:
    """What is written for a mapped layer: enough to price it again and to know where it came from."""
    result, report = layer.result, layer.report
    if result is None or result.best is None or report is None:
        raise ValueError(f"{layer.name} has no mapping")
    if report.cycles is None or report.energy_pj is None or report.edp is None:
        raise ValueError(f"{layer.name}: the best mapping has no price")
    return MappedProblem(
        layers=layer.distinct.layers,
        figures=Figures(
            cycles=report.cycles, energy_pj=report.energy_pj, edp=report.edp, utilization=report.utilization
        ),
        provenance=Provenance(
            tilewright=importlib.metadata.version("tilewright"),
            mapper=method.mapper_record,
            model=method.model_record,
            objective=method.objective,
            constraints=method.constraints.name,
            seed=method.seed,
            evaluated=result.evaluated,
            valid=result.valid,
            stop=result.stop,
        ),
        mapping=result.best,
        problem=layer.distinct.problem,
        architecture=method.constraints.shape(method.architecture),
    )
