"""Sweep: several mappers under several cost models, and every best mapping evaluated by all of these models.

Whatever cannot be done is a row with the reason; nothing of it ends the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.errors import Reason, TilewrightError
from tilewright.run.cache import ResultCache
from tilewright.run.configuration import RunConfiguration, limit_of
from tilewright.run.evaluation import BuiltModel, evaluate, reasons_of, refusal
from tilewright.run.network import MappedLayer, Watch, map_workload
from tilewright.schema.report import Report
from tilewright.schema.workload import Workload


@dataclass(frozen=True)
class SweepPoint:
    """A mapper under a cost model; without `configuration`, `error` says why one of them could not be built."""

    mapper: str
    model: str
    configuration: RunConfiguration | None = None
    error: TilewrightError | None = None


@dataclass(frozen=True)
class SweepRow:
    """What one point found for one layer, and what each model of the sweep says of it, in their order; no reports where
    nothing was found."""

    point: SweepPoint
    layer: MappedLayer
    reports: tuple[Report, ...] = ()

    @property
    def limit(self) -> str | None:
        """The limit that ended the search, as it is typed; None: it ended otherwise."""
        if self.layer.result is None or self.point.configuration is None:
            return None
        return limit_of(self.layer.result.stop, self.point.configuration.budget)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why nothing was found; empty if something was."""
        if self.layer.report is not None:
            return ()
        if self.layer.error is not None:
            return reasons_of(self.layer.error)
        result = self.layer.result
        tried = "nothing was searched" if result is None else result.told
        return (Reason(code="no_valid_mapping", where=self.layer.name, message=f"no valid mapping: {tried}"),)


def sweep(
    workload: Workload,
    points: Sequence[SweepPoint],
    models: Sequence[BuiltModel],
    watch: Callable[[SweepPoint], Watch] | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
) -> Iterator[SweepRow]:
    """One row after another, point by point, each as soon as it is done.

    Ctrl-C ends the sweep: the search under way gives its best so far, and no further one is begun.

    Args:
        watch: point -> what is told of the progress of its searches.
        jobs, cache: as for `map_workload`.
    """
    count = len(workload.distinct())
    for point in points:
        if point.configuration is None:
            for distinct in workload.distinct():
                yield SweepRow(point, MappedLayer(distinct, error=point.error))
            continue
        watcher = watch(point) if watch else None
        done, cancelled = 0, False
        for layer in map_workload(workload, point.configuration, watcher, jobs=jobs, cache=cache):
            done += 1
            cancelled = cancelled or (layer.result is not None and layer.result.stop == "cancelled")
            row, interrupted = _row(point, layer, models)
            yield row
            if interrupted:
                return
        if cancelled or done < count:
            return


def _row(point: SweepPoint, layer: MappedLayer, models: Sequence[BuiltModel]) -> tuple[SweepRow, bool]:
    """The evaluated layer, and whether Ctrl-C came meanwhile; what is then not evaluated says so."""
    best = None if layer.result is None else layer.result.best
    if best is None or layer.report is None or layer.architecture is None:
        return SweepRow(point, layer), False
    problem = layer.problem
    reports: list[Report] = []
    interrupted = False
    for model in models:
        try:
            own = layer.report if model.name == point.model else None
            reports.append(own or evaluate(model, problem, layer.architecture, best))
        except KeyboardInterrupt:
            interrupted = True
            reports.append(refusal(model, problem.name, problem.macs, TilewrightError("interrupted")))
    return SweepRow(point, layer, tuple(reports)), interrupted
