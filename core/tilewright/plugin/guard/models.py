"""Cost models under guard."""

from __future__ import annotations

from typing import Any

from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.skeleton import Skeleton
from tilewright.notations.directives import DirectiveProgram
from tilewright.plugin.costmodel import (
    Bounder,
    CandidateEvaluator,
    CostModel,
    Costs,
    DirectiveModel,
    Evaluator,
    Relaxable,
    Relaxation,
)
from tilewright.plugin.guard.calls import Owner, calling, described, fault
from tilewright.plugin.guard.figures import fault_of_costs, fault_of_report, least_cycles
from tilewright.plugin.guard.patience import limited
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report


class GuardedModel:
    """A cost model whose every answer is checked."""

    def __init__(self, plugin: CostModel, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def bind(self, problem: Problem, architecture: Architecture) -> Evaluator:
        with limited(self.owner, "bind"):
            evaluator: Any = self.plugin.bind(problem, architecture)
            lacking = [name for name in ("evaluate_batch", "explain") if not callable(getattr(evaluator, name, None))]
            kinds = _kinds(evaluator)
        if lacking:
            raise fault(self.owner, f"bind returned {described(evaluator)}, which has no {' and no '.join(lacking)}")
        return _EVALUATORS[kinds](evaluator, self.owner, problem, architecture)


class GuardedDirectiveModel(GuardedModel):
    """One that takes programs of directives too."""

    plugin: DirectiveModel  # type: ignore[assignment]

    def explain_directives(self, program: DirectiveProgram) -> tuple[Report, ...]:
        with limited(self.owner, "explain_directives"):
            reports = tuple(self.plugin.explain_directives(program))
        if len(reports) != len(program.layers):
            raise fault(
                self.owner, f"explain_directives returned {len(reports)} reports of {len(program.layers)} layers"
            )
        for report in reports:
            wrong = fault_of_report(report)
            if wrong:
                raise fault(self.owner, f"explain_directives {wrong}")
        return reports


class GuardedEvaluator:
    """A bound cost model whose every answer is checked."""

    def __init__(self, plugin: Any, owner: Owner, problem: Problem, architecture: Architecture) -> None:
        self.plugin, self.owner, self.problem, self.architecture = plugin, owner, problem, architecture
        self.least = least_cycles(problem, architecture)

    def evaluate(self, mapping: Mapping) -> Costs:
        return self.evaluate_batch(MappingBatch.pack(self.problem, [mapping]))

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        with calling(self.owner, "evaluate_batch"):
            costs = self.plugin.evaluate_batch(batch)
        return self._checked("evaluate_batch", costs, len(batch), self.least)

    def explain(self, mapping: Mapping) -> Report:
        with limited(self.owner, "explain"):
            report: Report = self.plugin.explain(mapping)
        wrong = fault_of_report(report, self.problem, self.architecture)
        if wrong:
            raise fault(self.owner, f"explain {wrong}")
        return report

    def _checked(self, what: str, costs: Costs, count: int, least: float) -> Costs:
        wrong = fault_of_costs(costs, count, least)
        if wrong:
            raise fault(self.owner, f"{what} {wrong}")
        return costs


class _Candidates(GuardedEvaluator):
    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        with calling(self.owner, "evaluate_candidates"):
            costs = self.plugin.evaluate_candidates(candidates)
        return self._checked("evaluate_candidates", costs, len(candidates), self.least)


class _Bounds(GuardedEvaluator):
    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        if not 1 <= entries <= len(batch.skeleton):
            raise ValueError(f"entries is {entries}, not between 1 and {len(batch.skeleton)}")
        with calling(self.owner, "bound"):
            costs = self.plugin.bound(batch, entries)
        return self._checked("bound", costs, len(batch), 0.0)


class _Relaxed(GuardedEvaluator):
    def relaxation(self, skeleton: Skeleton) -> Relaxation | None:
        with limited(self.owner, "relaxation"):
            found: Relaxation | None = self.plugin.relaxation(skeleton)
        if found is not None and not isinstance(found, Relaxation):
            raise fault(self.owner, f"relaxation returned {described(found)}, a Relaxation is expected")
        return found


class _CandidatesAndBounds(_Candidates, _Bounds):
    pass


class _CandidatesRelaxed(_Candidates, _Relaxed):
    pass


class _BoundsRelaxed(_Bounds, _Relaxed):
    pass


class _All(_Candidates, _Bounds, _Relaxed):
    pass


_EVALUATORS: dict[tuple[bool, bool, bool], type[GuardedEvaluator]] = {
    (False, False, False): GuardedEvaluator,
    (True, False, False): _Candidates,
    (False, True, False): _Bounds,
    (True, True, False): _CandidatesAndBounds,
    (False, False, True): _Relaxed,
    (True, False, True): _CandidatesRelaxed,
    (False, True, True): _BoundsRelaxed,
    (True, True, True): _All,
}


def _kinds(evaluator: object) -> tuple[bool, bool, bool]:
    return isinstance(evaluator, CandidateEvaluator), isinstance(evaluator, Bounder), isinstance(evaluator, Relaxable)


def guarded_model(plugin: CostModel, owner: Owner) -> GuardedModel:
    """A cost model under guard."""
    with calling(owner, "its class"):
        kind = GuardedDirectiveModel if isinstance(plugin, DirectiveModel) else GuardedModel
    return kind(plugin, owner)


def guarded_evaluator(evaluator: Evaluator, problem: Problem, architecture: Architecture) -> GuardedEvaluator:
    """An evaluator under guard; as it is, if it is that already."""
    if isinstance(evaluator, GuardedEvaluator):
        return evaluator
    return _EVALUATORS[_kinds(evaluator)](
        evaluator, Owner("cost model", type(evaluator).__name__), problem, architecture
    )
