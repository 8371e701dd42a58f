"""Kernel of the sparse model: what zeros save of the dense counts of a batch, and energies and cycles.

`LANES` mappings are evaluated at a time, one in each SIMD lane.

Energies in pJ in the example of `tables`, where writes take 1 pJ. Reads take 10 pJ in DRAM.
In buffers they take 1 pJ, or 0.5 pJ per 8 bits of metadata:

    level         A       B       Z
    0, buffers    36.95   36.8    112
    1, DRAM       80      160     8
    compute       16

B in the buffers, for instance: 2 instances make 8 reads, 8 fills, and 24 skipped reads of 0.1 pJ.
That is 2 * (8 + 8 + 2.4) = 36.8 pJ. The 16 operations that are left take 16 / 2 = 8 cycles on two units.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, compiled, kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import lay_out, to_lanes
from tilewright.prices import charged, is_limited, leaked_pj, memory_speed, slowed_cycles
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sparse.batch.loops import relate
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable
from tilewright_costmodels.timeloop.sparse.batch.notes import clear_notes
from tilewright_costmodels.timeloop.sparse.batch.ranks import place_all
from tilewright_costmodels.timeloop.sparse.batch.savings import save_all
from tilewright_costmodels.timeloop.sparse.batch.spreading import spread_all
from tilewright_costmodels.timeloop.sparse.batch.tables import FILLED, SparseScratch, SparseTables
from tilewright_costmodels.timeloop.sparse.batch.traffic import count_accesses, fits, look_up_contents, operate, thin
from tilewright_costmodels.timeloop.sparse.operations import EXECUTED, FILL, GATED, READ, SKIPPED, UPDATE
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
    fibers: MemoTable,
    stated: Bools,
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
        contents: what tiles hold; `empties`: how probably they are empty; `fibers`: how many units have work.
        stated: [n, E] entries that state the problem's order of unrolled loops; empty if none does.
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
        for entry in range(work.stated.shape[0] if len(stated) else 0):
            for b in range(count):
                work.stated[entry, b] = stated[first + b, entry]
        clear_notes(work)
        lay_out(tables.sizes, scratch)
        relate(tables, work)
        good = lanes(work.waiting) & place_all(tables, work)
        look_up_contents(tables, work, good, contents)
        good = good & (lanes(work.missing) | fits(tables, work) | bool(work.reported[0]))
        good = save_all(tables, work, good, empties)
        if len(tables.unit_action):
            good = spread_all(tables, work, good, fibers)
        count_accesses(tables, work, counts, group)
        left = thin(tables, work)
        good = good & (left >= 0.0) & operate(tables, work, left)
        energy, spent_cycles = _cost(tables, work, counts, networks, group)
        work.good[:], work.energy_pj[:], work.cycles[:] = good, energy, spent_cycles
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
    tables: SparseTables, work: SparseScratch, counts: Counts, networks: bool, group: int
) -> tuple[Floats, Floats]:
    """Return energy and cycles, [B]."""
    levels, compute, units = len(tables.level), tables.compute[0], lanes(work.units)
    actual, gated = lanes(work.operations[0]), lanes(work.operations[1])
    computing = np.maximum(np.where(units > 0.0, np.ceil((actual + gated) * compute.cycles / units), 0.0), 1.0)
    energy = actual * compute.actual_pj + gated * compute.gated_pj + lanes(work.operations[2]) * compute.skipped_pj
    work.computing[:] = computing
    for m in range(len(tables.storage)):
        work.rates[m, 0][:] = work.rates[m, 1][:] = splat16(0.0)
        work.in_use[m][:] = splat16(1.0)
    for t in range(len(tables.tensor)):
        for level in range(levels):
            memory = tables.memory[level, t]
            if networks:
                energy = energy + lanes(counts.network_energy[group, levels - 1 - level, t])
            kept = lanes(work.kept[level, t])
            if memory >= 0 and np.any(kept):
                instances, average = lanes(work.instances[level, t]), lanes(work.average[level, t])
                share_charged = charged(tables.storage[memory], instances) / instances
                instance_pj, reads, writes = _accesses(tables, work, level, t)
                memory_pj = np.where(kept, instance_pj * share_charged * average, 0.0)
                energy, work.energy[level, t][:] = energy + memory_pj, memory_pj
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
    kind = lanes(work.kind[level, t])
    gates, acts = kind == GATED, bool(np.any(kind > 0))
    reads, writes = lanes(data[READ]), lanes(data[FILL]) + lanes(data[UPDATE])
    other_reads = other_updates = splat16(0.0)
    if acts:
        other_reads = np.where(kind > 0, lanes(other[READ]), 0.0)
        other_updates = np.where(kind > 0, lanes(other[UPDATE]), 0.0)
        reads = np.where(gates, reads + other_reads, reads)
        writes = np.where(gates, writes + other_updates, writes)
    reads, writes = reads * slices, writes * slices
    energy = _spent(
        tables.prices[m, 0],
        kind,
        np.ceil(lanes(data[READ]) * slices / memory.block),
        np.ceil(lanes(data[FILL]) * slices / memory.block),
        np.ceil(lanes(data[UPDATE]) * slices / memory.block),
        np.ceil(other_reads * slices / memory.block),
        np.ceil(other_updates * slices / memory.block),
    )
    if ranks > 0:
        metadata, others = work.metadata[level, t], work.other_metadata[level, t]
        read, filled = _bits(tables, metadata, level, t, READ), _bits(tables, metadata, level, t, FILL)
        updated, other_reads, other_updates = _bits(tables, metadata, level, t, UPDATE), splat16(0.0), splat16(0.0)
        if acts:
            other_reads = np.where(kind > 0, _bits(tables, others, level, t, READ), 0.0)
            other_updates = np.where(kind > 0, _bits(tables, others, level, t, UPDATE), 0.0)
        energy = energy * lanes(work.values[level, t, FILLED]) + _spent(
            tables.prices[m, 1],
            kind,
            np.ceil(read / memory.width),
            np.ceil(filled / memory.width),
            np.ceil(updated / memory.width),
            np.ceil(other_reads / memory.width),
            np.ceil(other_updates / memory.width),
        )
        read, written = np.where(gates, read + other_reads, read), filled + updated
        written = np.where(gates, written + other_updates, written)
        reads = reads + np.floor(read / memory.word_bits) * memory.per_word
        writes = writes + np.floor(written / memory.word_bits) * memory.per_word
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
def _spent(
    prices: Floats,
    kind: Ints,
    reads: Floats,
    fills: Floats,
    updates: Floats,
    other_reads: Floats,
    other_updates: Floats,
) -> Floats:
    """Return the pJ of accesses [B]: executed ones, and those of another kind, which have no fills.

    Args:
        prices: [kind, action].
    """
    gates = kind == GATED
    gated_reads = np.where(gates, other_reads * prices[GATED, READ], 0.0)
    gated_updates = np.where(gates, other_updates * prices[GATED, UPDATE], 0.0)
    skipped_reads = np.where(gates, 0.0, other_reads * prices[SKIPPED, READ])
    skipped_updates = np.where(gates, 0.0, other_updates * prices[SKIPPED, UPDATE])
    moved = reads * prices[EXECUTED, READ] + fills * prices[EXECUTED, FILL]
    moved = moved + (updates * prices[EXECUTED, UPDATE] + gated_reads)
    moved = moved + (gated_updates + skipped_reads)
    spent: Floats = moved + skipped_updates
    return spent


@kernel_part
def _bits(tables: SparseTables, metadata: Floats, level: int, t: int, action: int) -> Floats:
    """Return the bits of metadata of an action, [B]."""
    bits = splat16(0.0)
    for rank in range(tables.format[level, t].ranks):
        for which in range(2):
            bits = bits + lanes(metadata[rank, which, action]) * tables.bits[level, t, rank, which]
    return bits
