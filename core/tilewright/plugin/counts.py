"""Counts of accesses in batches, as an evaluator offers them next to its costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tilewright.mapspace.batch import Floats, Ints, MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem


@dataclass(frozen=True, eq=False)
class AccessBatch:
    """Accesses of `n` mappings over one skeleton, and what a cost model makes of them.

    Shapes: L storage levels (entries of the skeleton that hold memories), T tensors. Counts are values for each instance in
    use, averaged where tiles differ; those of invalid mappings mean nothing.

    Attributes:
        mappings: the mappings.
        costs: their costs by the model that counts.
        entries: [L] entry of each level, outermost first.
        memory: [L, T] index of the memory in the architecture that would keep the tensor there; -1: none.
        reads: [n, L, T] values read towards the units.
        fills: [n, L, T] values written from outside.
        updates: [n, L, T] values of results written from inside.
        instances: [n, L] instances in use.
        compute_cycles: [n] cycles of the units, without waiting.
        leakage_pj: [n] pJ that leak in every cycle.

    Example:
        >>> import tilewright as tw
        >>> import numpy as np
        >>> from tilewright.plugin import CostModelSpec, installed
        >>> space = tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss")
        >>> evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
        >>> counts = evaluator.count_accesses(space.sample(np.random.default_rng(0), 4).batch())
        >>> counts.reads.shape[0]
        4
    """

    problem: Problem
    architecture: Architecture
    mappings: MappingBatch
    costs: Costs
    entries: Ints
    memory: Ints
    reads: Floats
    fills: Floats
    updates: Floats
    instances: Floats
    compute_cycles: Floats
    leakage_pj: Floats

    def __len__(self) -> int:
        return len(self.costs)

    def slices(self, memory: Memory) -> tuple[Floats, Floats, Floats]:
        """Return the slices (`Memory.slices_per_word`) that one instance of a memory reads, fills and updates, [n] each."""
        at = self.architecture.memories.index(memory)
        widths = (self.memory == at) * np.array([memory.slices_of(tensor) for tensor in self.problem.tensors])
        reads, fills, updates = (
            (counts * widths).sum(axis=(1, 2)) for counts in (self.reads, self.fills, self.updates)
        )
        return reads, fills, updates


@runtime_checkable
class CountingEvaluator(Protocol):
    """An evaluator that offers its counts, so that other models may price them.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import CostModelSpec, CountingEvaluator, installed
        >>> problem, machine = tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), tw.load("eyeriss", "architecture")
        >>> isinstance(installed().make(CostModelSpec, "timeloop").bind(problem, machine), CountingEvaluator)
        True
    """

    def count_accesses(self, batch: MappingBatch) -> AccessBatch:
        """Return the accesses of a batch, in its order, with the costs that `evaluate_batch` returns."""
        ...
