"""Link loads of meshes with X-Y routing (`Network.meshes`), and the cycles that their busiest links need."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tilewright.errors import NotConformableError, Reason
from tilewright.plugin.composed import slowed
from tilewright.plugin.costmodel import Evaluator, ScalarEvaluator
from tilewright.prices import transfer_cycles
from tilewright.reports import Limit, MeshReport, NetworkReport, Report
from tilewright.schema.architecture import Architecture, Cluster, Mesh
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Loop, Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.vector import Unit, VectorLayer
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopEvaluator, TimeloopModel
from tilewright_costmodels.vector.counts import Placement, counts_of
from tilewright_costmodels.vector.report import report_of

Router = tuple[int, int]
Link = str
"""`memory>0,0`, `0,0>1,0` or `1,0>node`; partial sums travel along `node>1,0` and so on."""


class MeshedTimeloop:
    """Timeloop's model, which also counts meshes if the architecture has some."""

    def __init__(self, options: TimeloopOptions) -> None:
        self.plain = TimeloopModel(options)

    def bind(self, problem: Problem, architecture: Architecture) -> Evaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: See `TimeloopModel.bind` and `MeshedEvaluator`.
        """
        evaluator = self.plain.bind(problem, architecture)
        is_meshed = any(cluster.fanout.network.meshes for cluster in architecture.clusters)
        return MeshedEvaluator(problem, architecture, self.plain.options) if is_meshed else evaluator

    def explain_vector(self, layer: VectorLayer, architecture: Architecture, unit: Unit) -> Report:
        """Return the report of a vector layer by formula.

        Raises:
            NotConformableError: See `Placement.check`.
        """
        placed = Placement(layer, architecture, unit, "timeloop")
        return report_of(placed, counts_of(placed))


class MeshedEvaluator(ScalarEvaluator):
    """Timeloop's model on an architecture with meshes.

    Neighbours forward nothing, because words travel through routers. Energies per hop are those
    of Timeloop's network.
    """

    def __init__(self, problem: Problem, architecture: Architecture, options: TimeloopOptions) -> None:
        """Bind the model.

        Raises:
            NotConformableError: a mesh is below DRAM, or some hardware is sparse.
        """
        self.problem, self.architecture = problem, architecture
        self.inner = TimeloopEvaluator(problem, architecture, options.model_copy(update={"link_transfers": False}))
        reasons = [
            Reason(code="mesh", where=part, message="sparse hardware on an architecture with meshes is not counted")
            for part in architecture.sparse_parts
        ]
        reasons += [
            Reason(code="mesh", where=f"cluster {cluster.name}", message="meshes below DRAM are not supported")
            for cluster in architecture.clusters
            if cluster.fanout.network.meshes and any(memory.technology == "dram" for memory in cluster.memories)
        ]
        if reasons:
            raise NotConformableError("cost model timeloop", reasons)

    def explain(self, mapping: Mapping) -> Report:
        """Return the report of one mapping, with `meshes`, and limits of their busiest links."""
        report = self.inner.explain(mapping)
        if not report.valid:
            return report
        reasons = tuple(_uncounted(self.problem, self.architecture, mapping))
        if reasons:
            refused = Report(model="timeloop", problem=self.problem.name, macs=self.problem.macs, valid=False)
            return refused.model_copy(update={"reasons": reasons})
        loads = mesh_loads(self.problem, self.architecture, mapping, report.networks)
        meshes = [
            MeshReport(name=mesh.name, tensors=mesh.tensors, loads=FrozenDict(dict(load.most_common())))
            for mesh, load in loads.items()
        ]
        limits = [limit for mesh, load in loads.items() for limit in _limits(mesh, load)]
        return slowed(self.architecture, report, limits).model_copy(update={"meshes": tuple(meshes)})


class MeshName(NamedTuple):
    """A mesh below a cluster, with the tensors of the problem that it carries."""

    name: str
    tensors: tuple[str, ...]
    mesh: Mesh


def mesh_loads(
    problem: Problem, architecture: Architecture, mapping: Mapping, networks: Iterable[NetworkReport]
) -> dict[MeshName, Counter[Link]]:
    """Return the words on every link of one instance of each mesh, over the whole run.

    Args:
        mapping: a legal mapping whose tiles divide.
        networks: deliveries of the report of the mapping, without link transfers.
    """
    deliveries = defaultdict(list)
    for network in networks:
        deliveries[network.tensor].append(network.deliveries)
    holding = [number for number, entry in enumerate(mapping.entries) if entry.keep is not None]
    ends = [*holding[1:], len(mapping.entries)]
    loads: dict[MeshName, Counter[Link]] = {}
    for index, cluster in enumerate(architecture.clusters):
        for mesh in cluster.fanout.network.meshes:
            carried = [tensor for tensor in problem.tensors if cluster.fanout.network.mesh_of(tensor) == mesh]
            load = Counter[Link]()
            for tensor, level in itertools.product(carried, range(len(holding))):
                fanout = _Unrolling(problem, architecture, mapping, tensor, holding[level], ends[level])
                if not fanout.crosses(index):
                    continue
                words = {
                    delivery.multicast: delivery.accesses // delivery.scatter
                    for delivery in deliveries[tensor.name][level]
                }
                for members in fanout.groups().values() if words else ():
                    nodes = fanout.routers(members, index)
                    for link in tree(mesh.port, nodes, tensor.is_output):
                        load[link] += words[len(members)]
            loads[MeshName(f"mesh below {cluster.name}", tuple(tensor.name for tensor in carried), mesh)] = load
    return loads


def tree(port: Router, nodes: Iterable[Router], inward: bool) -> set[Link]:
    """Return the links by which one word reaches `nodes` from the memory at `port`, or comes back.

    Words travel along X first. So the paths of one word to several nodes are a tree, and so are
    those of its partial sums (`inward`).
    """
    links = set[Link]()
    for node in nodes:
        ends = (node, port) if inward else (port, node)
        path = [_text(router) for router in _route(*ends)]
        stops = ["node", *path, "memory"] if inward else ["memory", *path, "node"]
        links |= {f"{here}>{there}" for here, there in itertools.pairwise(stops)}
    return links


def _route(start: Router, end: Router) -> Iterator[Router]:
    x, y = start
    yield x, y
    while x != end[0]:
        x += 1 if x < end[0] else -1
        yield x, y
    while y != end[1]:
        y += 1 if y < end[1] else -1
        yield x, y


def _text(router: Router) -> str:
    return f"{router[0]},{router[1]}"


@dataclass(frozen=True)
class _Unrolling:
    """Sub-clusters below the storage entry `start`, as far as the next one, `end`, and their tiles of one tensor."""

    problem: Problem
    architecture: Architecture
    mapping: Mapping
    tensor: Tensor
    start: int
    end: int

    def crosses(self, index: int) -> bool:
        """Return whether words pass a mesh below cluster `index` on their way to the next storage entry."""
        clusters, entries = self.architecture.cluster_index, self.mapping.entries
        last = clusters[entries[self.end].target] if self.end < len(entries) else len(self.architecture.clusters)
        return clusters[entries[self.start].target] <= index < last

    @cached_property
    def loops(self) -> list[Loop]:
        """Spatial loops, outermost first."""
        return [loop for loop in self.mapping.loops() if loop.spatial and self.start <= loop.entry < self.end]

    def cluster(self, loop: Loop) -> Cluster:
        return self.architecture.cluster(self.mapping.entries[loop.entry].target)

    def groups(self) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        """Return the sub-clusters, as trips of `loops`, that share deliveries: those with equal tiles, unless unicast."""
        loops = self.loops
        shifts = [
            [rank.terms.get(loop.dimension, 0) * loop.tile for rank in self.tensor.projection]
            + [int(other is loop and not self._may_share(loop)) for other in loops]
            for loop in loops
        ]
        groups = defaultdict(list)
        for trips in itertools.product(*(range(loop.trips) for loop in loops)):
            key = (
                [
                    sum(trip * shift[at] for trip, shift in zip(trips, shifts, strict=True))
                    for at in range(len(shifts[0]))
                ]
                if loops
                else []
            )
            groups[tuple(key)].append(trips)
        return groups

    def _may_share(self, loop: Loop) -> bool:
        fanout = self.cluster(loop).fanout
        shared = fanout.reduction if self.tensor.is_output else fanout.multicast
        return shared and self.tensor.name not in self.mapping.entries[loop.entry].unicast

    def routers(self, members: Iterable[tuple[int, ...]], index: int) -> set[Router]:
        """Return the routers of some sub-clusters in the first instance of the mesh below cluster `index`."""
        spanned = [cluster.name for cluster in self.architecture.mesh_clusters(index)]
        order = self.architecture.cluster_index
        routers = set()
        for trips in members:
            positions: dict[str, int] = {}
            for loop, trip in zip(self.loops, trips, strict=True):
                name = self.cluster(loop).name
                positions[name] = positions.get(name, 0) * loop.trips + trip
            if any(at for name, at in positions.items() if order[name] < index):
                continue
            x = y = 0
            for name in spanned:
                fanout, at = self.architecture.cluster(name).fanout, positions.get(name, 0)
                x, y = (x, y * fanout.size + at) if fanout.axis == "Y" else (x * fanout.size + at, y)
            routers.add((x, y))
        return routers


def _uncounted(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    """Yield why the loads of a legal mapping are not counted."""
    if not mapping.is_perfect:
        message = "tiles that do not divide; the loads of meshes are counted for whole tiles"
        yield Reason(code="mesh", where="mapping", message=message)
    for index, cluster in enumerate(architecture.clusters):
        carried = [tensor for tensor in problem.tensors if cluster.fanout.network.mesh_of(tensor) is not None]
        for tensor in (candidate for candidate in carried if candidate.is_output):
            outside = [
                entry.target
                for entry in mapping.entries
                if tensor.name in (entry.keep or ()) and architecture.cluster_index[entry.target] <= index
            ]
            memory = architecture.cluster(outside[-1]).memory_for(tensor) if outside else None
            if memory is not None and memory.technology == "dram":
                message = f"{tensor.name} returns from {memory.name} through the mesh; keep it in a memory between"
                yield Reason(code="mesh", where=f"cluster {cluster.name}", message=message)


def _limits(mesh: MeshName, loads: Counter[Link]) -> Iterator[Limit]:
    bandwidth = mesh.mesh.link_words_per_cycle
    if bandwidth is not None and loads:
        words = max(loads.values())
        cycles = int(transfer_cycles(bandwidth, words))
        name = f"{mesh.name} ({', '.join(mesh.tensors)})"
        yield Limit(name=name, action="link", cycles=cycles, words=words, words_per_cycle=bandwidth)
