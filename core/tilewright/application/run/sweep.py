"""Sweep: several mappers under several cost models; all these models evaluate every best mapping.

A failure is a row with its reason; it does not end the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.application.run.cache import ResultCache
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import BuiltModel, evaluate, reasons_of, refusal
from tilewright.application.run.network import MappedLayer, Watch, map_workload, space_of, spaces_of
from tilewright.application.run.searched import Searched
from tilewright.errors import Reason, TilewrightError
from tilewright.interrupts import mark_result_found, raising, stop_requested
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.guard.processes import Workers
from tilewright.reports import Report
from tilewright.schema.mapping import Mapping
from tilewright.schema.workload import Workload


@dataclass(frozen=True)
class SweepPoint:
    """A mapper under a cost model. If it could not be built, `configuration` is None and `error` is set."""

    mapper: str
    model: str
    configuration: RunConfiguration | None = None
    error: TilewrightError | None = None


@dataclass(frozen=True)
class SweepRow:
    """Result of one point for one layer, with the report of each model, in their order.

    Without a mapping there are no reports.
    """

    point: SweepPoint
    layer: MappedLayer
    reports: tuple[Report, ...] = ()

    @property
    def search(self) -> Searched:
        """The search with its settings."""
        return Searched(self.layer, self.point.configuration)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Reasons why there is no mapping; empty if there is one."""
        if self.layer.report is not None:
            return ()
        if self.layer.error is not None:
            return reasons_of(self.layer.error)
        result = self.layer.result
        tried = "nothing was searched" if result is None else result.told
        return (Reason(code="no_valid_mapping", where=self.layer.name, message=f"no valid mapping: {tried}"),)


@dataclass(frozen=True)
class Distance:
    """Distance of a mapping from the optimum of its map space.

    Attributes:
        ratio: Cost divided by the highest proved bound.
        exact: Whether the bound is the optimum; otherwise the ratio is an upper bound.
    """

    ratio: float
    exact: bool

    def __str__(self) -> str:
        return f"{self.ratio:.2f}" if self.exact else f"<= {self.ratio:.2f}"


class Proofs:
    """Bounds proved by the searches of one layer; each covers the mappings of its space."""

    def __init__(self, rows: Sequence[SweepRow]) -> None:
        self._all = [proof for row in rows for proof in _proofs(row)]

    def distance(self, mapping: Mapping, model: str, value: float) -> Distance | None:
        """Return the distance of a mapping with this cost; None if no bound of this model covers it."""
        proofs = [
            proof
            for proof in self._all
            if proof.model == model and any(space.contains(mapping) for space in proof.spaces)
        ]
        highest = max(proofs, key=lambda proof: proof.bound, default=None)
        return None if highest is None else Distance(value / highest.bound, highest.exact)


@dataclass(frozen=True)
class _Proof:
    """A proved bound. `exact`: a mapping with this cost was found."""

    model: str
    spaces: tuple[MapSpace, ...]
    bound: float
    exact: bool


def _proofs(row: SweepRow) -> Iterator[_Proof]:
    """Yield the bound that a search proved, if any."""
    result, configuration = row.layer.result, row.point.configuration
    if result is not None and configuration is not None and result.proved and result.lower_bound:
        space, _ = space_of(row.layer.distinct, configuration)
        spaces = spaces_of(space, configuration)
        yield _Proof(row.point.model, spaces, result.lower_bound, result.proved == "yes")


def sweep(
    workload: Workload,
    points: Sequence[SweepPoint],
    models: Sequence[BuiltModel],
    on_progress: Callable[[SweepPoint], Watch] | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
) -> Iterator[SweepRow]:
    """Yield the rows point by point, each as soon as its search is done.

    Ctrl-C ends the sweep: the current search returns its best mapping, and no further one starts.

    Args:
        on_progress: Point -> callback for the progress of its searches.
        jobs, cache: See `map_workload`.
    """
    count = len(workload.distinct())
    with Workers(min(jobs, count)) as workers:
        for point in points:
            if point.configuration is None:
                for distinct in workload.distinct():
                    yield SweepRow(point, MappedLayer(distinct, error=point.error))
                continue
            watcher = on_progress(point) if on_progress else None
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
    """Return the evaluated layer, and whether Ctrl-C was pressed meanwhile.

    Models that Ctrl-C skipped have a reason.
    """
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
