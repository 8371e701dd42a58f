"""Cost model `oracle`: executes a mapping and counts its traffic."""

from __future__ import annotations

from tilewright.errors import NotConformableError, Reason
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.problem import Problem
from tilewright.schema.vector import Unit, VectorLayer
from tilewright_costmodels import OracleOptions
from tilewright_costmodels.oracle.evaluator import OracleEvaluator
from tilewright_costmodels.oracle.group import explain_group
from tilewright_costmodels.oracle.sparse.evaluator import SparseOracleEvaluator
from tilewright_costmodels.oracle.sparse.report import uncovered
from tilewright_costmodels.vector.counts import Placement
from tilewright_costmodels.vector.execution import execute
from tilewright_costmodels.vector.report import report_of


class OracleModel:
    """Counts by execution, for problems of up to `max_operations` operations.

    docs/oracle.md states the conventions.
    """

    def __init__(self, options: OracleOptions) -> None:
        self.max_operations, self.first_fills = options.max_operations, options.first_fills
        self.draws, self.seed = options.draws, options.seed

    def bind(self, problem: Problem, architecture: Architecture) -> OracleEvaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: the problem is too large to execute (reason `too_large`), or an action of
                sparse hardware skips units (`sparse_units`).
        """
        reasons = tuple(uncovered(problem, architecture))
        if reasons:
            raise NotConformableError("cost model oracle", reasons)
        if problem.macs > self.max_operations:
            message = f"{problem.macs} operations; expected at most {self.max_operations} (option max_operations)"
            reason = Reason(code="too_large", where=problem.name, message=message)
            raise NotConformableError("cost model oracle", (reason,))
        if architecture.sparse_parts:
            return SparseOracleEvaluator(problem, architecture, self.max_operations, self.draws, self.seed)
        return OracleEvaluator(problem, architecture, self.max_operations, self.first_fills)

    def explain_group(self, group: GroupMapping) -> Report:
        """Return the report of a group mapping; its `reasons` say why it cannot be executed."""
        return explain_group(group, self.max_operations)

    def explain_vector(self, layer: VectorLayer, architecture: Architecture, unit: Unit) -> Report:
        """Return the report of a vector layer, by executing it on numbers.

        Raises:
            NotConformableError: it is too large to execute (`too_large`), or see `vector.execution.execute`.
        """
        placed = Placement(layer, architecture, unit, "oracle")
        if layer.elements > self.max_operations:
            told = f"{layer.elements} elements; expected at most {self.max_operations} (option max_operations)"
            placed.refuse("too_large", told)
        return report_of(placed, execute(placed, self.seed).counts)
