"""Matrix: several mappers, each guided by several cost models, and every best mapping priced by all of these models.

Whatever cannot be done is a cell with the reason; nothing of it ends the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.errors import InvalidMappingError, NotConformableError, Reason, TilewrightError
from tilewright.plugin.costmodel import CostModel
from tilewright.run.cache import ResultCache
from tilewright.run.network import MappedLayer, Method, Watch, map_workload
from tilewright.schema.architecture import Architecture
from tilewright.schema.capabilities import Capabilities
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright.schema.workload import DistinctProblem, Workload


@dataclass(frozen=True)
class Contender:
    """A mapper guided by a model; without `method`, `error` says why it cannot be built."""

    mapper: str
    guide: str
    method: Method | None = None
    error: TilewrightError | None = None


@dataclass(frozen=True)
class Judge:
    """A model that prices what the mappers found; without `model`, `error` says why it cannot be built."""

    name: str
    model: CostModel | None = None
    capabilities: Capabilities = Capabilities()
    error: TilewrightError | None = None


@dataclass(frozen=True)
class Cell:
    """What one contender found for one layer, and what each judge says of it, in their order; no prices where nothing
    was found."""

    contender: Contender
    layer: MappedLayer
    prices: tuple[Report, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why nothing was found; empty if something was."""
        if self.layer.report is not None:
            return ()
        if self.layer.error is not None:
            return _reasons(self.layer.error)
        result = self.layer.result
        tried = "nothing was searched" if result is None else f"{result.evaluated:,} tried, stopped by {result.stop}"
        return (Reason(code="no_valid_mapping", where=self.layer.name, message=f"no valid mapping: {tried}"),)


def matrix(
    workload: Workload,
    contenders: Sequence[Contender],
    judges: Sequence[Judge],
    watch: Callable[[Contender], Watch] | None = None,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
) -> Iterator[Cell]:
    """One cell after another, contender by contender, each as soon as it is done.

    Ctrl-C ends the comparison: the search under way gives its best so far, and no further one is begun.

    Args:
        watch: contender -> what is told of the progress of its searches.
        jobs, cache: as for `map_workload`.
    """
    count = len(workload.distinct())
    for contender in contenders:
        if contender.method is None:
            for distinct in workload.distinct():
                yield Cell(contender, MappedLayer(distinct, error=contender.error))
            continue
        watcher = watch(contender) if watch else None
        done, cancelled = 0, False
        for layer in map_workload(workload, contender.method, watcher, jobs=jobs, cache=cache):
            done += 1
            cancelled = cancelled or (layer.result is not None and layer.result.stop == "cancelled")
            cell, interrupted = _cell(contender, layer, judges)
            yield cell
            if interrupted:
                return
        if cancelled or done < count:
            return


def _cell(contender: Contender, layer: MappedLayer, judges: Sequence[Judge]) -> tuple[Cell, bool]:
    """The priced layer, and whether Ctrl-C came meanwhile; what is then not priced says so."""
    best = None if layer.result is None else layer.result.best
    if best is None or layer.report is None or contender.method is None:
        return Cell(contender, layer), False
    architecture = contender.method.constraints.shape(contender.method.architecture)
    prices: list[Report] = []
    interrupted = False
    for judge in judges:
        try:
            own = layer.report if judge.name == contender.guide else None
            prices.append(own or price(judge, layer.distinct, architecture, best))
        except KeyboardInterrupt:
            interrupted = True
            prices.append(_refusal(judge, layer.distinct.problem, TilewrightError("interrupted")))
    return Cell(contender, layer, tuple(prices)), interrupted


def price(judge: Judge, distinct: DistinctProblem, architecture: Architecture, mapping: Mapping) -> Report:
    """What a model says of a mapping; a refusal or a crash is a report that is not valid, with the reasons."""
    problem = distinct.problem
    if judge.model is None:
        return _refusal(judge, problem, judge.error or TilewrightError(f"{judge.name} was not built"))
    try:
        verdict = judge.capabilities.judge(problem, architecture)
        if not verdict:
            raise NotConformableError(f"cost model {judge.name}", verdict.reasons)
        return judge.model.bind(problem, architecture).explain(mapping)
    except Exception as error:  # a stranger's model may raise anything
        return _refusal(judge, problem, error)


def _refusal(judge: Judge, problem: Problem, error: Exception) -> Report:
    return Report(model=judge.name, problem=problem.name, valid=False, reasons=_reasons(error), macs=problem.macs)


def _reasons(error: Exception) -> tuple[Reason, ...]:
    if isinstance(error, NotConformableError | InvalidMappingError):
        return error.reasons
    if isinstance(error, TilewrightError):
        return (Reason(code=error.code, where="", message=error.message),)
    return (Reason(code="plugin", where="", message=f"{type(error).__name__}: {error}"),)
