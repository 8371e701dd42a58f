"""Kernel of the sparse model: what zeros save of the dense counts of a batch, and energies and cycles.

`LANES` mappings are evaluated at a time, one in each SIMD lane.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, compiled, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats
from tilewright.mapspace.rules.scratch import lay_out, to_lanes
from tilewright.prices import charged, is_limited, leaked_pj, memory_speed, slowed_cycles
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sparse.batch.loops import relate
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable
from tilewright_costmodels.timeloop.sparse.batch.ranks import place_all
from tilewright_costmodels.timeloop.sparse.batch.savings import save_all
from tilewright_costmodels.timeloop.sparse.batch.tables import EXISTS, FILLED, SparseScratch, SparseTables
from tilewright_costmodels.timeloop.sparse.batch.traffic import count_accesses, fits, look_up_contents, operate, thin
from tilewright_costmodels.timeloop.sparse.thinning import EXECUTED, FILL, GATED, READ, SKIPPED, UPDATE
from tilewright_costmodels.timeloop.tables import Mappings


@compiled
def evaluate_sparse(
    tables: SparseTables,
    mappings: Mappings,
    counts: Counts,
    networks: bool,
    work: SparseScratch,
    contents: MemoTable,
    empties: MemoTable,
    waiting: Bools,
    valid: Bools,
    energy_pj: Floats,
    cycles: Floats,
) -> bool:
    """Write energies and cycles. Return whether all mappings are done.

    A mapping is done unless the memo lacks something; missing keys have been added to it.

    Args:
        mappings: with dense counts in `counts`, in the same order.
        networks: networks take energy.
        waiting: [n], mappings to evaluate; False for those that are done.
        valid: [n], becomes False for mappings that do not fit, or that Timeloop has no figures for.
        energy_pj: [n], written; likewise `cycles`.
    """
    all_done, scratch = True, work.scratch
    for first in range(0, len(waiting), LANES):
        group, count, any_waiting = first // LANES, min(LANES, len(waiting) - first), False
        if len(mappings.keep) > 1 or first == 0:
            to_lanes(mappings.keep, first, scratch.kept)
        for b in range(LANES):
            work.waiting[b], work.missing[b] = b < count and waiting[first + b], False
            any_waiting |= work.waiting[b]
        if not any_waiting:
            continue
        to_lanes(mappings.trips, first, scratch.trips)
        to_lanes(mappings.order, first, scratch.order)
        lay_out(tables.sizes, scratch)
        relate(tables, work)
        good = lanes(work.waiting) & place_all(tables, work)
        look_up_contents(tables, work, good, contents)
        good = good & (lanes(work.missing) | fits(tables, work))
        good = save_all(tables, work, good, empties)
        count_accesses(tables, work, counts, group)
        left = thin(tables, work)
        actual, gated, skipped = operate(tables, work, left)
        energy, spent_cycles = _cost(tables, work, counts, networks, group, actual, gated)
        work.good[:] = good & (left >= 0.0) & (actual >= 0.0)
        work.energy_pj[:], work.cycles[:] = energy + skipped * tables.compute[0].skipped_pj, spent_cycles
        for b in range(count):
            if work.missing[b]:
                all_done = False
            elif work.waiting[b]:
                n = first + b
                waiting[n], valid[n] = False, work.good[b]
                energy_pj[n] = work.energy_pj[b] if work.good[b] else np.inf
                cycles[n] = work.cycles[b] if work.good[b] else np.inf
    return all_done


@kernel_call
def _cost(
    tables: SparseTables,
    work: SparseScratch,
    counts: Counts,
    networks: bool,
    group: int,
    actual: Floats,
    gated: Floats,
) -> tuple[Floats, Floats]:
    """Return energy and cycles, [B]; the kernel's form of `costs.spent`."""
    levels, compute = len(tables.level), tables.compute[0]
    computing = np.maximum(np.ceil((actual + gated) * compute.cycles / lanes(work.units)), 1.0)
    energy = actual * compute.actual_pj + gated * compute.gated_pj
    for m in range(len(tables.storage)):
        work.rates[m, 0][:] = work.rates[m, 1][:] = splat16(0.0)
        work.in_use[m][:] = splat16(1.0)
    for t in range(len(tables.tensor)):
        for level in range(levels):
            outer, memory = levels - 1 - level, tables.memory[level, t]
            if networks:
                energy = energy + lanes(counts.network_energy[group, outer, t])
            kept = lanes(work.kept[level, t])
            if memory >= 0 and np.any(kept):
                instances = lanes(counts.instances[group, outer])
                average = instances * lanes(work.values[level, t, EXISTS])
                share_charged = charged(tables.storage[memory], instances) / instances
                instance_pj, reads, writes = _accesses(tables, work, level, t)
                energy = energy + np.where(kept, instance_pj * share_charged * average, 0.0)
                share, rates = average / instances, work.rates[memory]
                rates[0][:] = lanes(rates[0]) + np.where(kept, np.ceil(reads * share) / computing, 0.0)
                rates[1][:] = lanes(rates[1]) + np.where(kept, np.ceil(writes * share) / computing, 0.0)
                in_use = lanes(work.in_use[memory])
                work.in_use[memory][:] = np.where(kept, np.maximum(in_use, average), in_use)
    cycles = computing
    for m in range(len(tables.storage)):
        memory = tables.storage[m]
        if is_limited(memory):
            speed = memory_speed(memory, lanes(work.rates[m, 0]), lanes(work.rates[m, 1]))
            cycles = np.maximum(cycles, slowed_cycles(computing, speed))
    for m in range(len(tables.storage)):
        memory = tables.storage[m]
        energy = energy + leaked_pj(memory, cycles, lanes(work.in_use[memory.gate]))
    return energy, cycles


@kernel_part
def _accesses(tables: SparseTables, work: SparseScratch, level: int, t: int) -> tuple[Floats, Floats, Floats]:
    """Return the pJ of one instance, and the slices that it reads and writes, [B]; skipped ones take no bandwidth."""
    m, data, other = tables.memory[level, t], work.data[level, t], work.other_data[level, t]
    memory, slices, ranks = tables.storage[m], tables.slices[level, t], tables.format[level, t].ranks
    kind, energy = lanes(work.kind[level, t]), splat16(0.0)
    gates, acts = kind == GATED, np.any(kind > 0)
    for action in range(3):
        energy = energy + np.ceil(lanes(data[action]) * slices / memory.block) * tables.prices[m, 0, EXECUTED, action]
    reads, writes = lanes(data[READ]), lanes(data[FILL]) + lanes(data[UPDATE])
    if acts:
        for action in (READ, UPDATE):
            price = np.where(gates, tables.prices[m, 0, GATED, action], tables.prices[m, 0, SKIPPED, action])
            paid = np.ceil(lanes(other[action]) * slices / memory.block) * price
            energy = energy + np.where(kind > 0, paid, 0.0)
        reads = np.where(gates, reads + lanes(other[READ]), reads)
        writes = np.where(gates, writes + lanes(other[UPDATE]), writes)
    reads, writes = reads * slices, writes * slices
    if ranks > 0:
        energy = energy * lanes(work.values[level, t, FILLED])
        read_bits, written_bits = splat16(0.0), splat16(0.0)
        for action in range(3):
            bits = _bits(tables, work.metadata[level, t], level, t, action)
            energy = energy + _metadata_energy(memory.width, bits, splat16(tables.prices[m, 1, EXECUTED, action]))
            if action == READ:
                read_bits = read_bits + bits
            else:
                written_bits = written_bits + bits
        if acts:
            for action in (READ, UPDATE):
                bits = np.where(kind > 0, _bits(tables, work.other_metadata[level, t], level, t, action), 0.0)
                price = np.where(gates, tables.prices[m, 1, GATED, action], tables.prices[m, 1, SKIPPED, action])
                energy = energy + _metadata_energy(memory.width, bits, price)
                bits = np.where(gates, bits, 0.0)
                if action == READ:
                    read_bits = read_bits + bits
                else:
                    written_bits = written_bits + bits
        reads = reads + np.floor(read_bits / memory.word_bits) * memory.per_word
        writes = writes + np.floor(written_bits / memory.word_bits) * memory.per_word
    if not tables.format[level, t].compressed:
        packed = lanes(work.packed[level, t])
        if np.any(packed):
            unpacking = lanes(data[FILL]) * tables.conversion[m, 0]
            energy = np.where(packed, energy + unpacking, energy)
            if tables.tensor[t].is_output:
                updates = splat16(0.0)
                for outer in range(len(tables.level) - 1, level, -1):
                    updates = np.where(lanes(work.kept[outer, t]), lanes(work.data[outer, t, UPDATE]), updates)
                energy = np.where(packed, energy + updates * tables.conversion[m, 1], energy)
    return energy, reads, writes


@kernel_part
def _bits(tables: SparseTables, metadata: Floats, level: int, t: int, action: int) -> Floats:
    """Return the bits of metadata of an action, [B]."""
    bits = splat16(0.0)
    for rank in range(tables.format[level, t].ranks):
        for which in range(2):
            bits = bits + lanes(metadata[rank, which, action]) * tables.bits[level, t, rank, which]
    return bits


@kernel_part
def _metadata_energy(width: float, bits: Floats, price: Floats) -> Floats:
    """Return the energy of accesses of metadata, [B]."""
    return np.where(bits > 0.0, np.ceil(bits / width) * price, 0.0)
