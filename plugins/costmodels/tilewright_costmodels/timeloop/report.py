"""Report of one mapping, from the kernel's counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tilewright.plugin.costmodel import Costs
from tilewright.prices import throttling_limits
from tilewright.reports import Delivery, LevelReport, Limit, NetworkReport, TensorCounts, overlapping
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.multicast import Deliveries
from tilewright_costmodels.timeloop.tables import Tables


def figures(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    tables: Tables,
    counts: Counts,
    deliveries: Deliveries,
    costs: Costs,
) -> dict[str, Any]:
    """Return the fields of a report on the only mapping that was counted."""
    energy_pj, cycles = float(costs.energy_pj[0]), int(costs.cycles[0])
    entries = [mapping.entries[entry] for entry in tables.hardware.level["holds"]]
    memories = [(cluster, memory) for cluster in architecture.clusters for memory in cluster.memories]
    levels = []
    for number, (cluster, memory) in enumerate(memories):
        here = [level for level, entry in enumerate(entries) if entry.target == cluster.name]
        if here:
            tensors = dict(_kept(problem, mapping, tables, counts, cluster, memory, here))
            leakage_pj = float(counts.leakage[0, number, 0])
            levels.append(
                LevelReport(
                    name=memory.name,
                    instances=int(counts.instances[0, here[0], 0]),
                    cycles=int(counts.cycles[0, number, 0]),
                    energy_pj=math.fsum((*(tensor.energy_pj for tensor in tensors.values()), leakage_pj)),
                    leakage_pj=leakage_pj,
                    tensors=FrozenDict(tensors),
                )
            )
    return {
        "cycles": cycles,
        "energy_pj": energy_pj,
        "edp": energy_pj * cycles,
        "utilization": problem.macs / (architecture.compute_instances * cycles),
        "limits": overlapping(_limits(architecture, counts, not mapping.is_perfect)),
        "busy_units": problem.macs * architecture.compute.cycles_per_operation / float(counts.compute_cycles[0, 0]),
        "compute_energy_pj": tables.hardware.compute_energy_pj,
        "levels": tuple(levels),
        "networks": tuple(
            _network(entry.target, level, name, tensor, tables, counts, deliveries)
            for tensor, name in enumerate(problem.tensor_names)
            for level, entry in enumerate(entries)
        ),
    }


def _limits(architecture: Architecture, counts: Counts, ragged: bool) -> Iterator[Limit]:
    """Yield the cycles of compute and of every bandwidth."""
    computing = float(counts.compute_cycles[0, 0])
    yield Limit(name="compute", action="compute", cycles=int(computing))
    for number, memory in enumerate(architecture.memories):
        read, written = float(counts.read_rate[0, number, 0]), float(counts.write_rate[0, number, 0])
        yield from throttling_limits(memory, computing, read, written, ragged)


def _kept(
    problem: Problem,
    mapping: Mapping,
    tables: Tables,
    counts: Counts,
    cluster: Cluster,
    memory: Memory,
    levels: list[int],
) -> Iterator[tuple[str, TensorCounts]]:
    """Yield the counts of every tensor that the memory keeps."""
    for number, tensor in enumerate(problem.tensors):
        for level in levels:
            entry = mapping.entries[tables.hardware.level[level].holds]
            tile = problem.dimensions if level == 0 else entry.temporal_tile_sizes
            if tensor.name in (entry.keep or ()) and cluster.memory_for(tensor) == memory:
                here = 0, level, number, 0
                yield (
                    tensor.name,
                    TensorCounts(
                        reads=_rounded(counts.reads[here]),
                        fills=_rounded(counts.fills[here]),
                        updates=_rounded(counts.updates[here]),
                        instances=int(counts.instances[0, level, 0]),
                        tile_words=memory.tile_words(problem, tensor, tile),
                        partition_words=_rounded(counts.partition_words[here]),
                        energy_pj=float(counts.energy[here]),
                    ),
                )


def _rounded(average: float) -> int:
    whole = math.floor(average)
    return whole + (average - whole >= 0.5 - min(average * 1e-12, 1e-3))  # floating point underestimates some halves


def _network(
    name: str, level: int, tensor: str, number: int, tables: Tables, counts: Counts, deliveries: Deliveries
) -> NetworkReport:
    here = 0, level, number, 0
    delivered = [
        Delivery(
            multicast=int(size.multicast),
            scatter=int(size.scatter),
            accesses=int(size.sent),
            hops=float(size.hops / size.sent),
        )
        for size in deliveries.reported[number, level, : deliveries.reported_sizes[number, level]]
        if size.sent
    ]
    ingresses, output = int(counts.ingresses[here]), bool(tables.tensors.info[number].is_output)
    return NetworkReport(
        name=name,
        tensor=tensor,
        ingresses=ingresses,
        deliveries=tuple(delivered),
        link_transfers=max(
            _rounded(counts.links[here]), int(counts.links[here] > 1e-6)
        ),  # an average below one half is reported as one
        spatial_reductions=sum((delivery.multicast - 1) * delivery.accesses for delivery in delivered) if output else 0,
        hops=float(counts.hops[here]) / ingresses if ingresses else 0.0,
        energy_pj=float(counts.network_energy[here]),
    )
