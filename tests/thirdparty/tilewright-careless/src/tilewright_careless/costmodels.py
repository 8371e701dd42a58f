"""Cost models that break promises; each differs from the plain model in one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import Architecture, Mapping, Problem, Report
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools
from tilewright.mapspace.rules.tables import rules_of
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin import Candidates, Costs, MappingBatch, Relaxation, ScalarEvaluator, legality
from tilewright.testing.reference import PlainEvaluator, PlainModel

Good = PlainModel


class Refusing(PlainModel):
    """Declares nothing, and then refuses three operands."""

    def bind(self, problem: Problem, architecture: Architecture) -> PlainEvaluator:
        if problem.operand_count > 2:
            reason = Reason(code="max_operands", where=problem.name, message="two operands at most")
            raise NotConformableError("refusing", [reason])
        return super().bind(problem, architecture)


class _Changed(PlainModel):
    """Binds another evaluator than the plain one."""

    evaluator: type[PlainEvaluator]

    def bind(self, problem: Problem, architecture: Architecture) -> PlainEvaluator:
        return self.evaluator(problem, architecture)


class _CountsForTruth(PlainEvaluator):
    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        costs = super().evaluate_batch(batch)
        counts: Any = costs.valid.astype(np.int64)
        return Costs(counts, costs.energy_pj, costs.cycles)


class CountsForTruth(_Changed):
    """`valid` is made of numbers."""

    evaluator = _CountsForTruth


class _TwoMinds(PlainEvaluator):
    def explain(self, mapping: Mapping) -> Report:
        report = super().explain(mapping)
        if report.energy_pj is None or report.cycles is None:
            return report
        energy = report.energy_pj + 1
        return report.model_copy(update={"energy_pj": energy, "edp": energy * report.cycles})


class TwoMinds(_Changed):
    """Explains other energies than it evaluates."""

    evaluator = _TwoMinds


class _Neighbourly(PlainEvaluator):
    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        costs = super().evaluate_batch(batch)
        return Costs(costs.valid, costs.energy_pj + np.arange(len(batch)), costs.cycles)


class Neighbourly(_Changed):
    """The cost depends on the place in the batch."""

    evaluator = _Neighbourly


class _NeedsSomething(PlainEvaluator):
    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        batch[0]
        return super().evaluate_batch(batch)


class NeedsSomething(_Changed):
    """Looks at the first mapping of every batch."""

    evaluator = _NeedsSomething


class _NoEdp(PlainEvaluator):
    def explain(self, mapping: Mapping) -> Report:
        return super().explain(mapping).model_copy(update={"edp": None})


class NoEdp(_Changed):
    """Leaves a figure out of the report."""

    evaluator = _NoEdp


class _Forgiving(ScalarEvaluator):
    """Prices every mapping at its operations, and forgives some broken rules."""

    forgiven: frozenset[str] = frozenset()

    def __init__(self, problem: Problem, architecture: Architecture) -> None:
        self.problem = problem
        self.architecture = architecture

    def explain(self, mapping: Mapping) -> Report:
        verdict = legality(self.problem, self.architecture, mapping)
        reasons = tuple(reason for reason in verdict.reasons if reason.code not in self.forgiven)
        macs = self.problem.macs
        report = Report(model="forgiving", problem=self.problem.name, macs=macs, valid=not reasons, reasons=reasons)
        if reasons:
            return report
        return report.model_copy(update={"energy_pj": float(macs), "cycles": macs, "edp": float(macs * macs)})


class _Uncovering(_Forgiving):
    forgiven = frozenset({"coverage", "nesting"})


class _Unfitting(_Forgiving):
    forgiven = frozenset({"capacity"})


class Uncovering:
    """Does not ask whether all the work is done."""

    def bind(self, problem: Problem, architecture: Architecture) -> _Forgiving:
        return _Uncovering(problem, architecture)


class Unfitting:
    """Does not ask whether the tiles fit."""

    def bind(self, problem: Problem, architecture: Architecture) -> _Forgiving:
        return _Unfitting(problem, architecture)


class _Unsummed(PlainEvaluator):
    def explain(self, mapping: Mapping) -> Report:
        report = super().explain(mapping)
        return report.model_copy(update={"compute_energy_pj": 1.0}) if report.valid else report


class Unsummed(_Changed):
    """Its parts are no whole."""

    evaluator = _Unsummed


class _Overused(PlainEvaluator):
    def explain(self, mapping: Mapping) -> Report:
        report = super().explain(mapping)
        return report.model_copy(update={"utilization": 5.0}) if report.valid else report


class Overused(_Changed):
    """Uses more than there is."""

    evaluator = _Overused


class _Hasty(PlainEvaluator):
    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        costs = super().evaluate_batch(batch)
        return Costs(costs.valid, costs.energy_pj, np.where(costs.valid, 1.0, np.inf))


class Hasty(_Changed):
    """Is done in one cycle."""

    evaluator = _Hasty


class LastBound(PlainModel):
    """All its evaluators share what was bound last."""

    last = ""

    def bind(self, problem: Problem, architecture: Architecture) -> PlainEvaluator:
        LastBound.last = problem.name
        return _LastBound(problem, architecture)


class _LastBound(PlainEvaluator):
    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        costs = super().evaluate_batch(batch)
        return Costs(costs.valid, costs.energy_pj * len(LastBound.last), costs.cycles)


class Unpicklable(PlainModel):
    """Its evaluator holds what cannot travel."""

    def bind(self, problem: Problem, architecture: Architecture) -> PlainEvaluator:
        evaluator = PlainEvaluator(problem, architecture)
        evaluator.cost = lambda: 0  # type: ignore[attr-defined]
        return evaluator


class _Overbound(PlainEvaluator):
    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        return self.evaluate_batch(batch.take(np.zeros(len(batch), dtype=np.int64)))


class Overbound(_Changed):
    """Bounds every partial mapping by the cost of the first."""

    evaluator = _Overbound


class _Boastful(PlainEvaluator):
    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation:
        memories, entries = len(self.architecture.memories), len(skeleton)
        much, none = np.full(memories, 1e9), np.zeros(memories)
        shape = entries, len(self.problem.tensors)
        return Relaxation(
            memory=rules_of(self.problem, self.architecture, skeleton).memory,
            read_pj=much,
            fill_pj=much,
            update_pj=much,
            read_bandwidth=np.full(memories, np.inf),
            write_bandwidth=np.full(memories, np.inf),
            shared=np.ones(shape, dtype=np.bool_),
            neighbours=False,
            leakage_pj=none,
            gate=np.arange(memories),
            compute_pj=0.0,
            cycles_per_operation=1.0,
            exact=True,
        )


class Boastful(_Changed):
    """Says of itself that words cost more than they do."""

    evaluator = _Boastful


class _Estimating(PlainEvaluator):
    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        costs = self.evaluate_batch(candidates.batch())
        return Costs(costs.valid, 1.01 * costs.energy_pj, costs.cycles)


class Estimating(_Changed):
    """Gives candidates a figure that is about right."""

    evaluator = _Estimating
