"""Plain cost model for tests: exact about legality, rough about energy, without reuse between tiles.

It imports what authors of plugins may import, and nothing else.
"""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.plugin import (
    BatchEvaluator,
    Bools,
    Costs,
    Floats,
    Ints,
    MappingBatch,
    Relaxation,
    Skeleton,
    legal,
    legality,
    memory_table,
    tile_words,
)


class PlainModel:
    """Cost model that counts temporal trips as cycles.

    Its energy re-reads every tile whenever an outer loop advances.
    """

    def bind(self, problem: tw.Problem, architecture: tw.Architecture) -> PlainEvaluator:
        """Return an evaluator; every pair of problem and architecture is accepted."""
        return PlainEvaluator(problem, architecture)


class PlainEvaluator(BatchEvaluator):
    """Plain model bound to one problem and one architecture."""

    def __init__(self, problem: tw.Problem, architecture: tw.Architecture) -> None:
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

    def explain(self, mapping: tw.Mapping) -> tw.Report:
        verdict = legality(self.problem, self.architecture, mapping)
        report = tw.Report(
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

    def evaluate(self, mapping: tw.Mapping) -> Costs:
        return Costs.gather([self.explain(mapping)])

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation:
        """Return a relaxation: a tile is filled at least as often as it changes."""
        memories = self.architecture.memories
        free, unlimited = np.zeros(len(memories)), np.full(len(memories), np.inf)
        return Relaxation(
            memory=memory_table(self.problem, self.architecture, skeleton),
            read_pj=free,
            fill_pj=np.array(
                [
                    [
                        memory.accumulation_energy_pj if tensor.is_output else memory.read_energy_pj
                        for tensor in self.problem.tensors
                    ]
                    for memory in memories
                ]
            ),
            update_pj=free,
            read_bandwidth=unlimited,
            write_bandwidth=unlimited,
            shared=np.ones((len(skeleton), len(self.problem.tensors)), dtype=np.bool_),
            neighbours=True,
            leakage_pj=free,
            gate=np.arange(len(memories)),
            compute_pj=self.problem.macs * self.architecture.compute.energy_per_operation_pj,
            cycles_per_operation=float(self.architecture.compute.cycles_per_operation),
            exact=False,
        )

    def _energy(self, batch: MappingBatch, steps: Floats, unrolled: Floats) -> Floats:
        total = np.full(len(batch), self.problem.macs * self.architecture.compute.energy_per_operation_pj)
        times = np.ones(len(batch))
        for index, entry in enumerate(batch.skeleton.entries):
            times = times * steps[:, index]
            cluster = self.architecture.cluster(entry.target)
            for number, tensor in enumerate(self.problem.tensors):
                memory = cluster.memory_for(tensor)
                if memory is not None:
                    words = tile_words(self.problem, tensor, batch.temporal[:, index])
                    price = memory.accumulation_energy_pj if tensor.is_output else memory.read_energy_pj
                    total += batch.keep[:, index, number] * times * words * price
            times = times * unrolled[:, index]
        return total


def _trips(outer: Ints, inner: Ints) -> Floats:
    """Return the products of trip counts [n, entry] for tiles [n, entry, dimension]."""
    counts: Floats = (-(-outer // inner)).astype(np.float64).prod(axis=2)
    return counts
