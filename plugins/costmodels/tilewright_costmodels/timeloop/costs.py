"""What counts cost: energies and cycles, from counts alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, inlined
from tilewright.mapspace.batch import Bools, Floats
from tilewright_costmodels.timeloop.tables import (
    BLOCK_WORDS,
    BUILT,
    HOME,
    HOP_ENERGY,
    INGRESS_ENERGY,
    READ_BANDWIDTH,
    READ_ENERGY,
    ROUTER_ENERGY,
    UPDATE_ENERGY,
    WRITE_BANDWIDTH,
    WRITE_ENERGY,
    Hardware,
    Tables,
)

READS, FILLS, UPDATES, TILE_WORDS, PARTITION_WORDS, HOPS, ROUTERS, INGRESSES, LINKS, ENERGY, NETWORK_ENERGY = range(11)
"""Columns of `Counts.actions`. The first five: words of one instance of the level; HOPS to LINKS: of the network below it,
LINKS being words passed on between neighbours; energies in pJ, over all instances."""
READ_RATE, WRITE_RATE, CYCLES = range(3)
"""Columns of `Counts.memory`: words per cycle of computing, of memories with a bandwidth; what that makes of the run."""


class Counts(NamedTuple):
    """What was counted of `n` mappings, and its cost. Shapes: L levels, T tensors, M memories."""

    actions: Floats
    """[n, L, T, 11]."""
    instances: Floats
    """[n, L]: in use."""
    memory: Floats
    """[n, M, 3]."""
    compute_cycles: Floats
    """[n]."""


def counts_of(mappings: int, tables: Tables) -> Counts:
    """Room for so many mappings."""
    levels, tensors, _ = tables.shape
    return Counts(
        actions=np.zeros((mappings, levels, tensors, 11)),
        instances=np.ones((mappings, levels)),
        memory=np.zeros((mappings, len(tables.hardware.memory), 3)),
        compute_cycles=np.ones(mappings),
    )


@compiled
def cost_rows(hardware: Hardware, counts: Counts, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Write energy and cycles of the valid ones."""
    for row in range(len(valid)):
        if valid[row]:
            energy_pj[row], cycles[row] = cost(hardware, counts, row)


@inlined
def cost(hardware: Hardware, counts: Counts, row: int) -> tuple[float, float]:
    """(energy in pJ, cycles) of the counts in a row, written there by level and tensor, too.

    Timeloop: one access per block, per macro; the slowest memory sets the cycles.
    """
    energy, compute_cycles = hardware.compute_energy_pj, counts.compute_cycles[row]
    for memory in range(len(hardware.memory)):
        counts.memory[row, memory, READ_RATE] = counts.memory[row, memory, WRITE_RATE] = 0.0
    for tensor in range(counts.actions.shape[2]):
        for level in range(len(hardware.level)):
            memory, instances, access = hardware.level[level, HOME + tensor], counts.instances[row, level], 0.0
            if memory >= 0:
                reads, fills = counts.actions[row, level, tensor, READS], counts.actions[row, level, tensor, FILLS]
                updates, block = counts.actions[row, level, tensor, UPDATES], hardware.memory[memory, BLOCK_WORDS]
                if (
                    hardware.memory[memory, READ_BANDWIDTH] < np.inf
                    or hardware.memory[memory, WRITE_BANDWIDTH] < np.inf
                ):
                    counts.memory[row, memory, READ_RATE] += reads / compute_cycles
                    counts.memory[row, memory, WRITE_RATE] += (fills + updates) / compute_cycles
                if block > 1.0:
                    reads, fills, updates = np.ceil(reads / block), np.ceil(fills / block), np.ceil(updates / block)
                access = (
                    reads * hardware.memory[memory, READ_ENERGY]
                    + fills * hardware.memory[memory, WRITE_ENERGY]
                    + updates * hardware.memory[memory, UPDATE_ENERGY]
                ) * min(instances, hardware.memory[memory, BUILT])
            network = (
                counts.actions[row, level, tensor, HOPS] * hardware.noc[level, HOP_ENERGY]
                + counts.actions[row, level, tensor, ROUTERS] * hardware.noc[level, ROUTER_ENERGY]
                + counts.actions[row, level, tensor, INGRESSES] * hardware.noc[level, INGRESS_ENERGY]
                + counts.actions[row, level, tensor, LINKS]
                * (hardware.noc[level, HOP_ENERGY] + 2.0 * hardware.noc[level, ROUTER_ENERGY])
            ) * instances
            counts.actions[row, level, tensor, ENERGY] = access
            counts.actions[row, level, tensor, NETWORK_ENERGY] = network
            energy += access + network
    cycles = compute_cycles
    for memory in range(len(hardware.memory)):
        slowdown = 1.0
        if counts.memory[row, memory, READ_RATE] > 0.0:
            slowdown = min(slowdown, hardware.memory[memory, READ_BANDWIDTH] / counts.memory[row, memory, READ_RATE])
        if counts.memory[row, memory, WRITE_RATE] > 0.0:
            slowdown = min(slowdown, hardware.memory[memory, WRITE_BANDWIDTH] / counts.memory[row, memory, WRITE_RATE])
        counts.memory[row, memory, CYCLES] = compute_cycles
        if slowdown < 1.0:
            counts.memory[row, memory, CYCLES] = np.ceil(compute_cycles / slowdown)
            cycles = max(cycles, counts.memory[row, memory, CYCLES])
    return energy, cycles
