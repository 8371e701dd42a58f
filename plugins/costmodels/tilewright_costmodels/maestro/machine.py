"""Hardware as the kernel reads it: transfers, memories with their energies, and whose tensors they hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import integer
from tilewright.mapspace.batch import Ints
from tilewright.notations.directives import FILTER, INPUT, OUTPUT, WINDOWS, DirectiveHardware, DirectiveLayer
from tilewright.notations.directives.plan import Plan
from tilewright.notations.directives.roles import Roles
from tilewright.notations.directives.tiles import L1_ENERGY, L2_ENERGY, NJ_PER_MAC
from tilewright.schema.architecture import Architecture, Memory
from tilewright_costmodels.maestro.work import Hardware

TENSORS = (INPUT, FILTER, OUTPUT)
PJ_PER_MAC = NJ_PER_MAC * 1000
UNLIMITED = 2**62
NO_DRAM = "MAESTRO has no DRAM energy: the energy is that of L2, L1 and compute"


@dataclass(frozen=True, eq=False)
class Machine:
    """`numbers` are the kernel's.

    Attributes:
        memories: names, those of L2 first.
        tensors: names of input, filter and output.
        operations_per_cycle: at most.
        notes: what to say beside every report.
    """

    numbers: Hardware
    memories: tuple[str, ...]
    tensors: tuple[str, ...]
    operations_per_cycle: int
    notes: tuple[str, ...] = ()


def machine_of_directives(layer: DirectiveLayer, hardware: DirectiveHardware) -> Machine:
    """MAESTRO's own: one L2, the L1 of all PEs as one memory, energies in its units of a MAC at the 0.23 pJ of its CSV."""
    numbers = Hardware(
        noc_bandwidth=integer(hardware.noc_bandwidth),
        noc_latency=integer(hardware.noc_latency),
        offchip_bandwidth=integer(hardware.offchip_bandwidth),
        energies=np.repeat([L2_ENERGY * PJ_PER_MAC, L1_ENERGY * PJ_PER_MAC], 9).reshape(2, 3, 3),
        energy_per_operation_pj=PJ_PER_MAC,
        home=np.repeat([0, 1], 3).reshape(2, 3),
        capacity=np.array([hardware.l2_size or UNLIMITED, hardware.l1_size or UNLIMITED]),
        held=_held(layer),
    )
    return Machine(numbers, ("L2", "L1"), TENSORS, hardware.num_pes * hardware.simd_lanes)


def machine_of(layer: DirectiveLayer, architecture: Architecture, roles: Roles, plan: Plan) -> Machine:
    """An architecture of ours, at its own energies; `layer` is the problem's."""
    memories = (*plan.l2.memories, *plan.l1.memories)
    homes = [[cluster.memory_for(roles.tensors[name]) for name in TENSORS] for cluster in (plan.l2, plan.l1)]
    numbers = Hardware(
        noc_bandwidth=integer(plan.noc_bandwidth),
        noc_latency=integer(plan.noc_latency),
        offchip_bandwidth=integer(plan.offchip_bandwidth),
        energies=np.array([[list(_energies(memory)) for memory in row] for row in homes], dtype=np.float64),
        energy_per_operation_pj=float(architecture.compute.energy_per_operation_pj),
        home=np.array([[-1 if memory is None else memories.index(memory) for memory in row] for row in homes]),
        capacity=np.array([m.capacity_words or UNLIMITED for m in memories], dtype=np.int64),
        held=_held(layer),
    )
    return Machine(
        numbers,
        tuple(memory.name for memory in memories),
        tuple(roles.tensors[name].name for name in TENSORS),
        architecture.compute_instances,
        tuple(_notes(architecture, plan)),
    )


def _notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    if plan.dram:
        yield NO_DRAM
    leaking = [memory.name for memory in architecture.memories if memory.leakage_pj_per_cycle]
    if leaking:
        yield f"MAESTRO has no leakage: that of {', '.join(leaking)} is left out"


def _held(layer: DirectiveLayer) -> Ints:
    """Elements of whole tensors as MAESTRO counts them: outputs regardless of strides."""
    sizes = dict(layer.dimensions)
    words = [math.prod(sizes[letter] for letter in layer.tensors[name]) for name in (INPUT, FILTER)]
    for position, window in WINDOWS.items() if layer.type != "GEMM" else ():
        sizes[position] -= sizes[window] - 1
    return np.array([*words, math.prod(sizes[letter] for letter in layer.tensors[OUTPUT])])


def _energies(memory: Memory | None) -> Iterator[float]:
    """Of a read, a fill and an update; of a tensor without a memory nothing is legal."""
    if memory is None:
        yield from (0.0, 0.0, 0.0)
        return
    update = memory.accumulation_energy_pj
    for energy in (memory.read_energy_pj, memory.write_energy_pj, update):
        yield energy / memory.block_words
