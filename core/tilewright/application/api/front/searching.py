"""`front`: Pareto-optimal mappings of every layer, by energy and cycles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

from tilewright.application.api.call_arguments import checked, whole
from tilewright.application.api.front.points import Front, front_of
from tilewright.application.api.front.report import FrontReport, save_points
from tilewright.application.api.plan import Plan, Sources, folder_of
from tilewright.application.api.progress import mapping_progress
from tilewright.application.api.settings import FrontSettings
from tilewright.application.run.cache import ResultCache
from tilewright.application.run.network import LayerSearch, MappedLayer, Watch, in_workers, map_workload
from tilewright.application.run.refutation import tried
from tilewright.errors import CallError, PluginError, TilewrightError
from tilewright.interrupts import stop_requested
from tilewright.plugin.guard.processes import Workers
from tilewright.plugin.result import Watcher
from tilewright.schema.objective import EDP, ENERGY, Objective
from tilewright.schema.workload import Layer, Workload


@checked
def front(
    workload: Sources,
    arch: Sources,
    **settings: Unpack[FrontSettings],
) -> FrontReport:
    """Search the Pareto front of energy and cycles for every distinct layer.

    This is the function behind `tilewright map --pareto`. The first point has the fewest cycles,
    and the last one the lowest energy. Each point is the mapping of lowest energy within its cycle
    limit. Mappers that prove bounds prove this. The limits apply to each point. There is no
    `objective`. The points of a layer are searched in sequence, so `jobs` counts layers.

    Args:
        workload, arch: As for `map`.
        **settings: Those of `FrontSettings` (tilewright.application.api.settings).

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid; the message names the valid ones.
        PluginError: Mapper or model cannot be built.
        OutputError: The folder cannot be written to.

    Example:
        >>> import tilewright as tw
        >>> report = tw.front("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> report.complete
        True
    """
    points = settings["points"]
    whole(2, points=points)
    if settings["objective"] not in (None, EDP.name):
        raise CallError("a front always covers energy and cycles", hint="leave objective out")
    settings["objective"] = EDP.name
    plan, configuration = Plan.of_one(workload, arch, settings)
    network = plan.workload
    name = f"{configuration.mapper_record.name}, {points} points"
    folder = folder_of(settings, network, [(name, configuration)])
    searches = [
        _FrontSearch(distinct, configuration, network.name, points, plan.results) for distinct in network.distinct()
    ]
    fronts: list[Front] = []
    with mapping_progress(network, configuration.budget, ENERGY, plan.progress) as seen:
        for layer_front in _each(searches, plan.jobs, seen.watch if seen else None):
            fronts.append(layer_front)
            if folder is not None:
                save_points(folder, len(fronts), layer_front, configuration)
            if seen:
                seen.done(layer_front.distinct)
    return FrontReport(network, configuration, tuple(fronts)).summarised(folder)


_Found = tuple[Objective, float, MappedLayer]
"""Objective of a search, its limit on cycles, and its result."""


@dataclass(frozen=True)
class _FrontSearch(LayerSearch):
    """Search for the front of one layer, with its configuration and number of points."""

    network: str
    points: int
    cache: ResultCache | None

    def run(self, watch: Watch | None) -> Front:
        asked = _Asked(self, watch)
        front = front_of(self.distinct, asked.least, self.points)
        refuted = next((error for search in asked.results if (error := self._refutation(search, asked.results))), None)
        if refuted is not None:  # one search of the prover is wrong, so none of its bounds is believed
            front = replace(front, points=tuple(replace(point, bound=None) for point in front.points), refuted=refuted)
        return replace(front, interrupted=asked.interrupted)

    def _refutation(self, search: _Found, others: Sequence[_Found]) -> TilewrightError | None:
        """Return the failure of the prover if another search found less within the limit of its bound."""
        objective, most_cycles, layer = search
        if layer.result is None or layer.result.lower_bound is None:
            return None
        values = [
            float(objective.value(other.energy_pj, other.cycles))
            for _, _, other in others
            if other.energy_pj is not None and other.cycles is not None and other.cycles <= most_cycles
        ]
        finder, least = "a search under another limit on cycles", min(values, default=math.inf)
        judged = tried(layer, self.configuration, layer.result.lower_bound, objective, least, finder)
        return None if judged is layer else judged.error


@dataclass
class _Asked:
    """Searches for the points of one front, in sequence."""

    search: _FrontSearch
    watch: Watch | None
    interrupted: bool = False
    results: list[_Found] = field(default_factory=list)

    def least(self, objective: Objective, most_cycles: float) -> MappedLayer:
        """Return the best mapping within a cycle limit; after an interruption, no search starts."""
        search = self.search
        if self.interrupted:
            return MappedLayer(search.distinct)
        alone = Workload(name=search.network, layers=(Layer(problem=search.distinct.problem),))
        aimed = search.configuration.with_objective(objective, most_cycles)
        layers = list(map_workload(alone, aimed, self.watch, cache=search.cache))
        self.interrupted = stop_requested() or any(layer.interrupted for layer in layers)
        self.results += [(objective, most_cycles, layer) for layer in layers]
        return replace(layers[0], distinct=search.distinct) if layers else MappedLayer(search.distinct)


def _each(searches: Sequence[_FrontSearch], jobs: int, watch: Watch | None) -> Iterator[Front]:
    """Yield the fronts in the workload's order.

    After an interruption no further front is started, and the finished ones are yielded.
    """
    if jobs == 1 or len(searches) < 2:
        for one in searches:
            if stop_requested():
                return
            yield (layer_front := one.run(watch))
            if layer_front.interrupted:
                return
        return
    done: dict[int, Front] = {}
    following = 0
    with Workers(min(jobs, len(searches))) as workers:
        for number, answer in in_workers(searches, _run_in_process, watch, workers):
            if isinstance(answer, PluginError):
                distinct = searches[number].distinct
                answer = Front(distinct, (), False, MappedLayer(distinct, error=answer))
            done[number] = answer
            while following in done:
                yield done.pop(following)
                following += 1
    yield from (done[number] for number in sorted(done))


def _run_in_process(one: _FrontSearch, watch: Watcher) -> Front:
    return one.run(lambda _, progress: watch(progress))
