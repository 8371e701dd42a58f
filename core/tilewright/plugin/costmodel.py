"""Cost model: bound once to a problem and an architecture, then evaluates mappings, by the batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.skeleton import Skeleton
from tilewright.notations.directives import DirectiveProgram
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Objective, Report


@dataclass(frozen=True, eq=False)
class Costs:
    """What `n` mappings cost. An invalid mapping costs `inf`, never NaN, so that `argmin` is safe.

    Attributes:
        valid: bool [n].
        energy_pj: float64 [n], picojoules.
        cycles: float64 [n].
    """

    valid: Bools
    energy_pj: Floats
    cycles: Floats

    def __len__(self) -> int:
        return len(self.valid)

    @property
    def edp(self) -> Floats:
        """energy_pj x cycles, float64 [n]."""
        return self.energy_pj * self.cycles

    def of(self, objective: Objective) -> Floats:
        """The figure to make small, float64 [n]: pJ x cycles, pJ or cycles."""
        return {"edp": self.edp, "energy": self.energy_pj, "cycles": self.cycles}[objective]

    def within(self, most_cycles: float) -> Costs:
        """The same, where what takes more cycles is not valid."""
        if most_cycles == np.inf:
            return self
        valid = self.valid & (self.cycles <= most_cycles)
        return Costs(valid, np.where(valid, self.energy_pj, np.inf), np.where(valid, self.cycles, np.inf))

    @classmethod
    def join(cls, parts: Sequence[Costs]) -> Costs:
        """The costs of several batches, one after another. At least one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.valid for part in parts]),
            np.concatenate([part.energy_pj for part in parts]),
            np.concatenate([part.cycles for part in parts]),
        )

    @classmethod
    def gather(cls, reports: list[Report]) -> Costs:
        """The costs in reports, one each."""

        def column(values: list[float | None]) -> Floats:
            return np.array([np.inf if value is None else value for value in values], dtype=np.float64)

        return cls(
            np.array([report.valid for report in reports], dtype=np.bool_),
            column([report.energy_pj for report in reports]),
            column([report.cycles for report in reports]),
        )


@runtime_checkable
class Evaluator(Protocol):
    """A cost model bound to one problem and one architecture. Picklable; calls leave no trace in its results."""

    def evaluate(self, mapping: Mapping) -> Costs:
        """The costs of one mapping: a batch of one."""
        ...

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """The costs of a batch, in its order: `inf` and not `valid` where the model rejects a mapping; never raises for that."""
        ...

    def explain(self, mapping: Mapping) -> Report:
        """The full account of one mapping; a mapping the model rejects gives `valid` false and the reasons."""
        ...


@runtime_checkable
class CandidateEvaluator(Protocol):
    """An evaluator that takes trip counts as they are. Where it is one, the driver makes no tile sizes."""

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """The costs that `evaluate_batch(candidates.batch())` would give."""
        ...


@runtime_checkable
class CostModel(Protocol):
    """What a plugin's factory returns."""

    def bind(self, problem: Problem, architecture: Architecture) -> Evaluator:
        """Precompute for this pair. Raises NotConformableError early if the model cannot take it."""
        ...


@runtime_checkable
class DirectiveModel(Protocol):
    """A cost model that takes programs of directives too, as they are."""

    def explain_directives(self, program: DirectiveProgram) -> tuple[Report, ...]:
        """One report per layer; a layer the model cannot take has `valid` false and the reasons."""
        ...


@runtime_checkable
class Bounder(Protocol):
    """An evaluator that also bounds what is not decided yet, for mappers that cut branches off or prove their answer.

    Mappers find it in `Run.bounder`.
    """

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Lower bounds, for every mapping, on energy and on cycles over all mappings of the same skeleton that agree
        with it in the outermost `entries` entries; what its other entries say is not read.

        `inf` and not `valid` where no such mapping can be valid. With all entries given: the costs.

        Raises:
            ValueError: `entries` is not between 1 and the length of the skeleton.
        """
        ...


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What a bound cost model says of itself, for mappings over one skeleton, to mappers that prove: how words that move become
    energy and cycles. How many move at least follows from tiles and loops, by one rule for all models (docs/optimal.md), of ragged tiles too unless
    the model declares `imperfect_factors=False`. Shapes: E entries, T tensors, M memories, all in their own order.

    Attributes:
        memory: [E, T] number of the memory that keeps the tensor there; -1: none may.
        read_pj, fill_pj, update_pj: [M] least energy of one word, of which a value takes `Memory.words_of`: that leaves towards the
            units; that is written from outside; of an output, that is added from inside.
        read_bandwidth, write_bandwidth: [M] words per cycle and instance; inf: no limit.
        shared: [E, T] whether one word may serve several sub-clusters of the entry's cluster, or be summed on the way.
        neighbours: sub-clusters may have words from one another, which no memory then reads for them.
        leakage_pj: [M] energy per cycle for each instance in use of the memory `gate` [M].
        compute_pj: of all operations.
        cycles_per_operation: of one compute unit.
        exact: nothing else costs anything, so that fewer words never cost more.
        whole_cycles: they are rounded up to whole numbers.
    """

    memory: Ints
    read_pj: Floats
    fill_pj: Floats
    update_pj: Floats
    read_bandwidth: Floats
    write_bandwidth: Floats
    shared: Bools
    neighbours: bool
    leakage_pj: Floats
    gate: Ints
    compute_pj: float
    cycles_per_operation: float
    exact: bool
    whole_cycles: bool = False


@runtime_checkable
class Relaxable(Protocol):
    """An evaluator that offers a relaxation. Mappers find it in `Run.relaxable`."""

    def relaxation(self, skeleton: Skeleton) -> Relaxation | None:
        """None where no mapping over the skeleton can be valid."""
        ...


class ScalarEvaluator(ABC):
    """For authors who evaluate one mapping at a time: write `explain`, get the rest."""

    @abstractmethod
    def explain(self, mapping: Mapping) -> Report: ...

    def evaluate(self, mapping: Mapping) -> Costs:
        return Costs.gather([self.explain(mapping)])

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        return Costs.gather([self.explain(mapping) for mapping in batch])


class BatchEvaluator(ABC):
    """For authors who evaluate arrays: write `evaluate_batch` (and `explain`), get the rest."""

    problem: Problem

    @abstractmethod
    def evaluate_batch(self, batch: MappingBatch) -> Costs: ...

    @abstractmethod
    def explain(self, mapping: Mapping) -> Report: ...

    def evaluate(self, mapping: Mapping) -> Costs:
        return self.evaluate_batch(MappingBatch.pack(self.problem, [mapping]))
