"""Cost model `oracle`: executes a mapping and counts its traffic."""

from __future__ import annotations

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.legality import backing_warnings, legality
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Limit, Report, overlapping
from tilewright_costmodels import OracleOptions
from tilewright_costmodels.oracle.group import explain_group
from tilewright_costmodels.oracle.report import levels, limits, run
from tilewright_costmodels.oracle.result import Words, examine, inside
from tilewright_costmodels.oracle.trace import Ints, OperationTrace, TooManyOperationsError, trace_operations

UNREADABLE = ("dimension", "target", "tensor")
"""Codes of violations that leave nothing to execute: unknown names."""
NO_NOC_ENERGY = "the energy of the NoC is not included, because routes are not executed"


class OracleModel:
    """Counts by execution, for problems of up to `max_operations` operations.

    docs/oracle.md states the conventions.
    """

    def __init__(self, options: OracleOptions) -> None:
        self.max_operations = options.max_operations

    def bind(self, problem: Problem, architecture: Architecture) -> OracleEvaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: the problem is too large to execute (reason `too_large`).
        """
        if problem.macs > self.max_operations:
            message = f"{problem.macs} operations; expected at most {self.max_operations} (option max_operations)"
            reason = Reason(code="too_large", where=problem.name, message=message)
            raise NotConformableError("cost model oracle", (reason,))
        return OracleEvaluator(problem, architecture, self.max_operations)

    def explain_group(self, group: GroupMapping) -> Report:
        """Return the report of a group mapping; its `reasons` say why it cannot be executed."""
        return explain_group(group, self.max_operations)


class OracleEvaluator(ScalarEvaluator):
    """The oracle, bound to one problem and one architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, max_operations: int) -> None:
        self.problem = problem
        self.architecture = architecture
        self.max_operations = max_operations
        self._words = {tensor.name: Words(problem, tensor) for tensor in problem.tensors}

    def explain(self, mapping: Mapping) -> Report:
        """Return the report of one mapping, with the outcome of its execution.

        A mapping that breaks a rule, or computes a wrong result, has `valid` False and the reasons.
        """
        reasons = legality(self.problem, self.architecture, mapping).reasons
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
        residencies = run(self.problem, self.architecture, mapping, operations, touched)
        compute_cycles = len(np.unique(operations.time_steps)) * self.architecture.compute.cycles_per_operation
        computing = Limit(name="compute", action="compute", cycles=compute_cycles)
        limited = overlapping([computing, *limits(self.architecture, residencies)])
        cycles = max(limit.cycles for limit in limited)
        rows = levels(self.architecture, mapping, operations, residencies, limited, cycles)
        compute_energy = self.problem.macs * self.architecture.compute.energy_per_operation_pj
        energy = sum(row.energy_pj for row in rows) + compute_energy
        assert report.execution is not None
        costly = any(each.fanout.size > 1 and each.fanout.network.takes_energy for each in self.architecture.clusters)
        return report.with_costs(
            energy,
            cycles,
            self.architecture.compute_instances,
            warnings=(*backing_warnings(self.problem, mapping), *((NO_NOC_ENERGY,) if costly else ())),
            limits=limited,
            busy_units=self.problem.macs * self.architecture.compute.cycles_per_operation / compute_cycles,
            compute_energy_pj=compute_energy,
            levels=tuple(rows),
            networks=tuple(each.network() for each in residencies),
            execution=report.execution.model_copy(update={"accesses": tuple(each.accesses() for each in residencies)}),
        )
