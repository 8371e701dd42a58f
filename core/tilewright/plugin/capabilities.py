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
    from tilewright.schema.mapping import Mapping
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
    """Tile sizes that do not divide, and so ragged map spaces."""
    uneven_mappings: bool = True
    """A cluster holds tensors at several entries, with loops between them: their tiles differ."""
    bypassing_mappings: bool = True
    """Some tensor is not held by some cluster that has memories."""
    memory_ports: bool = False
    """A cost model counts the ports of a memory; others take its two bandwidths, and the report warns."""
    value_widths: bool = False
    """A cost model counts the widths of values (`Memory.bits_per_value`); others refuse memories that state them."""
    window_loops: bool = True
    """Loops in time over windows (`Problem.windows`: a filter's rows and columns) outside the innermost storage level."""
    # The fields below narrow the map spaces that are searched. A single mapping is judged by the cost model itself.
    strided_window_unrolling: bool = True
    """Windows that slide by more than one (`Problem.strided_windows`) are unrolled outside the innermost storage level."""
    repeated_loops: bool = True
    """A dimension has temporal loops inside several memories with no unrolling between, outside the innermost storage level."""
    max_unrolled_loops: int | None = None
    """Loops of more than one trip that are unrolled outside the innermost storage level, over all fanouts together. A window
    counts as two."""
    tile_copies: int = 1
    """Copies of every tile that a memory must hold, the outermost cluster's aside; 2 is double buffering."""
    outputs_span_windows: bool = False
    """A memory must hold as many rows and columns of an output tile as the input tile has."""

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
        for cluster in architecture.clusters if not self.bypassing_mappings else ():
            names = [
                tensor.name
                for tensor in problem.tensors
                if cluster.memories and not any(memory.may_hold(tensor) for memory in cluster.memories)
            ]
            if names:
                text = f"no memory there may hold {', '.join(names)}; every tensor must go through every memory level"
                reasons.append(Reason(code="bypass", where=f"cluster {cluster.name}", message=text))
        return Verdict(reasons=tuple(reasons))

    def judge_widths(self, problem: Problem, architecture: Architecture) -> Verdict:
        """Say no for memories with values of other widths than a word, of a cost model that counts values alone."""
        reasons = []
        for memory in architecture.memories if not self.value_widths else ():
            odd = [t.name for t in problem.tensors if memory.may_hold(t) and memory.words_of(t) != 1]
            if odd:
                text = (
                    f"values of {', '.join(odd)} are not as wide as its words (bits_per_value); only words are counted"
                )
                reasons.append(Reason(code="widths", where=memory.name, message=text))
        return Verdict(reasons=tuple(reasons))

    def judge_mapping(self, problem: Problem, architecture: Architecture, mapping: Mapping) -> Verdict:
        """Say no for every kind of mapping that is not accepted; the mapping need not be legal."""
        reasons: list[Reason] = []
        if not self.imperfect_factors and not mapping.is_perfect:
            reasons.append(
                Reason(code="imperfect", where="mapping", message="tiles that do not divide are not accepted")
            )
        for cluster in architecture.clusters:
            holding = [
                (at, each.keep) for at, each in enumerate(mapping.entries) if each.target == cluster.name and each.keep
            ]
            if not self.uneven_mappings and _uneven(mapping, [at for at, _ in holding]):
                text = "holds tensors at several entries with loops between; they must be held there at once"
                reasons.append(Reason(code="uneven", where=f"cluster {cluster.name}", message=text))
            kept = {name for _, names in holding for name in names}
            missing = [name for name in problem.tensor_names if name not in kept]
            if not self.bypassing_mappings and cluster.memories and missing:
                text = f"{', '.join(missing)} bypasses it; every tensor must go through every memory level"
                reasons.append(Reason(code="bypass", where=f"cluster {cluster.name}", message=text))
        if not self.window_loops:
            last = max((at for at, each in enumerate(mapping.entries) if each.keep is not None), default=0)
            outside = (loop.dimension for loop in mapping.loops() if not loop.spatial and loop.entry <= last)
            for name in dict.fromkeys(name for name in outside if name in problem.windows):
                text = f"steps outside {mapping.entries[last].target}; windows must be whole in time there"
                reasons.append(Reason(code="window", where=f"dimension {name}", message=text))
        return Verdict(reasons=tuple(reasons))


def _uneven(mapping: Mapping, holding: list[int]) -> bool:
    """Whether a loop stands between the first and the last of some entries."""
    return bool(holding) and any(
        holding[0] <= loop.entry < holding[-1] if loop.spatial else holding[0] < loop.entry <= holding[-1]
        for loop in mapping.loops()
    )
