"""Execution of mappings on sparse hardware."""

from __future__ import annotations

import math

import numpy as np

from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels.oracle.evaluator import OperationCounts, OracleEvaluator
from tilewright_costmodels.oracle.report import run
from tilewright_costmodels.oracle.sparse.execution import Executor, SparseRun
from tilewright_costmodels.oracle.sparse.patterns import is_random, nonzeros, order_of_visits
from tilewright_costmodels.oracle.sparse.report import lacking, sparse_residencies
from tilewright_costmodels.oracle.trace import Ints, OperationTrace
from tilewright_costmodels.sparse_refusals import RefusedError, refuse


class SparseOracleEvaluator(OracleEvaluator):
    """The oracle on sparse hardware: means over draws of the nonzero values."""

    def __init__(
        self, problem: Problem, architecture: Architecture, max_operations: int, draws: int, seed: int
    ) -> None:
        super().__init__(problem, architecture, max_operations)
        self.legal_architecture = architecture.with_memories(
            lambda memory: memory.model_copy(update={"capacity_words": None})
        )
        self.draws = draws if any(is_random(tensor.density) for tensor in problem.tensors) else 1
        self.seed = seed

    def _count(self, report: Report, mapping: Mapping, operations: OperationTrace, iterations: Ints) -> Report:
        touched = {name: words.of_iteration[iterations] for name, words in self._words.items()}
        try:
            refuse(mapping, "executed")
            executor = self.executor(mapping, operations, touched)
            result = executor.run()
        except RefusedError as error:
            return report.model_copy(update={"reasons": (error.reason,)})
        dense = run(self.problem, self.architecture, mapping, operations, touched)
        residencies = sparse_residencies(executor, result.counts, dense)
        reasons = tuple(lacking(self.architecture, residencies))
        if reasons:
            return report.model_copy(update={"reasons": reasons})
        work = self._work(result)
        priced = self._priced(report, mapping, operations, residencies, work)
        actual, gated, skipped = (math.floor(count + 0.5) for count in result.operations.mean(axis=1).tolist())
        assert priced.cycles is not None
        told = (f"means of {self.draws} random draws of the nonzero values, seed {self.seed}",)
        return priced.model_copy(
            update={
                "actual_operations": actual,
                "gated_operations": gated,
                "skipped_operations": skipped,
                "utilization": work.busy / (self.architecture.compute_instances * priced.cycles),
                "warnings": (*priced.warnings, *(told if self.draws > 1 else ())),
            }
        )

    def executor(self, mapping: Mapping, operations: OperationTrace, touched: dict[str, Ints]) -> Executor:
        """Draw the nonzero values, and return the execution.

        Args:
            touched: tensor -> index of the word that each operation touches, [n].

        Raises:
            RefusedError: sparse hardware cannot hold the tiles in its formats.
        """
        random, present = np.random.default_rng(self.seed), {}
        for tensor in self.problem.tensors:
            words = self._words[tensor.name]
            visits = order_of_visits(mapping, operations.points, touched[tensor.name])
            present[tensor.name] = nonzeros(self.problem, tensor, words, visits, random, self.draws)
        coordinates = {name: words.coordinates for name, words in self._words.items()}
        return Executor(self.problem, self.architecture, mapping, operations, touched, coordinates, present)

    def _work(self, result: SparseRun) -> OperationCounts:
        """Return the mean operations. Each unit skips its own; the busiest one counts."""
        actual, gated, skipped = result.operations.mean(axis=1).tolist()
        sparse = self.architecture.compute.sparse
        other_pj = gated * sparse.gated_pj + skipped * sparse.skipped_pj if sparse else 0.0
        return OperationCounts(actual, math.ceil(result.busy.max(axis=0).mean()), actual + gated, other_pj)
