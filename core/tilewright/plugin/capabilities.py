"""Declared capabilities: whether a plugin accepts a problem, an architecture and a mapping, with reasons.

The idea is Union's conformability (section III-A): operation-level models accept a list of operations, loop-level
models any affine nest. Declarations are checked without importing the plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilewright.errors import Reason, Verdict
from tilewright.values import Model

if TYPE_CHECKING:
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.attribute import Stated
    from tilewright.schema.mapping import Mapping
    from tilewright.schema.problem import Problem


class Capabilities(Model):
    """Properties of the inputs that a plugin accepts. `None` means no limit.

    The default of a new field must keep the previous behaviour.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Capabilities
        >>> problem, machine = tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), tw.load("eyeriss", "architecture")
        >>> print(Capabilities(max_dimensions=2).judge(problem, machine))
        reasons=(Reason(code='max_dimensions', where='dimensions of einsum', message='3 given, at most 2 accepted'),)
    """

    max_clusters: int | None = None
    max_dimensions: int | None = None
    max_operands: int | None = None
    operations: tuple[str, ...] | None = None
    """Accepted operation kinds, for operation-level models; `None`: any affine loop nest."""
    affine_projections: bool = True
    """Projections with several terms or coefficients other than 1."""
    imperfect_factors: bool = True
    """Tile sizes that do not divide the enclosing ones, and thus ragged map spaces."""
    uneven_mappings: bool = True
    """A cluster holds tensors at several entries, with loops between them, so their tiles differ."""
    bypassing_mappings: bool = True
    """Some cluster with memories does not hold some tensor."""
    inner_backing_store: bool = False
    """The outermost entry does not keep some tensor; an inner memory is its backing store."""
    memory_ports: bool = False
    """The cost model counts the ports of a memory. Others use its two bandwidths, and the report warns."""
    shared_bandwidth: bool = False
    """The cost model counts bandwidth that reads and writes share.

    Others refuse memories that state one (`Memory.shared_bandwidth_words_per_cycle`).
    """
    value_widths: bool = False
    """The cost model counts the widths of values (`Memory.bits_per_value`). Others refuse memories that state them."""
    sparse: bool = False
    """The cost model counts formats and savings of sparse hardware (`Memory.sparse`, `Compute.sparse`).

    Others refuse architectures that have them.
    """
    meshes: bool = False
    """The cost model counts the links of meshes (`Network.meshes`). Others refuse them."""
    timing: bool = False
    """The cost model counts `Memory.timing`, and `fill_drain_cycles`, `start_cycles` and `instruction` of `Compute`.

    Others refuse them.
    """
    distinct_footprints: bool = False
    """Tiles without their holes fit where the memory stores none (`Memory.footprint`).

    Others refuse such memories for problems whose tiles may have holes.
    """
    groups: bool = False
    """The cost model accepts group mappings, of layers that share outer loops.

    Either it is a `GroupModel`, or the branches are evaluated through its reports on layers. These
    must have counts of memories and the cycles of computing. Energies are the architecture's.
    """
    several_machines: bool = False
    """The mapper searches map spaces of several machines: it asks `Candidates.fits` or `holders` what fits, nothing else."""
    vector_layers: bool = False
    """The cost model is a `VectorModel`: it counts layers without a product on vector units.

    Others count none, and totals of networks say so.
    """
    window_loops: bool = True
    """Temporal loops over windows outside the innermost storage level.

    Windows (`Problem.windows`) are, for example, a filter's rows and columns.
    """
    # The fields below narrow the searched map spaces. The cost model itself checks single mappings.
    strided_window_unrolling: bool = True
    """Unrolled strided windows (`Problem.strided_windows`) outside the innermost storage level."""
    repeated_loops: bool = True
    """Temporal loops over one dimension in several memories without an unrolling between them,
    outside the innermost storage level.
    """
    max_unrolled_loops: int | None = None
    """Maximum number of unrolled loops outside the innermost storage level, over all fanouts.

    Only loops of more than one trip count. A window counts as two.
    """
    split_dimensions: bool = True
    """A dimension is unrolled along two axes without a storage entry between them."""
    tile_copies: int = 1
    """Copies of every tile in a memory below the outermost cluster; 2 is double buffering."""
    outputs_span_windows: bool = False
    """Memories hold as many rows and columns of an output tile as of the input tile."""

    def judge(self, problem: Problem, architecture: Architecture) -> Verdict:
        """Return a reason for every declared limit that the pair exceeds."""
        reasons: list[Reason] = []

        def limit(code: str, what: str, value: int, most: int | None) -> None:
            if most is not None and value > most:
                reasons.append(Reason(code=code, where=what, message=f"{value} given, at most {most} accepted"))

        limit("max_clusters", f"clusters of {architecture.name}", len(architecture.clusters), self.max_clusters)
        limit("max_dimensions", f"dimensions of {problem.name}", len(problem.dimensions), self.max_dimensions)
        limit("max_operands", f"operands of {problem.name}", problem.operand_count, self.max_operands)
        if self.operations is not None and (problem.operation or "").lower() not in map(str.lower, self.operations):
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

    def judge_hardware(self, problem: Problem, architecture: Architecture) -> Verdict:
        """Return a reason for every part of the hardware that only some cost models count.

        A reason names a stated attribute whose capability is missing, or all sparse parts.
        """
        reasons = [
            stated.against(f"{stated.field} is not counted")
            for stated in self.uncounted(problem, architecture)
            if stated.attribute.warning is None
        ]
        if architecture.sparse_parts and not self.sparse:
            text = "formats and savings for sparse tensors are not counted; --dense omits them when a tool's files are read"
            reasons.append(Reason(code="sparse", where=", ".join(architecture.sparse_parts), message=text))
        return Verdict(reasons=tuple(reasons))

    def uncounted(self, problem: Problem, architecture: Architecture) -> Iterator[Stated]:
        """Yield the attributes that the architecture states for the problem, and whose capability is missing."""
        for stated in architecture.stated(problem):
            if stated.attribute.capability is not None and not getattr(self, stated.attribute.capability):
                yield stated

    def judge_mapping(self, problem: Problem, architecture: Architecture, mapping: Mapping) -> Verdict:
        """Return a reason for every property of a mapping that is not accepted, legal or not."""
        reasons: list[Reason] = []
        if not self.imperfect_factors and not mapping.is_perfect:
            reasons.append(
                Reason(code="imperfect", where="mapping", message="tiles that do not divide are not accepted")
            )
        for cluster in architecture.clusters:
            holding = [
                (at, entry.keep)
                for at, entry in enumerate(mapping.entries)
                if entry.target == cluster.name and entry.keep
            ]
            if not self.uneven_mappings and _uneven(mapping, [at for at, _ in holding]):
                text = "holds tensors at several entries with loops between; they must be held there at once"
                reasons.append(Reason(code="uneven", where=f"cluster {cluster.name}", message=text))
            kept = {name for _, names in holding for name in names}
            missing = [name for name in problem.tensor_names if name not in kept]
            if not self.bypassing_mappings and cluster.memories and missing:
                text = f"{', '.join(missing)} bypasses it; every tensor must go through every memory level"
                reasons.append(Reason(code="bypass", where=f"cluster {cluster.name}", message=text))
        unkept = sorted(set(problem.tensor_names).difference(mapping.entries[0].keep or ()))
        if not self.inner_backing_store and unkept and self.bypassing_mappings:
            text = f"{', '.join(unkept)} bypasses it; every tensor must be kept there"
            reasons.append(Reason(code="bypass", where=f"entry 0 on {mapping.entries[0].target}", message=text))
        if not self.window_loops:
            last = max((at for at, entry in enumerate(mapping.entries) if entry.keep is not None), default=0)
            outside = (loop.dimension for loop in mapping.loops() if not loop.spatial and loop.entry <= last)
            for name in dict.fromkeys(name for name in outside if name in problem.windows):
                text = f"steps outside {mapping.entries[last].target}; windows must be whole in time there"
                reasons.append(Reason(code="window", where=f"dimension {name}", message=text))
        return Verdict(reasons=tuple(reasons))


def _uneven(mapping: Mapping, holding: list[int]) -> bool:
    """Return whether a loop is between the first and the last of some entries."""
    return bool(holding) and any(
        holding[0] <= loop.entry < holding[-1] if loop.spatial else holding[0] < loop.entry <= holding[-1]
        for loop in mapping.loops()
    )
