"""Sweep: several mappers under several cost models; all these models evaluate every best mapping.

A failure is a row with its reason; it does not end the sweep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.application.run.cache import ResultCache
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import BuiltModel, evaluate, reasons_of, refusal
from tilewright.application.run.network import MappedLayer, Watch, map_workload, space_of, spaces_of
from tilewright.application.run.refutation import tried
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
        ratio: Cost divided by the highest bound: of those that are proved, or of the claimed ones if none is.
        exact: Whether the bound is the optimum; otherwise the ratio is an upper bound.
        claimed_by: Names of the plugins whose claim the bound is; None: it is proved.
    """

    ratio: float
    exact: bool
    claimed_by: str | None = None

    def __str__(self) -> str:
        told = f"{self.ratio:.2f}" if self.exact else f"<= {self.ratio:.2f}"
        return f"{told} by a claim" if self.claimed_by else told


class Proofs:
    """Bounds that the searches of one layer proved or claim; each covers the mappings of its space."""

    def __init__(self, rows: Sequence[SweepRow]) -> None:
        self._all = [proof for row in rows for proof in _proofs(row)]

    def distance(self, mapping: Mapping, model: str, value: float) -> Distance | None:
        """Return the distance of a mapping with this cost; None if no bound of this model covers it."""
        proofs = [proof for proof in self._all if proof.covers(mapping, model)]
        proofs = [proof for proof in proofs if proof.claimed_by is None] or proofs
        highest = max(proofs, key=lambda proof: proof.bound, default=None)
        return None if highest is None else Distance(value / highest.bound, highest.exact, highest.claimed_by)


@dataclass(frozen=True)
class _Proof:
    """A bound on the mappings of some spaces by one model. `exact`: a mapping with this cost was found."""

    model: str
    spaces: tuple[MapSpace, ...]
    bound: float
    exact: bool
    claimed_by: str | None

    def covers(self, mapping: Mapping, model: str) -> bool:
        """Return whether the bound is one on the cost of a mapping by a model."""
        return self.model == model and any(space.contains(mapping) for space in self.spaces)


def _proofs(row: SweepRow) -> Iterator[_Proof]:
    """Yield the bound that a search proved or claims, if any."""
    result, configuration = row.layer.result, row.point.configuration
    if result is not None and configuration is not None and result.proved and result.lower_bound:
        space, _ = space_of(row.layer.distinct, configuration)
        spaces = spaces_of(space, configuration)
        yield _Proof(row.point.model, spaces, result.lower_bound, result.proved == "yes", result.claimed_by)


def without_refuted(rows: Sequence[SweepRow], models: Sequence[BuiltModel]) -> list[SweepRow]:
    """Return the rows without the bounds that another row refutes: a mapping of the same space costs less by the same model.

    That is a failure of the plugin that made the bound. It is the layer's error, and the mapping stays.
    """
    return [
        _without_refuted(row, [other for other in rows if other.layer.name == row.layer.name], models) for row in rows
    ]


def _without_refuted(row: SweepRow, others: Sequence[SweepRow], models: Sequence[BuiltModel]) -> SweepRow:
    for proof in _proofs(row):
        costs = [(cost, other.point.mapper) for other in others for cost in _covered(proof, other, models)]
        cost, finder = min(costs, key=lambda pair: pair[0], default=(math.inf, ""))
        assert row.point.configuration is not None  # it has a bound
        configuration = row.point.configuration
        layer = tried(row.layer, configuration, proof.bound, configuration.objective, cost, finder)
        return replace(row, layer=layer)
    return row


def _covered(proof: _Proof, row: SweepRow, models: Sequence[BuiltModel]) -> Iterator[float]:
    """Yield the cost of a row's mapping by the model of a bound, if the bound covers it."""
    best, configuration = None if row.layer.result is None else row.layer.result.best, row.point.configuration
    for model, report in zip(models, row.reports, strict=False):
        value = report.of(configuration.objective) if configuration is not None and report.valid else None
        if best is not None and value is not None and proof.covers(best, model.name):
            yield value


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
            report = layer.report if model.name == point.model else None
            with raising():
                reports.append(report or evaluate(model, problem, layer.architecture, best))
        except KeyboardInterrupt:
            mark_result_found()
            interrupted = True
            reports.append(refusal(model, problem.name, problem.macs, TilewrightError("interrupted")))
    return SweepRow(point, layer, tuple(reports)), interrupted
