"""Records of an exploration: its settings, its points, and the result of each layer on each machine."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from tilewright.application.exploration.space import Choice
from tilewright.application.run.cache import KEPT, NonNegative
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import MappedLayer
from tilewright.digests import of_data, of_search
from tilewright.plugin.guard.figures import may_bound
from tilewright.plugin.result import PROOF_TOLERANCE, gap_of
from tilewright.plugin.strategy import PointResult
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping as MappingOfLoops
from tilewright.schema.objective import EDP, Objective
from tilewright.values import Model, attributes

Figure = Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False)]
"""Figure of one layer, bounded so that sums and products over a workload stay finite."""
Whole = Annotated[int, Field(ge=0, lt=2**63)]
"""Integer in the range of SQLite."""
PROVED = 1 - PROOF_TOLERANCE
"""Factor of a cost that tells it from a bound without rounding."""
Outcome = Literal["searched", "refused", "bounded"]
"""Outcome of a point: layers searched; no valid machine; not searched because another point beats its lower bounds."""


class FoundLayer(Model):
    """Result for one problem on one machine: figures of the best mapping, or the reason why there is none.

    `places`: pJ by component. `binds`: the limit that binds most cycles. `mapping`: entries of the mapping file.
    `shared_from`: the machine whose search proposed the mapping, if it was not searched here.
    """

    energy_pj: Figure | None = None
    cycles: Annotated[int, Field(ge=0, le=2**200)] | None = None
    utilization: Figure | None = None
    lower_bound: NonNegative | None = None
    stop: str | None = None
    evaluated: Whole = 0
    valid: Whole = 0
    cpu_seconds: Figure = 0.0
    binds: str | None = None
    places: FrozenDict[str, Figure] = FrozenDict()
    mapping: FrozenDict[str, Any] | None = None
    reason: str | None = None
    shared_from: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.energy_pj is None or self.cycles is None) != (self.reason is not None):
            raise ValueError("either figures or a reason are there")
        return self

    @classmethod
    def of(cls, layer: MappedLayer) -> FoundLayer | None:
        """Return the record of a layer; None if the search was interrupted, because such a result is not kept."""
        result, report = layer.result, layer.report
        if result is None or report is None or result.best is None or result.stop not in KEPT:
            if layer.interrupted:
                return None
            why = layer.error or (None if result is None else result.error)
            told = str(why) if why is not None else "not searched" if result is None else result.told
            stop, seconds = ("failed", 0.0) if result is None else (result.stop, result.cpu_seconds)
            return cls(reason=told, stop=stop, cpu_seconds=seconds)
        places: dict[str, float] = {}
        for part in report.energy_parts():
            places[part.place] = places.get(part.place, 0.0) + part.energy_pj
        bound = result.lower_bound
        return cls(
            **attributes(report, "energy_pj cycles utilization"),
            lower_bound=bound if bound is not None and math.isfinite(bound) else None,
            stop=result.stop,
            evaluated=result.evaluated,
            valid=result.valid,
            cpu_seconds=result.cpu_seconds,
            binds=report.limited_by,
            places=FrozenDict(places),
            mapping=FrozenDict(result.best.to_data()),
        )

    def checked(self, objective: Objective) -> FoundLayer:
        """Return the record of a search for an objective. Raises ValueError: the bound is above the value."""
        if self.lower_bound is not None and self.energy_pj is not None and self.cycles is not None:
            if not may_bound(self.lower_bound, objective.value(self.energy_pj, self.cycles)):
                raise ValueError("the bound is above the value")
        return self

    def value(self, objective: Objective) -> float:
        """Return the objective; inf without a mapping."""
        return (
            math.inf if self.energy_pj is None or self.cycles is None else objective.value(self.energy_pj, self.cycles)
        )

    def gap(self, objective: Objective) -> float | None:
        """Return (objective - bound) / objective; None without a mapping or a bound."""
        return None if self.reason is not None else gap_of(self.value(objective), self.lower_bound)

    def is_within(self, gap: float, objective: Objective) -> bool:
        """Return whether the objective exceeds the bound by a gap at most."""
        return self.lower_bound is not None and self.value(objective) * PROVED <= self.lower_bound * (1 + gap)

    def joined(self, other: FoundLayer, objective: Objective) -> FoundLayer:
        """Return the better of two results, with the higher bound of both."""
        best = min(self, other, key=lambda one: one.value(objective))
        low = max((one.lower_bound for one in (self, other) if one.lower_bound is not None), default=None)
        return best.model_copy(update={"lower_bound": None if low is None else min(low, best.value(objective))})

    def loops(self) -> MappingOfLoops | None:
        """Return the mapping; None if there is none. Raises ValueError: the stored data is no mapping."""
        return None if self.mapping is None else MappingOfLoops.model_validate(dict(self.mapping))


class StoredPoint(Model):
    """Row of a store's points."""

    index: Whole
    values: FrozenDict[str, Choice]
    outcome: Outcome
    reason: str | None
    machine: str | None


class StoredMachine(Model):
    """Part of a row of a store's machines that reports need."""

    area_um2: Annotated[float, Field(ge=0, le=1e100, allow_inf_nan=False)] | None
    memory_bits: Annotated[int, Field(ge=0)]


def memory_bits(architecture: Architecture) -> int:
    """Return the bits of all memories of limited size, in all their instances."""
    return sum(
        count * (memory.capacity_words or 0) * memory.word_bits
        for cluster, count in zip(architecture.clusters, architecture.instances, strict=False)
        for memory in cluster.memories
    )


class LayerRecord(Model):
    """Distinct problem of the workload, with its key and number of occurrences."""

    problem: str
    name: str
    count: Annotated[int, Field(ge=1, le=2**53)]
    macs: Annotated[int, Field(ge=0)]
    sizes: str = ""
    """Its dimensions longer than 1, as text."""


class ExplorationRecord(Model):
    """Settings of an exploration."""

    workload: str
    layers: tuple[LayerRecord, ...]
    space: FrozenDict[str, Any]
    size: Annotated[int, Field(ge=1)]
    strategy: str
    asked: Annotated[int, Field(ge=1, lt=2**63)]
    objective: Objective
    method: str
    methods: FrozenDict[str, Any]
    """Data whose digest, together with that of the code, is `method`."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not isinstance(self.space.get("name"), str) or not isinstance(self.space.get("choices"), dict):
            raise ValueError("its space has a name and choices")
        return self

    @cached_property
    def key(self) -> str:
        """Digest of all settings."""
        return of_data(self.model_dump(mode="json"))

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.space.get("choices", ()))


@dataclass(frozen=True)
class ExploredPoint:
    """Point with its choices, its machine and the result of each layer; `cached`: all results are from earlier runs."""

    index: int
    values: Mapping[str, Choice]
    outcome: Outcome
    reason: str | None = None
    machine: str | None = None
    area_um2: float | None = None
    layers: tuple[tuple[LayerRecord, FoundLayer], ...] = ()
    cached: bool = False
    memory_bits: int = 0

    @property
    def energy_pj(self) -> float:
        """Energy of the whole workload; inf if some layer has no mapping."""
        return math.fsum(
            math.inf if result.energy_pj is None else layer.count * result.energy_pj for layer, result in self._all
        )

    @property
    def cycles(self) -> float:
        """Cycles of the whole workload, layers in sequence; inf if some layer has no mapping."""
        return sum(math.inf if result.cycles is None else layer.count * result.cycles for layer, result in self._all)

    @property
    def edp(self) -> float:
        """Energy times cycles, both of the whole workload."""
        return self.of(EDP)

    @property
    def macs(self) -> int:
        return sum(layer.count * layer.macs for layer, _ in self.layers)

    @property
    def _all(self) -> tuple[tuple[LayerRecord, FoundLayer], ...]:
        nothing = LayerRecord(problem="", name="", count=1, macs=0), FoundLayer(reason="not searched")
        return self.layers or (nothing,)

    @property
    def result(self) -> PointResult:
        """Totals over the workload."""
        return PointResult(self.index, self.energy_pj, self.cycles, self.area_um2 or 0.0)

    @property
    def costs(self) -> tuple[float, float, float]:
        """Energy, cycles and area; an unknown area is 0."""
        return self.result.costs

    def of(self, objective: Objective | str) -> float:
        """Return the value of the objective for the whole workload; EDP is total energy x total cycles."""
        return self.result.of(Objective.named(objective))

    def gap(self, objective: Objective) -> float | None:
        """Return the widest gap of its layers; None if one has none."""
        gaps = [result.gap(objective) for _, result in self.layers]
        known = [gap for gap in gaps if gap is not None]
        return max(known) if known and len(known) == len(gaps) else None

    @property
    def shared_layers(self) -> int:
        """Number of layers whose mappings were found on other machines."""
        return sum(result.shared_from is not None for _, result in self.layers)

    def mean(self, objective: Objective) -> tuple[float, float]:
        """Return the objectives of the layers, and their bounds (0: one has none), as one: the sum of roots, to their power.

        The roots are as many as the powers of energy and cycles together, so energy and cycles are sums. It is at most the
        objective of the totals (Hölder).
        """
        roots = sum(objective.powers)
        sums = [0.0, 0.0]
        for layer, result in self._all:
            for number, figure in enumerate((result.value(objective), result.lower_bound or 0.0)):
                sums[number] += layer.count * figure ** (1 / roots)
        return sums[0] ** roots, sums[1] ** roots

    def wide(self, gap: float, objective: Objective, done: Container[str] = ()) -> list[str]:
        """Return the problems whose results are not within a gap, without those that are done."""
        return [
            layer.problem for layer, result in self.layers
            if layer.problem not in done and not result.is_within(gap, objective)
        ]  # fmt: skip

    def undecided(self, aim: float, gap: float, objective: Objective, done: Container[str] = ()) -> list[str]:
        """Return the fewest problems whose better bounds may raise the bound of the mean to an aim.

        All are returned if that is not enough. Problems whose results are within a gap, or that are done, are left out.
        """
        power = 1 / sum(objective.powers)
        low, rises = self.mean(objective)[1] ** power, list[tuple[float, str]]()
        wide = self.wide(gap, objective, done)
        for layer, result in self.layers:
            if layer.problem in wide:
                rise = result.value(objective) ** power - (result.lower_bound or 0.0) ** power
                rises.append((layer.count * rise, layer.problem))
        chosen = list[str]()
        for rise, problem in sorted(rises, reverse=True):
            if low >= aim**power:
                break
            low += rise
            chosen.append(problem)
        return chosen

    @property
    def told(self) -> str | None:
        """Reason why there are no figures."""
        without = [f"{layer.name}: {result.reason}" for layer, result in self.layers if result.energy_pj is None]
        return self.reason or "; ".join(without) or None


def front(points: Sequence[ExploredPoint]) -> tuple[ExploredPoint, ...]:
    """Return the Pareto-optimal points by energy, cycles and known area, in the given order."""
    finite = [point for point in points if math.isfinite(point.energy_pj)]
    costs = np.array([point.costs for point in finite]).reshape(-1, 3)
    return tuple(
        point
        for point, row in zip(finite, costs, strict=True)
        if not ((costs <= row).all(axis=1) & (costs < row).any(axis=1)).any()
    )


def first_of_equals(points: Sequence[ExploredPoint]) -> tuple[ExploredPoint, ...]:
    """Return of points with equal costs the one with the smallest memories."""
    smallest = dict[tuple[float, float, float], ExploredPoint]()
    for point in sorted(points, key=lambda point: point.memory_bits):
        smallest.setdefault(point.costs, point)
    return tuple(point for point in points if smallest[point.costs] is point)


def least_means(points: Sequence[ExploredPoint], best: Sequence[ExploredPoint], objective: Objective) -> list[float]:
    """Return for each point the least `mean` of some best ones that are not larger."""
    costs = np.array([(point.costs[2], point.mean(objective)[0]) for point in best]).reshape(-1, 2)
    return [float(costs[costs[:, 0] <= point.costs[2], 1].min(initial=math.inf)) for point in points]


def behind(points: Sequence[ExploredPoint], best: Sequence[ExploredPoint], objective: Objective) -> list[float]:
    """Return how far each point may be ahead of some best ones: the least factor by which one that is not larger costs more.

    Costs are the `mean` of `best`, and its bound at the point. inf: a layer has no bound.
    """
    lows = [point.mean(objective)[1] for point in points]
    costs = least_means(points, best, objective)
    return [cost / low if low else math.inf for cost, low in zip(costs, lows, strict=True)]


def machine_key(architecture: Architecture) -> str:
    """Return a hex digest that is equal for equal hardware, regardless of its name."""
    return of_data(architecture.model_dump(mode="json", exclude={"name", "source"}))


def method_of(configuration: RunConfiguration) -> tuple[str, dict[str, Any]]:
    """Return key and data of the search settings without the machine. The key depends on the plugins' code, too."""
    data = {name: value for name, value in configuration.data.items() if name not in ("architecture", "otherwise")}
    if configuration.fallback is None:
        return of_search(data, configuration.packages), data
    key, fallback = method_of(configuration.fallback)
    return of_search(data | {"otherwise": key}, configuration.packages), data | {"otherwise": fallback}
