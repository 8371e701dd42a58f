"""Kernel of the sparse model: what zeros save of the dense counts of a batch, and energies and cycles."""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, compiled, kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats
from tilewright_costmodels.timeloop.costs import Counts
from tilewright_costmodels.timeloop.sparse.batch.loops import lay_out
from tilewright_costmodels.timeloop.sparse.batch.memo import MemoTable
from tilewright_costmodels.timeloop.sparse.batch.ranks import place_all
from tilewright_costmodels.timeloop.sparse.batch.savings import save_all
from tilewright_costmodels.timeloop.sparse.batch.tables import FILLED, SparseScratch, SparseTables
from tilewright_costmodels.timeloop.sparse.batch.traffic import (
    count_accesses,
    existing,
    fits,
    look_up_contents,
    operate,
    thin,
)
from tilewright_costmodels.timeloop.sparse.thinning import EXECUTED, FILL, GATED, READ, UPDATE
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
    all_done = True
    for n in range(len(waiting)):
        if waiting[n]:
            work.missing[0] = False
            keep = mappings.keep[n if len(mappings.keep) > 1 else 0]
            lay_out(tables, mappings.trips[n], keep, work)
            good = place_all(tables, mappings.trips[n], mappings.order[n], work)
            if good:
                look_up_contents(tables, work, contents)
                good = work.missing[0] or fits(tables, work, contents)
            if good:
                good = save_all(tables, mappings.trips[n], mappings.order[n], work, contents, empties)
            if work.missing[0]:
                all_done = False
                continue
            waiting[n] = False
            if good:
                group, lane = n // LANES, n % LANES
                count_accesses(tables, work, contents, counts, group, lane)
                left = thin(tables, work)
                actual, gated, skipped = operate(tables, work, left)
                if left >= 0.0 and actual >= 0.0:
                    energy_pj[n], cycles[n] = _cost(
                        tables, work, contents, counts, networks, group, lane, actual, gated
                    )
                    energy_pj[n] += skipped * tables.compute[0].skipped_pj
                else:
                    good = False
            if not good:
                valid[n], energy_pj[n], cycles[n] = False, np.inf, np.inf
    return all_done


@kernel_call
def _cost(
    tables: SparseTables,
    work: SparseScratch,
    contents: MemoTable,
    counts: Counts,
    networks: bool,
    group: int,
    lane: int,
    actual: float,
    gated: float,
) -> tuple[float, float]:
    """Return energy and cycles; the kernel's form of `costs.spent`."""
    levels, compute = len(tables.level), tables.compute[0]
    computing = max(np.ceil((actual + gated) * compute.cycles / work.units[0]), 1.0)
    energy = actual * compute.actual_pj + gated * compute.gated_pj
    work.rates[:] = 0.0
    work.in_use[:] = 1.0
    for t in range(len(tables.tensor)):
        for level in range(levels):
            outer = levels - 1 - level
            if networks:
                energy += counts.network_energy[group, outer, t, lane]
            if work.kept[level, t]:
                instances, memory = counts.instances[group, outer, lane], tables.memory[level, t]
                average = instances * existing(work, contents, level, t)
                charged = min(instances, tables.storage[memory].built) / instances
                access_pj, reads, writes = _accesses(tables, work, contents, level, t)
                energy += access_pj * charged * average
                work.rates[memory, 0] += np.ceil(reads * (average / instances)) / computing
                work.rates[memory, 1] += np.ceil(writes * (average / instances)) / computing
                work.in_use[memory] = max(work.in_use[memory], average)
    cycles = computing
    for m in range(len(tables.storage)):
        memory, read, written, slowdown = tables.storage[m], work.rates[m, 0], work.rates[m, 1], 1.0
        if read > 0.0:
            slowdown = min(slowdown, memory.read_bandwidth / read)
        if written > 0.0:
            slowdown = min(slowdown, memory.write_bandwidth / written)
        if read + written > 0.0:
            slowdown = min(slowdown, memory.shared_bandwidth / (read + written))
        cycles = max(cycles, np.ceil(computing / slowdown))
    for m in range(len(tables.storage)):
        energy += cycles * tables.storage[m].leakage * work.in_use[tables.gate[m]]
    return energy, cycles


@kernel_part
def _accesses(
    tables: SparseTables, work: SparseScratch, contents: MemoTable, level: int, t: int
) -> tuple[float, float, float]:
    """Return the pJ of one instance, and the slices that it reads and writes; skipped ones take no bandwidth."""
    m, data = tables.memory[level, t], work.data[level, t]
    memory, slices, ranks = tables.storage[m], tables.slices[level, t], work.ranks[level, t]
    energy = 0.0
    other = work.kind[level, t]  # EXECUTED without an action
    for kind in range(0, other + 1, max(other, 1)):
        for action in range(3):
            energy += np.ceil(data[kind, action] * slices / memory.block) * tables.prices[m, 0, kind, action]
    reads, writes = data[EXECUTED, READ], data[EXECUTED, FILL] + data[EXECUTED, UPDATE]
    if other == GATED:
        reads, writes = reads + data[GATED, READ], writes + data[GATED, UPDATE]
    reads, writes = reads * slices, writes * slices
    if ranks > 0:
        energy *= contents.values[work.content[level, t], FILLED]
        read_bits, written_bits = 0.0, 0.0
        for kind in range(0, other + 1, max(other, 1)):
            for action in range(3):
                bits = 0.0
                for rank in range(ranks):
                    pieces = work.metadata[level, t, rank]
                    for which in range(2):
                        bits += pieces[which, kind, action] * tables.bits[level, t, rank, which]
                if bits > 0.0:
                    energy += np.ceil(bits / memory.width) * tables.prices[m, 1, kind, action]
                    if kind <= GATED and action == READ:
                        read_bits += bits
                    elif kind <= GATED:
                        written_bits += bits
        reads += np.floor(read_bits / memory.word_bits) * memory.per_word
        writes += np.floor(written_bits / memory.word_bits) * memory.per_word
    parent = work.parent[level, t]
    if parent >= 0 and tables.format[parent, t].compressed and not tables.format[level, t].compressed:
        energy += data[EXECUTED, FILL] * tables.conversion[m, 0]
        if tables.tensor[t].is_output:
            energy += work.data[parent, t, EXECUTED, UPDATE] * tables.conversion[m, 1]
    return energy, reads, writes
