"""What counts cost: energies and cycles, from counts alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.batch import Bools, Floats
from tilewright_costmodels.timeloop.tables import (
    BLOCK_WORDS,
    BUILT,
    GATE,
    HOME,
    HOP_ENERGY,
    INGRESS_ENERGY,
    LEAKAGE,
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
READ_RATE, WRITE_RATE, CYCLES, IN_USE, LEAKED = range(5)
"""Columns of `Counts.memory`: words per cycle of computing, of memories with a bandwidth; what that makes of the run;
instances in use; pJ that leaked."""


class Counts(NamedTuple):
    """What was counted of `n` mappings, and its cost. Shapes: L levels, T tensors, M memories."""

    actions: Floats
    """[n, L, T, 11]."""
    instances: Floats
    """[n, L]: in use."""
    memory: Floats
    """[n, M, 5]."""
    compute_cycles: Floats
    """[n]."""


def counts_of(mappings: int, tables: Tables) -> Counts:
    """Room for so many mappings."""
    levels, tensors, _ = tables.shape
    return Counts(
        actions=np.zeros((mappings, levels, tensors, 11)),
        instances=np.ones((mappings, levels)),
        memory=np.zeros((mappings, len(tables.hardware.memory), 5)),
        compute_cycles=np.ones(mappings),
    )


@compiled
def cost_rows(hardware: Hardware, counts: Counts, valid: Bools, energy_pj: Floats, cycles: Floats) -> None:
    """Write energy and cycles of the valid ones."""
    for row in range(len(valid)):
        if valid[row]:
            energy_pj[row], cycles[row] = cost(hardware, counts, False, row)


@kernel_part
def cost(hardware: Hardware, counts: Counts, detailed: bool, row: int) -> tuple[float, float]:
    """(energy in pJ, cycles) of the counts in a row, written there by level and tensor, too. `detailed`: that of the networks, too.

    Timeloop: one access per block, per macro; the slowest memory sets the cycles; what is in use leaks in all of them.
    """
    actions, rates, memories = counts.actions, counts.memory, hardware.memory
    levels, tensors = len(hardware.level), hardware.level.shape[1] - HOME
    energy, compute_cycles = hardware.compute_energy_pj, counts.compute_cycles[row]
    for m in range(len(memories)):
        rates[row, m, READ_RATE] = rates[row, m, WRITE_RATE] = 0.0
        rates[row, m, IN_USE] = 1.0
    for tensor in range(tensors):
        for level in range(levels):
            m = hardware.level[level, HOME + tensor]
            if m >= 0:
                reads, fills, updates = (
                    actions[row, level, tensor, READS],
                    actions[row, level, tensor, FILLS],
                    actions[row, level, tensor, UPDATES],
                )
                if reads + fills + updates > 0.0:
                    rates[row, m, IN_USE] = max(rates[row, m, IN_USE], counts.instances[row, level])
                if memories[m, READ_BANDWIDTH] < np.inf or memories[m, WRITE_BANDWIDTH] < np.inf:
                    rates[row, m, READ_RATE] += reads / compute_cycles
                    rates[row, m, WRITE_RATE] += (fills + updates) / compute_cycles
                block = memories[m, BLOCK_WORDS]
                if block > 1.0:
                    reads, fills, updates = np.ceil(reads / block), np.ceil(fills / block), np.ceil(updates / block)
                access = reads * memories[m, READ_ENERGY] + fills * memories[m, WRITE_ENERGY]
                access = access + updates * memories[m, UPDATE_ENERGY]
                actions[row, level, tensor, ENERGY] = access * min(counts.instances[row, level], memories[m, BUILT])
                energy += actions[row, level, tensor, ENERGY]
            if detailed:
                hop, router = hardware.noc[level, HOP_ENERGY], hardware.noc[level, ROUTER_ENERGY]
                network = actions[row, level, tensor, HOPS] * hop + actions[row, level, tensor, ROUTERS] * router
                network += actions[row, level, tensor, INGRESSES] * hardware.noc[level, INGRESS_ENERGY]
                network += actions[row, level, tensor, LINKS] * (hop + 2.0 * router)
                actions[row, level, tensor, NETWORK_ENERGY] = network * counts.instances[row, level]
                energy += actions[row, level, tensor, NETWORK_ENERGY]
    cycles = compute_cycles
    for m in range(len(memories)):
        slowdown = 1.0
        if rates[row, m, READ_RATE] > 0.0:
            slowdown = min(slowdown, memories[m, READ_BANDWIDTH] / rates[row, m, READ_RATE])
        if rates[row, m, WRITE_RATE] > 0.0:
            slowdown = min(slowdown, memories[m, WRITE_BANDWIDTH] / rates[row, m, WRITE_RATE])
        rates[row, m, CYCLES] = compute_cycles
        if slowdown < 1.0:
            rates[row, m, CYCLES] = np.ceil(compute_cycles / slowdown)
            cycles = max(cycles, rates[row, m, CYCLES])
    for m in range(len(memories)):
        rates[row, m, LEAKED] = memories[m, LEAKAGE] * cycles * rates[row, int(memories[m, GATE]), IN_USE]
        energy += rates[row, m, LEAKED]
    return energy, cycles
