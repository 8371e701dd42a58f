"""A plain cost model for tests: honest about legality, crude about energy, with no reuse between tiles."""

from __future__ import annotations

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, MappingBatch
from tilewright.mapspace.legality import legal, legality
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import Report


class PlainModel:
    """Cycles: the temporal trips of all entries. Energy: every tile is read anew whenever a loop outside it steps."""

    def bind(self, problem: Problem, architecture: Architecture) -> PlainEvaluator:
        """Takes every pair."""
        return PlainEvaluator(problem, architecture)


class PlainEvaluator(BatchEvaluator):
    """The plain model bound to one problem and one architecture."""

    def __init__(self, problem: Problem, architecture: Architecture) -> None:
        self.problem = problem
        self.architecture = architecture

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        valid = legal(self.problem, self.architecture, batch)
        good = batch.take(valid)
        energy, cycles = np.full(len(batch), np.inf), np.full(len(batch), np.inf)
        if len(good):
            steps = _trips(good.incoming, good.temporal)
            unrolled = _trips(good.temporal, good.spatial)
            cycles[valid] = steps.prod(axis=1) * self.architecture.compute.cycles_per_operation
            energy[valid] = self._energy(good, steps, unrolled)
        return Costs(valid, energy, cycles)

    def explain(self, mapping: Mapping) -> Report:
        verdict = legality(self.problem, self.architecture, mapping)
        report = Report(
            model="plain",
            problem=self.problem.name,
            macs=self.problem.macs,
            valid=bool(verdict),
            reasons=verdict.reasons,
        )
        if not verdict:
            return report
        costs = self.evaluate_batch(MappingBatch.pack(self.problem, [mapping]))
        cycles, energy = int(costs.cycles[0]), float(costs.energy_pj[0])
        return report.model_copy(update={"cycles": cycles, "energy_pj": energy, "edp": energy * cycles})

    def evaluate(self, mapping: Mapping) -> Costs:
        return Costs.gather([self.explain(mapping)])

    def _energy(self, batch: MappingBatch, steps: Floats, unrolled: Floats) -> Floats:
        total = np.full(len(batch), self.problem.macs * self.architecture.compute.energy_per_operation_pj)
        times = np.ones(len(batch))
        for index, entry in enumerate(batch.skeleton.entries):
            times = times * steps[:, index]
            cluster = self.architecture.cluster(entry.target)
            for number, tensor in enumerate(self.problem.tensors):
                memory = cluster.memory_for(tensor)
                if memory is not None:
                    words = _words(self.problem, tensor, batch.temporal[:, index])
                    total += batch.keep[:, index, number] * times * words * memory.read_energy_pj
            times = times * unrolled[:, index]
        return total


def _trips(outer: Ints, inner: Ints) -> Floats:
    """Products of trip counts [n, entry] of tiles [n, entry, dimension]."""
    counts: Floats = (-(-outer // inner)).astype(np.float64).prod(axis=2)
    return counts


def _words(problem: Problem, tensor: Tensor, extents: Ints) -> Floats:
    """Words of the tiles of `extents` [n, dimension]."""
    words = np.ones(len(extents))
    for row in problem.projection_matrix(tensor):
        words *= 1 + ((extents - 1) * row).sum(axis=1)
    return words
