"""Guard of cost models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tilewright.mapspace.batch import Bools, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.costmodel import (
    Bounder,
    CandidateEvaluator,
    CostModel,
    Costs,
    DirectiveModel,
    Evaluator,
    GroupModel,
    Relaxable,
    Relaxation,
    VectorModel,
)
from tilewright.plugin.counts import AccessBatch, CountingEvaluator
from tilewright.plugin.guard.calls import Owner, calling, checked, described, fault, owner_of
from tilewright.plugin.guard.figures import (
    fault_of_costs,
    fault_of_counts,
    fault_of_relaxation,
    fault_of_report,
    least_cycles,
)
from tilewright.plugin.guard.hosted import Hosted
from tilewright.plugin.program import Program
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.vector import Unit, VectorLayer


class GuardedModel:
    """A cost model whose answers are checked.

    It is a DirectiveModel, a GroupModel or a VectorModel exactly if the plugin is.
    """

    explain_directives: Callable[[Program], tuple[Report, ...]]
    explain_group: Callable[[GroupMapping], Report]
    explain_vector: Callable[[VectorLayer, Architecture, Unit], Report]

    def __init__(self, plugin: CostModel, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner
        if isinstance(plugin, DirectiveModel):
            self.explain_directives = partial(_directive_reports, plugin, owner)
        if isinstance(plugin, GroupModel):
            self.explain_group = partial(_group_report, plugin, owner)
        if isinstance(plugin, VectorModel):
            self.explain_vector = partial(_vector_report, plugin, owner)

    def bind(self, problem: Problem, architecture: Architecture) -> Evaluator:
        with calling(self.owner, "bind"):
            evaluator: Any = self.plugin.bind(problem, architecture)
            lacking = [name for name in ("evaluate_batch", "explain") if not callable(getattr(evaluator, name, None))]
            if lacking:
                raise fault(
                    self.owner, f"bind returned {described(evaluator)}, which has no {' and no '.join(lacking)}"
                )
            return GuardedEvaluator(evaluator, self.owner, problem, architecture)


class GuardedEvaluator:
    """A bound cost model whose answers are checked.

    It has `evaluate_candidates`, `bound`, `relaxation` and `count_accesses` if the plugin has them. It is therefore a
    CandidateEvaluator, a Bounder, Relaxable or a CountingEvaluator exactly if the plugin is.
    """

    evaluate_candidates: Callable[[Candidates], Costs]
    bound: Callable[[MappingBatch, int], Costs]
    relaxation: Callable[..., Relaxation | None]
    count_accesses: Callable[[MappingBatch], AccessBatch]

    def __init__(self, plugin: Any, owner: Owner, problem: Problem, architecture: Architecture) -> None:
        self.plugin, self.owner, self.problem, self.architecture = plugin, owner, problem, architecture
        self.least = least_cycles(problem, architecture)
        if isinstance(plugin, CandidateEvaluator):
            self.evaluate_candidates = partial(_costs, plugin, "evaluate_candidates", owner, self.least)
        if isinstance(plugin, Bounder):
            self.bound = partial(_bounds, plugin, owner)
        if isinstance(plugin, Relaxable):
            self.relaxation = partial(_relaxation, plugin, owner, problem, architecture)
        if isinstance(plugin, CountingEvaluator):
            self.count_accesses = partial(_counts, plugin, owner, self.least)

    def evaluate(self, mapping: Mapping) -> Costs:
        return self.evaluate_batch(MappingBatch.pack(self.problem, [mapping]))

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        return _costs(self.plugin, "evaluate_batch", self.owner, self.least, batch)

    def explain(self, mapping: Mapping) -> Report:
        def fault_of(report: Report) -> str | None:
            return fault_of_report(report, self.problem, self.architecture)

        report: Report = checked(self.owner, "explain", lambda: self.plugin.explain(mapping), fault_of)
        return report


def _directive_reports(plugin: DirectiveModel, owner: Owner, program: Program) -> tuple[Report, ...]:
    def fault_of(reports: tuple[Report, ...]) -> str | None:
        if len(reports) != len(program.layers):
            return f"returned {len(reports)} reports of {len(program.layers)} layers"
        return next((wrong for report in reports if (wrong := fault_of_report(report))), None)

    return checked(owner, "explain_directives", lambda: tuple(plugin.explain_directives(program)), fault_of)


def _group_report(plugin: GroupModel, owner: Owner, group: GroupMapping) -> Report:
    return checked(owner, "explain_group", lambda: plugin.explain_group(group), fault_of_report)


def _vector_report(
    plugin: VectorModel, owner: Owner, layer: VectorLayer, architecture: Architecture, unit: Unit
) -> Report:
    return checked(owner, "explain_vector", lambda: plugin.explain_vector(layer, architecture, unit), fault_of_report)


def _counts(plugin: CountingEvaluator, owner: Owner, least: float, batch: MappingBatch) -> AccessBatch:
    def fault_of(counts: object) -> str | None:
        if not isinstance(counts, AccessBatch):
            return f"returned {described(counts)}, an AccessBatch is expected"
        return fault_of_costs(counts.costs, len(batch), least) or fault_of_counts(counts)

    return checked(owner, "count_accesses", lambda: plugin.count_accesses(batch), fault_of)


def _bounds(plugin: Bounder, owner: Owner, batch: MappingBatch, entries: int) -> Costs:
    if not 1 <= entries <= len(batch.skeleton):
        raise ValueError(f"entries is {entries}, not between 1 and {len(batch.skeleton)}")
    return _costs(plugin, "bound", owner, 0.0, batch, entries)


def _relaxation(
    plugin: Relaxable,
    owner: Owner,
    problem: Problem,
    architecture: Architecture,
    skeleton: Skeleton,
    keeps: tuple[Bools, Bools] | None = None,
) -> Relaxation | None:
    sizes = len(skeleton), len(problem.tensors), len(architecture.memories)
    pair = None if keeps is None else (keeps[0].copy(), keeps[1].copy())  # the space's own ones stay unchanged
    return checked(
        owner, "relaxation", lambda: plugin.relaxation(skeleton, pair), lambda item: fault_of_relaxation(item, *sizes)
    )


def _costs(
    plugin: object, method: str, owner: Owner, least: float, batch: MappingBatch | Candidates, *more: int
) -> Costs:
    """Return the costs of a batch by a method of an evaluator, checked; `least`: cycles of a valid mapping."""

    def ask() -> Costs:
        costs: Costs = getattr(plugin, method)(batch, *more)
        return costs

    return checked(owner, method, ask, lambda costs: fault_of_costs(costs, len(batch), least))


def guarded_model(plugin: CostModel, owner: Owner) -> GuardedModel:
    """Return a cost model behind a guard."""
    with calling(owner, "its class"):
        return GuardedModel(plugin, owner)


def guarded_evaluator(evaluator: Evaluator, problem: Problem, architecture: Architecture) -> GuardedEvaluator:
    """Return an evaluator behind a guard; a guarded or hosted one is returned unchanged."""
    if isinstance(evaluator, GuardedEvaluator | Hosted):
        return evaluator
    return GuardedEvaluator(evaluator, owner_of("cost model", evaluator), problem, architecture)
