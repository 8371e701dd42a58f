"""Lower bounds for mappings whose outer entries alone are decided.

Decided loops fix all traffic between decided storage levels, so that traffic is counted exactly. For the rest, every
tensor leaves its innermost decided level at least as often as it entered. Every operation reads its operands from some
memory. At best a read serves all remaining lanes, and it may be free if neighbours can forward operands.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import LANES
from tilewright.mapspace.batch import Bools, Floats, MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.prices import access_pj, charged, leaked_pj, part_pj, port_time, prices_of
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.timeloop.costs import Counts, Number, cost_all, mapping_rows
from tilewright_costmodels.timeloop.tables import Tables

ROUNDING_FACTOR = 1 - 1e-9
"""Factor below one by more than accumulated rounding errors."""


def completed(batch: MappingBatch, entries: int) -> MappingBatch:
    """Return mappings whose entries from `entries` on keep nothing, and whose last entry iterates over the rest."""
    temporal, spatial = batch.temporal.copy(), batch.spatial.copy()
    order, keep = batch.order.copy(), batch.keep.copy()
    remaining = spatial[:, entries - 1 : entries]
    temporal[:, entries:] = remaining
    spatial[:, entries:] = remaining
    temporal[:, -1] = spatial[:, -1] = 1
    order[:, entries:] = np.arange(order.shape[2], dtype=np.int8)
    keep[:, entries:] = False
    placed, unicast = batch.spatial_order, batch.unicast
    return MappingBatch(batch.problem, batch.skeleton, temporal, spatial, order, keep, placed, unicast)


def bound(
    problem: Problem,
    architecture: Architecture,
    link_transfers: bool,
    tables: Tables,
    batch: MappingBatch,
    entries: int,
    counts: Counts,
    valid: Bools,
) -> Costs:
    """Return the bounds; see `tilewright.plugin.costmodel.Bounder`.

    Args:
        batch: mappings from `completed`.
        entries: number of decided entries, less than the length of the skeleton.
        counts: counts of the batch.
        valid: [n], mappings that were counted.
    """
    decided = _DecidedPart(problem, architecture, link_transfers, tables, batch, entries, counts)
    with np.errstate(all="ignore"):  # counts of invalid mappings are arbitrary
        energy, cycles = decided.bound()
    energy, cycles = np.where(valid, energy, np.inf), np.where(valid, cycles, np.inf)
    # where an undecided entry is the backing store of some tensor, nothing is known
    unknown = ~np.all(np.any(batch.keep, axis=1), axis=1)
    return Costs(valid | unknown, np.where(unknown, 0.0, energy), np.where(unknown, 0.0, cycles))


class _DecidedPart:
    """Decided part of mappings; arrays are over mappings."""

    def __init__(
        self,
        problem: Problem,
        architecture: Architecture,
        link_transfers: bool,
        tables: Tables,
        batch: MappingBatch,
        entries: int,
        counts: Counts,
    ) -> None:
        self.problem, self.architecture, self.tables = problem, architecture, tables
        self.batch, self.entries, self.prices = batch, entries, prices_of(architecture)
        n = len(batch)
        self.counts = Counts(**{name: mapping_rows(count, n) for name, count in counts._asdict().items()})
        holds = tables.hardware.level["holds"]
        self.levels = int((holds < entries).sum())
        """Number of decided storage levels. All traffic between them is decided."""
        self.clusters = [architecture.cluster_index[batch.skeleton.entries[entry].target] for entry in holds]
        units = math.prod(cluster.fanout.size for cluster in architecture.clusters[self.clusters[-1] :])
        self.may_forward = link_transfers and units > 1
        """Whether compute units may forward operands to one another at every step."""
        self.keeps = batch.keep[:, holds]
        with np.errstate(divide="ignore", invalid="ignore"):
            unrolled = np.ceil(batch.temporal[:, :entries] / batch.spatial[:, :entries])
        self.units_used = np.asarray(unrolled.prod(axis=(1, 2)))
        self.undecided = np.asarray(batch.spatial[:, entries - 1].astype(np.float64).prod(axis=1))
        self.max_lanes: Floats = np.maximum(1.0, np.floor(architecture.compute_instances / self.units_used))

    def bound(self) -> tuple[Floats, Floats]:
        """Return lower bounds of (energy_pj, cycles)."""
        counts = self.counts
        decided_steps = self.problem.macs / self.undecided / self.units_used
        compute_cycles = (
            decided_steps * np.ceil(self.undecided / self.max_lanes) * self.architecture.compute.cycles_per_operation
        )
        # edge tiles may need fewer steps; the first lane executes at least its share of the decided
        # steps
        compute_cycles = np.where(counts.ragged, counts.compute_cycles / self.max_lanes, compute_cycles)
        undecided = np.zeros(len(self.batch))
        for number, tensor in enumerate(self.problem.tensors):
            undecided += self._bound_tensor(number, tensor)
        for count in (counts.reads, counts.fills, counts.updates, counts.busiest_reads, counts.busiest_writes):
            count[:, self.levels :] = 0.0
        hardware = self.tables.hardware
        without_leakage = (
            hardware.memory.copy()
        )  # the steps of undecided entries may be fewer, so leakage is added below
        without_leakage["leakage_pj"] = 0.0
        groups = Counts(**{name: _lane_groups(count) for name, count in counts._asdict().items()})
        energies, ignored = np.empty((2, *groups.ragged.shape))
        cost_all(hardware._replace(memory=without_leakage), groups, energies, ignored)
        n, cycles = len(self.batch), compute_cycles
        energy = energies.ravel()[:n]
        read, written = (
            mapping_rows(rates, n) * counts.compute_cycles[:, None] for rates in (groups.read_rate, groups.write_rate)
        )
        prices = hardware.memory.view(np.recarray)
        times = port_time(prices, read, written)
        cycles = np.maximum(cycles, np.floor(times * ROUNDING_FACTOR).max(axis=1))
        in_use = mapping_rows(groups.in_use, n)[:, hardware.memory["gate"]]
        leaked = leaked_pj(prices, cycles[:, None], in_use).sum(axis=1)
        return (energy + undecided + leaked) * ROUNDING_FACTOR, cycles

    def _bound_tensor(self, number: int, tensor: Tensor) -> Floats:
        """Return a lower bound of the pJ of one tensor beyond decided levels.

        A level's accesses from inside are decided if a decided inner level also keeps the tensor.
        Other accesses from inside are removed from the counts.
        """
        energy = np.zeros(len(self.batch))
        decided = np.zeros(len(self.batch), dtype=np.bool_)
        for level in reversed(range(self.levels)):
            kept = self.keeps[:, level, number]
            memory = self.architecture.clusters[self.clusters[level]].memory_for(tensor)
            if memory is None or not kept.any():
                continue
            last = kept & ~decided
            energy += np.where(last, self._bound_inwards(number, tensor, level, memory), 0.0)
            self.counts.reads[last, level, number] = 0.0
            self.counts.updates[last, level, number] = 0.0
            self.counts.busiest_reads[last, level, number] = 0.0
            if tensor.is_output:
                self.counts.busiest_writes[last, level, number] = 0.0
            decided = decided | kept
        return energy

    def _bound_inwards(self, number: int, tensor: Tensor, level: int, memory: Memory) -> Floats:
        """Return a lower bound of the pJ from the innermost decided level of a tensor down to the operations."""
        cluster = self.clusters[level]
        instances = self.counts.instances[:, level]
        price, slices = self.prices[memory.name], memory.slices_of(tensor)
        again = np.zeros(len(self.batch))
        if not self.may_forward and not self.tables.tensors.info[number].may_overlap and _is_dense(tensor):
            # otherwise smaller tiles may save overlaps and holes, and Timeloop averages forwarding
            # over unequal tiles: a word may appear to move less than once
            words = self.counts.fills[:, level, number]
            if tensor.is_output and not self.tables.hardware.first_fills:  # first partial sums are not filled
                words = words + self.counts.partition_words[:, level, number]
            # words that an edge tile leaves in an idle sub-cluster may stay there
            once = self.counts.partition_words[:, level, number] if tensor.is_output else 0.0
            words = np.where(self.counts.ragged, once, words)
            words = words if level else np.full(len(self.batch), self.tables.tensors.info[number].words)
            again = access_pj(price, *_inwards(tensor, words * slices)) * charged(price, instances)
        here = self._bound_operands(tensor, cluster, memory, self.architecture.compute_instances / instances)
        further = np.full(len(self.batch), np.inf)
        for entry in self.batch.skeleton.entries[self.entries :]:
            index = self.architecture.cluster_index[entry.target]
            home = self.architecture.clusters[index].memory_for(tensor)
            if entry.holds and home is not None:
                further = np.minimum(further, self._bound_operands(tensor, index, home, self.max_lanes))
        return np.asarray(np.minimum(np.maximum(again, here), again + further))

    def _bound_operands(self, tensor: Tensor, cluster: int, memory: Memory, lanes: Floats) -> Floats:
        """Return a lower bound of the pJ of all operations' accesses to a memory.

        Each access serves at most `lanes` operations.
        """
        if self.may_forward:
            return np.zeros(len(self.batch))
        architecture = self.architecture
        fanouts = [inner.fanout for inner in architecture.clusters[cluster:]]
        if not any(fanout.reduction if tensor.is_output else fanout.multicast for fanout in fanouts):
            lanes = np.ones(len(self.batch))
        price = self.prices[memory.name]
        rounding = price.instances / 2  # every instance may round down
        slices = np.maximum(0.0, self.problem.macs / lanes - rounding) * memory.slices_of(tensor)
        # at most as many instances are charged as there are complete macros (see relaxation.py)
        return np.asarray(part_pj(price, *_inwards(tensor, slices)) * price.macros / price.instances)


def _lane_groups(count: NDArray[Number]) -> NDArray[Number]:
    """Return a count in groups of lanes, the reverse of `mapping_rows`. The last mapping fills empty lanes."""
    groups = -(-len(count) // LANES)
    rows = np.take(count, np.minimum(np.arange(groups * LANES), len(count) - 1), axis=0)
    return np.ascontiguousarray(np.moveaxis(rows.reshape(groups, LANES, *count.shape[1:]), 1, -1))


def _is_dense(tensor: Tensor) -> bool:
    """Return whether no tile of the tensor has holes."""
    return all(coefficient <= 1 for rank in tensor.projection for coefficient in rank.terms.values())


def _inwards(tensor: Tensor, slices: Floats) -> tuple[Floats | float, float, Floats | float]:
    """Return reads, fills and updates of slices that the inside of a memory accesses."""
    return (0.0, 0.0, slices) if tensor.is_output else (slices, 0.0, 0.0)
