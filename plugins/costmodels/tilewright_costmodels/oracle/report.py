"""Report of an executed mapping: averages per instance, energy and cycles from the traffic of the memories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.prices import Price, charged, leakage_pj, port_limits, prices_of, tensor_pj
from tilewright.reports import (
    Accesses,
    InstanceCounts,
    LevelReport,
    Limit,
    NetworkReport,
    Served,
    TensorCounts,
)
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.oracle.memories import MemoryTraffic, execute
from tilewright_costmodels.oracle.trace import Ints, OperationTrace, SpatialLoop


@dataclass(frozen=True)
class TensorResidency:
    """One tensor in one memory, and its traffic."""

    memory: Memory
    cluster: Cluster
    tensor: Tensor
    traffic: MemoryTraffic

    def energy_pj(self, price: Price) -> float:
        """Return the pJ of all instances, at the prices of the memory."""
        reads, fills, updates = self.traffic.reads, self.traffic.fills, self.traffic.updates
        instances = reads.keys() | fills.keys() | updates.keys()
        energy = sum(tensor_pj(self.memory, self.tensor, reads[at], fills[at], updates[at]) for at in sorted(instances))
        return energy * float(charged(price, self.traffic.instances)) / self.traffic.instances

    def transferred(self) -> tuple[Counter[int], Counter[int]]:
        """Return the slices that are read and written, by instance."""
        slices = self.memory.slices_of(self.tensor)
        traffic = self.traffic
        read, written = (
            Counter({instance: count * slices for instance, count in counts.items()})
            for counts in (traffic.reads, traffic.fills + traffic.updates)
        )
        return read, written

    def _average(self, total: int) -> int:
        """Return the average per instance, to the nearest integer."""
        return math.floor(total / self.traffic.instances + 0.5)

    def counts(self, price: Price) -> TensorCounts:
        """Return the averages per instance."""
        return TensorCounts(
            reads=self._average(self.traffic.reads.total()),
            fills=self._average(self.traffic.fills.total()),
            updates=self._average(self.traffic.updates.total()),
            instances=self.traffic.instances,
            tile_words=self.traffic.tile_words,
            energy_pj=self.energy_pj(price),
        )

    def accesses(self) -> Accesses:
        """Return the totals over all instances."""
        return Accesses(
            level=self.memory.name,
            tensor=self.tensor.name,
            instances=self.traffic.instances,
            reads=_over_instances(self.traffic.reads),
            fills=_over_instances(self.traffic.fills),
            updates=_over_instances(self.traffic.updates),
            served=tuple(Served(children=size, words=words) for size, words in sorted(self.traffic.served.items())),
        )

    def network(self) -> NetworkReport:
        """Return the traffic of the network below, per instance."""
        served = self.traffic.served
        added = sum((size - 1) * words for size, words in served.items()) if self.tensor.is_output else 0
        return NetworkReport(
            name=self.cluster.name,
            tensor=self.tensor.name,
            ingresses=self._average(served.total()),
            spatial_reductions=self._average(added),
        )


def _over_instances(counts: Counter[int]) -> InstanceCounts:
    return InstanceCounts(total=counts.total(), most=max(counts.values(), default=0))


def sharing(architecture: Architecture, mapping: Mapping, tensor: Tensor) -> Callable[[SpatialLoop], bool]:
    """Return whether one access may serve all sub-clusters along a spatial loop, or reduce their sums."""

    def may_share(loop: SpatialLoop) -> bool:
        entry = mapping.entries[loop.entry]
        fanout = architecture.cluster(entry.target).fanout
        return tensor.name not in entry.unicast and (fanout.reduction if tensor.is_output else fanout.multicast)

    return may_share


def run(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    trace: OperationTrace,
    touched: dict[str, Ints],
    first_fills: bool = False,
) -> list[TensorResidency]:
    """Execute all tensors of a legal mapping that covers every iteration once.

    Args:
        trace: the operations.
        touched: tensor -> index of the word that each operation touches, [n].
        first_fills: first writes of outputs are fills.
    """
    residencies = []
    for tensor in problem.tensors:
        keepers = [index for index, entry in enumerate(mapping.entries) if tensor.name in (entry.keep or ())]

        may_share = sharing(architecture, mapping, tensor)
        for traffic in execute(trace, touched[tensor.name], keepers, may_share, tensor.is_output):
            cluster = architecture.cluster(mapping.entries[traffic.entry].target)
            memory = cluster.memory_for(tensor)
            assert memory is not None, "legality has been checked"
            if first_fills:
                traffic.fills.update(traffic.first_writes)
            residencies.append(TensorResidency(memory, cluster, tensor, traffic))
    return residencies


def levels(
    architecture: Architecture,
    mapping: Mapping,
    trace: OperationTrace,
    residencies: list[TensorResidency],
    limited: Sequence[Limit],
    cycles: int,
) -> list[LevelReport]:
    """Return one row per memory of a cluster with a storage entry.

    Args:
        limited: limits on the cycles; the first one is compute.
        cycles: cycles of the run.
    """
    rows = []
    in_use = Counter({memory.name: 1 for memory in architecture.memories})
    for residency in residencies:
        in_use[residency.memory.name] = max(in_use[residency.memory.name], residency.traffic.instances)
    prices, leaked = prices_of(architecture), leakage_pj(architecture, cycles, in_use)
    for cluster in architecture.clusters:
        entries = [
            i for i, entry in enumerate(mapping.entries) if entry.target == cluster.name and entry.keep is not None
        ]
        if not entries:
            continue
        instances = len(np.unique(trace.instances(entries[0])))
        for memory in cluster.memories:
            kept = [residency for residency in residencies if residency.memory is memory]
            tensors = {residency.tensor.name: residency.counts(prices[memory.name]) for residency in kept}
            rows.append(
                LevelReport(
                    name=memory.name,
                    instances=instances,
                    cycles=max(limit.cycles for limit in limited if limit is limited[0] or limit.name == memory.name),
                    energy_pj=sum(counts.energy_pj for counts in tensors.values()) + leaked[memory.name],
                    leakage_pj=leaked[memory.name],
                    tensors=FrozenDict(tensors),
                )
            )
    return rows


def limits(architecture: Architecture, residencies: list[TensorResidency]) -> Iterator[Limit]:
    """Yield the cycles that each bandwidth requires, at the busiest instance of its memory."""
    moved = {memory.name: (Counter[int](), Counter[int]()) for memory in architecture.memories}
    for residency in residencies:
        for total, counts in zip(moved[residency.memory.name], residency.transferred(), strict=True):
            total.update(counts)
    yield from port_limits(architecture.memories, moved)
