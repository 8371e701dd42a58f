"""Cost model `timeloop`: Timeloop's counts, energies and cycles on the same inputs."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.compiled import LANES, for_kernel
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.exact import overflow
from tilewright.mapspace.legality import backing_warnings, legality
from tilewright.mapspace.rules.scratch import scratch_of
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.plugin.costmodel import BatchEvaluator, Costs, Relaxation
from tilewright.plugin.counts import AccessBatch
from tilewright.prices import leaked_pj
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop import bounds
from tilewright_costmodels.timeloop.costs import Counts, counts_of, mapping_rows
from tilewright_costmodels.timeloop.kernel import evaluate
from tilewright_costmodels.timeloop.multicast import deliveries_of, fanout_cache_of
from tilewright_costmodels.timeloop.nest import KernelInput, nest_of, trips_of_tiles
from tilewright_costmodels.timeloop.ragged.tables import pieces_of
from tilewright_costmodels.timeloop.relaxation import relaxation_of
from tilewright_costmodels.timeloop.report import figures
from tilewright_costmodels.timeloop.tables import Mappings, Tables, all_slots, distinct_shifts, mappings_of, tables_of

if TYPE_CHECKING:
    from tilewright_costmodels.timeloop.sparse.evaluator import SparseEvaluator

MAX_UNITS = 2**20
"""Maximum number of compute units. Delivery patterns need memory for each sub-cluster of a fanout."""
MAX_BLOCKS = 500
"""Maximum memories times dimensions; with more, a mapping that uses all of them cannot be explained in 1 GB."""
MAX_KERNELS = 4
"""Maximum number of kernels that an evaluator keeps: each has tables of 50 MB for 65,536 units. Searches of uneven spaces use 27, one after the other."""


class TimeloopModel:
    """Counts, energies and cycles of Timeloop.

    docs/timeloop.md states the rules, and where they differ from execution.
    """

    def __init__(self, options: TimeloopOptions) -> None:
        self.options = options

    def bind(self, problem: Problem, architecture: Architecture) -> TimeloopEvaluator | SparseEvaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: an axis other than X and Y, or several possible memories for a tensor in one cluster.
                Counts beyond 2**53, or more than 2**20 compute units. Sparse parts that Timeloop's rules do not cover.
        """
        if not architecture.sparse_parts:
            return self.dense(problem, architecture)
        # dense hardware needs none of these modules and kernels
        from tilewright_costmodels.timeloop.sparse.conformance import uncovered
        from tilewright_costmodels.timeloop.sparse.evaluator import SparseEvaluator

        reasons = tuple(uncovered(problem, architecture))
        if reasons:
            raise NotConformableError("cost model timeloop", reasons)
        return SparseEvaluator(problem, architecture, self.dense)

    def dense(self, problem: Problem, architecture: Architecture) -> TimeloopEvaluator:
        """Bind the model without the sparse parts of the architecture; see `bind`."""
        reasons = tuple(_refusals(problem, architecture))
        if reasons:
            raise NotConformableError("cost model timeloop", reasons)
        return TimeloopEvaluator(problem, architecture, self.options)


class SkeletonKernel:
    """Tables and scratch arrays of the kernel, for one skeleton and its slots."""

    def __init__(self, tables: Tables, detailed: bool) -> None:
        self.tables = tables
        self.reported, self.detailed = detailed, detailed or tables.has_network_energy
        self.nest = nest_of(tables)
        self.scratch = scratch_of(tables.rules, len(tables.hardware.slot))
        self.cache = fanout_cache_of(tables, self.detailed)  # raises if the cache would be too large
        self.deliveries = deliveries_of(tables, self.detailed)
        self.pieces = pieces_of(tables)
        self.last_counts = counts_of(1, tables)

    def evaluate(
        self,
        mappings: Mappings,
        link_transfers: bool,
        sound: Bools | None = None,
        counts: Counts | None = None,
        chains: bool = False,
    ) -> Costs:
        """Return the costs of mappings.

        Args:
            sound: [n], True for mappings given as tiles that are cut from one another. Fanouts are then checked along
                each axis of the mesh only. None: the mappings are given as trips.
            counts: receives the counts. None: those of the last mappings are kept.
            chains: the product of the trips may exceed a dimension.
        """
        n = len(mappings.trips)
        valid = np.ones(n, dtype=np.bool_) if sound is None else sound
        costs = Costs(valid, np.full(n, np.inf), np.full(n, np.inf))
        inputs = KernelInput(
            rules=self.tables.rules,
            slots=self.tables.slots,
            tensors=self.tables.tensors,
            hardware=self.tables.hardware,
            mappings=mappings,
            scratch=self.scratch,
            nest=self.nest,
            deliveries=self.deliveries,
            cache=self.cache,
            counts=counts or self.last_counts,
            lax_fanout=sound is not None,
            link_transfers=link_transfers,
            detailed=self.detailed,
            reported=self.reported,
        )
        pieces = self.pieces if chains or len(mappings.tiles) else None
        if pieces is not None:
            np.logical_not(self.tables.hardware.may_share.T, out=pieces.unicast)  # mappings may add to it
        evaluate(inputs, pieces, costs.valid, costs.energy_pj, costs.cycles)
        return costs


class TimeloopEvaluator(BatchEvaluator):
    """Timeloop's model, bound to one problem and one architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, options: TimeloopOptions) -> None:
        self.problem = problem
        self.architecture = architecture
        self.options = options
        self.link_transfers = options.link_transfers
        self._kernels: dict[tuple[object, ...], SkeletonKernel | None] = {}
        self._last: tuple[object, SkeletonKernel | None] = None, None
        self._lock = threading.Lock()  # one thread at a time may use the scratch arrays

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.architecture, self.options)

    def kernel(
        self, skeleton: Skeleton, slots: Sequence[Slot], placed: bool = False, detailed: bool = False
    ) -> SkeletonKernel | None:
        """Return the kernel for a skeleton, or None if no mapping over it can be legal.

        Args:
            placed: mappings order their spatial loops.
            detailed: count networks, and keep what reports need.
        """
        key = (skeleton, tuple((slot.entry, slot.spatial) for slot in slots), placed, detailed)
        known = self._kernels
        if key in known:
            return known[key]
        for oldest in list(known)[: max(0, len(known) + 1 - MAX_KERNELS)]:
            known.pop(oldest, None)
        tables = tables_of(self.problem, self.architecture, skeleton, slots, placed, self.options.first_fills)
        known[key] = kernel = None if tables is None else SkeletonKernel(tables, detailed)
        return kernel

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs of candidates, which are given as trips."""
        space = candidates.space
        last_space, kernel = self._last
        if last_space is not space:
            kernel = self.kernel(space.skeleton, space.slots)
            self._last = space, kernel
        if kernel is None:
            return none_valid(len(candidates))
        keep = space.keeps[0][None] if candidates.keep is None else candidates.keep
        mappings = mappings_of(candidates.trips, candidates.trips[:0], candidates.orders, keep, None)
        with self._lock:
            return kernel.evaluate(mappings, self.link_transfers, chains=space.factors == "ragged")

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch."""
        kernel = self.kernel_for(batch)
        if kernel is None:
            return none_valid(len(batch))
        sound, mappings = self.mappings(batch)
        with self._lock:
            return kernel.evaluate(mappings, self.link_transfers, sound)

    def count_accesses(self, batch: MappingBatch) -> AccessBatch:
        """Return the counts of a batch (see `CountingEvaluator`)."""
        holding = [number for number, entry in enumerate(batch.skeleton.entries) if entry.holds]
        kernel, shape = self.kernel_for(batch), (len(holding), len(self.problem.tensors))
        if kernel is None:  # no mapping is legal
            none, memory = np.zeros((len(batch), *shape)), np.full(shape, -1)
            rates, costs = none.sum(axis=(1, 2)), none_valid(len(batch))
            accesses = none, none, none, none.sum(axis=2), rates, rates
        else:
            costs, counts = self._counted(kernel, batch)
            prices, memory = kernel.tables.hardware.memory, kernel.tables.hardware.memory_index
            in_use = mapping_rows(counts.in_use, len(batch))[:, prices["gate"]]
            leaking = leaked_pj(prices.view(np.recarray), 1, in_use)
            taken = counts.reads, counts.fills, counts.updates, counts.instances, counts.compute_cycles
            accesses = *(mapping_rows(count, len(batch)) for count in taken), leaking.sum(axis=1)
        return AccessBatch(
            self.problem, self.architecture, batch, costs, np.array(holding, dtype=np.int64), memory, *accesses
        )

    def kernel_for(self, batch: MappingBatch, detailed: bool = False) -> SkeletonKernel | None:
        """Return the kernel for a batch."""
        slots = all_slots(batch.skeleton)
        return self.kernel(batch.skeleton, slots, batch.spatial_order is not None, detailed)

    def mappings(self, batch: MappingBatch) -> tuple[Bools, Mappings]:
        """Return which mappings have tiles that are cut from one another, and the mappings as trips."""
        sound = np.full(len(batch), _names(batch.problem) == _names(self.problem))
        trips, tiles = np.ones((2, len(batch), 2 * len(batch.skeleton) - 1, len(self.problem.sizes)), dtype=np.int64)
        sizes = for_kernel(np.array(self.problem.sizes, dtype=np.int64))
        perfect = trips_of_tiles(sizes, for_kernel(batch.temporal), for_kernel(batch.spatial), trips, tiles, sound)
        orders = [batch.order[:, 1:], *([] if batch.spatial_order is None else [batch.spatial_order])]
        needed = tiles[:0] if perfect else tiles
        return sound, mappings_of(trips, needed, np.concatenate(orders, axis=1), batch.keep, batch.unicast)

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Return lower bounds over all completions of the outermost `entries` entries (see `Bounder`)."""
        if not 1 <= entries <= len(batch.skeleton):
            raise ValueError(f"entries is {entries}; expected 1 to {len(batch.skeleton)}")
        if entries == len(batch.skeleton):
            return self.evaluate_batch(batch)
        completed = bounds.completed(batch, entries)
        kernel = self.kernel_for(completed)
        if kernel is None:
            return none_valid(len(batch))
        costs, counts = self._counted(kernel, completed)
        return bounds.bound(
            self.problem, self.architecture, self.link_transfers, kernel.tables, completed, entries, counts, costs.valid
        )

    def _counted(self, kernel: SkeletonKernel, batch: MappingBatch) -> tuple[Costs, Counts]:
        """Return the costs of a batch, and counts of its own."""
        counts = counts_of(max(2, -(-len(batch) // LANES)), kernel.tables)
        sound, mappings = self.mappings(batch)
        with self._lock:
            return kernel.evaluate(mappings, self.link_transfers, sound, counts), counts

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the costs per word from which mappers derive bounds (see `Relaxable`)."""
        tables = tables_of(self.problem, self.architecture, skeleton, (), False, self.options.first_fills)
        if tables is None or not tables.hardware.may_link.all():
            return None
        return relaxation_of(self.problem, self.architecture, skeleton, tables, self.link_transfers)

    def explain(self, mapping: Mapping) -> Report:
        """Return the report of one mapping.

        If Timeloop would reject the mapping, `valid` is False and the report lists every reason.
        """
        problem, architecture = self.problem, self.architecture
        verdict = legality(problem, architecture, mapping)
        reasons = [reason for reason in verdict.reasons if reason.code != "fanout"]
        warnings: list[str] = []
        if not any(reason.code in ("dimension", "target", "tensor", "order", "nesting") for reason in reasons):
            violations = list(_mesh_violations(architecture, mapping))
            reasons = violations + reasons
            if not violations:
                warnings = [
                    f"{reason}; accepted, because Timeloop's model checks only the total along each axis"
                    for reason in verdict.reasons
                    if reason.code == "fanout"
                ]
            if not reasons:
                warnings += backing_warnings(problem, mapping)
        report = Report(
            model="timeloop",
            problem=problem.name,
            macs=problem.macs,
            valid=not reasons,
            reasons=tuple(reasons),
            warnings=tuple(warnings),
        )
        if reasons:
            return report
        batch = MappingBatch.pack(problem, [mapping])
        kernel = self.kernel_for(batch, detailed=True)
        assert kernel is not None, "legality has been checked"
        sound, mappings = self.mappings(batch)
        with self._lock:
            costs = kernel.evaluate(mappings, self.link_transfers, sound)
            assert costs.valid[0], "the mesh has been checked"
            details = figures(
                problem, architecture, mapping, kernel.tables, kernel.last_counts, kernel.deliveries, costs
            )
        return report.model_copy(update=details)


def _names(problem: Problem) -> tuple[tuple[str, ...], ...]:
    return problem.dimension_names, problem.tensor_names


def none_valid(count: int) -> Costs:
    """Return the costs of mappings that are all invalid."""
    return Costs(np.zeros(count, dtype=np.bool_), np.full(count, np.inf), np.full(count, np.inf))


def _refusals(problem: Problem, architecture: Architecture) -> Iterator[Reason]:
    for cluster in architecture.clusters:
        if cluster.fanout.size > 1 and cluster.fanout.axis not in ("X", "Y"):
            yield Reason(
                code="axis",
                where=f"cluster {cluster.name}",
                message=f"fanout.axis is {cluster.fanout.axis}; expected X or Y",
            )
        for tensor in problem.tensors:
            try:
                cluster.memory_for(tensor)
            except ValueError as error:
                yield Reason(code="home", where=f"cluster {cluster.name}", message=str(error))
    yield from overflow(problem)
    if (units := architecture.compute_instances) > MAX_UNITS:
        message = f"{units:,} compute units; expected at most {MAX_UNITS:,}"
        yield Reason(code="fanout", where=architecture.name, message=message)
    if (blocks := len(architecture.memories) * len(problem.sizes)) > MAX_BLOCKS:
        message = f"memories times dimensions are {blocks:,}; expected at most {MAX_BLOCKS:,}"
        yield Reason(code="size", where=architecture.name, message=message)
    for number, tensor in enumerate(problem.tensors):
        if distinct_shifts(problem, number) >= 2**62:
            message = "distances between its tiles exceed 64 bits; use smaller dimensions or strides"
            yield Reason(code="overflow", where=tensor.name, message=message)


def _mesh_violations(architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    """Yield violations of Timeloop's own check of parallelism, innermost level first.

    It compares the instances in use with those that exist, in total and along each axis.
    """
    used = {"X": 1, "Y": 1}
    violations: list[Reason] = []

    def check(name: str, index: int) -> None:
        mesh = architecture.mesh(index)
        available = {"X": math.prod(n for axis, n in mesh.items() if axis != "Y"), "Y": mesh.get("Y", 1)}
        checks = [(math.prod(used.values()), math.prod(available.values()), "instances")]
        checks += [(used[axis], available[axis], f"instances along {axis}") for axis in ("X", "Y")]
        for count, limit, kind in checks:
            if count > limit:
                violations.append(Reason(code="fanout", where=name, message=f"{count} {kind} used, {limit} exist"))
                return

    for entry, (_, spatial) in zip(mapping.entries, mapping.factors(), strict=True):
        index = architecture.cluster_index[entry.target]
        if entry.keep is not None:
            check(entry.target, index)
        used["Y" if architecture.clusters[index].fanout.axis == "Y" else "X"] *= math.prod(spatial.values())
    check(architecture.compute.name, len(architecture.clusters))
    yield from reversed(violations)
