"""Time of a network on several units: matrix layers on the array, and vector layers on vector units.

    scores (matrix, 10 cycles) -> softmax (vector, 6) -> context (matrix, 10), and gate (vector, 4) after scores:
    in sequence: 30 cycles; in parallel: 26, because gate runs beside context

docs/vector.md has the rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tilewright.application.run.evaluation import BuiltModel, evaluate_vector
from tilewright.errors import InputError
from tilewright.figures import Figure, Sheet
from tilewright.interrupts import stop_requested
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.vector import VectorLayer
from tilewright.schema.workload import Workload
from tilewright.tables import Column, numbers

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class UnitTask:
    """Work of one layer on a unit.

    Attributes:
        name: the layer.
        unit: the unit; empty: nothing counts it, and it takes no time.
        cycles: of one execution.
        count: number of executions.
        reads: tasks whose results it reads.
    """

    name: str
    unit: str
    cycles: int
    count: int
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Bar:
    """One execution of a task on the time line, in cycles. `count` and `first` are those of its segment."""

    name: str
    unit: str
    start: int
    end: int
    count: int = 1
    segment: int = 0


def schedule(tasks: Sequence[UnitTask]) -> tuple[Bar, ...]:
    """Return when each task runs; a task starts as soon as its unit is free, and the tasks that it reads are done.

    A unit takes its tasks in the given order. Neighbours with one count are a segment: it is executed as often, one
    execution after another, and then the next segment follows. The bars are those of its first execution.
    """
    bars, begin = list[Bar](), 0
    for number, (count, segment) in enumerate(groupby(tasks, key=attrgetter("count"))):
        free, ends = dict[str, int](), dict[str, int]()
        for task in segment:
            start = max([free.get(task.unit, 0) if task.unit else 0, *(ends.get(name, 0) for name in task.reads)])
            ends[task.name] = start + task.cycles
            if task.unit:
                free[task.unit] = ends[task.name]
                bars.append(Bar(task.name, task.unit, begin + start, begin + ends[task.name], count, number))
        begin += count * max(ends.values())
    return tuple(bars)


def length(bars: Sequence[Bar]) -> int:
    """Return the cycles of a schedule."""
    total = 0
    for _, segment in groupby(bars, key=attrgetter("segment")):
        several = list(segment)
        total += several[0].count * (max(bar.end for bar in several) - min(bar.start for bar in several))
    return total


def dependences(workload: Workload) -> nx.DiGraph[str]:
    """Return the graph of layers and vector layers: an edge goes from a layer to one that reads its result.

    Raises:
        InputError: layers wait for each other, or a vector layer comes before a layer that it waits for.
    """
    import networkx as nx  # imported here because networkx takes longer to import than most commands to run

    graph: nx.DiGraph[str] = nx.DiGraph()
    names = [layer.name for layer in workload.layers]
    graph.add_nodes_from([*names, *(vector.name for vector in workload.vectors)])
    for layer in workload.layers:
        graph.add_edges_from((name, layer.name) for name in layer.after or ())
    for vector in workload.vectors:
        graph.add_edges_from((name, vector.name) for name in vector.after or ())
        graph.add_edges_from((vector.name, name) for name in vector.before)
    if not nx.is_directed_acyclic_graph(graph):
        names = [name for name, _ in nx.find_cycle(graph)]
        raise InputError(
            f"{workload.name}: layers wait for each other: {', '.join(names)}",
            hint="change after and before of its vector layers",
        )
    return graph


def in_order(workload: Workload, graph: nx.DiGraph[str]) -> list[str]:
    """Return all layers in an order of execution: each vector layer as soon as what it reads is done."""
    import networkx as nx

    ranks = {layer.name: (number, 0, 0) for number, layer in enumerate(workload.layers)}
    places = {vector.name: number for number, vector in enumerate(workload.vectors)}
    for name in nx.topological_sort(graph):
        if name in places:
            ranks[name] = (max((ranks[before][0] for before in graph.predecessors(name)), default=-1), 1, places[name])
    return list(nx.lexicographical_topological_sort(graph, key=ranks.__getitem__))


@dataclass(frozen=True)
class CountedVector:
    """A vector layer with its report; it is not valid if the model does not count the layer."""

    layer: VectorLayer
    report: Report

    @property
    def unit(self) -> str:
        """Name of the unit that executes it; empty: none."""
        return next((limit.name for limit in self.report.limits if limit.action == "compute"), "")

    @property
    def reason(self) -> str | None:
        """Why it is not counted; None: it is."""
        return None if self.report.valid else "; ".join(reason.message for reason in self.report.reasons)


def not_counted_here(workload: Workload, architecture: Architecture) -> tuple[str, ...]:
    """Return a note for results that count no vector layers, if the workload and the architecture are made for such."""
    told = "vector layers are not counted here; `tilewright map` counts them in totals of a network"
    return (told,) if workload.vectors and architecture.units else ()


def counted_vectors(model: BuiltModel, workload: Workload, architecture: Architecture) -> tuple[CountedVector, ...]:
    """Return the vector layers of a workload with their reports; none if the architecture has no vector unit.

    Layers of equal content are evaluated once. After Ctrl-C, none is evaluated any more.
    """
    reports, counted = dict[Any, Report](), list[CountedVector]()
    for layer in workload.vectors if architecture.units else ():
        if stop_requested():
            return ()
        key = layer.operator, layer.work, layer.rows, layer.row, layer.operands, layer.result
        if key not in reports:
            reports[key] = evaluate_vector(model, layer, architecture)
        counted.append(CountedVector(layer, reports[key]))
    return tuple(counted)


@dataclass(frozen=True)
class VectorTotals:
    """Totals of a network with vector layers. Without vector units all of them are None.

    Attributes:
        workload: the network.
        architecture: its machine.
        matrix: layer -> report of one execution; None: it has no mapping.
        vectors: vector layers with their reports.
        matrix_energy_pj: of all matrix layers; None: one has no mapping.
    """

    workload: Workload
    architecture: Architecture
    matrix: Mapping[str, Report | None]
    vectors: tuple[CountedVector, ...]
    matrix_energy_pj: float | None

    @property
    def valid(self) -> list[CountedVector]:
        return [vector for vector in self.vectors if vector.report.valid]

    @property
    def vector_cycles(self) -> int | None:
        """Cycles of all vector layers that are counted, in sequence."""
        return sum(vector.layer.count * (vector.report.cycles or 0) for vector in self.valid) if self.valid else None

    @property
    def vector_energy_pj(self) -> float | None:
        energies = (vector.layer.count * (vector.report.energy_pj or 0.0) for vector in self.valid)
        return math.fsum(energies) if self.valid else None

    @property
    def sequential_cycles(self) -> int | None:
        """Cycles of all layers, in sequence."""
        if self.vector_cycles is None or any(self.matrix.get(layer.name) is None for layer in self.workload.layers):
            return None
        return self.vector_cycles + sum(layer.count * self._cycles(layer.name) for layer in self.workload.layers)

    def _cycles(self, name: str) -> int:
        """Return the cycles of one execution of a matrix layer."""
        report = self.matrix[name]
        return 0 if report is None or report.cycles is None else report.cycles

    @property
    def network_energy_pj(self) -> float | None:
        """Energy of all layers, in sequence."""
        if self.vector_energy_pj is None or self.matrix_energy_pj is None:
            return None
        return self.vector_energy_pj + self.matrix_energy_pj

    @property
    def overlapped_cycles(self) -> int | None:
        """Cycles with units in parallel, or of the busiest port; None: a layer does not state what it reads.

        The ports are those of memories with one instance, which all units share.
        """
        return max(length(self.bars), *self._ports.values()) if self.bars else None

    @property
    def _ports(self) -> Counter[tuple[str, str]]:
        """Return the cycles that all layers together need of each port that units share, with one of no port."""
        shared = {
            memory.name
            for cluster, number in zip(self.architecture.clusters, self.architecture.instances, strict=False)
            for memory in cluster.memories
            if number == 1
        }
        ports = Counter({("", ""): 0})
        reports = [(self.matrix[layer.name], layer.count) for layer in self.workload.layers]
        for report, count in (*reports, *((vector.report, vector.layer.count) for vector in self.valid)):
            for limit in () if report is None else report.limits:
                if limit.name in shared:
                    ports[limit.name, limit.action] += count * limit.cycles
        return ports

    @cached_property
    def bars(self) -> tuple[Bar, ...]:
        """Time line of the units; empty if it is not known."""
        unknown = self.workload.unknown or any(vector.layer.after is None for vector in self.vectors)
        if self.sequential_cycles is None or unknown:
            return ()
        graph = dependences(self.workload)
        vectors = {vector.layer.name: vector for vector in self.vectors}
        counts = {layer.name: layer.count for layer in self.workload.layers}
        tasks = []
        for name in in_order(self.workload, graph):
            reads = tuple(graph.predecessors(name))
            if name in vectors:
                vector = vectors[name]
                tasks.append(UnitTask(name, vector.unit, vector.report.cycles or 0, vector.layer.count, reads))
            else:
                tasks.append(UnitTask(name, self.architecture.compute.name, self._cycles(name), counts[name], reads))
        return schedule(tasks)

    @property
    def counted(self) -> frozenset[str]:
        """Unmapped operators that vector layers count, and vector layers that are in no list of such."""
        return frozenset(name for vector in self.valid for name in vector.layer.operators or (vector.layer.name,))

    @property
    def port_bars(self) -> tuple[Bar, ...]:
        """Time line of the ports of memories: the words of a layer begin with it; empty if it is not known."""
        reports = {name: report for name, report in self.matrix.items() if report is not None}
        reports |= {vector.layer.name: vector.report for vector in self.valid}
        return tuple(
            Bar(bar.name, limit.title, bar.start, bar.start + limit.cycles, bar.count, bar.segment)
            for bar in self.bars
            for limit in reports[bar.name].limits
            if limit.cycles and limit.action != "compute"
        )

    def uncounted(self) -> Iterator[tuple[VectorLayer, str]]:
        """Yield the vector layers that are not counted, and why."""
        for vector in self.vectors:
            if vector.reason is not None:
                yield vector.layer, vector.reason


VECTORS = Sheet(
    Figure("name", Column("vector layer"), attrgetter("layer.name"), kind=str, meaning="Name of the vector layer."),
    Figure("operator", Column("operator"), attrgetter("layer.operator"), kind=str, meaning="Kind of operator."),
    Figure("unit", Column("unit"), kind=str, meaning="Unit that executes it; empty if none does."),
    Figure("rows", numbers("rows"), attrgetter("layer.rows"), kind=int, meaning="Number of rows."),
    Figure("row", numbers("row"), attrgetter("layer.row"), kind=int, meaning="Elements of a row."),
    Figure("count", numbers("count"), attrgetter("layer.count"), kind=int, meaning="Number of executions."),
    Figure(
        "operations", numbers("operations"), attrgetter("report.macs"), kind=int, meaning="Operations of one execution."
    ),
    views={
        "json": "name operator unit rows row count operations",
        "page": "name operator unit rows row count operations",
    },
)
"""Figures of vector layers; costs are those of all results."""
