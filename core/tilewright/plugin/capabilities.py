"""Yes or no with reasons: may this plugin take this problem, architecture and mapping?

The idea is Union's conformability (section III-A): operation-level models know a list of operations, loop-level
models any affine nest. A declaration is judged without importing the plugin that made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import Reason, Verdict
from tilewright.values import Model

if TYPE_CHECKING:
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.problem import Problem


class Capabilities(Model):
    """What a plugin declares it accepts. `None` means no limit; a new field's default must mean "as before"."""

    max_clusters: int | None = None
    max_dimensions: int | None = None
    max_operands: int | None = None
    operations: tuple[str, ...] | None = None
    """Operation kinds accepted (operation-level models); `None`: any affine loop nest."""
    affine_projections: bool = True
    """Projections with several terms or coefficients other than 1."""
    imperfect_factors: bool = True
    """Tile sizes that do not divide."""
    uneven_mappings: bool = True
    """Tensors of one cluster held at different entries."""

    def judge(self, problem: Problem, architecture: Architecture) -> Verdict:
        """Say no for every declared limit that the pair exceeds."""
        reasons: list[Reason] = []

        def limit(code: str, what: str, value: int, most: int | None) -> None:
            if most is not None and value > most:
                reasons.append(Reason(code=code, where=what, message=f"{value} given, at most {most} accepted"))

        limit("max_clusters", f"clusters of {architecture.name}", len(architecture.clusters), self.max_clusters)
        limit("max_dimensions", f"dimensions of {problem.name}", len(problem.dimensions), self.max_dimensions)
        limit("max_operands", f"operands of {problem.name}", problem.operand_count, self.max_operands)
        if self.operations is not None and problem.operation not in self.operations:
            kind = problem.operation or "of no known kind"
            reasons.append(
                Reason(
                    code="operation",
                    where=problem.name,
                    message=f"operation is {kind}; accepted: {', '.join(self.operations)}",
                )
            )
        if not self.affine_projections and problem.is_affine:
            reasons.append(
                Reason(code="affine", where=problem.name, message="projections with strides or sums are not accepted")
            )
        return Verdict(reasons=tuple(reasons))
