"""From what the memories did to a report: averages per instance, energy, cycles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.architecture import Memory as Hardware
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import (
    Accesses,
    InstanceCounts,
    LevelReport,
    Limit,
    NetworkReport,
    Served,
    TensorCounts,
)
from tilewright_costmodels.oracle.machine import Memory, execute
from tilewright_costmodels.oracle.trace import Ints, SpatialLoop, Trace


@dataclass(frozen=True)
class Kept:
    """One tensor in one memory."""

    hardware: Hardware
    cluster: Cluster
    tensor: Tensor
    did: Memory

    def energy_pj(self, existing: int) -> float:
        """Of all instances. One access per block; instances of one macro are accessed together."""
        memory = self.hardware
        energy = sum(
            -(-values * memory.slices_of(self.tensor) // (memory.block_words * memory.slices_per_word)) * energy
            for counts, energy in (
                (self.did.reads, memory.read_energy_pj),
                (self.did.fills, memory.write_energy_pj),
                (self.did.updates, memory.accumulation_energy_pj),
            )
            for values in counts.values()
        )
        return energy * min(self.did.instances, existing // memory.instances_per_macro) / self.did.instances

    def _average(self, total: int) -> int:
        """Per instance, to the nearest integer."""
        return math.floor(total / self.did.instances + 0.5)

    def counts(self, existing: int) -> TensorCounts:
        return TensorCounts(
            reads=self._average(self.did.reads.total()),
            fills=self._average(self.did.fills.total()),
            updates=self._average(self.did.updates.total()),
            instances=self.did.instances,
            tile_words=self.did.tile_words,
            energy_pj=self.energy_pj(existing),
        )

    def accesses(self) -> Accesses:
        return Accesses(
            level=self.hardware.name,
            tensor=self.tensor.name,
            instances=self.did.instances,
            reads=_over_instances(self.did.reads),
            fills=_over_instances(self.did.fills),
            updates=_over_instances(self.did.updates),
            served=tuple(Served(children=size, words=words) for size, words in sorted(self.did.served.items())),
        )

    def network(self) -> NetworkReport:
        """What passes the network below, per instance."""
        served = self.did.served
        added = sum((size - 1) * words for size, words in served.items()) if self.tensor.is_output else 0
        return NetworkReport(
            name=self.cluster.name,
            tensor=self.tensor.name,
            ingresses=self._average(served.total()),
            spatial_reductions=self._average(added),
        )


def _over_instances(counts: Counter[int]) -> InstanceCounts:
    return InstanceCounts(total=counts.total(), most=max(counts.values(), default=0))


def run(
    problem: Problem, architecture: Architecture, mapping: Mapping, trace: Trace, touched: dict[str, Ints]
) -> list[Kept]:
    """Execute all tensors of a legal mapping that covers every iteration once. `touched`: the word of each tensor that
    each operation touches, [n]."""
    kept = []
    for tensor in problem.tensors:
        keepers = [index for index, entry in enumerate(mapping.entries) if tensor.name in (entry.keep or ())]

        def shares(loop: SpatialLoop, tensor: Tensor = tensor) -> bool:
            entry = mapping.entries[loop.entry]
            fanout = architecture.cluster(entry.target).fanout
            return tensor.name not in entry.unicast and (fanout.reduction if tensor.is_output else fanout.multicast)

        for did in execute(trace, touched[tensor.name], keepers, shares, tensor.is_output):
            cluster = architecture.cluster(mapping.entries[did.entry].target)
            hardware = cluster.memory_for(tensor)
            assert hardware is not None, "legality has been checked"
            kept.append(Kept(hardware, cluster, tensor, did))
    return kept


def levels(
    architecture: Architecture, mapping: Mapping, trace: Trace, kept: list[Kept], limited: Sequence[Limit], cycles: int
) -> list[LevelReport]:
    """One row per memory of a cluster that some entry holds on; the first of the limits is compute."""
    rows = []
    in_use = Counter({memory.name: 1 for memory in architecture.memories})
    for each in kept:
        in_use[each.hardware.name] = max(in_use[each.hardware.name], each.did.instances)
    for number, cluster in enumerate(architecture.clusters):
        here = [i for i, entry in enumerate(mapping.entries) if entry.target == cluster.name and entry.keep is not None]
        if not here:
            continue
        instances = len(np.unique(trace.instances(here[0])))
        for memory in cluster.memories:
            mine = [each for each in kept if each.hardware is memory]
            tensors = {each.tensor.name: each.counts(architecture.instances[number]) for each in mine}
            switch, shared = architecture.switch_of(memory.name)
            leakage_pj = memory.leakage_pj_per_cycle * cycles * shared * in_use[switch]
            rows.append(
                LevelReport(
                    name=memory.name,
                    instances=instances,
                    cycles=max(each.cycles for each in limited if each is limited[0] or each.name == memory.name),
                    energy_pj=sum(counts.energy_pj for counts in tensors.values()) + leakage_pj,
                    leakage_pj=leakage_pj,
                    tensors=FrozenDict(tensors),
                )
            )
    return rows


def limits(architecture: Architecture, kept: list[Kept]) -> Iterator[Limit]:
    """What the bandwidths of the memories make of the run, by their busiest instances."""
    for memory in architecture.memories:
        read, written = Counter[int](), Counter[int]()  # slices
        for each in kept:
            if each.hardware is memory:
                slices = memory.slices_of(each.tensor)
                for total, counts in ((read, each.did.reads), (written, each.did.fills + each.did.updates)):
                    total.update({instance: count * slices for instance, count in counts.items()})
        for (action, bandwidth), counts in zip(memory.bandwidths, (read, written), strict=True):
            most = max(counts.values(), default=0)
            if bandwidth is not None and most:
                cycles = math.ceil(most / (bandwidth * memory.slices_per_word))
                words = -(-most // memory.slices_per_word)
                yield Limit(name=memory.name, action=action, cycles=cycles, words=words, words_per_cycle=bandwidth)
