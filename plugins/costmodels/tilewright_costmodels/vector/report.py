"""Report of a vector layer from its counts. All prices are those of `tilewright.prices`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from tilewright.prices import charged, leakage_pj, port_limits, prices_of, tensor_pj
from tilewright.reports import LevelReport, Limit, LimitAction, NetworkReport, Report, TensorCounts, overlapping
from tilewright.schema.architecture import Cluster, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Tensor
from tilewright_costmodels.vector.counts import Moved, Placement, VectorCounts


def report_of(placed: Placement, counts: VectorCounts) -> Report:
    """Return the report. All overlaps: the busiest unit, and the busiest port of each memory.

    Energies of memories are those of the mean instance, times the instances in use.

    Raises:
        NotConformableError: a count is not below 2**53 (`too_large`).
    """
    most = max(*counts.operations.values(), *(max(vars(moved).values()) for moved in counts.moved.values()))
    if most >= 2**53:
        placed.refuse("too_large", f"it has a count of {most:,}; expected less than 2**53")
    layer, unit, architecture = placed.layer, placed.unit, placed.architecture
    tensors = {tensor.name: tensor for tensor in layer.tensors}
    on_the_way = [memory for memory in architecture.memories if any(name == memory.name for name, _ in counts.moved)]
    traffic: dict[str, tuple[Counter[int], Counter[int]]] = {}
    for (name, tensor), moved in counts.moved.items():
        memory = next(memory for memory in on_the_way if memory.name == name)
        read, written = traffic.setdefault(name, (Counter(), Counter()))
        slices = memory.slices_of(tensors[tensor])
        read[0] += moved.most_read * slices
        written[0] += moved.most_written * slices
    lane_cycles = math.ceil(sum(number * unit.cycles.get(kind, 1) for kind, number in counts.most.items()) / unit.lanes)
    passed = list(_networks(placed, counts))
    limits = overlapping(
        (
            Limit(name=unit.name, action="compute", cycles=lane_cycles),
            *port_limits(on_the_way, traffic),
            *_network_limits(placed, passed),
        )
    )
    cycles = max(limit.cycles for limit in limits)
    used = {memory.name: placed.used(memory.name) for memory in on_the_way}
    leaked = leakage_pj(architecture, cycles, {name: float(number) for name, number in used.items()})
    levels = [
        _level(
            placed, memory, counts, leaked[memory.name], [limit.cycles for limit in limits if limit.name == memory.name]
        )
        for memory in architecture.memories
        if memory in on_the_way or leaked[memory.name]
    ]
    compute = math.fsum(number * unit.energy_pj[kind] for kind, number in counts.operations.items())
    networks = tuple(_network(placed, cluster, tensor, words) for cluster, tensor, words in passed)
    energy = math.fsum((compute, *(level.energy_pj for level in levels), *(part.energy_pj for part in networks)))
    work = sum(number * unit.cycles.get(kind, 1) for kind, number in counts.operations.items())
    return Report(
        model=placed.model,
        problem=layer.name,
        valid=True,
        macs=sum(counts.operations.values()),
        cycles=cycles,
        energy_pj=energy,
        edp=energy * cycles,
        utilization=work / (unit.lanes * placed.units * cycles),
        compute_energy_pj=compute,
        levels=tuple(levels),
        networks=tuple(part for part in networks if part.energy_pj),
        limits=limits,
        architecture=architecture.name,
        clock_ghz=architecture.clock_ghz,
    )


def _networks(placed: Placement, counts: VectorCounts) -> Iterator[tuple[Cluster, Tensor, int]]:
    """Yield the words of each tensor that pass the network below each cluster, of all its instances."""
    for tensor in placed.layer.tensors:
        path = placed.paths[tensor.name]
        for outer, inner in zip(path, path[1:], strict=False):
            if tensor.is_output:
                words = counts.moved[outer.name, tensor.name].updates
            else:
                words = counts.moved[inner.name, tensor.name].fills
            yield from ((cluster, tensor, words) for cluster in placed.between(outer, inner))


def _network_limits(placed: Placement, passed: Sequence[tuple[Cluster, Tensor, int]]) -> Iterator[Limit]:
    """Yield the limits of bandwidths of networks: operands go inwards, and results outwards."""
    for cluster in dict.fromkeys(cluster for cluster, _, _ in passed):
        rate = cluster.fanout.network.bandwidth_words_per_cycle
        number = placed.architecture.instances[placed.architecture.cluster_index[cluster.name]]
        used = min(number, placed.layer.rows)  # rows are spread over all instances
        words = [
            sum(count for one, tensor, count in passed if one is cluster and tensor.is_output == outwards)
            for outwards in (False, True)
        ]
        for action, most in zip(SIDES, (-(-count // used) for count in words), strict=True):
            if rate is not None and most:
                cycles = math.ceil(most / rate)
                yield Limit(name=cluster.name, action=action, cycles=cycles, words=most, words_per_cycle=rate)


SIDES: tuple[LimitAction, LimitAction] = "send", "collect"


def _network(placed: Placement, cluster: Cluster, tensor: Tensor, words: int) -> NetworkReport:
    """Return the words of a tensor on the network below a cluster; each goes to one sub-cluster, with hops as Timeloop's."""
    network, fanout = cluster.fanout.network, cluster.fanout
    number = placed.architecture.instances[placed.architecture.cluster_index[cluster.name]]
    middle = (fanout.size - 1) / 2
    mean = middle if fanout.axis != "Y" else sum(abs(y - middle) for y in range(fanout.size)) / fanout.size
    energy = (
        network.energy_per_ingress_pj + mean * network.energy_per_hop_pj + (1 + mean) * network.energy_per_router_pj
    )
    return NetworkReport(
        name=cluster.name,
        tensor=tensor.name,
        ingresses=-(-words // number),
        hops=words * mean / number,
        energy_pj=words * energy,
    )


def _level(placed: Placement, memory: Memory, counts: VectorCounts, leaked: float, limits: list[int]) -> LevelReport:
    """Return the part of a memory in the report."""
    used = placed.used(memory.name) if memory.name in {name for name, _ in counts.moved} else 1
    price = prices_of(placed.architecture)[memory.name]
    tensors = {}
    for tensor in placed.layer.tensors:
        moved = counts.moved.get((memory.name, tensor.name), Moved())
        if moved.reads or moved.fills or moved.updates:
            energy = tensor_pj(memory, tensor, moved.reads / used, moved.fills / used, moved.updates / used)
            tensors[tensor.name] = TensorCounts(
                reads=-(-moved.reads // used),
                fills=-(-moved.fills // used),
                updates=-(-moved.updates // used),
                instances=used,
                tile_words=0,
                energy_pj=energy * float(charged(price, used)),
            )
    return LevelReport(
        name=memory.name,
        instances=used,
        cycles=max(limits, default=0),
        energy_pj=math.fsum((leaked, *(part.energy_pj for part in tensors.values()))),
        leakage_pj=leaked,
        tensors=FrozenDict(tensors),
    )
