"""Batches of mappings on sparse hardware: dense counts, then the kernel, with what tiles hold from a memo.

A batch of 2500 mappings is evaluated in chunks of 1024, and a chunk in groups of 16 SIMD lanes:

    chunk   mappings        groups
    0       0 .. 1023       64
    1       1024 .. 2047    64
    2       2048 .. 2499    29        the last one has 452 - 28 * 16 = 4 mappings

The kernel runs until no mapping of a chunk waits. For the single mapping in the example of `tables`:

    pass   keys that the kernel adds       the mapping
    0      2 to contents, 1 to empties     waits; then Python computes the three values
    1      none                            is done
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from tilewright.compiled import LANES, for_kernel, interpreted
from tilewright.mapspace.batch import Bools, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.rules.scratch import scratch_of
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.plugin.costmodel import Costs, Relaxation
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping as TileMapping
from tilewright.schema.problem import Problem
from tilewright_costmodels.timeloop.costs import Counts, counts_of
from tilewright_costmodels.timeloop.sparse.batch.kernel import evaluate_sparse
from tilewright_costmodels.timeloop.sparse.batch.memo import Memo
from tilewright_costmodels.timeloop.sparse.batch.tables import box_of, homes, sparse_tables, work_of
from tilewright_costmodels.timeloop.sparse.contents import (
    Content,
    Largest,
    busy_units,
    content_of,
    largest,
    partly_filled,
)
from tilewright_costmodels.timeloop.sparse.densities import Distribution
from tilewright_costmodels.timeloop.sparse.formats import Rank, Stored
from tilewright_costmodels.timeloop.sparse.report import Counted, reported
from tilewright_costmodels.timeloop.tables import Mappings, Tables, all_slots, mappings_of

CHUNK = 1024
"""Mappings that are counted before zeros are; their counts stay in the processor's cache."""
NOT_STATED = np.zeros((0, 0), np.bool_)
"""No entry states the problem's order of unrolled loops."""


class DenseKernel(Protocol):
    """Kernel of the dense model for one skeleton (`model.SkeletonKernel`)."""

    tables: Tables
    detailed: bool

    def evaluate(
        self, mappings: Mappings, link_transfers: bool, sound: Bools | None = None, counts: Counts | None = None
    ) -> Costs: ...


class DenseEvaluator(Protocol):
    """Evaluator of the dense model (`model.TimeloopEvaluator`)."""

    link_transfers: bool

    def kernel(
        self, skeleton: Skeleton, slots: Sequence[Slot], placed: bool = False, detailed: bool = False
    ) -> DenseKernel | None: ...

    def mappings(self, batch: MappingBatch) -> tuple[Bools, Mappings]: ...

    def explain(self, mapping: TileMapping) -> Report: ...

    def relaxation(self, skeleton: Skeleton) -> Relaxation | None: ...


class SparseBatches:
    """Costs of batches on sparse hardware.

    Args:
        architecture: the hardware.
        dense: evaluator of the dense model, without the limits of memories that compress. Its fanouts may be larger.
    """

    def __init__(
        self,
        problem: Problem,
        architecture: Architecture,
        densities: Mapping[str, Distribution],
        dense: DenseEvaluator,
    ) -> None:
        self.problem, self.architecture, self.densities, self.dense = problem, architecture, densities, dense
        self.empties, self.fibers = Memo(2, 1, self._empty), Memo(3, 2, self._fiber)
        self.kernels: dict[DenseKernel, SparseKernel] = {}
        self.lock = threading.Lock()  # one thread at a time may use the scratch arrays

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs of candidates; those with tiles that do not divide are not valid."""
        space, trips = candidates.space, candidates.trips
        if space.factors == "ragged":
            divides = (trips.prod(axis=1) == self.problem.sizes).all(axis=1)
            trips = np.where(divides[:, None, None], trips, 0)
        mappings = mappings_of(trips, trips[:0], candidates.orders, candidates.kept, None)
        return self._evaluate(self._kernel(space.skeleton, space.slots, False), mappings, NOT_STATED, None)

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch; mappings with tiles that do not divide are not valid."""
        sound, mappings = self.dense.mappings(batch)
        if len(mappings.tiles):
            sound &= (mappings.trips.prod(axis=1) == self.problem.sizes).all(axis=1)
            mappings = mappings._replace(tiles=mappings.tiles[:0])
        kernel = self._kernel(batch.skeleton, all_slots(batch.skeleton), batch.spatial_order is not None)
        return self._evaluate(kernel, mappings, NOT_STATED if batch.stated is None else batch.stated, sound)

    def explain(self, mapping: TileMapping, report: Report) -> Report:
        """Return the report of a mapping, out of a batch of one.

        Args:
            report: that of the dense model, on which the mapping is valid.
        """
        batch = MappingBatch.pack(self.problem, [mapping])
        sound, mappings = self.dense.mappings(batch)
        kernel = self._kernel(batch.skeleton, all_slots(batch.skeleton), batch.spatial_order is not None)
        assert kernel is not None, "the dense model has checked the mapping"
        with self.lock:
            kernel.evaluate(mappings, NOT_STATED if batch.stated is None else batch.stated, sound, reported=True)
            return reported(report, kernel.counted())

    def _evaluate(self, kernel: SparseKernel | None, mappings: Mappings, stated: Bools, sound: Bools | None) -> Costs:
        """Return the costs of mappings; `sound` as in `SkeletonKernel.evaluate`."""
        if kernel is None:
            n = len(mappings.trips)
            return Costs(np.zeros(n, np.bool_), np.full(n, np.inf), np.full(n, np.inf))
        with self.lock:
            chunks = [slice(first, first + CHUNK) for first in range(0, len(mappings.trips), CHUNK)]
            return Costs.join(
                [
                    kernel.evaluate(_part(mappings, chunk), stated[chunk], None if sound is None else sound[chunk])
                    for chunk in chunks
                ]
            )

    def _kernel(self, skeleton: Skeleton, slots: Sequence[Slot], placed: bool) -> SparseKernel | None:
        """Return the kernel of a skeleton; None if no mapping over it has costs."""
        holding = [entry.target for entry in skeleton.entries if entry.holds]
        dense = self.dense.kernel(skeleton, slots, placed)
        if dense is None or len(set(holding)) < len(holding):
            return None
        if dense.detailed:
            dense = self.dense.kernel(skeleton, slots, placed, detailed=True)
            assert dense is not None
        if dense not in self.kernels:
            self.kernels[dense] = SparseKernel(self, skeleton, slots, placed, dense)
        return self.kernels[dense]

    def _empty(self, key: Sequence[int]) -> tuple[float]:
        """Return the probability that a tile is empty."""
        density = self.densities[self.problem.tensors[key[0]].name]
        return (density.empty(box_of(key[1], density)),)

    def _fiber(self, key: Sequence[int]) -> tuple[float, float]:
        """Return the units with work (see `busy_units`)."""
        density = self.densities[self.problem.tensors[key[0]].name]
        return busy_units(box_of(key[1], density), box_of(key[2], density), density)


class SparseKernel:
    """Tables, scratch arrays and memo for one skeleton and its slots."""

    def __init__(
        self, batches: SparseBatches, skeleton: Skeleton, slots: Sequence[Slot], placed: bool, dense: DenseKernel
    ) -> None:
        self.batches, self.dense = batches, dense
        problem, architecture = batches.problem, batches.architecture
        self.tables = sparse_tables(problem, architecture, batches.densities, skeleton, slots, placed, dense.tables)
        self.clusters = [cluster for _, cluster in homes(architecture, skeleton, dense.tables)]
        scratch = scratch_of(dense.tables.rules, len(dense.tables.hardware.slot))
        self.work, self.counts = work_of(self.tables, scratch), counts_of(CHUNK // LANES, dense.tables)
        ranks = self.tables.bits.shape[2]
        self.contents = Memo(2 + 2 * ranks, 6 + 2 * ranks, self._content)

    def evaluate(self, mappings: Mappings, stated: Bools, sound: Bools | None, reported: bool = False) -> Costs:
        """Return the costs of at most `CHUNK` mappings; candidates if `sound` is None.

        Args:
            stated: [n, E] entries that state the problem's order of unrolled loops; empty if none does.
            reported: note what a report needs of the last mappings, and count those that do not fit, too.
        """
        self.work.ones_outside[0], self.work.reported[0], self.work.stated[:] = sound is None, reported, False
        evaluate = _evaluate_interpreted() if reported else evaluate_sparse
        costs = self.dense.evaluate(mappings, self.batches.dense.link_transfers, sound, self.counts)
        waiting, empties, fibers = costs.valid.copy(), self.batches.empties, self.batches.fibers
        done = False
        while not done:
            self.contents.fill()
            empties.fill()
            fibers.fill()
            done = evaluate(
                self.tables,
                mappings,
                self.counts,
                self.dense.detailed,
                self.work,
                self.contents.table,
                empties.table,
                fibers.table,
                for_kernel(stated),
                waiting,
                costs.valid,
                costs.energy_pj,
                costs.cycles,
            )
        return costs

    def counted(self) -> Counted:
        """Return what was counted of the first of the last mappings."""
        batches = self.batches
        return Counted(
            batches.problem,
            batches.architecture,
            batches.densities,
            self.clusters,
            self.tables,
            self.work,
            self.contents_at,
        )

    def contents_at(self, level: int, number: int) -> tuple[Content, Largest]:
        """Return what the tile of a tensor holds, on average and at most, in the first of the last mappings."""
        return self._contents(self.work.key[level, number, :, 0].tolist())[2:]

    def _contents(self, key: Sequence[int]) -> tuple[Memory, Stored, Content, Largest]:
        problem = self.batches.problem
        pair, sent = divmod(key[0], 2)
        level, number = divmod(pair, len(problem.tensors))
        tensor = problem.tensors[number]
        memory, density = self.batches.architecture.clusters[self.clusters[level]].memory_for(tensor), self.batches.densities[tensor.name]  # fmt: skip
        assert memory is not None
        spec = None if memory.sparse is None else memory.sparse.format_of(tensor)
        ranks = (
            []
            if spec is None
            else [
                Rank(length, box_of(tile, density), rank)
                for length, tile, rank in zip(key[2::2], key[3::2], reversed(spec.ranks), strict=False)
            ]
        )
        stored = Stored(box_of(key[1], density), tuple(ranks), spec is not None and spec.fill == "inner")
        return memory, stored, content_of(stored, density, bool(sent)), largest(memory, stored, density)

    def _content(self, key: Sequence[int]) -> list[float]:
        """Return what a tile holds (see `tables.EXISTS` and what follows)."""
        memory, stored, content, fullest = self._contents(key)
        values = [content.exists, content.held, partly_filled(memory, stored, content), fullest.words, fullest.bits]
        values += [float(content.units.sum()), *content.units.ravel().tolist()]
        return values + [0.0] * (self.contents.table.values.shape[1] - len(values))


@cache
def _evaluate_interpreted() -> Callable[..., bool]:
    """Return the kernel as plain Python, for reports: a mapping takes milliseconds, compiling takes half a minute."""
    return np.errstate(all="ignore")(interpreted(evaluate_sparse))


def _part(mappings: Mappings, chunk: slice) -> Mappings:
    """Return some of the mappings."""
    keep = mappings.keep if len(mappings.keep) == 1 else mappings.keep[chunk]
    return Mappings(mappings.trips[chunk], mappings.tiles, mappings.order[chunk], keep, mappings.unicast[chunk])
