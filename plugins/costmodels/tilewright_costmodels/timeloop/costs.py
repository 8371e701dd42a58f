"""Energies and cycles, from counts alone.

The matrix product of `nest`, if each access and each operation costs 1 pJ:

    level       instances    reads A, B, Z     fills A, B, Z     updates Z      pJ
    DRAM        1            16, 32, 0         0, 0, 0           16             64
    PE          2            32, 32, 16        8, 16, 0          32             2 * 136 = 272
    compute     -            -                 -                 -              4 * 4 * 4 = 64

The mapping costs 64 + 272 + 64 = 400 pJ.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES, compiled, kernel_part, lanes, passed_by_pointer, splat16
from tilewright.mapspace.batch import Bools, Floats
from tilewright.prices import access_pj, charged, is_limited, leaked_pj, memory_speed, port_cycles, slowed_cycles
from tilewright_costmodels.timeloop.tables import Hardware, Tables

Number = TypeVar("Number", bound=np.generic)


@passed_by_pointer
class Counts(NamedTuple):
    """Counts of G groups of B mappings in SIMD lanes, and their costs.

    Shapes: L levels, T tensors, M memories. Fields without a shape are [G, L, T, B].
    """

    reads: Floats
    """Words read from one instance of the level, averaged over the instances in use."""
    fills: Floats
    """Words written from the parent, likewise."""
    updates: Floats
    """Words written from inside, likewise."""
    tile_words: Floats
    partition_words: Floats
    busiest_reads: Floats
    """Words of the busiest instance, where tiles do not divide."""
    busiest_writes: Floats
    """Fills and updates of the busiest instance, where tiles do not divide."""
    hops: Floats
    """Hops in the network below one instance."""
    routers: Floats
    ingresses: Floats
    links: Floats
    """Words forwarded between neighbours below one instance (link transfers)."""
    energy: Floats
    """pJ of the memory, over all instances."""
    network_energy: Floats
    """pJ of the network below the level, over all instances."""
    instances: Floats
    """[G, L, B]: instances in use."""
    read_rate: Floats
    """[G, M, B]: slices read per cycle of computing, of memories with a bandwidth."""
    write_rate: Floats
    """[G, M, B]: slices written per cycle of computing, likewise."""
    cycles: Floats
    """[G, M, B]: cycles that the memory needs."""
    in_use: Floats
    """[G, M, B]: instances in use."""
    leakage: Floats
    """[G, M, B]: pJ that leak."""
    compute_cycles: Floats
    """[G, B]: cycles of computing."""
    ragged: Bools
    """[G, B]: whether some tile does not divide."""


def counts_of(groups: int, tables: Tables) -> Counts:
    """Return zero counts for `groups` groups of mappings."""
    levels, tensors, _ = tables.shape
    rates = dict.fromkeys(
        "read_rate write_rate cycles in_use leakage".split(), (groups, len(tables.hardware.memory), LANES)
    )
    shapes = rates | {
        "instances": (groups, levels, LANES),
        "compute_cycles": (groups, LANES),
        "ragged": (groups, LANES),
    }
    arrays: dict[str, Any] = {}
    for name in Counts._fields:
        kind = np.bool_ if name == "ragged" else np.float64
        arrays[name] = np.zeros(shapes.get(name, (groups, levels, tensors, LANES)), kind)
    return Counts(**arrays)


def mapping_rows(count: NDArray[Number], mappings: int) -> NDArray[Number]:
    """Return a copy of a count with mappings on the first axis: [mapping, ...] from [G, ..., B]."""
    return np.moveaxis(count, -1, 1).reshape(-1, *count.shape[1:-1])[:mappings].copy()


@compiled
def cost_all(hardware: Hardware, counts: Counts, energy_pj: Floats, cycles: Floats) -> None:
    """Write energy and cycles of all groups, [G, B]."""
    for group in range(len(energy_pj)):
        energy_pj[group][:], cycles[group][:] = cost(hardware, counts, False, False, group)


@kernel_part
def cost(hardware: Hardware, counts: Counts, detailed: bool, reported: bool, group: int) -> tuple[Floats, Floats]:
    """Return (energy in pJ, cycles) of one group, [B] each.

    Timeloop charges one access per block and macro. The slowest memory sets the cycles, and what is in use leaks in all
    of them. Where tiles do not divide, the busiest instance sets the cycles instead of the average one.

    Args:
        detailed: include networks.
        reported: keep energies and cycles by level, tensor and memory.
    """
    levels, tensors = hardware.memory_index.shape
    energy, compute_cycles = splat16(hardware.compute_energy_pj), lanes(counts.compute_cycles[group])
    ragged = lanes(counts.ragged[group])
    for m in range(len(hardware.memory)):
        counts.read_rate[group, m][:] = counts.write_rate[group, m][:] = splat16(0.0)
        counts.in_use[group, m][:] = splat16(1.0)
    for tensor in range(tensors):
        for level in range(levels):
            m, instances = hardware.memory_index[level, tensor], lanes(counts.instances[group, level])
            memory_energy = splat16(0.0)
            if m >= 0:
                memory, slices = hardware.memory[m], hardware.slices[level, tensor]
                reads = lanes(counts.reads[group, level, tensor]) * slices
                fills = lanes(counts.fills[group, level, tensor]) * slices
                updates = lanes(counts.updates[group, level, tensor]) * slices
                accessed = reads + fills + updates > 0.0
                if np.any(accessed):
                    in_use = lanes(counts.in_use[group, m])
                    counts.in_use[group, m][:] = np.where(accessed, np.maximum(in_use, instances), in_use)
                    if is_limited(memory):
                        read, written = reads, fills + updates
                        if np.any(ragged):
                            read = np.where(ragged, lanes(counts.busiest_reads[group, level, tensor]) * slices, read)
                            written = np.where(
                                ragged, lanes(counts.busiest_writes[group, level, tensor]) * slices, written
                            )
                        read, written = np.where(accessed, read, 0.0), np.where(accessed, written, 0.0)
                        counts.read_rate[group, m][:] = lanes(counts.read_rate[group, m]) + read / compute_cycles
                        counts.write_rate[group, m][:] = lanes(counts.write_rate[group, m]) + written / compute_cycles
                    spent = access_pj(memory, reads, fills, updates) * charged(memory, instances)
                    memory_energy = np.where(accessed, spent, 0.0)
            energy = energy + memory_energy
            if reported:
                counts.energy[group, level, tensor][:] = memory_energy
            if detailed:
                level_costs = hardware.level[level]
                network = lanes(counts.hops[group, level, tensor]) * level_costs.hop_energy
                network = network + lanes(counts.routers[group, level, tensor]) * level_costs.router_energy
                network = network + lanes(counts.ingresses[group, level, tensor]) * level_costs.ingress_energy
                per_link = level_costs.hop_energy + 2.0 * level_costs.router_energy
                network = (network + lanes(counts.links[group, level, tensor]) * per_link) * instances
                energy = energy + network
                if reported:
                    counts.network_energy[group, level, tensor][:] = network
    cycles = compute_cycles
    for m in range(len(hardware.memory)):
        memory, memory_cycles = hardware.memory[m], compute_cycles
        read, written = lanes(counts.read_rate[group, m]), lanes(counts.write_rate[group, m])
        if is_limited(memory):
            speed = memory_speed(memory, read, written)
            limited = slowed_cycles(compute_cycles, speed)
            if np.any(ragged):
                busiest = port_cycles(memory, read * compute_cycles, written * compute_cycles)
                limited = np.where(ragged, busiest, limited)
            memory_cycles = np.where(speed < 1.0, limited, compute_cycles)
            cycles = np.maximum(cycles, memory_cycles)
        if reported:
            counts.cycles[group, m][:] = memory_cycles
    for m in range(len(hardware.memory)):
        memory = hardware.memory[m]
        leakage = leaked_pj(memory, cycles, lanes(counts.in_use[group, memory.gate]))
        if reported:
            counts.leakage[group, m][:] = leakage
        energy = energy + leakage
    return energy, cycles
