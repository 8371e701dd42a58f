"""Interface of cost models, which are bound to a problem and an architecture and then evaluate mappings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.program import Program
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright.schema.vector import Unit, VectorLayer


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of `n` mappings. An invalid mapping costs `inf`, never NaN, so that `argmin` is safe.

    Attributes:
        valid: bool [n].
        energy_pj: float64 [n], pJ.
        cycles: float64 [n].

    Example:
        >>> import numpy as np
        >>> from tilewright.plugin import Costs
        >>> costs = Costs(np.array([True, False]), np.array([2.0, np.inf]), np.array([3.0, np.inf]))
        >>> costs.edp.tolist()
        [6.0, inf]
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
        """Return the objective, float64 [n], in its unit."""
        return objective.value(self.energy_pj, self.cycles)

    def within(self, most_cycles: float) -> Costs:
        """Return the costs with mappings that take more cycles marked as invalid."""
        if most_cycles == np.inf:
            return self
        valid = self.valid & (self.cycles <= most_cycles)
        return Costs(valid, np.where(valid, self.energy_pj, np.inf), np.where(valid, self.cycles, np.inf))

    @classmethod
    def join(cls, parts: Sequence[Costs]) -> Costs:
        """Return the concatenated costs of at least one batch."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.valid for part in parts]),
            np.concatenate([part.energy_pj for part in parts]),
            np.concatenate([part.cycles for part in parts]),
        )

    @classmethod
    def gather(cls, reports: list[Report]) -> Costs:
        """Return the costs in reports, one per report."""

        def column(values: list[float | None]) -> Floats:
            return np.array([np.inf if value is None else value for value in values], dtype=np.float64)

        return cls(
            np.array([report.valid for report in reports], dtype=np.bool_),
            column([report.energy_pj for report in reports]),
            column([report.cycles for report in reports]),
        )


@runtime_checkable
class Evaluator(Protocol):
    """A cost model bound to one problem and one architecture. It is picklable and has no visible state.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import CostModelSpec, Evaluator, installed
        >>> problem, machine = tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), tw.load("eyeriss", "architecture")
        >>> isinstance(installed().make(CostModelSpec, "timeloop").bind(problem, machine), Evaluator)
        True
    """

    def evaluate(self, mapping: Mapping) -> Costs:
        """Return the costs of one mapping, as a batch of one."""
        ...

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch, in its order.

        A mapping that the model rejects is not `valid` and costs `inf`. It never raises.
        """
        ...

    def explain(self, mapping: Mapping) -> Report:
        """Return the full report on one mapping; for a rejected one, `valid` is false and the reasons follow."""
        ...


@runtime_checkable
class CandidateEvaluator(Protocol):
    """An evaluator that accepts trip counts, so that the driver computes no tile sizes.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import CostModelSpec, CandidateEvaluator, installed
        >>> problem, machine = tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), tw.load("eyeriss", "architecture")
        >>> isinstance(installed().make(CostModelSpec, "timeloop").bind(problem, machine), CandidateEvaluator)
        True
    """

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs that `evaluate_batch(candidates.batch())` would return."""
        ...


@runtime_checkable
class CostModel(Protocol):
    """Product of a cost model's factory.

    Example:
        >>> from tilewright.plugin import CostModel, CostModelSpec, installed
        >>> isinstance(installed().make(CostModelSpec, "timeloop"), CostModel)
        True
    """

    def bind(self, problem: Problem, architecture: Architecture) -> Evaluator:
        """Precompute for this pair.

        Raises:
            NotConformableError: The model does not accept the pair.
        """
        ...


@runtime_checkable
class DirectiveModel(Protocol):
    """A cost model that also accepts programs of directives, unchanged.

    Example:
        >>> from tilewright.plugin import DirectiveModel, CostModelSpec, installed
        >>> isinstance(installed().make(CostModelSpec, "maestro"), DirectiveModel)
        True
    """

    def explain_directives(self, program: Program) -> tuple[Report, ...]:
        """Return one report per layer.

        For a layer that the model does not accept, `valid` is false and the reasons follow.
        """
        ...


@runtime_checkable
class GroupModel(Protocol):
    """A cost model that evaluates group mappings itself; its capabilities declare `groups`.

    Example:
        >>> from tilewright.plugin import GroupModel, CostModelSpec, installed
        >>> isinstance(installed().make(CostModelSpec, "oracle"), GroupModel)
        True
    """

    def explain_group(self, group: GroupMapping) -> Report:
        """Return the report of a group.

        A row is a tensor of the group in one memory. If the model does not accept the group,
        `valid` is false and the reasons follow. Layers may differ in size along a shared axis; homes then keep
        halos (`group_legality.keeps_halo`). A model that does not count them has to refuse such a group.
        """
        ...


@runtime_checkable
class VectorModel(Protocol):
    """A cost model that counts vector layers; its capabilities declare `vector_layers`.

    Example:
        >>> from tilewright.plugin import CostModelSpec, VectorModel, installed
        >>> isinstance(installed().make(CostModelSpec, "timeloop"), VectorModel)
        True
    """

    def explain_vector(self, layer: VectorLayer, architecture: Architecture, unit: Unit) -> Report:
        """Return the report of one execution of a layer on the units of one name.

        `macs` are its operations. If the model does not accept the layer, `valid` is false and the reasons follow.
        """
        ...


@runtime_checkable
class Bounder(Protocol):
    """An evaluator that bounds partial mappings, for mappers that prune or prove optima.

    Mappers find it in `Run.bounder`.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import CostModelSpec, Bounder, installed
        >>> problem, machine = tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), tw.load("eyeriss", "architecture")
        >>> isinstance(installed().make(CostModelSpec, "timeloop").bind(problem, machine), Bounder)
        True
    """

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Return lower bounds on energy and on cycles, one pair per mapping of the batch.

        Each pair bounds all mappings of the skeleton with the same outermost `entries` entries.
        Inner entries are ignored. A pair is `inf` and not `valid` if no such mapping can be valid.
        If all entries are fixed, the bounds are the costs.

        Raises:
            ValueError: `entries` is not between 1 and the length of the skeleton.
        """
        ...


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Costs of moved words under a bound cost model, for mappers that prove optima over one skeleton.

    For every valid mapping, the least words of its tiles and loops cost no more at the relaxation's prices than the model
    charges. Cycles likewise: those words over its bandwidths never take longer than the model says.

    The least words follow by one rule for all models (Lemma 1 of docs/optimal.md). A tile stays in place until a loop outside
    it moves it, and a window slides. The first partial sums are not read. One word serves all sub-clusters where `shared`
    allows. The rule includes ragged tiles, unless the model declares `imperfect_factors=False`.

    For example, a tile of 8 words of A[n, k] is inside the loops n (2 trips) and m (4 trips, innermost). Loop m leaves it in
    place, so 16 words are needed. A model that fills it in all 8 steps charges 64 fills, and one that compresses words to a half
    charges 8 at least. With 3 pJ for a fill, `fill_pj` may be up to 12 in the first model, and 1.5 in the second.

    Shapes: E entries, T tensors, M memories, each in its own order.

    Attributes:
        memory: [E, T] index of the memory that may keep the tensor there; -1: none.
        read_pj, fill_pj, update_pj: [M, T], or [M] for all tensors alike: minimum pJ per word. Words are read towards
            the units, written from outside, or added to an output from inside. A value has `Memory.words_of` words.
        read_bandwidth, write_bandwidth: [M] words per cycle and instance; inf: no limit.
        shared_bandwidth: [M] words per cycle and instance, read and written together; None: no memory has such a limit.
        shared: [E, T] whether the cluster may multicast a word to several sub-clusters, or reduce their words.
        neighbours: Sub-clusters may forward words to each other, which then need no memory read.
        leakage_pj: [M] pJ per cycle for each instance of the memory `gate` [M] in use.
        compute_pj: pJ of all operations.
        cycles_per_operation: Cycles of one compute unit per operation.
        exact: Nothing else costs anything, so that fewer words never cost more.
        whole_cycles: Cycles are rounded up to whole numbers.
        moved: [M, T] minimum fraction of these words that takes bandwidth; None: all do.
        rounded: Counts are rounded, so that fewer words may cost slightly more.
        order_matters: Costs depend on loop orders that need the same words.
        linear: Energy is a sum of accesses times the memories' energies, of leakage times cycles, and of parts without them.
            Accesses depend neither on these energies nor on sizes or bandwidths, and more bandwidth never takes longer. The
            prices above are these energies times constants.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import CostModelSpec, installed
        >>> space = tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss")
        >>> evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
        >>> relaxation = evaluator.relaxation(space.skeleton)
        >>> relaxation.memory[0].tolist(), float(relaxation.read_pj[0].max())
        ([0, 0, 0], 64.0)
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
    shared_bandwidth: Floats | None = None
    moved: Floats | None = None
    rounded: bool = False
    order_matters: bool = False
    linear: bool = False

    def __post_init__(self) -> None:
        shape = len(self.gate), self.memory.shape[1]
        for name in ("read_pj", "fill_pj", "update_pj"):
            prices = np.asarray(getattr(self, name), np.float64).reshape(shape[0], -1)
            object.__setattr__(self, name, np.broadcast_to(prices, shape))
        if self.shared_bandwidth is None:
            object.__setattr__(self, "shared_bandwidth", np.full(shape[0], np.inf))


@runtime_checkable
class Relaxable(Protocol):
    """An evaluator that offers a relaxation. Mappers find it in `Run.relaxable`.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import CostModelSpec, Relaxable, installed
        >>> problem, machine = tw.load("nk,km->nm; n=2 k=3 m=4", "problem"), tw.load("eyeriss", "architecture")
        >>> isinstance(installed().make(CostModelSpec, "timeloop").bind(problem, machine), Relaxable)
        True
    """

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the relaxation; None if no mapping over the skeleton can be valid, or nothing is known.

        Args:
            keeps: [E, T] entries that keep a tensor in all mappings, and in some (`MapSpace.keeps`). None: any entry may.
        """
        ...


class ScalarEvaluator(ABC):
    """Base of evaluators that evaluate one mapping at a time: implement `explain`.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import ScalarEvaluator
        >>> class Flat(ScalarEvaluator):
        ...     def explain(self, mapping):
        ...         return tw.Report(model="flat", problem="", macs=1, valid=True, energy_pj=2.0, cycles=3, edp=6.0)
        >>> Flat().evaluate(None).edp.tolist()
        [6.0]
    """

    @abstractmethod
    def explain(self, mapping: Mapping) -> Report: ...

    def evaluate(self, mapping: Mapping) -> Costs:
        return Costs.gather([self.explain(mapping)])

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        return Costs.gather([self.explain(mapping) for mapping in batch])


class BatchEvaluator(ABC):
    """Base of evaluators that evaluate arrays: implement `evaluate_batch` and `explain`.

    Example:
        >>> import numpy as np
        >>> from tilewright.plugin import BatchEvaluator, Costs
        >>> class Flat(BatchEvaluator):
        ...     def evaluate_batch(self, batch):
        ...         return Costs(np.ones(len(batch), bool), np.ones(len(batch)), np.ones(len(batch)))
        ...
        ...     def explain(self, mapping):
        ...         raise NotImplementedError
        >>> Flat().evaluate_batch(range(3)).edp.tolist()
        [1.0, 1.0, 1.0]
    """

    problem: Problem

    @abstractmethod
    def evaluate_batch(self, batch: MappingBatch) -> Costs: ...

    @abstractmethod
    def explain(self, mapping: Mapping) -> Report: ...

    def evaluate(self, mapping: Mapping) -> Costs:
        return self.evaluate_batch(MappingBatch.pack(self.problem, [mapping]))
