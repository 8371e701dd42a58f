"""MAESTRO bound to a problem and an architecture of ours."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legality
from tilewright.notations.directives.plan import plan_of
from tilewright.notations.directives.roles import roles_of
from tilewright.notations.directives.translation import directives_of
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import LevelReport, Report, TensorCounts
from tilewright_costmodels.maestro.arrays import ArrayPricer, largest_count
from tilewright_costmodels.maestro.doubts import doubts, shortages
from tilewright_costmodels.maestro.figures import Figures, figures_of
from tilewright_costmodels.maestro.report import MaestroReport, levels_of

NO_DRAM = "MAESTRO has no DRAM energy: the energy is that of L2, L1 and compute"


class MaestroEvaluator(BatchEvaluator):
    """Prices mappings by translating them to directives. Energies are those of the architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, faithful: bool) -> None:
        """Raises NotConformableError: no layer or no hardware of MAESTRO is like this."""
        self.problem = problem
        self.architecture = architecture
        self.faithful = faithful
        self.roles = roles_of(problem)
        self.plan = plan_of(architecture)
        self.pricer = ArrayPricer(problem, architecture, self.roles, self.plan, faithful)

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """The prices of a batch; one at a time where counts could pass 64 bits."""
        if largest_count(self.pricer.layer, self.pricer.wires) >= 2**63:
            return Costs.gather([self.explain(mapping) for mapping in batch])
        return self.pricer.price(batch)

    def explain(self, mapping: Mapping) -> Report:
        """The full account; `valid` false and every reason for a mapping that is illegal or has no directives."""
        verdict = legality(self.problem, self.architecture, mapping)
        if not verdict:
            return self._invalid(verdict.reasons)
        try:
            figures = figures_of(*directives_of(self.problem, mapping, self.roles, self.plan))
        except NotConformableError as error:
            return self._invalid(error.reasons)
        overflows = tuple(self._overflows(figures))
        if overflows and not self.faithful:
            return self._invalid(overflows, tuple(doubts(figures)))
        return self._report(figures, tuple(map(str, overflows)))

    def _invalid(self, reasons: tuple[Reason, ...], warnings: tuple[str, ...] = ()) -> Report:
        name, macs = self.problem.name, self.problem.macs
        return Report(model="maestro", problem=name, valid=False, reasons=reasons, warnings=warnings, macs=macs)

    def _report(self, figures: Figures, warnings: tuple[str, ...]) -> MaestroReport:
        clusters = zip((self.plan.l2, self.plan.l1), levels_of(figures), strict=True)
        levels = tuple(row for cluster, level in clusters for row in self._rows(cluster, level))
        compute = figures.num_macs * self.architecture.compute.energy_per_operation_pj
        energy = compute + sum(level.energy_pj for level in levels)
        cycles = figures.runtime_cycles
        notes = (NO_DRAM,) if self.plan.dram else ()
        return MaestroReport(
            model="maestro",
            problem=self.problem.name,
            valid=True,
            warnings=(*doubts(figures), *shortages(figures), *warnings, *notes),
            macs=self.problem.macs,
            cycles=cycles,
            energy_pj=energy,
            edp=energy * cycles,
            utilization=figures.num_macs / (self.architecture.compute_instances * cycles),
            compute_energy_pj=compute,
            levels=levels,
            columns=FrozenDict(figures.columns()),
        )

    def _rows(self, cluster: Cluster, level: LevelReport) -> Iterator[LevelReport]:
        """The same counts per memory of the cluster, under the tensors' names and at the memories' energies."""
        for memory in cluster.memories:
            counts = {
                tensor.name: level.tensors[role].model_copy(
                    update={"energy_pj": _energy_pj(memory, level.tensors[role])}
                )
                for role, tensor in self.roles.tensors.items()
                if _memory(cluster, tensor) is memory
            }
            energy = sum(count.energy_pj for count in counts.values())
            yield LevelReport(
                name=memory.name, instances=1, cycles=level.cycles, energy_pj=energy, tensors=FrozenDict(counts)
            )

    def _overflows(self, figures: Figures) -> Iterator[Reason]:
        """Memories that MAESTRO's requirement (two copies of a tile) does not fit."""
        for cluster, which in ((self.plan.l2, "l2_size_req"), (self.plan.l1, "l1_size_req")):
            for memory in cluster.memories:
                need = sum(
                    getattr(figures.tensors[role], which)
                    for role, tensor in self.roles.tensors.items()
                    if _memory(cluster, tensor) is memory
                )
                if memory.capacity_words is not None and need > memory.capacity_words:
                    message = f"MAESTRO asks for {need} words (two copies of every tile), {memory.capacity_words} fit"
                    yield Reason(code="capacity", where=memory.name, message=message)


def _memory(cluster: Cluster, tensor: Tensor) -> Memory:
    memory = cluster.memory_for(tensor)
    assert memory is not None, "the mapping is legal and keeps every tensor here"
    return memory


def _energy_pj(memory: Memory, counts: TensorCounts) -> float:
    update = memory.write_energy_pj if memory.update_energy_pj is None else memory.update_energy_pj
    return (
        counts.reads * memory.read_energy_pj + counts.fills * memory.write_energy_pj + counts.updates * update
    ) / memory.block_words
