"""A whole workload mapped: every distinct problem once, as often counted as it occurs."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.errors import NotConformableError, PluginError, TilewrightError
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import CostModel, Evaluator, Objective
from tilewright.plugin.mapper import Budget, Mapper, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Progress, Result, Watcher
from tilewright.run.cache import ResultCache, digest
from tilewright.run.parallel import in_processes
from tilewright.run.search import search
from tilewright.schema.architecture import Architecture
from tilewright.schema.capabilities import Capabilities
from tilewright.schema.constraints import Constraints, Variant
from tilewright.schema.mapped import Figures, MappedProblem, PluginRecord, Provenance
from tilewright.schema.report import Report
from tilewright.schema.workload import DistinctProblem, Workload

Watch = Callable[[DistinctProblem, Progress], None]


@dataclass(frozen=True)
class Method:
    """How to map: where, with what, for how long. The records say which plugins these are; `accepts` is what the model
    declares."""

    architecture: Architecture
    constraints: Constraints
    mapper: Mapper
    mapper_record: PluginRecord
    model: CostModel
    model_record: PluginRecord
    objective: Objective
    budget: Budget
    seed: int
    accepts: Capabilities = Capabilities()


@dataclass(frozen=True)
class MappedLayer:
    """The outcome for one distinct problem.

    `result` is None when no search could start; `error` then says why. `report` prices the best mapping.
    `constrained` is false where the constraints do not speak of such a problem. `cached`: the result is from an earlier
    search. `warnings`: what the user should know beside the result.
    """

    distinct: DistinctProblem
    result: Result | None = None
    report: Report | None = None
    error: TilewrightError | None = None
    constrained: bool = True
    cached: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.distinct.problem.name

    @property
    def count(self) -> int:
        return self.distinct.count


def map_workload(
    workload: Workload,
    method: Method,
    watch: Watch | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
) -> Iterator[MappedLayer]:
    """Map each distinct problem, in `jobs` processes, and yield it when done, in the workload's order.

    After an interrupted search no other is started, and what is done is yielded. Results that `cache` has are not
    searched again; new ones are kept there. Plugins that watch are told of every search as it ends.
    """
    todo = workload.distinct()
    memories = [_Memory(distinct, method, cache) for distinct in todo]
    done = {index: layer for index, memory in enumerate(memories) if (layer := memory.recall()) is not None}
    missing = [index for index in range(len(todo)) if index not in done]
    searched = _searched([todo[index] for index in missing], method, watch, jobs)
    following = 0
    for number, layer in itertools.chain([(-1, None)], searched):
        if layer is not None:
            done[missing[number]] = _told(memories[missing[number]].kept(layer))
        while following in done:
            yield done.pop(following)
            following += 1
    yield from (done[index] for index in sorted(done))


def _told(layer: MappedLayer) -> MappedLayer:
    """The layer of a new search, after all watchers were told; with a warning for each that failed."""
    if layer.result is None:
        return layer
    complaints = installed().tell_search_done(layer.name, layer.result)
    return dataclasses.replace(layer, warnings=(*layer.warnings, *complaints))


def _searched(
    todo: Sequence[DistinctProblem], method: Method, watch: Watch | None, jobs: int
) -> Iterator[tuple[int, MappedLayer]]:
    """(position, layer) when it is done."""
    if jobs == 1 or len(todo) < 2:
        for index, distinct in enumerate(todo):
            layer = map_problem(distinct, method, watch)
            yield index, layer
            if layer.result is not None and layer.result.stop == "cancelled":
                return
        return
    left = set(range(len(todo)))
    try:
        for index, layer in in_processes(todo, partial(_map_in_process, method=method), watch, method.budget, jobs):
            left.remove(index)
            yield index, layer
    except PluginError as error:
        yield from ((index, MappedLayer(todo[index], error=_named(error, method))) for index in sorted(left))


def _map_in_process(distinct: DistinctProblem, watch: Watcher, method: Method) -> MappedLayer:
    return map_problem(distinct, method, lambda _, progress: watch(progress))


def map_problem(distinct: DistinctProblem, method: Method, watch: Watch | None = None) -> MappedLayer:
    """Search the best mapping of one problem."""
    try:
        space, constrained, evaluator = _bound(distinct, method)
    except TilewrightError as error:
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
    return MappedLayer(distinct, result, report, _named(result.error, method), constrained)


def _bound(distinct: DistinctProblem, method: Method) -> tuple[MapSpace, bool, Evaluator]:
    """(space, whether constraints speak of it, evaluator). Raises TilewrightError."""
    architecture, rules = _place(distinct, method)
    verdict = method.accepts.judge(distinct.problem, architecture)
    if not verdict:
        raise NotConformableError(f"cost model {method.model_record.name}", verdict.reasons)
    space = MapSpace.of(distinct.problem, architecture, rules)
    evaluator = method.model.bind(distinct.problem, architecture)
    return space, rules is not None or not method.constraints.variants, evaluator


def _place(distinct: DistinctProblem, method: Method) -> tuple[Architecture, Variant | None]:
    architecture = method.constraints.shape(method.architecture)
    return architecture, method.constraints.rules_for(distinct.problem, architecture)


class _Memory:
    """What the cache knows of one problem."""

    def __init__(self, distinct: DistinctProblem, method: Method, cache: ResultCache | None) -> None:
        self.distinct, self.method, self.cache = distinct, method, cache
        self.key = None if cache is None else _key(distinct, method)
        self.warnings: list[str] = []

    def recall(self) -> MappedLayer | None:
        """The layer as an earlier search left it; None, with a warning, if what is kept is damaged."""
        if self.cache is None or self.key is None:
            return None
        try:
            result = self.cache.find(self.key)
            return None if result is None else self._checked(result)
        except ValueError as error:
            self.warnings.append(f"cache entry ignored and made anew: {error}")
            return None

    def _checked(self, result: Result) -> MappedLayer:
        """Raises ValueError if the mapping is not legal, or has another price now."""
        space, constrained, evaluator = _bound(self.distinct, self.method)
        report = None
        if result.best is not None:
            report = evaluator.explain(result.best)
            now = {"edp": report.edp, "energy": report.energy_pj, "cycles": report.cycles}[self.method.objective]
            if not legality(space.problem, space.architecture, result.best) or now is None:
                raise ValueError(f"its mapping of {self.distinct.problem.name} is not valid")
            if not math.isclose(now, result.value, rel_tol=1e-9):
                raise ValueError(f"its mapping of {self.distinct.problem.name} has another price")
        return MappedLayer(self.distinct, result, report, None, constrained, cached=True)

    def kept(self, layer: MappedLayer) -> MappedLayer:
        """Keep a new result; the layer with what went wrong meanwhile."""
        if self.cache is not None and self.key is not None and layer.result is not None and layer.error is None:
            try:
                self.cache.keep(self.key, layer.result)
            except OSError as error:
                self.warnings.append(f"result not kept in {self.cache.folder}: {error.strerror}")
        return dataclasses.replace(layer, warnings=tuple(self.warnings))


def _key(distinct: DistinctProblem, method: Method) -> str | None:
    """What the result depends on, as a digest; None where no search can start."""
    try:
        architecture, rules = _place(distinct, method)
    except TilewrightError:
        return None
    return digest(
        {
            "problem": distinct.problem.content_key,
            "architecture": architecture.model_dump(mode="json"),
            "rules": None if rules is None else rules.model_dump(mode="json"),
            "mapper": method.mapper_record.model_dump(mode="json"),
            "model": method.model_record.model_dump(mode="json"),
            "objective": method.objective,
            "budget": dataclasses.asdict(method.budget),
            "seed": method.seed,
        },
        (method.mapper, method.model),
    )


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
