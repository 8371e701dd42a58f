"""Vector layers of a fused network: those that work on tiles of layers that share loops, and the totals with all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.application.run.group_vectors import GroupVectors
from tilewright.application.run.network_groups import NetworkGroup
from tilewright.application.run.vector_network import CountedVector, dependences
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import Edge
from tilewright.schema.vector import GroupVector, VectorLayer
from tilewright.schema.workload import Workload

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Between:
    """Vector layers between layers of a group.

    Attributes:
        vectors: those that may work on tiles.
        left: (maker, reader) of an edge whose vector layers may not -> the reason.
    """

    vectors: tuple[GroupVector, ...]
    left: Mapping[tuple[str, str], str]


def vectors_between(workload: Workload, joined: NetworkGroup) -> Between:
    """Return the vector layers of a workload on the edges of a group of its layers, in order of execution."""
    import networkx as nx

    graph, vectors, left = dependences(workload), list[GroupVector](), dict[tuple[str, str], str]()
    layers = {vector.name: vector for vector in workload.vectors}
    order = {name: number for number, name in enumerate(nx.topological_sort(graph))}
    for edge in joined.group.edges:
        maker = joined.group.maker(edge.tensor)
        if maker is None:
            continue
        readers = [name for name in edge.layers if name != maker]
        inside = graph.subgraph([*layers, maker, *readers])
        after = nx.descendants(inside.subgraph([*layers, maker]), maker)
        before = set[str]().union(*(nx.ancestors(inside.subgraph([*layers, name]), name) for name in readers))
        chain = sorted(after & before, key=order.__getitem__)
        made = list[GroupVector]()
        for number, name in enumerate(chain):
            last = chain[number - 1] if number else maker
            one = _joined(layers[name], edge, joined, graph, last, chain[number + 1 :][:1] or readers)
            if isinstance(one, str):
                left |= {(maker, reader): f"{name} {one}" for reader in readers}
                break
            made.append(one)
        else:
            vectors += made
    return Between(tuple(vectors), left)


def _joined(
    layer: VectorLayer, edge: Edge, joined: NetworkGroup, graph: nx.DiGraph[str], last: str, following: Sequence[str]
) -> GroupVector | str:
    """Return a vector layer on an edge, or why it may not work on its tiles.

    Args:
        last: the layer before it on the edge.
        following: what may read its result.
    """
    group = joined.group
    maker = group.maker(edge.tensor)
    problem = next(problem for problem in group.layers if problem.name == maker)
    words = problem.tile_words(problem.output, problem.dimensions)
    others = set(graph.predecessors(layer.name)) - {last}
    strange = sorted(set(graph.successors(layer.name)) - set(following))
    names = {problem.name for problem in group.layers}
    unshared = [operand for operand in layer.operands if not operand.shared]
    if last not in graph.predecessors(layer.name):
        return f"does not follow {last}"
    if strange:
        return f"is read by {strange[0]}, too"
    if others & names:
        return f"reads {min(others & names)}, too"
    if not layer.elements == layer.operands[0].words == layer.result == words:
        return f"changes {layer.elements:,} elements into {layer.result:,} words; {edge.tensor} has {words:,}"
    if len({operand.words for operand in unshared}) > 1:
        return "has operands of different sizes, and it is unknown which of them it follows"
    work = layer.plain_work
    along = tuple(name for at, name in sorted(joined.rows.get(edge.tensor, ())) if at == maker)
    if math.prod(problem.dimensions[name] for name in along) != layer.row:
        if work.row or work.block or work.kept or work.passes > 1 or len(unshared) < len(layer.operands):
            return f"has rows of {layer.row:,} elements, and it is unknown along which dimensions"
        along = ()
    return GroupVector(
        name=layer.name,
        operator=layer.operator,
        work=layer.work,
        tensor=edge.tensor,
        row=along,
        operands=layer.operands[1:],
    )


@dataclass(frozen=True)
class FusedVectors:
    """Totals of a fused network with its vector layers.

    Attributes:
        architecture: the machine.
        alone: all vector layers, each on its own.
        parts: vector layers in groups that share loops, and how often each group is executed.
        matrix_energy_pj, matrix_cycles: of the layers.
        left: why vector layers between layers of a group are counted on their own.
    """

    architecture: Architecture
    alone: tuple[CountedVector, ...]
    parts: tuple[tuple[int, GroupVectors], ...]
    matrix_energy_pj: float
    matrix_cycles: float
    left: tuple[str, ...] = ()

    @property
    def joined(self) -> frozenset[str]:
        """Vector layers that work on tiles."""
        return frozenset(one.vector.name for _, made in self.parts for one in made.vectors)

    def _apart(self) -> Iterator[CountedVector]:
        for vector in self.alone:
            if vector.report.valid and vector.layer.name not in self.joined:
                yield vector

    @property
    def vector_cycles(self) -> int:
        """Cycles of the vector layers that are counted."""
        apart = sum(vector.layer.count * (vector.report.cycles or 0) for vector in self._apart())
        return apart + sum(count * made.vector_cycles for count, made in self.parts)

    @property
    def vector_energy_pj(self) -> float:
        apart = [vector.layer.count * (vector.report.energy_pj or 0.0) for vector in self._apart()]
        return math.fsum([*apart, *(count * made.vector_energy_pj for count, made in self.parts)])

    @property
    def sequential_cycles(self) -> int:
        """Cycles of all layers, in sequence."""
        return round(self.matrix_cycles) + self.vector_cycles

    @property
    def overlapped_cycles(self) -> int:
        """Cycles with units in parallel where layers share loops; all others are in sequence."""
        saved = sum(count * (made.sequential_cycles - made.overlapped_cycles) for count, made in self.parts)
        return self.sequential_cycles - saved

    @property
    def network_energy_pj(self) -> float:
        """Energy of all layers."""
        return self.matrix_energy_pj + self.vector_energy_pj

    @property
    def uncounted(self) -> tuple[CountedVector, ...]:
        """Vector layers that are not counted."""
        return tuple(one for one in self.alone if one.reason is not None and one.layer.name not in self.joined)
