"""Joint searches: one search for machines that differ in the sizes of memories (Sunstone-arch, thesis of C. Ng, UBC, section 5.2.1).

Each mapping is evaluated once, on the first machine that holds its tiles. So machines with tiles in common share their evaluation
and the searches of the outer memories.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import explain
from tilewright.application.run.network import MappedLayer, bound
from tilewright.application.run.pieces import costs_of
from tilewright.application.run.search import search
from tilewright.errors import InputError, TilewrightError
from tilewright.mapspace.batch import Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import BatchEvaluator, Costs, Evaluator
from tilewright.plugin.guard.models import GuardedEvaluator
from tilewright.plugin.mapper import Budget, Mapper, Task
from tilewright.plugin.result import Result
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.schema.workload import DistinctProblem


def largest(machines: Sequence[Architecture]) -> Architecture:
    """Return the first machine with the largest size that each of its memories has on any of them.

    >>> import tilewright as tw
    >>> machine = tw.load("sunstone_edge", "architecture")
    >>> largest([machine, machine]) == machine
    True
    """
    clusters = []
    for number, cluster in enumerate(machines[0].clusters):
        memories = []
        for place, memory in enumerate(cluster.memories):
            sizes = [machine.clusters[number].memories[place].capacity_words for machine in machines]
            size = None if None in sizes else max(size for size in sizes if size is not None)
            memories.append(memory.model_copy(update={"capacity_words": size}))
        clusters.append(cluster.model_copy(update={"memories": tuple(memories)}))
    return machines[0].model_copy(update={"clusters": tuple(clusters)})


class JointSearch(BatchEvaluator):
    """One problem on several machines, cheapest first: map space, evaluator, and the best mapping on each machine.

    Attributes:
        space: All mappings that some machine holds.
        evaluated: Mappings evaluated on each machine, [machine].
        tiles: Distinct tiles evaluated, by memory level: those of the innermost memories, then with those of the next ones.
    """

    def __init__(self, spaces: Sequence[MapSpace], evaluators: Sequence[Evaluator], objective: Objective) -> None:
        """Raise InputError if the machines differ in more than the sizes and prices of memories."""
        first = spaces[0]
        for other in spaces[1:]:
            if (other.slots, other.skeleton, other.rules) != (first.slots, first.skeleton, first.rules):
                raise InputError(
                    f"{first.architecture.name} and {other.architecture.name} cannot be searched together, because their map spaces differ",
                    hint="explore the grid",
                )
        machines = tuple(space.architecture for space in spaces)
        self.space = dataclasses.replace(first, architecture=largest(machines), machines=machines)
        self.spaces, self.evaluators, self.objective = spaces, evaluators, objective
        self.evaluated = np.zeros(len(spaces), dtype=np.int64)
        self.valid = np.zeros(len(spaces), dtype=np.int64)
        self.values = np.full(len(spaces), np.inf)
        self.rows: dict[int, Candidates] = {}
        """The best mapping evaluated on each machine."""
        homes = [next(at for at, entry in enumerate(first.skeleton.entries) if entry.holds and entry.target == name) for name in _held(first)]  # fmt: skip
        self._inside = [[at for at, slot in enumerate(first.slots) if slot.entry > home] for home in homes[:0:-1]]
        self._tiles: list[set[bytes]] = [set() for _ in self._inside]

    @property
    def tiles(self) -> tuple[int, ...]:
        return tuple(map(len, self._tiles))

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        return self.evaluate_candidates(Candidates.of(self.space, batch))

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs of each mapping on the first machine that holds it."""
        holders, count = candidates.holders(), len(candidates)
        costs = Costs(np.zeros(count, dtype=np.bool_), np.full(count, np.inf), np.full(count, np.inf))
        for number in np.unique(holders[holders >= 0]).tolist():
            index = np.flatnonzero(holders == number)
            rows = candidates.take(index)
            here = self._on(number, rows)
            costs.valid[index], costs.energy_pj[index], costs.cycles[index] = here.valid, here.energy_pj, here.cycles
            self.evaluated[number] += len(rows)
            self.valid[number] += int(here.valid.sum())
            values = here.of(self.objective)
            best = int(values.argmin())
            if values[best] < self.values[number]:
                self.values[number], self.rows[number] = float(values[best]), rows.take(slice(best, best + 1))
        self._count(candidates.take(holders >= 0))
        return costs

    def explain(self, mapping: Mapping) -> Report:
        rows = Candidates.of(self.space, MappingBatch.pack(self.space.problem, [mapping]))
        return self.evaluators[max(0, int(rows.holders()[0]))].explain(mapping)

    def run(self, mapper: Mapper, budget: Budget, seed: int = 0, most_cycles: float = math.inf) -> Result:
        """Search all machines at once."""
        first = self.evaluators[0]
        evaluator: Evaluator = self
        if isinstance(first, GuardedEvaluator):  # messages name the cost model
            evaluator = GuardedEvaluator(self, first.owner, self.space.problem, self.space.architecture)
        return search(mapper, Task(self.space, self.objective, most_cycles), evaluator, budget, seed=seed)

    def best(self) -> list[tuple[float, Mapping | None]]:
        """Return (objective, mapping) on each machine: the best of those that were best on a machine and that it holds."""
        results: list[tuple[float, Mapping | None]] = [(math.inf, None)] * len(self.spaces)
        if not self.rows:
            return results
        rows = Candidates.join(list(self.rows.values()))
        for number, space in enumerate(self.spaces):
            able = dataclasses.replace(rows, space=space)
            able = able.take(able.fits())
            if not len(able):
                continue
            values = self._on(number, able).of(self.objective)
            mapping = able[int(values.argmin())]
            if math.isfinite(values.min()) and legality(space.problem, space.architecture, mapping):
                results[number] = float(values.min()), mapping
        return results

    def _on(self, number: int, rows: Candidates) -> Costs:
        return costs_of(self.evaluators[number], dataclasses.replace(rows, space=self.spaces[number]))

    def _count(self, rows: Candidates) -> None:
        shape: Ints = np.ones((len(rows), 0), dtype=np.int64)
        for seen, slots in zip(self._tiles, self._inside, strict=True):
            shape = np.concatenate([shape, rows.trips[:, slots].prod(axis=1)], axis=1)
            seen.update(line.tobytes() for line in np.unique(shape, axis=0))


def _held(space: MapSpace) -> list[str]:
    """Return the clusters with memories, outermost first."""
    return list(dict.fromkeys(entry.target for entry in space.skeleton.entries if entry.holds))


def map_together(distinct: DistinctProblem, configurations: Sequence[RunConfiguration]) -> list[MappedLayer]:
    """Map one problem on the machines of several configurations, which differ in nothing else; cheapest first.

    A layer's mappings and CPU seconds are those of its machine, so that sums are those of the one search.
    """
    first = configurations[0]
    try:
        bounds = [bound(distinct, configuration) for configuration in configurations]
        joint = JointSearch([space for space, _, _ in bounds], [model for _, _, model in bounds], first.objective)
    except TilewrightError as error:
        return [MappedLayer(distinct, error=error) for _ in configurations]
    result = joint.run(first.mapper, first.budget, first.seed, first.most_cycles)
    layers = []
    for number, ((value, mapping), (space, constrained, evaluator)) in enumerate(
        zip(joint.best(), bounds, strict=True)
    ):
        share = float(joint.evaluated[number] / max(1, joint.evaluated.sum()))
        outcome = dataclasses.replace(
            result, best=mapping, value=value, evaluated=int(joint.evaluated[number]), valid=int(joint.valid[number]),
            cpu_seconds=share * result.cpu_seconds, lower_bound=None, claimed_by=None, history=(),
        )  # fmt: skip
        report = None if mapping is None else explain(first.model, evaluator, space.problem, space.architecture, mapping)  # fmt: skip
        layers.append(MappedLayer(distinct, space.architecture, outcome, report, result.error, constrained))
    return layers
