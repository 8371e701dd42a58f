"""A whole workload mapped: every distinct problem once, as often counted as it occurs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tilewright.child import is_child
from tilewright.errors import OutputError, PluginError, TilewrightError
from tilewright.interrupts import mark_result_found, stop_requested
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator, Relaxable
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.guard.time_limits import limit
from tilewright.plugin.mapper import Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Progress, Result, Watcher
from tilewright.run.accepted import accepted, narrowed_space
from tilewright.run.cache import ResultCache, digest
from tilewright.run.configuration import RunConfiguration
from tilewright.run.evaluation import BuiltModel, bind, explain
from tilewright.run.firstuse import warm_up
from tilewright.run.parallel import Incumbent, Interim, Rescue, Workers, in_processes
from tilewright.run.search import search
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Variant
from tilewright.schema.mapped import BoundMapping, PluginRecord
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright.schema.workload import DistinctProblem, Workload
from tilewright.tables import Printed, quantity

Watch = Callable[[DistinctProblem, Progress], None]


@dataclass(frozen=True, repr=False)
class MappedLayer(Printed):
    """What was found for one distinct problem.

    `architecture` is the one searched on, with the constraints' aspect ratio. `result` is None when no search could start;
    `error` then says why. `report` is the model's account of the best mapping. `constrained` is false where the constraints
    do not speak of such a problem. `cached`: the result is from an earlier search. `warnings`: what the user should know
    beside the result. `instead`: the mapper that searched, where it is not the run's but the one for what the run's proves nothing of.
    """

    distinct: DistinctProblem
    architecture: Architecture | None = None
    result: Result | None = None
    report: Report | None = None
    error: TilewrightError | None = None
    constrained: bool = True
    cached: bool = False
    warnings: tuple[str, ...] = ()
    instead: PluginRecord | None = None

    @property
    def name(self) -> str:
        return self.distinct.problem.name

    @property
    def problem(self) -> Problem:
        return self.distinct.problem

    @property
    def count(self) -> int:
        """How many layers of the workload are this problem."""
        return self.distinct.count

    @property
    def interrupted(self) -> bool:
        """Ctrl-C ended the search: the best so far is what there is."""
        return self.result is not None and self.result.stop == "cancelled"

    @property
    def mapping(self) -> BoundMapping | None:
        """The best mapping; None if there is none."""
        if self.result is None or self.result.best is None or self.architecture is None:
            return None
        return BoundMapping.of(self.result.best, self.problem, self.architecture)

    @property
    def cycles(self) -> int | None:
        return None if self.report is None else self.report.cycles

    @property
    def energy_pj(self) -> float | None:
        return None if self.report is None else self.report.energy_pj

    @property
    def edp(self) -> float | None:
        """energy_pj x cycles."""
        return None if self.report is None else self.report.edp

    @property
    def utilization(self) -> float | None:
        return None if self.report is None else self.report.utilization

    def __repr__(self) -> str:
        found = f"EDP {quantity(self.edp, 'pJ x cycles')}" if self.report else "no mapping"
        return f"<MappedLayer {self.name} x {self.count}: {found}>"

    def __str__(self) -> str:
        if self.report is None:
            return f"{self.name}: no mapping{f': {self.error}' if self.error else ''}"
        return "\n\n".join([str(self.report), "" if self.mapping is None else self.mapping.titled()])


def map_workload(
    workload: Workload,
    configuration: RunConfiguration,
    watch: Watch | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
    engine: Engine | None = None,
    workers: Workers | None = None,
) -> Iterator[MappedLayer]:
    """Map each distinct problem, in `jobs` processes or by `engine`, and yield it when done, in the workload's order.

    After an interrupted search no other is started, and what is done is yielded. Results that `cache` has are not
    searched again; new ones are kept there. Plugins that watch are told of every search as it ends. Several calls may share `workers`.
    """
    todo = workload.distinct()
    ways = [chosen(distinct, configuration) for distinct in todo]
    memories = [_Memory(distinct, each, cache) for distinct, each in zip(todo, ways, strict=True)]
    done = {index: layer for index, memory in enumerate(memories) if (layer := memory.recall()) is not None}
    if done:
        mark_result_found()
    missing = [index for index in range(len(todo)) if index not in done]
    searches = [LayerSearch(todo[index], ways[index]) for index in missing]
    following = 0
    silenced: set[str] = set()
    with ExitStack() as closing:
        if engine is None:
            own = workers or closing.enter_context(Workers(max(1, min(jobs, len(searches)))))
            found = map_each(searches, watch, own)
        else:
            found = engine(searches)
        for number, layer in itertools.chain([(-1, None)], found):
            if layer is not None:
                done[missing[number]] = told_watchers(memories[missing[number]].kept(layer), silenced)
            while following in done:
                yield _told_by(done.pop(following), ways[following], configuration)
                following += 1
    yield from (_told_by(done[index], ways[index], configuration) for index in sorted(done))


def chosen(distinct: DistinctProblem, configuration: RunConfiguration) -> RunConfiguration:
    """How to map a problem: `otherwise` where the cost model offers no relaxation, or the mapper does not accept it."""
    if configuration.otherwise is None:
        return configuration
    with suppress(TilewrightError):
        space, _, evaluator = bound(distinct, configuration)
        if isinstance(evaluator, Relaxable) and evaluator.relaxation(space.skeleton) is not None:
            return configuration
    return configuration.otherwise


def _told_by(layer: MappedLayer, way: RunConfiguration, configuration: RunConfiguration) -> MappedLayer:
    return layer if way is configuration else dataclasses.replace(layer, instead=way.mapper_record)


def told_watchers(layer: MappedLayer, silenced: set[str]) -> MappedLayer:
    """The layer of a new search, after all watchers were told; with a warning for each that failed, which is then told
    no more."""
    if layer.result is None:
        return layer
    complaints = installed().tell_search_done(layer.name, layer.result, silenced)
    return dataclasses.replace(layer, warnings=(*layer.warnings, *complaints))


@dataclass(frozen=True)
class LayerSearch:
    """One problem, and how it is mapped."""

    distinct: DistinctProblem
    configuration: RunConfiguration


Search = TypeVar("Search", bound=LayerSearch)
Found = TypeVar("Found")
Wanted = Callable[[int], bool]
"""Position -> whether its search is to begin; asked at most once, just before."""


def every(position: int) -> bool:
    """Return that a search is to begin."""
    return True


class Engine(Protocol):
    """A way to work searches off: here, in processes or on a cluster."""

    def __call__(self, searches: Sequence[LayerSearch], *, wanted: Wanted = every) -> Iterator[tuple[int, MappedLayer]]:
        """Yield (position, what was found) of the wanted searches as each is done."""
        ...


def map_each(
    searches: Sequence[LayerSearch],
    watch: Watch | None = None,
    workers: Workers | None = None,
    *,
    wanted: Wanted = every,
) -> Iterator[tuple[int, MappedLayer]]:
    """(position, layer) as each is done; in this process where one worker is enough, but for third parties' plugins. After an interrupted search no
    other is started."""
    alone = workers is None or len(workers.children) == 1 or len(searches) == 1
    if alone and not any(needs_process(one.configuration) for one in searches):
        for index, one in enumerate(searches):
            if stop_requested():
                return
            if not wanted(index):
                continue
            layer = map_problem(one.distinct, one.configuration, watch)
            yield index, layer
            if layer.interrupted:
                return
        return
    with ExitStack() as closing:
        several = workers or closing.enter_context(Workers(1))
        for index, found in in_workers(searches, _map_in_process, watch, several, _rescued, wanted):
            yield index, MappedLayer(searches[index].distinct, error=found) if isinstance(found, PluginError) else found


def needs_process(configuration: RunConfiguration) -> bool:
    """Return whether a third party's plugin takes part, and nobody could end it in this process."""
    return bool(_third_parties(configuration)) and not is_child()


def _third_parties(configuration: RunConfiguration) -> set[str]:
    """The distributions of third parties whose plugins take part."""
    found = {configuration.mapper_record.distribution, configuration.model.record.distribution}
    return {each for each in found if each not in (None, BUILTIN)}


def in_workers(
    searches: Sequence[Search],
    work: Callable[[Search, Watcher], Found],
    watch: Watch | None,
    workers: Workers,
    rescue: Rescue[Search, Found] | None = None,
    wanted: Wanted = every,
) -> Iterator[tuple[int, Found | PluginError]]:
    """(position, what `work` made of it) as each is done; see `in_processes`. All are of one configuration."""
    if not searches:
        return
    configuration = searches[0].configuration
    third_parties = any(_third_parties(one.configuration) for one in searches)
    if not third_parties:
        with suppress(TilewrightError):  # told by the layer that it is about
            space, _, evaluator = bound(searches[0].distinct, configuration)
            task = Task(space, configuration.objective, configuration.most_cycles)
            warm_up(evaluator, task, guarded_mapper(configuration.mapper))  # once, and not in every process
    told = None if watch is None else lambda one, progress: watch(one.distinct, progress)
    for index, found in in_processes(searches, work, told, workers, limit() if third_parties else None, rescue, wanted):
        if isinstance(found, PluginError):
            yield index, _named(found, configuration)
        else:
            mark_result_found()
            yield index, found


def _map_in_process(one: LayerSearch, watch: Watcher) -> MappedLayer:
    return map_problem(one.distinct, one.configuration, lambda _, progress: watch(progress))


def _rescued(one: LayerSearch, known: Interim, error: PluginError | None) -> MappedLayer | None:
    """The layer by the notes of a process that was ended; None where its search had not begun."""
    if known.began is None:
        return None
    space, constrained = space_of(one.distinct, one.configuration)
    best, progress = known.incumbent, known.progress
    error = None if error is None else _named(error, one.configuration)
    result = Result(
        best=None if best is None else best.mapping,
        value=math.inf if best is None else best.value,
        evaluated=0 if progress is None else progress.evaluated,
        valid=0 if progress is None else progress.valid,
        rejected=0 if best is None else best.rejected,
        stop="cancelled" if error is None else "failed",
        cpu_seconds=known.cpu_seconds,
        wall_seconds=known.wall_seconds,
        seed=one.configuration.seed,
        error=error,
    )
    report = None if best is None else _report_of(best, space, one.configuration.model)
    return MappedLayer(one.distinct, space.architecture, result, report, error, constrained)


def _report_of(best: Incumbent, space: MapSpace, model: BuiltModel) -> Report:
    """The report of a mapping whose search was ended. A third party's cost model is not asked again: its totals are known."""
    if model.record.distribution == BUILTIN:
        evaluator = bind(model, space.problem, space.architecture)
        return explain(model, evaluator, space.problem, space.architecture, best.mapping)
    return Report(
        model=model.record.name,
        problem=space.problem.name,
        valid=True,
        energy_pj=best.energy_pj,
        cycles=round(best.cycles),
        edp=best.energy_pj * round(best.cycles),
        macs=space.problem.macs,
        warnings=("the search was ended before the cost model explained this mapping: only its totals are known",),
    ).on(space.architecture, space.problem)


def map_problem(distinct: DistinctProblem, configuration: RunConfiguration, watch: Watch | None = None) -> MappedLayer:
    """Search the best mapping of one problem."""
    try:
        space, constrained, evaluator = bound(distinct, configuration)
    except TilewrightError as error:
        return MappedLayer(distinct, error=error)
    result = search(
        configuration.mapper,
        Task(space, configuration.objective, configuration.most_cycles),
        evaluator,
        configuration.budget,
        seed=configuration.seed,
        watch=None if watch is None else lambda progress: watch(distinct, progress),
    )
    report, failure = None, result.error
    if result.best is not None:
        report = explain(configuration.model, evaluator, space.problem, space.architecture, result.best)
        wrong = _unexplained(report, result, configuration)
        if wrong is not None:
            report, failure = None, failure or PluginError(f"cost model {configuration.model.record} failed: {wrong}")
    return MappedLayer(distinct, space.architecture, result, report, failure, constrained)


def _unexplained(report: Report, result: Result, configuration: RunConfiguration) -> str | None:
    """What is wrong with the account of the best mapping; None: nothing."""
    if not report.valid:
        return f"it does not explain the best mapping found: {'; '.join(str(reason) for reason in report.reasons)}"
    value = report.of(configuration.objective)
    if value is None or not math.isclose(value, result.value, rel_tol=1e-6):
        return f"it explains {configuration.objective} {value:g} of a mapping that it evaluated at {result.value:g}"
    return None


def bound(distinct: DistinctProblem, configuration: RunConfiguration) -> tuple[MapSpace, bool, Evaluator]:
    """(space, whether constraints speak of it, evaluator). Raises TilewrightError."""
    space, constrained = space_of(distinct, configuration)
    return space, constrained, bind(configuration.model, space.problem, space.architecture)


def space_of(distinct: DistinctProblem, configuration: RunConfiguration) -> tuple[MapSpace, bool]:
    """(what of the map space cost model and mapper accept, whether constraints speak of it). Raises TilewrightError."""
    space, constrained = narrowed_space(
        configuration.model, distinct.problem, configuration.architecture, configuration.constraints
    )
    space = accepted(space, configuration.mapper_capabilities, f"mapper {configuration.mapper_record.name}")
    return space, constrained


def _place(distinct: DistinctProblem, configuration: RunConfiguration) -> tuple[Architecture, Variant | None]:
    architecture = configuration.constraints.shape(configuration.architecture)
    return architecture, configuration.constraints.rules_for(distinct.problem, architecture)


class _Memory:
    """What the cache knows of one problem."""

    def __init__(self, distinct: DistinctProblem, configuration: RunConfiguration, cache: ResultCache | None) -> None:
        self.distinct, self.configuration, self.cache = distinct, configuration, cache
        self.key = None if cache is None else _key(distinct, configuration)
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
        """Raises ValueError if the mapping is not legal, or has other figures now."""
        space, constrained, evaluator = bound(self.distinct, self.configuration)
        report = None
        if result.best is not None:
            report = explain(self.configuration.model, evaluator, space.problem, space.architecture, result.best)
            now = report.of(self.configuration.objective)
            if not legality(space.problem, space.architecture, result.best) or now is None:
                raise ValueError(f"its mapping of {self.distinct.problem.name} is not valid")
            if not math.isclose(now, result.value, rel_tol=1e-9):
                raise ValueError(f"its mapping of {self.distinct.problem.name} has other figures")
        return MappedLayer(self.distinct, space.architecture, result, report, None, constrained, cached=True)

    def kept(self, layer: MappedLayer) -> MappedLayer:
        """Keep a new result; the layer with what went wrong meanwhile."""
        if self.cache is not None and self.key is not None and layer.result is not None and layer.error is None:
            try:
                self.cache.keep(self.key, layer.result)
            except OutputError as error:
                self.warnings.append(f"result not kept: {error.message}")
        return dataclasses.replace(layer, warnings=tuple(self.warnings))


def _key(distinct: DistinctProblem, configuration: RunConfiguration) -> str | None:
    """What the result depends on, as a digest; None where no search can start."""
    try:
        architecture, rules = _place(distinct, configuration)
    except TilewrightError:
        return None
    return digest(
        {
            "problem": distinct.problem.content_key,
            "architecture": architecture.model_dump(mode="json"),
            "rules": None if rules is None else rules.model_dump(mode="json"),
            "factors": configuration.constraints.factors,
            "mapper": configuration.mapper_record.model_dump(mode="json"),
            "model": configuration.model.record.model_dump(mode="json"),
            "objective": configuration.objective,
            "budget": dataclasses.asdict(configuration.budget),
            "seed": configuration.seed,
            "most_cycles": configuration.most_cycles,
        },
        configuration.plugins,
    )


def _named(error: PluginError, configuration: RunConfiguration) -> PluginError:
    """The error of a process; with the names of all plugins that took part, where it is not known which one failed."""
    if error.plugin is not None:
        return error
    plugins = f"mapper {configuration.mapper_record}, cost model {configuration.model.record}"
    return PluginError(f"{error.message} ({plugins})", hint=error.hint, plugin=plugins)
