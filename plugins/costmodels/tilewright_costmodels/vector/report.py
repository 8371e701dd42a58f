"""Report of a vector layer from its counts. All prices are those of `tilewright.prices`."""

from __future__ import annotations

import math
from collections import Counter

from tilewright.prices import charged, leakage_pj, port_limits, prices_of, tensor_pj
from tilewright.reports import LevelReport, Limit, Report, TensorCounts, overlapping
from tilewright.schema.architecture import Memory
from tilewright.schema.frozen import FrozenDict
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
    limits = overlapping(
        (Limit(name=unit.name, action="compute", cycles=lane_cycles), *port_limits(on_the_way, traffic))
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
    energy = math.fsum((compute, *(level.energy_pj for level in levels)))
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
        limits=limits,
        architecture=architecture.name,
        clock_ghz=architecture.clock_ghz,
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
