"""Evaluator of sparse hardware: dense counts, then what zeros save."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin import Relaxation
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping as TileMapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.sparse_refusals import RefusedError, refuse
from tilewright_costmodels.timeloop.sparse.batch.evaluator import DenseEvaluator, SparseBatches
from tilewright_costmodels.timeloop.sparse.densities import Actual, Banded, Distribution, Structured, Uniform
from tilewright_costmodels.timeloop.sparse.relaxation import SparseRelaxation

Sizes = tuple[int, ...]
"""Sub-clusters of each cluster."""


class SparseEvaluator(BatchEvaluator):
    """Timeloop's sparse model, bound to one problem and one architecture.

    Args:
        dense: binds the dense model.
    """

    def __init__(
        self, problem: Problem, architecture: Architecture, dense: Callable[[Problem, Architecture], DenseEvaluator]
    ) -> None:
        self.problem, self.architecture, self.dense = problem, architecture, dense
        self.densities = {tensor.name: distribution_of(problem, tensor) for tensor in problem.tensors}
        self.batches, self.reports = self._bound(_compressing, architecture), self._bound(_without_limit, architecture)
        self.skips_units = any(
            saving.kind == "skip_units"
            for memory in architecture.memories
            if memory.sparse
            for saving in memory.sparse.actions
        )
        self.sizes = tuple(cluster.fanout.size for cluster in architecture.clusters)
        self.enlarged = lru_cache(64)(self._enlarged)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.architecture, self.dense)

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs of candidates."""
        if self.skips_units:
            return self.evaluate_batch(candidates.batch())
        return self.batches.evaluate_candidates(candidates)

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the costs per word from which mappers derive bounds; None unless zeros are placed at random, or if units are skipped."""
        if self.skips_units or any(isinstance(density, Banded | Actual) for density in self.densities.values()):
            return None
        dense = self.reports.dense.relaxation(skeleton)
        if dense is None:
            return None
        return SparseRelaxation(self.problem, self.architecture, self.densities, skeleton, dense, keeps).find()

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch. If units are skipped, mappings may unroll over more units than exist."""
        costs = self.batches.evaluate_batch(batch)
        if not self.skips_units:
            return costs
        needed = self._sizes_of(batch)
        for sizes in np.unique(needed[~costs.valid & (needed > self.sizes).any(axis=1)], axis=0):
            enlarged = self.enlarged(tuple(sizes.tolist()))
            if enlarged is not None:
                chosen = np.flatnonzero(~costs.valid & (needed == sizes).all(axis=1))
                exact = enlarged[0].evaluate_batch(batch.take(chosen))
                for field in ("valid", "energy_pj", "cycles"):
                    getattr(costs, field)[chosen] = getattr(exact, field)
        return costs

    def explain(self, mapping: TileMapping) -> Report:
        """Return the report of one mapping.

        If Timeloop would reject the mapping, or give no figures for it, `valid` is False and the
        report lists the reasons.
        """
        reports = self.reports
        report = reports.dense.explain(mapping)
        if not report.valid and self.skips_units and {reason.code for reason in report.reasons} == {"fanout"}:
            enlarged = self.enlarged(tuple(self._sizes_of(MappingBatch.pack(self.problem, [mapping]))[0].tolist()))
            if enlarged is not None:
                reports = enlarged[1]
                report = reports.dense.explain(mapping)
        if not report.valid:
            return report
        try:
            refuse(mapping, "accepted")
        except RefusedError as error:
            refused = Report(model=report.model, problem=report.problem, macs=report.macs, valid=False)
            return refused.model_copy(update={"reasons": (error.reason,), "warnings": report.warnings})
        return reports.explain(mapping, report)

    def _bound(self, limits: Callable[[Memory], Memory], unrollable: Architecture) -> SparseBatches:
        """Return the evaluator of batches with other limits of memories, and with other fanouts to unroll over."""
        dense = self.dense(self.problem, unrollable.with_memories(limits))
        return SparseBatches(self.problem, self.architecture, self.densities, dense)

    def _sizes_of(self, batch: MappingBatch) -> Ints:
        """Return how many sub-clusters of each cluster mappings need, at least those that exist, [n, cluster]."""
        trips = (-(-batch.temporal // np.maximum(batch.spatial, 1))).prod(axis=2)
        needed = np.ones((len(batch), len(self.sizes)), np.int64)
        for number, entry in enumerate(batch.skeleton.entries):
            if entry.target in self.architecture.cluster_index:
                needed[:, self.architecture.cluster_index[entry.target]] *= trips[:, number]
        return np.maximum(needed, self.sizes)

    def _enlarged(self, sizes: Sizes) -> tuple[SparseBatches, SparseBatches] | None:
        """Return the evaluators of batches and of reports with larger fanouts; None if there are too many units."""
        clusters = tuple(
            cluster.model_copy(update={"fanout": cluster.fanout.model_copy(update={"size": size})})
            for cluster, size in zip(self.architecture.clusters, sizes, strict=True)
        )
        enlarged = self.architecture.model_copy(update={"clusters": clusters})
        try:
            return self._bound(_compressing, enlarged), self._bound(_without_limit, enlarged)
        except NotConformableError:
            return None


def distribution_of(problem: Problem, tensor: Tensor) -> Distribution:
    """Return the distribution of a tensor's nonzeros."""
    density = tensor.density
    if density is None:
        return Structured(1.0)
    if density.data is not None:
        return Actual(density.data.array)
    if density.distribution == "banded":
        assert density.band_width is not None
        return Banded(density.band_width, math.isqrt(problem.tensor_words(tensor)))
    assert density.density is not None
    if density.distribution == "uniform":
        return Uniform(density.density, problem.tensor_words(tensor))
    return Structured(density.density)


def _without_limit(memory: Memory) -> Memory:
    return memory.model_copy(update={"capacity_words": None})


def _compressing(memory: Memory) -> Memory:
    """Return a memory that compresses without its limit; the dense model checks those of others."""
    return _without_limit(memory) if memory.sparse and memory.sparse.formats else memory
