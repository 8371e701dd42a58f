"""Cost models composed of another one's counts, with prices and cycles of their own (docs/plugins/composed.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, Floats, MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.costmodel import BatchEvaluator, Bounder, Costs, Evaluator, Relaxable, Relaxation
from tilewright.plugin.counts import AccessBatch, CountingEvaluator
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.prices import more_leaked_pj
from tilewright.reports import Limit, LimitAction, Report, overlapping
from tilewright.schema.architecture import Architecture, Compute, Memory
from tilewright.schema.attribute import TIMING, attributes_of
from tilewright.schema.mapping import Mapping as TileMapping
from tilewright.schema.problem import Problem

Part = TypeVar("Part", Memory, Compute)


@dataclass(frozen=True, eq=False)
class CycleLimit:
    """Cycles that one part of the hardware needs, [n]; fractions are rounded up. See `Limit`.

    Example:
        >>> import numpy as np
        >>> from tilewright.plugin import CycleLimit
        >>> CycleLimit("bus", "transfer", np.array([3.0, 4.0])).cycles.tolist()
        [3.0, 4.0]
    """

    name: str
    action: LimitAction
    cycles: Floats


class ComposedModel(ABC):
    """Cost model that adds limits to the cycles of another one, from its counts. Override `limits`, and `priced` if need be.

    A run takes as long as the counting model says, or as the slowest of `limits`. So it never takes fewer cycles, and the
    bounds of the counting model hold.

    Attributes:
        name: name in reports.
        counted_by: installed cost model that counts. Empty: the default of searches.
        monotone: declares that `limits` depend on counts alone, and never fall when counts rise. Mappers then try one of the
            loop orders that need the same words.
        counting_options: options of the counting model.

    Example:
        >>> from tilewright.plugin import ComposedModel, CycleLimit
        >>> class Bus(ComposedModel):
        ...     counting = "timeloop"
        ...
        ...     def limits(self, counts):
        ...         yield CycleLimit("bus", "transfer", counts.reads.sum(axis=1) / 4)
        >>> callable(Bus().bind)
        True
    """

    name: ClassVar[str]
    counted_by: ClassVar[str] = ""
    monotone: ClassVar[bool] = False
    counting_options: Mapping[str, Any] = MappingProxyType({})

    def priced(self, architecture: Architecture) -> Architecture:
        """Return the architecture that the counting model sees: with prices of one's own, for example."""
        return architecture

    def is_monotone(self, architecture: Architecture) -> bool:
        """Return whether `limits` are `monotone` on an architecture."""
        return self.monotone

    @cached_property
    def _counted(self) -> WeakKeyDictionary[MappingBatch, tuple[tuple[Problem, Architecture], AccessBatch]]:
        """Batch -> its last counts, and the problem and the architecture that they are for."""
        return WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without counts: their batches stay in this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_counted"}

    @abstractmethod
    def limits(self, counts: AccessBatch) -> Iterable[CycleLimit]:
        """Return further limits on the cycles of each mapping."""

    def bind(self, problem: Problem, architecture: Architecture) -> ComposedEvaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: the counting model refuses them, or offers no counts for such hardware.
            UnknownPluginError: the counting model is not installed.
        """
        name = self.counted_by or installed().default(CostModelSpec, "search")
        model = installed().make(CostModelSpec, name, self.counting_options)
        evaluator = model.bind(problem, self.priced(architecture))
        if not isinstance(evaluator, CountingEvaluator):
            text = f"{name} offers no counts for such hardware"
            raise NotConformableError(
                f"cost model {self.name}", (Reason(code="counts", where=architecture.name, message=text),)
            )
        counts_timing = installed().find(CostModelSpec, name).spec.capabilities.timing
        return ComposedEvaluator(self, evaluator, problem, architecture, counts_timing)


class ComposedEvaluator(BatchEvaluator):
    """A composed model, bound to one problem and one architecture."""

    def __init__(
        self,
        model: ComposedModel,
        counting: CountingEvaluator,
        problem: Problem,
        architecture: Architecture,
        counts_timing: bool = True,
    ) -> None:
        self.model, self.problem, self.architecture = model, problem, architecture
        self.counting: Any = counting
        self.priced = model.priced(architecture)
        self._counted_for = self.priced if counts_timing else without_timings(self.priced)

    def count_accesses(self, batch: MappingBatch) -> AccessBatch:
        """Return the counts, with the costs of this model."""
        counts = self._counts(batch)
        costs = counts.costs
        cycles = np.maximum.reduce([costs.cycles, *(np.ceil(limit.cycles) for limit in self._limits(counts))])
        cycles = np.where(costs.valid, cycles, np.inf)
        with np.errstate(invalid="ignore"):
            energy = np.where(costs.valid, costs.energy_pj + (cycles - costs.cycles) * counts.leakage_pj, np.inf)
        return replace(counts, costs=Costs(costs.valid, energy, cycles))

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch."""
        return self.count_accesses(batch).costs

    def explain(self, mapping: TileMapping) -> Report:
        """Return the report of the counting model, with the further limits."""
        evaluator: Evaluator = self.counting
        report = evaluator.explain(mapping).model_copy(update={"model": self.model.name})
        if not report.valid:
            return report
        counts = self._counts(MappingBatch.pack(self.problem, [mapping]))
        limits = [
            Limit(name=limit.name, action=limit.action, cycles=int(np.ceil(limit.cycles[0])))
            for limit in self._limits(counts)
        ]
        return slowed(self.architecture, report, limits)

    def _counts(self, batch: MappingBatch) -> AccessBatch:
        """Return the counts of the counting model. While the batch lives, they are kept for timings that this does not count."""
        key = self.problem, self._counted_for
        known, counts = self.model._counted.get(batch, (None, None))
        if counts is None or known != key:
            counts = self.counting.count_accesses(batch)
            # counts that refer to their batch would keep it alive
            self.model._counted[batch] = key, replace(counts, mappings=batch.take(slice(0)))
        return replace(counts, mappings=batch, architecture=self.priced)

    def _limits(self, counts: AccessBatch) -> list[CycleLimit]:
        limits = list(self.model.limits(counts))
        for limit in limits:
            if np.shape(limit.cycles) != (len(counts),):
                shape = np.shape(limit.cycles)
                raise ValueError(f"the limit {limit.name} has cycles of shape {shape}, ({len(counts)},) is expected")
        return limits

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Return lower bounds (see `Bounder`): those of the counting model, because limits only add cycles."""
        if entries == len(batch.skeleton):
            return self.evaluate_batch(batch)
        if isinstance(self.counting, Bounder):
            return self.counting.bound(batch, entries)
        return Costs(np.ones(len(batch), dtype=np.bool_), *np.zeros((2, len(batch))))

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the relaxation of the counting model (see `Relaxable`), which limits make no exact account."""
        relaxation = self.counting.relaxation(skeleton, keeps) if isinstance(self.counting, Relaxable) else None
        if relaxation is None:
            return None
        monotone = self.model.is_monotone(self.architecture)
        return replace(relaxation, exact=False, linear=False, order_matters=relaxation.order_matters or not monotone)


def slowed(architecture: Architecture, report: Report, more: list[Limit]) -> Report:
    """Return the report with further limits; a longer run leaks more."""
    assert report.cycles is not None and report.energy_pj is not None
    cycles = max([report.cycles, *(limit.cycles for limit in more)])
    levels, more_pj = [], 0.0
    for level in report.levels:
        leaked_pj = more_leaked_pj(level.leakage_pj, report.cycles, cycles)
        more_pj += leaked_pj
        change = {"leakage_pj": level.leakage_pj + leaked_pj, "energy_pj": level.energy_pj + leaked_pj}
        levels.append(level.model_copy(update=change))
    limits = [limit.model_copy(update={"binding_cycles": 0}) for limit in report.limits]
    costs = report.with_costs(report.energy_pj + more_pj, cycles, architecture.compute_instances)
    return costs.model_copy(update={"levels": tuple(levels), "limits": overlapping([*limits, *more])})


def without_timings(architecture: Architecture) -> Architecture:
    """Return a copy whose timings are neutral: what a cost model without the capability `timing` counts."""

    def neutral(part: Part) -> Part:
        fields = [name for name, item in attributes_of(type(part)).items() if item.capability == TIMING.capability]
        return part.model_copy(update={name: type(part).model_fields[name].default for name in fields})

    return architecture.with_memories(neutral).model_copy(update={"compute": neutral(architecture.compute)})
