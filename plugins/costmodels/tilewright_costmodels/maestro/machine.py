"""Hardware as the kernel reads it: transfers, memories with their energies, and the tensors they hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import integer
from tilewright.schema.architecture import Architecture, Memory
from tilewright_costmodels.maestro.tables import Hardware
from tilewright_notations.directives import FILTER, INPUT, OUTPUT, WINDOWS, DirectiveHardware, DirectiveLayer
from tilewright_notations.directives.plan import Plan
from tilewright_notations.directives.roles import Roles
from tilewright_notations.directives.tiles import L1_ENERGY, L2_ENERGY, NJ_PER_MAC

TENSORS = (INPUT, FILTER, OUTPUT)
PJ_PER_MAC = NJ_PER_MAC * 1000
UNLIMITED = 2**62
NO_DRAM = "MAESTRO has no DRAM energy: the energy is that of L2, L1 and compute"


@dataclass(frozen=True, eq=False)
class Machine:
    """Hardware of one layer.

    Attributes:
        numbers: tables of the kernel.
        memories: names, those of L2 first.
        tensors: names of input, filter and output.
        operations_per_cycle: maximum.
        notes: warnings for every report.
    """

    numbers: Hardware
    memories: tuple[str, ...]
    tensors: tuple[str, ...]
    operations_per_cycle: int
    notes: tuple[str, ...] = ()


def machine_of_directives(layer: DirectiveLayer, hardware: DirectiveHardware) -> Machine:
    """Return MAESTRO's own hardware: one L2, and the L1 of all PEs as one memory.

    Energies are in units of a MAC, at 0.23 pJ as in its CSV.
    """
    l2, l1 = (
        Memory(name=name, capacity_words=words, read_energy_pj=energy * PJ_PER_MAC, write_energy_pj=energy * PJ_PER_MAC)
        for name, words, energy in (("L2", hardware.l2_size, L2_ENERGY), ("L1", hardware.l1_size, L1_ENERGY))
    )
    return Machine(
        _hardware(layer, hardware, (l2, l1), [[l2] * 3, [l1] * 3], PJ_PER_MAC),
        ("L2", "L1"),
        TENSORS,
        hardware.num_pes * hardware.simd_lanes,
    )


def machine_of(layer: DirectiveLayer, architecture: Architecture, roles: Roles, plan: Plan) -> Machine:
    """Return an architecture as MAESTRO's hardware, with its own energies. `layer` is the problem's layer."""
    memories = (*plan.l2.memories, *plan.l1.memories)
    tensors = [roles.tensors[name] for name in TENSORS]
    memories_of_tensors = [[cluster.memory_for(tensor) for tensor in tensors] for cluster in (plan.l2, plan.l1)]
    leaking = ", ".join(memory.name for memory in architecture.memories if memory.leakage_pj_per_cycle)
    notes = {NO_DRAM: plan.dram, f"MAESTRO has no leakage: that of {leaking} is not included": leaking}
    return Machine(
        _hardware(layer, plan, memories, memories_of_tensors, architecture.compute.energy_per_operation_pj),
        tuple(memory.name for memory in memories),
        tuple(tensor.name for tensor in tensors),
        architecture.compute_instances,
        tuple(note for note, applies in notes.items() if applies),
    )


def _hardware(
    layer: DirectiveLayer,
    network: DirectiveHardware | Plan,
    memories: Sequence[Memory],
    memories_of_tensors: Sequence[Sequence[Memory | None]],
    energy_per_operation_pj: float,
) -> Hardware:
    """Return the tables of the kernel.

    Args:
        memories_of_tensors: memories of every tensor in L2 and in L1; without one no mapping is legal.
    """

    def energies(memory: Memory | None) -> list[float]:
        """Return the pJ of a read, a fill and an update."""
        if memory is None:
            return [0.0, 0.0, 0.0]
        energies_pj = (memory.read_energy_pj, memory.write_energy_pj, memory.accumulation_energy_pj)
        return [energy / memory.block_words for energy in energies_pj]

    sizes = dict(layer.dimensions)
    words = [math.prod(sizes[dimension] for dimension in layer.tensors[name]) for name in (INPUT, FILTER)]
    for position, window in WINDOWS.items() if layer.type != "GEMM" else ():
        sizes[position] -= sizes[window] - 1
    return Hardware(
        noc_bandwidth=integer(network.noc_bandwidth),
        noc_latency=integer(network.noc_latency),
        offchip_bandwidth=integer(network.offchip_bandwidth),
        energies=np.array([[energies(memory) for memory in row] for row in memories_of_tensors], dtype=np.float64),
        energy_per_operation_pj=float(energy_per_operation_pj),
        memory_index=np.array(
            [[-1 if memory is None else memories.index(memory) for memory in row] for row in memories_of_tensors]
        ),
        capacity=np.array([memory.capacity_words or UNLIMITED for memory in memories], dtype=np.int64),
        held=np.array([*words, math.prod(sizes[dimension] for dimension in layer.tensors[OUTPUT])]),
    )
