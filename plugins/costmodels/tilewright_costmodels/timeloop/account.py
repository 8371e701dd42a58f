"""From words moved to reads, fills, updates, energy and cycles: the full account of one mapping."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import Delivery as DeliveryReport
from tilewright.schema.report import LevelReport, NetworkReport, TensorCounts
from tilewright_costmodels.timeloop.nest import Level, Traffic, levels_of, traffic


@dataclass(frozen=True)
class Counts:
    """Accesses of a kept tensor, per instance."""

    level: Level
    memory: Memory
    tensor: Tensor
    reads: int
    fills: int
    updates: int
    tile_words: int
    partition_words: int

    def energy_pj(self, existing: int) -> float:
        """Over all instances in use; `existing` instances are built. Timeloop: one access per block, per macro."""
        memory = self.memory
        update = memory.write_energy_pj if memory.update_energy_pj is None else memory.update_energy_pj
        one = (
            -(-self.reads // memory.block_words) * memory.read_energy_pj
            + -(-self.fills // memory.block_words) * memory.write_energy_pj
            + -(-self.updates // memory.block_words) * update
        )
        return one * min(self.level.utilized, existing // memory.instances_per_macro)


@dataclass(frozen=True)
class Account:
    """All figures of one mapping."""

    cycles: int
    energy_pj: float
    compute_energy_pj: float
    levels: tuple[LevelReport, ...]
    networks: tuple[NetworkReport, ...]


def rounded(value: float) -> int:
    """To the nearest integer, halves away from zero, as C++ rounds."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def account(problem: Problem, architecture: Architecture, mapping: Mapping, link_transfers: bool) -> Account:
    """Price a mapping that is known to be legal."""
    levels = levels_of(mapping, architecture)
    compute_cycles = architecture.compute.cycles_per_operation * math.prod(
        loop.trips for level in levels for loop in level.temporal
    )
    counts: list[Counts] = []
    networks: list[NetworkReport] = []
    for tensor in problem.tensors:
        flows = [traffic(problem, tensor, levels, index, link_transfers) for index in range(len(levels))]
        peers = _peers(flows, levels)
        partitions = _partitions(problem, tensor, levels)
        _bypass(flows, levels, tensor.name)
        for index, level in enumerate(levels):
            networks.append(_network(tensor, level, flows[index], partitions[index]))
            if tensor.name in level.keep:
                counts.append(_counts(problem, tensor, levels, index, flows, peers[index], partitions[index]))
    reports = tuple(
        report
        for memory in architecture.memories
        if (report := _level(memory, counts, architecture, compute_cycles, levels)) is not None
    )
    operations = math.prod(problem.sizes)
    compute_energy = operations * architecture.compute.energy_per_operation_pj
    energy = sum(report.energy_pj for report in reports) + compute_energy + sum(n.energy_pj for n in networks)
    return Account(
        cycles=max([compute_cycles, *(report.cycles for report in reports)]),
        energy_pj=energy,
        compute_energy_pj=compute_energy,
        levels=reports,
        networks=tuple(networks),
    )


def _peers(flows: list[Traffic], levels: tuple[Level, ...]) -> list[float]:
    """Words each instance of a level gets from (and gives to) a neighbour. Timeloop divides the links of one parent
    by all children of all parents."""
    return [0.0] + [flow.links / level.utilized for flow, level in zip(flows[:-1], levels[1:], strict=True)]


def _partitions(problem: Problem, tensor: Tensor, levels: tuple[Level, ...]) -> list[int]:
    """The part of the tensor, in words, that one instance of each level answers for."""
    parts = [problem.tensor_words(tensor)]
    for level in levels[:-1]:
        tile = problem.tile_words(tensor, level.child)
        spread = dict(level.child)
        for loop in level.split:
            spread[loop.dimension] *= loop.trips
        parts.append(parts[-1] * tile // problem.tile_words(tensor, spread))
    return parts


def _bypass(flows: list[Traffic], levels: tuple[Level, ...], name: str) -> None:
    """Fold every level that does not keep the tensor into the level outside it, inner to outer.

    The outer level is then accessed as often as the bypassed one was, in its own mix of group sizes.
    """
    for index in range(len(levels) - 1, 0, -1):
        if name in levels[index].keep:
            continue
        inner, outer = flows[index], flows[index - 1]
        factor = inner.content * levels[index - 1].children / outer.served
        for delivery in outer.deliveries:
            delivery.accesses *= factor
        outer.links = 0.0


def _counts(
    problem: Problem,
    tensor: Tensor,
    levels: tuple[Level, ...],
    index: int,
    flows: list[Traffic],
    peer: float,
    partition: int,
) -> Counts:
    level = levels[index]
    memory = level.cluster.memory_for(tensor)
    assert memory is not None, "legality has been checked"
    content, share = flows[index].content, flows[index - 1].share if index else 0.0
    if tensor.is_output:
        # the first partial sum of every word is written, not added; a box with holes promises more words than exist
        reads = max(0, rounded(content + peer - partition))
        fills = max(0, rounded(share + peer - partition)) if index else 0
        updates = rounded(content)
    else:
        reads, fills, updates = rounded(content + peer), math.trunc(share + peer) if index else 0, 0
    return Counts(level, memory, tensor, reads, fills, updates, problem.tile_words(tensor, level.extents), partition)


def _level(
    memory: Memory, counts: list[Counts], architecture: Architecture, compute_cycles: int, levels: tuple[Level, ...]
) -> LevelReport | None:
    """The row of one memory; None if the mapping has no level there."""
    cluster = next(c for c in architecture.clusters if memory in c.memories)
    here = [level for level in levels if level.cluster is cluster]
    if not here:
        return None
    existing = architecture.instances[architecture.cluster_index[cluster.name]]
    mine = [count for count in counts if count.memory is memory]
    tensors = {
        count.tensor.name: TensorCounts(
            reads=count.reads,
            fills=count.fills,
            updates=count.updates,
            instances=count.level.utilized,
            tile_words=count.tile_words,
            partition_words=count.partition_words,
            energy_pj=count.energy_pj(existing),
        )
        for count in mine
    }
    read = write = 0.0
    for count in mine:  # one after another, as Timeloop adds: `sum` rounds otherwise since Python 3.12
        read += count.reads / compute_cycles
        write += (count.fills + count.updates) / compute_cycles
    slowdown = 1.0
    if memory.read_bandwidth_words_per_cycle is not None and read:
        slowdown = min(slowdown, memory.read_bandwidth_words_per_cycle / read)
    if memory.write_bandwidth_words_per_cycle is not None and write:
        slowdown = min(slowdown, memory.write_bandwidth_words_per_cycle / write)
    return LevelReport(
        name=memory.name,
        instances=here[0].utilized,
        cycles=math.ceil(compute_cycles / slowdown),
        energy_pj=sum(tensor.energy_pj for tensor in tensors.values()),
        tensors=FrozenDict(tensors),
    )


def _network(tensor: Tensor, level: Level, flow: Traffic, partition: int) -> NetworkReport:
    """Energy of the wires below a level (Timeloop's legacy network)."""
    wires = level.cluster.fanout.network
    in_dram = any(memory.technology == "dram" for memory in level.cluster.memories)
    rows = []
    hops = 0.0
    routers = 0
    for delivery in flow.deliveries:
        accesses = rounded(delivery.accesses)
        if tensor.is_output and in_dram:  # DRAM cannot add: partial sums go down and come back
            accesses = max(accesses, 2 * accesses - partition) if tensor.name in level.keep else 0
        if not accesses:
            continue
        hops += delivery.hops
        routers += math.trunc((1 + delivery.hops // accesses) * accesses)
        rows.append(
            DeliveryReport(
                multicast=delivery.multicast,
                scatter=delivery.scatter,
                accesses=accesses,
                hops=delivery.hops / accesses,
            )
        )
    ingresses = sum(row.accesses for row in rows)
    energy = (
        hops * wires.energy_per_hop_pj
        + routers * wires.energy_per_router_pj
        + ingresses * wires.energy_per_ingress_pj
        + flow.links * (wires.energy_per_hop_pj + 2 * wires.energy_per_router_pj)
    )
    return NetworkReport(
        name=level.name,
        tensor=tensor.name,
        ingresses=ingresses,
        deliveries=tuple(rows),
        link_transfers=rounded(flow.links),
        spatial_reductions=sum((row.multicast - 1) * row.accesses for row in rows) if tensor.is_output else 0,
        hops=hops / ingresses if ingresses else 0.0,
        energy_pj=energy * level.utilized,
    )
