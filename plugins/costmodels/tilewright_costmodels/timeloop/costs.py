"""What counts cost: energies and cycles, from counts alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import Records, compiled, kernel_part, records
from tilewright.mapspace.batch import Bools, Floats
from tilewright_costmodels.timeloop.tables import Hardware, Tables


class Counts(NamedTuple):
    """What was counted of `n` mappings, and its cost. Shapes: L levels, T tensors, M memories."""

    actions: Records
    """[n, L, T]: words of one instance of the level; of the network below it; energies in pJ, over all instances. `links`:
    words passed on between neighbours. `most_read`, `most_written`: of the busiest instance, where tiles do not divide."""
    instances: Floats
    """[n, L]: in use."""
    memory: Records
    """[n, M]: slices per cycle of computing, of memories with a bandwidth; what that makes of the run; instances in use; pJ
    that leaked."""
    compute_cycles: Floats
    """[n]."""


ACTIONS = "reads fills updates tile_words partition_words most_read most_written hops routers ingresses links energy network_energy"


def counts_of(mappings: int, tables: Tables) -> Counts:
    """Room for so many mappings."""
    levels, tensors, _ = tables.shape
    rates = dict.fromkeys("read_rate write_rate cycles in_use leaked".split(), float)
    return Counts(
        actions=records((mappings, levels, tensors), **dict.fromkeys(ACTIONS.split(), float)),
        instances=np.ones((mappings, levels)),
        memory=records((mappings, len(tables.hardware.memory)), **rates),
        compute_cycles=np.ones(mappings),
    )


@compiled
def cost_rows(
    hardware: Hardware, counts: Counts, valid: Bools, ragged: Bools, energy_pj: Floats, cycles: Floats
) -> None:
    """Write energy and cycles of the valid ones."""
    for row in range(len(valid)):
        if valid[row]:
            energy_pj[row], cycles[row] = cost(hardware, counts, False, ragged[row], row)


@kernel_part
def cost(hardware: Hardware, counts: Counts, detailed: bool, ragged: bool, row: int) -> tuple[float, float]:
    """(energy in pJ, cycles) of the counts in a row, written there by level and tensor, too.

    Args:
        detailed: with the networks.
        ragged: tiles do not divide; the busiest instance sets the cycles, not the average one.

    Timeloop: one access per block, per macro; the slowest memory sets the cycles; what is in use leaks in all of them.
    """
    levels, tensors = hardware.home.shape
    energy, compute_cycles = hardware.compute_energy_pj, counts.compute_cycles[row]
    for m in range(len(hardware.memory)):
        rates = counts.memory[row, m]
        rates.read_rate, rates.write_rate, rates.in_use = 0.0, 0.0, 1.0
    for tensor in range(tensors):
        for level in range(levels):
            m, counted, instances = (
                hardware.home[level, tensor],
                counts.actions[row, level, tensor],
                counts.instances[row, level],
            )
            slices = hardware.slices[level, tensor]
            reads, fills, updates = counted.reads * slices, counted.fills * slices, counted.updates * slices
            if m >= 0 and reads + fills + updates > 0.0:
                memory, rates = hardware.memory[m], counts.memory[row, m]
                rates.in_use = max(rates.in_use, instances)
                if memory.read_bandwidth < np.inf or memory.write_bandwidth < np.inf:
                    read, written = reads, fills + updates
                    if ragged:
                        read, written = counted.most_read * slices, counted.most_written * slices
                    rates.read_rate += read / compute_cycles
                    rates.write_rate += written / compute_cycles
                block = memory.block
                if block > 1.0:
                    reads, fills, updates = np.ceil(reads / block), np.ceil(fills / block), np.ceil(updates / block)
                access = reads * memory.read_energy + fills * memory.write_energy
                access = access + updates * memory.update_energy
                counted.energy = access * min(instances, memory.built)
                energy += counted.energy
            else:
                counted.energy = 0.0
            if detailed:
                below = hardware.level[level]
                network = counted.hops * below.hop_energy + counted.routers * below.router_energy
                network += counted.ingresses * below.ingress_energy
                network += counted.links * (below.hop_energy + 2.0 * below.router_energy)
                counted.network_energy = network * instances
                energy += counted.network_energy
    cycles = compute_cycles
    for m in range(len(hardware.memory)):
        rates, slowdown = counts.memory[row, m], 1.0
        if rates.read_rate > 0.0:
            slowdown = min(slowdown, hardware.memory[m].read_bandwidth / rates.read_rate)
        if rates.write_rate > 0.0:
            slowdown = min(slowdown, hardware.memory[m].write_bandwidth / rates.write_rate)
        rates.cycles = compute_cycles
        if slowdown < 1.0:
            rates.cycles = np.ceil(compute_cycles / slowdown)
            if ragged:
                rates.cycles = max(
                    _ported(rates.read_rate * compute_cycles, hardware.memory[m].read_bandwidth),
                    _ported(rates.write_rate * compute_cycles, hardware.memory[m].write_bandwidth),
                )
            cycles = max(cycles, rates.cycles)
    for m in range(len(hardware.memory)):
        memory = hardware.memory[m]
        leaked = memory.leakage * cycles * counts.memory[row, memory.gate].in_use
        counts.memory[row, m].leaked = leaked
        energy += leaked
    return energy, cycles


@kernel_part
def _ported(slices: float, bandwidth: float) -> float:
    """Cycles that so many slices take."""
    return float(np.ceil(np.floor(slices + 0.5) / bandwidth))
