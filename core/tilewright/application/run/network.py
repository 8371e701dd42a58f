"""Mapping of a whole workload. Every distinct problem is searched once."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from tilewright.application.run.accepted import accepted, narrowed_space
from tilewright.application.run.cache import ResultCache
from tilewright.application.run.compilation_warm_up import warm_up
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import BuiltModel, bind, explain, unexplained
from tilewright.application.run.observing import RunObserver
from tilewright.application.run.union import search_union
from tilewright.digests import of_search
from tilewright.errors import InputError, NotConformableError, OutputError, PluginError, Reason, TilewrightError
from tilewright.formats import quantity
from tilewright.interrupts import mark_result_found, stop_requested
from tilewright.mapspace.arrangements import arrangements
from tilewright.mapspace.axes import on_one_axis
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.markup import Printed
from tilewright.plugin.costmodel import Evaluator, Relaxable
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.guard.hosted import Hosted
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.guard.processes import Incumbent, Interim, Rescue, Workers, in_processes, limit
from tilewright.plugin.hook_data import ObservedRun
from tilewright.plugin.mapper import Task
from tilewright.plugin.result import Progress, Result, Watcher
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Variant
from tilewright.schema.mapped import BoundMapping, PluginRecord
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import DistinctProblem, Workload

Watch = Callable[[DistinctProblem, Progress], None]


@dataclass(frozen=True, repr=False)
class MappedLayer(Printed):
    """Result for one distinct problem.

    Attributes:
        architecture: The searched architecture, with the aspect ratio of the constraints.
        result: None if no search could start; then `error` is the reason.
        report: The model's report on the best mapping.
        constrained: Whether the constraints cover such a problem.
        cached: Whether the result is from an earlier search.
        warnings: Messages for the user.
        instead: The fallback mapper, if it searched.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> layer.name, layer.count, layer.interrupted
        ('einsum', 1, False)
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
        """Number of layers of the workload with this problem."""
        return self.distinct.count

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search, so that the result is the best so far."""
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
        text = f"EDP {quantity(self.edp, 'pJ x cycles')}" if self.report else "no mapping"
        return f"<MappedLayer {self.name} x {self.count}: {text}>"

    def __str__(self) -> str:
        if self.report is None:
            return f"{self.name}: no mapping{f': {self.error}' if self.error else ''}"
        return "\n\n".join([str(self.report), "" if self.mapping is None else self.mapping.titled()])


def map_workload(
    workload: Workload,
    configuration: RunConfiguration,
    on_progress: Watch | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
    engine: Engine | None = None,
    workers: Workers | None = None,
) -> Iterator[MappedLayer]:
    """Map each distinct problem, in `jobs` processes or by `engine`, and yield it in the workload's order.

    After Ctrl-C no further search starts, and finished layers are yielded. Results in `cache` are reused, and new ones
    are stored. Observer plugins receive every finished search. Several calls may share `workers`.
    """
    searches = [LayerSearch(distinct, configuration) for distinct in workload.distinct()]
    return map_searches(searches, on_progress, jobs=jobs, cache=cache, engine=engine, workers=workers)


def map_searches(
    asked: Sequence[LayerSearch],
    on_progress: Watch | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
    engine: Engine | None = None,
    workers: Workers | None = None,
) -> Iterator[MappedLayer]:
    """Map problems as `map_workload` does, each with a configuration of its own."""
    todo = [search.distinct for search in asked]
    ways = [chosen(search.distinct, search.configuration) for search in asked]
    memories = [_Memory(distinct, way, cache) for distinct, way in zip(todo, ways, strict=True)]
    done = {index: layer for index, memory in enumerate(memories) if (layer := memory.recall()) is not None}
    if done:
        mark_result_found()
    missing = [index for index in range(len(todo)) if index not in done]
    searches = [LayerSearch(todo[index], ways[index]) for index in missing]
    following = 0
    if not asked:
        return
    observer = RunObserver(observed(asked))

    def told(position: int) -> bool:
        observer.layer_started(searches[position].distinct.problem.name)
        return True

    with ExitStack() as closing:
        closing.callback(observer.ended)
        observer.started()
        observer.done += [layer.name for layer in done.values()]
        if engine is None:
            pool = workers or closing.enter_context(Workers(max(1, min(jobs, len(searches)))))
            results = map_each(searches, observer.watching(on_progress), pool, wanted=told)
        else:
            results = engine(searches, wanted=told)
        for number, layer in itertools.chain([(-1, None)], results):
            if layer is not None:
                done[missing[number]] = observed_layer(memories[missing[number]].kept(layer), observer)
            while following in done:
                yield _with_fallback(done.pop(following), ways[following], asked[following].configuration)
                following += 1
    yield from (_with_fallback(done[index], ways[index], asked[index].configuration) for index in sorted(done))


def chosen(distinct: DistinctProblem, configuration: RunConfiguration) -> RunConfiguration:
    """Return the configuration for a problem: the fallback if the mapper can prove nothing.

    This is the case if the cost model offers no relaxation, or if the mapper refuses the problem. It is also the case if
    the costs of the relaxation depend on loop orders, which is rarely proved, after long searches.
    """
    if configuration.fallback is None:
        return configuration
    with suppress(TilewrightError):
        space, _, evaluator = bound(distinct, configuration)
        relaxation = evaluator.relaxation(space.skeleton, space.keeps) if isinstance(evaluator, Relaxable) else None
        if relaxation is not None and not relaxation.order_matters:
            return configuration
    return configuration.fallback


def _with_fallback(layer: MappedLayer, way: RunConfiguration, configuration: RunConfiguration) -> MappedLayer:
    return layer if way is configuration else dataclasses.replace(layer, instead=way.mapper_record)


def observed_layer(layer: MappedLayer, observer: RunObserver) -> MappedLayer:
    """Tell observer plugins that the search of a layer has ended; return the layer with a warning for each failure."""
    warnings = observer.layer_done(layer.name, layer.result)
    return dataclasses.replace(layer, warnings=(*layer.warnings, *warnings))


def observed(searches: Sequence[LayerSearch], architecture: str | None = None) -> ObservedRun:
    """Return the run of these searches for observer plugins; `architecture` names a space of several."""
    way = searches[0].configuration
    return ObservedRun(
        layers=tuple(search.distinct.problem.name for search in searches),
        architecture=architecture or way.architecture.name,
        mapper=way.mapper_record.name,
        model=way.model.record.name,
        objective=way.objective.name,
        budget=way.budget,
        seed=way.seed,
    )


@dataclass(frozen=True)
class LayerSearch:
    """One problem, and the configuration of its search; `start` is a mapping that the search has to improve on."""

    distinct: DistinctProblem
    configuration: RunConfiguration
    start: Mapping | None = field(default=None, kw_only=True)


Search = TypeVar("Search", bound=LayerSearch)
Found = TypeVar("Found")
Wanted = Callable[[int], bool]
"""Position -> whether its search should start; called at most once, immediately before."""


def every(position: int) -> bool:
    """Return that a search should start."""
    return True


class Engine(Protocol):
    """Interface to run searches: here, in processes or on a cluster."""

    def __call__(self, searches: Sequence[LayerSearch], *, wanted: Wanted = every) -> Iterator[tuple[int, MappedLayer]]:
        """Yield (position, layer) of the wanted searches as each is done."""
        ...


def map_each(
    searches: Sequence[LayerSearch],
    on_progress: Watch | None = None,
    workers: Workers | None = None,
    *,
    wanted: Wanted = every,
) -> Iterator[tuple[int, MappedLayer]]:
    """Yield (position, layer) as each is done.

    A single worker searches in this process, except with third-party plugins. After Ctrl-C no further search starts.
    """
    alone = workers is None or workers.jobs == 1 or len(searches) == 1
    if alone and not any(needs_process(one.configuration) for one in searches):
        for index, one in enumerate(searches):
            if stop_requested():
                return
            if not wanted(index):
                continue
            layer = map_problem(one.distinct, one.configuration, on_progress, one.start)
            yield index, layer
            if layer.interrupted:
                return
        return
    with ExitStack() as closing:
        several = workers or closing.enter_context(Workers(1))
        for index, result in in_workers(searches, _map_in_process, on_progress, several, _rescued, wanted):
            yield (
                index,
                MappedLayer(searches[index].distinct, error=result) if isinstance(result, PluginError) else result,
            )


def needs_process(configuration: RunConfiguration) -> bool:
    """Return whether a search must run in a child process, since it uses third-party plugins."""
    return isinstance(configuration.mapper, Hosted) or isinstance(configuration.model.model, Hosted)


def in_workers(
    searches: Sequence[Search],
    work: Callable[[Search, Watcher], Found],
    on_progress: Watch | None,
    workers: Workers,
    rescue: Rescue[Search, Found] | None = None,
    wanted: Wanted = every,
) -> Iterator[tuple[int, Found | PluginError]]:
    """Yield (position, result of `work`) as each is done; see `in_processes`.

    All searches have one configuration.
    """
    if not searches:
        return
    configuration = searches[0].configuration
    third_parties = any(needs_process(one.configuration) for one in searches)
    if not third_parties:
        with suppress(TilewrightError):  # the search reports the error
            space, _, evaluator = bound(searches[0].distinct, configuration)
            task = Task(space, configuration.objective, configuration.most_cycles)
            warm_up(evaluator, task, guarded_mapper(configuration.mapper))  # once, and not in every process
    forward = None if on_progress is None else lambda one, progress: on_progress(one.distinct, progress)
    for index, error in in_processes(
        searches, work, forward, workers, limit() if third_parties else None, rescue, wanted
    ):
        if isinstance(error, PluginError):
            yield index, _named(error, configuration)
        else:
            mark_result_found()
            yield index, error


def _map_in_process(one: LayerSearch, on_progress: Watcher) -> MappedLayer:
    return map_problem(one.distinct, one.configuration, lambda _, progress: on_progress(progress), one.start)


def _rescued(one: LayerSearch, known: Interim, error: PluginError | None) -> MappedLayer | None:
    """Return a layer from the notes of a process that was ended.

    None if its search had not started.
    """
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
        history=() if best is None else best.history,
        objective=one.configuration.objective,
    )
    report = None if best is None else _report_of(best, space, one.configuration.model)
    return MappedLayer(one.distinct, space.architecture, result, report, error, constrained)


def _report_of(best: Incumbent, space: MapSpace, model: BuiltModel) -> Report:
    """Return the report on a mapping whose search was ended.

    A third-party cost model is not called again; its totals are known.
    """
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


def map_problem(
    distinct: DistinctProblem,
    configuration: RunConfiguration,
    on_progress: Watch | None = None,
    start: Mapping | None = None,
) -> MappedLayer:
    """Search the best mapping of one problem; a valid `start` is the result if no better one is found."""
    try:
        space, constrained, evaluator = bound(distinct, configuration)
        spaces = spaces_of(space, configuration)
    except TilewrightError as error:
        return MappedLayer(distinct, error=error)
    known = math.inf
    if start is not None and legality(space.problem, space.architecture, start):
        known = float(evaluator.evaluate(start).within(configuration.most_cycles).of(configuration.objective)[0])
    result = search_union(
        configuration.mapper,
        [Task(part, configuration.objective, configuration.most_cycles) for part in spaces],
        evaluator,
        configuration.budget,
        seed=configuration.seed,
        on_progress=None if on_progress is None else lambda progress: on_progress(distinct, progress),
        start=known,
    )
    if result.best is None and result.error is None and math.isfinite(known):
        result = dataclasses.replace(result, best=start, value=known, valid=1)
    report, failure = None, result.error
    if result.best is not None:
        report = explain(configuration.model, evaluator, space.problem, space.architecture, result.best)
        wrong = unexplained(report, result.value, configuration.objective, "the best mapping found")
        if wrong is not None:
            report, failure = None, failure or PluginError(f"cost model {configuration.model.record} failed: {wrong}")
    return MappedLayer(distinct, space.architecture, result, report, failure, constrained)


def bound(distinct: DistinctProblem, configuration: RunConfiguration) -> tuple[MapSpace, bool, Evaluator]:
    """Return (space, whether the constraints cover the problem, evaluator).

    Raises:
        TilewrightError: The inputs are not accepted, or a plugin failed.
    """
    space, constrained = space_of(distinct, configuration)
    return space, constrained, bind(configuration.model, space.problem, space.architecture)


def space_of(distinct: DistinctProblem, configuration: RunConfiguration) -> tuple[MapSpace, bool]:
    """Return (map space that cost model and mapper accept, whether the constraints cover the problem).

    Raises:
        TilewrightError: The inputs are not accepted.
    """
    space, constrained = narrowed_space(
        configuration.model,
        distinct.problem,
        configuration.architecture_for(distinct.problem),
        configuration.constraints,
    )
    if configuration.optional is not None:
        space = space.with_optional(configuration.optional)
    space = accepted(space, configuration.mapper_capabilities, f"mapper {configuration.mapper_record.name}")
    if configuration.expressible is not None:
        notation, capabilities = configuration.expressible
        space = accepted(space, capabilities, f"notation {notation}")
    return space, constrained


def spaces_of(space: MapSpace, configuration: RunConfiguration) -> tuple[MapSpace, ...]:
    """Return the map spaces that are searched: the space alone, or with those of all arrangements if it is uneven.

    If someone accepts no dimension along two axes, the spaces are parts of it.

    Raises:
        TilewrightError: The inputs are not accepted.
    """
    parties = [
        (configuration.model.capabilities, f"cost model {configuration.model.name}"),
        (configuration.mapper_capabilities, f"mapper {configuration.mapper_record.name}"),
    ]
    if configuration.expressible is not None:
        notation, capabilities = configuration.expressible
        parties.append((capabilities, f"notation {notation}"))
    if not configuration.constraints.uneven:
        return (space,) if all(accepts.split_dimensions for accepts, _ in parties) else on_one_axis(space)
    for capabilities, plugin in parties:
        if not capabilities.uneven_mappings:
            text = "uneven mappings are not accepted"
            raise NotConformableError(plugin, (Reason(code="uneven", where="mapping", message=text),), hint=EVEN)
        if not capabilities.split_dimensions:
            text = "a dimension is unrolled along two axes in some uneven mappings"
            raise NotConformableError(plugin, (Reason(code="two_axes", where="mapping", message=text),), hint=EVEN)
    return space, *arrangements(space)  # the even space is small, and its mappings are a start for the others


EVEN = "search without --uneven, or choose another one (tilewright plugins lists them)"


def _place(distinct: DistinctProblem, configuration: RunConfiguration) -> tuple[Architecture, Variant | None]:
    architecture = configuration.constraints.shape(configuration.architecture_for(distinct.problem))
    return architecture, configuration.constraints.rules_for(distinct.problem, architecture)


class _Memory:
    """Cache access for one problem."""

    def __init__(self, distinct: DistinctProblem, configuration: RunConfiguration, cache: ResultCache | None) -> None:
        self.distinct, self.configuration, self.cache = distinct, configuration, cache
        self.key = None if cache is None else _key(distinct, configuration)
        self.warnings: list[str] = []

    def recall(self) -> MappedLayer | None:
        """Return the layer of an earlier search; None if there is none, or, with a warning, if it is damaged."""
        if self.cache is None or self.key is None:
            return None
        try:
            result = self.cache.find(self.key)
            return None if result is None else self._checked(result)
        except ValueError as error:
            self.warnings.append(f"cache entry ignored and rebuilt: {error}")
        except OutputError as error:
            self.warnings.append(f"cache not read: {error.message}")
        return None

    def _checked(self, result: Result) -> MappedLayer:
        """Return a cached layer.

        Raises:
            ValueError: The result is of another search, or the mapping is illegal, or has other figures now.
        """
        if (result.objective, result.seed) != (self.configuration.objective, self.configuration.seed):
            raise ValueError(f"it is the result of another search of {self.distinct.problem.name}")
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
        """Store a new result, and return the layer with the warnings so far."""
        if self.cache is not None and self.key is not None and layer.result is not None and layer.error is None:
            try:
                self.cache.keep(self.key, layer.result)
            except (InputError, OutputError) as error:
                self.warnings.append(f"result not kept: {error.message}")
        return dataclasses.replace(layer, warnings=tuple(self.warnings))


def _key(distinct: DistinctProblem, configuration: RunConfiguration) -> str | None:
    """Return the digest of everything that determines the result; None if no search can start."""
    try:
        architecture, rules = _place(distinct, configuration)
    except TilewrightError:
        return None
    return of_search(
        {
            "problem": distinct.problem.content_key,
            "architecture": architecture.model_dump(mode="json"),
            "rules": None if rules is None else rules.model_dump(mode="json", exclude={"unsearched"}),
            "factors": configuration.constraints.factors_for(distinct.problem, rules),
            "uneven": configuration.constraints.uneven,
            "mapper": configuration.mapper_record.model_dump(mode="json"),
            "model": configuration.model.record.model_dump(mode="json"),
            "objective": configuration.objective.name,
            "budget": dataclasses.asdict(configuration.budget),
            "seed": configuration.seed,
            "most_cycles": configuration.most_cycles,
            **({} if configuration.expressible is None else {"expressible": configuration.expressible[0]}),
            **({} if configuration.optional is None else {"optional": configuration.optional}),
        },
        configuration.packages,
    )


def _named(error: PluginError, configuration: RunConfiguration) -> PluginError:
    """Return an error of a process with the names of all its plugins, unless the failed one is known."""
    if error.plugin is not None:
        return error
    plugins = f"mapper {configuration.mapper_record}, cost model {configuration.model.record}"
    return PluginError(f"{error.message} ({plugins})", hint=error.hint, plugin=plugins)
