"""Lower bounds for mappings of which only the outer entries are known.

The loops that are known fix all traffic between the storage levels that are known, so that part is counted as it is.
Of the rest, every tensor must still leave its innermost known level as often as it came in, and every operation must
still read its operands somewhere, at best shared by as many lanes as are left.
"""

from __future__ import annotations

import math

import numpy as np

from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.schema.architecture import Memory
from tilewright_costmodels.timeloop.arrays import CHUNK, ArrayPricer, Chunk, Moved, access_energy
from tilewright_costmodels.timeloop.operand import LevelPlan, Operand, plan_levels

SURE = 1 - 1e-9
"""Less than one by more than rounding can add up to."""


def bound(pricer: ArrayPricer, batch: MappingBatch, entries: int) -> Costs:
    """See `tilewright.plugin.costmodel.Bounder`; `entries` is less than the length of the skeleton."""
    count = len(batch)
    valid = np.zeros(count, dtype=np.bool_)
    energy, cycles = np.full(count, np.inf), np.full(count, np.inf)
    if all(entry.target in pricer.architecture.cluster_index for entry in batch.skeleton.entries):
        plans = plan_levels(batch.skeleton, pricer.architecture)
        for start in range(0, count, CHUNK):
            known = _completed(batch.take(slice(start, start + CHUNK)), entries)
            chunk = KnownChunk(pricer, known, plans, entries)
            rows = start + chunk.rows
            valid[rows] = True
            energy[rows], cycles[rows] = chunk.bound()
    return Costs(valid, energy, cycles)


def _completed(batch: MappingBatch, entries: int) -> MappingBatch:
    """The unknown entries keep nothing, and the last one steps through all that is left."""
    temporal, spatial = batch.temporal.copy(), batch.spatial.copy()
    order, keep = batch.order.copy(), batch.keep.copy()
    rest = spatial[:, entries - 1 : entries]
    temporal[:, entries:] = rest
    spatial[:, entries:] = rest
    temporal[:, -1] = spatial[:, -1] = 1
    order[:, entries:] = np.arange(order.shape[2], dtype=np.int8)
    keep[:, entries:] = False
    placed, unicast = batch.spatial_order, batch.unicast
    return MappingBatch(batch.problem, batch.skeleton, temporal, spatial, order, keep, placed, unicast)


class KnownChunk(Chunk):
    """A chunk whose entries from `entries` on are made up."""

    def __init__(self, pricer: ArrayPricer, batch: MappingBatch, plans: tuple[LevelPlan, ...], entries: int) -> None:
        super().__init__(pricer, batch, plans)
        self.entries = entries
        self.levels = sum(plan.start < entries for plan in plans)
        """Storage levels that are known; all traffic between them is."""

    def bound(self) -> tuple[Floats, Floats]:
        """(energy_pj, cycles) of the legal mappings, at least."""
        if not len(self.rows):
            return np.zeros(0), np.zeros(0)
        self._narrow()
        problem, architecture = self.pricer.problem, self.pricer.architecture
        outside = math.prod(problem.sizes) / self.split_tile[self.entries - 1].prod(axis=0)
        used = np.ones(len(self.rows))
        for entry in range(self.entries):
            if entry in self.spatial:
                used = used * self.spatial[entry].prod(axis=0)
        lanes = np.maximum(1.0, np.floor(architecture.compute_instances / used))
        left = self.split_tile[self.entries - 1].prod(axis=0)
        compute_cycles = outside / used * np.ceil(left / lanes) * architecture.compute.cycles_per_operation
        energy = np.full(len(self.rows), problem.macs * architecture.compute.energy_per_operation_pj)
        read: dict[str, Floats] = {}
        written: dict[str, Floats] = {}
        for operand in self.pricer.operands:
            energy += self._least_energy(operand, lanes, read, written)
        cycles = compute_cycles
        for memory in architecture.memories:
            for words, bandwidth in (
                (read.get(memory.name), memory.read_bandwidth_words_per_cycle),
                (written.get(memory.name), memory.write_bandwidth_words_per_cycle),
            ):
                if words is not None and bandwidth is not None:
                    cycles = np.maximum(cycles, np.floor(words / bandwidth * SURE))
        return energy * SURE, cycles

    def _least_energy(
        self, operand: Operand, lanes: Floats, read: dict[str, Floats], written: dict[str, Floats]
    ) -> Floats:
        """pJ that one tensor costs at least; what the known levels read and write is added up, per instance."""
        kept = [self.keep[:, plan.start, operand.index] for plan in self.plans]
        moved = self._moved(operand, kept)
        energy = np.zeros(len(self.rows))
        decided = np.zeros(len(self.rows), dtype=np.bool_)  # a level further inside, also known, keeps the tensor
        for level in reversed(range(self.levels)):
            memory = self.pricer.architecture.clusters[self.plans[level].cluster_index].memory_for(operand.tensor)
            if memory is None or not kept[level].any():
                continue
            reads, fills, updates = self._accesses(operand, moved, level)
            fills, reads, updates = (
                np.where(kept[level], fills, 0.0),
                np.where(kept[level] & decided, reads, 0.0),
                np.where(kept[level] & decided, updates, 0.0),
            )
            in_use = self._macros(level, memory)
            energy += access_energy(memory, reads, fills, updates) * in_use
            energy += np.where(
                kept[level] & ~decided, self._least_inwards(operand, moved, level, memory, in_use, lanes), 0.0
            )
            read[memory.name] = read.get(memory.name, 0.0) + reads
            written[memory.name] = written.get(memory.name, 0.0) + fills + updates
            decided = decided | kept[level]
        return energy

    def _macros(self, level: int, memory: Memory) -> Floats:
        built = self.pricer.architecture.instances[self.plans[level].cluster_index] // memory.instances_per_macro
        return np.minimum(self.utilized[level], built)

    def _least_inwards(
        self, operand: Operand, moved: Moved, level: int, memory: Memory, in_use: Floats, lanes: Floats
    ) -> Floats:
        """pJ of what leaves a level that is the innermost known one to keep the tensor, down to the operations."""
        nothing = np.zeros(len(self.rows))
        if operand.sliding or (operand.matrix > 1).any():  # smaller tiles may save on overlaps and on holes
            again = nothing
        else:
            words = moved.shares[level - 1] if level else nothing + self.pricer.problem.tensor_words(operand.tensor)
            words = np.floor(words + 0.5)
            counts = (nothing, nothing, words) if operand.tensor.is_output else (words, nothing, nothing)
            again = access_energy(memory, *counts) * in_use
        cluster = self.plans[level].cluster_index
        here = self._per_operation(
            operand, cluster, memory, self.pricer.architecture.compute_instances / self.utilized[level]
        )
        further = np.full(len(self.rows), np.inf)
        for entry in self.batch.skeleton.entries[self.entries :]:
            index = self.pricer.architecture.cluster_index[entry.target]
            home = self.pricer.architecture.clusters[index].memory_for(operand.tensor)
            if entry.holds and home is not None:
                further = np.minimum(further, self._per_operation(operand, index, home, lanes))
        least: Floats = np.minimum(np.maximum(again, here), again + further)
        return least

    def _per_operation(self, operand: Operand, cluster: int, memory: Memory, lanes: Floats) -> Floats:
        """pJ for all operations to reach their operand in a memory, each access serving as many `lanes` as exist."""
        architecture = self.pricer.architecture
        fanouts = [inner.fanout for inner in architecture.clusters[cluster:]]
        if not any(fanout.reduction if operand.tensor.is_output else fanout.multicast for fanout in fanouts):
            lanes = np.ones(len(self.rows))
        rounding = architecture.instances[cluster] / 2  # every instance may round down
        accesses = np.maximum(0.0, self.pricer.problem.macs / lanes - rounding) / memory.block_words
        update = memory.write_energy_pj if memory.update_energy_pj is None else memory.update_energy_pj
        one = update if operand.tensor.is_output else memory.read_energy_pj
        return np.asarray(accesses * one / memory.instances_per_macro)
