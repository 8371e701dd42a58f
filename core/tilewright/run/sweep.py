"""Sweep: several mappers under several cost models, and every best mapping evaluated by all of these models.

Whatever cannot be done is a row with the reason; nothing of it ends the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.errors import Reason, TilewrightError
from tilewright.interrupts import mark_result_found, raising, stop_requested
from tilewright.mapspace.space import MapSpace
from tilewright.run.cache import ResultCache
from tilewright.run.configuration import RunConfiguration, limit_of
from tilewright.run.evaluation import BuiltModel, evaluate, reasons_of, refusal
from tilewright.run.network import MappedLayer, Watch, map_workload, space_of
from tilewright.run.parallel import Workers
from tilewright.schema.mapping import Mapping
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


@dataclass(frozen=True)
class Distance:
    """How far a mapping is from the best of its map space.

    Attributes:
        ratio: what it costs, over the highest bound that was proved.
        exact: some mapping costs no more than that bound, so it is the optimum; else the mapping is at most so far from it.
    """

    ratio: float
    exact: bool

    def __str__(self) -> str:
        return f"{self.ratio:.2f}" if self.exact else f"<= {self.ratio:.2f}"


class Proofs:
    """What the searches of one layer proved; each speaks for the mappings of the space that it covered."""

    def __init__(self, rows: Sequence[SweepRow]) -> None:
        self._all = [proof for row in rows for proof in _proofs(row)]

    def distance(self, mapping: Mapping, model: str, value: float) -> Distance | None:
        """Of a mapping that costs so much by a model; None where no search under that model proved anything of it."""
        found = [each for each in self._all if each.model == model and each.space.contains(mapping)]
        highest = max(found, key=lambda each: each.bound, default=None)
        return None if highest is None else Distance(value / highest.bound, highest.exact)


@dataclass(frozen=True)
class _Proof:
    """`exact`: a mapping that costs no more was found."""

    model: str
    space: MapSpace
    bound: float
    exact: bool


def _proofs(row: SweepRow) -> Iterator[_Proof]:
    """What a search proved, if anything."""
    result, configuration = row.layer.result, row.point.configuration
    if result is not None and configuration is not None and result.proved and result.lower_bound:
        space, _ = space_of(row.layer.distinct, configuration)
        yield _Proof(row.point.model, space, result.lower_bound, result.proved == "yes")


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
    with Workers(min(jobs, count)) as workers:
        for point in points:
            if point.configuration is None:
                for distinct in workload.distinct():
                    yield SweepRow(point, MappedLayer(distinct, error=point.error))
                continue
            watcher = watch(point) if watch else None
            done, cancelled = 0, False
            for layer in map_workload(workload, point.configuration, watcher, cache=cache, workers=workers):
                done += 1
                cancelled = cancelled or layer.interrupted
                row, interrupted = _row(point, layer, models)
                yield row
                if interrupted:
                    return
            if cancelled or done < count or stop_requested():
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
            with raising():
                reports.append(own or evaluate(model, problem, layer.architecture, best))
        except KeyboardInterrupt:
            mark_result_found()
            interrupted = True
            reports.append(refusal(model, problem.name, problem.macs, TilewrightError("interrupted")))
    return SweepRow(point, layer, tuple(reports)), interrupted
