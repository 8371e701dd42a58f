"""Execution of mappings of one problem on one architecture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.errors import Reason
from tilewright.mapspace.legality import backing_warnings, legality
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.reports import Limit, Report, overlapping
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels.oracle.report import TensorResidency, levels, limits, run
from tilewright_costmodels.oracle.result import Words, examine, inside
from tilewright_costmodels.oracle.trace import Ints, OperationTrace, TooManyOperationsError, trace_operations

UNREADABLE = ("dimension", "target", "tensor")
"""Codes of violations that leave nothing to execute: unknown names."""
NO_NOC_ENERGY = "the energy of the NoC is not included, because routes are not executed"


@dataclass(frozen=True)
class OperationCounts:
    """Operations of a run.

    Attributes:
        operations: those that are executed.
        steps: those of the busiest unit.
        busy: those that take a cycle, of all units.
        other_pj: energy of gated and skipped ones.
    """

    operations: float
    steps: int
    busy: float
    other_pj: float = 0.0


class OracleEvaluator(ScalarEvaluator):
    """The oracle, bound to one problem and one architecture."""

    def __init__(
        self, problem: Problem, architecture: Architecture, max_operations: int, first_fills: bool = False
    ) -> None:
        self.problem = problem
        self.architecture = self.legal_architecture = architecture
        self.max_operations, self.first_fills = max_operations, first_fills
        self._words = {tensor.name: Words(problem, tensor) for tensor in problem.tensors}

    def explain(self, mapping: Mapping) -> Report:
        """Return the report of one mapping, with the outcome of its execution.

        A mapping that breaks a rule, or computes a wrong result, has `valid` False and the reasons.
        """
        reasons = legality(self.problem, self.legal_architecture, mapping).reasons
        report = Report(model="oracle", problem=self.problem.name, valid=False, macs=self.problem.macs)
        if any(reason.code in UNREADABLE for reason in reasons):
            return report.model_copy(update={"reasons": reasons})
        try:
            operations = trace_operations(self.problem, mapping, 4 * self.max_operations)
        except TooManyOperationsError as error:
            text = f"the mapping executes {error}; the problem has {self.problem.macs}"
            reasons += (Reason(code="too_large", where="execution", message=text),)
            return report.model_copy(update={"reasons": reasons})
        iterations = inside(self.problem, operations)
        execution, errors = examine(self.problem, self._words, iterations)
        report_of_run = report.model_copy(update={"reasons": (*reasons, *errors), "execution": execution})
        return report_of_run if report_of_run.reasons else self._count(report_of_run, mapping, operations, iterations)

    def _count(self, report: Report, mapping: Mapping, operations: OperationTrace, iterations: Ints) -> Report:
        """Add the costs of a mapping that executes correctly."""
        touched = {name: words.of_iteration[iterations] for name, words in self._words.items()}
        residencies = run(self.problem, self.architecture, mapping, operations, touched, self.first_fills)
        steps = len(np.unique(operations.time_steps))
        return self._priced(
            report, mapping, operations, residencies, OperationCounts(self.problem.macs, steps, self.problem.macs)
        )

    def _priced(
        self,
        report: Report,
        mapping: Mapping,
        operations: OperationTrace,
        residencies: list[TensorResidency],
        work: OperationCounts,
    ) -> Report:
        """Add energy and cycles, from the traffic of the memories and the operations."""
        cycles_per_operation = self.architecture.compute.cycles_per_operation
        compute_cycles = max(work.steps, 1) * cycles_per_operation
        computing = Limit(name="compute", action="compute", cycles=compute_cycles)
        limited = overlapping([computing, *limits(self.architecture, residencies)])
        cycles = max(limit.cycles for limit in limited)
        rows = levels(self.architecture, mapping, operations, residencies, limited, cycles)
        compute_energy = work.operations * self.architecture.compute.energy_per_operation_pj + work.other_pj
        energy = sum(row.energy_pj for row in rows) + compute_energy
        assert report.execution is not None
        costly = any(
            cluster.fanout.size > 1 and cluster.fanout.network.takes_energy for cluster in self.architecture.clusters
        )
        return report.with_costs(
            energy,
            cycles,
            self.architecture.compute_instances,
            warnings=(*backing_warnings(self.problem, mapping), *((NO_NOC_ENERGY,) if costly else ())),
            limits=limited,
            busy_units=work.busy * cycles_per_operation / compute_cycles,
            compute_energy_pj=compute_energy,
            levels=tuple(rows),
            networks=tuple(residency.network() for residency in residencies),
            execution=report.execution.model_copy(
                update={"accesses": tuple(residency.accesses() for residency in residencies)}
            ),
        )
