"""Report: everything a cost model has to say about one mapping. Its JSON form is what `evaluate --json` prints."""

from __future__ import annotations

from typing import Any, Literal

from tilewright.errors import Reason
from tilewright.schema.frozen import FrozenDict
from tilewright.tables import Table, Tabular, numbers, quantity
from tilewright.values import Model

Objective = Literal["edp", "energy", "cycles"]
"""What a search makes small."""


class TensorCounts(Model):
    """Accesses of one tensor at one level, per instance of the memory, in words; energy over all instances."""

    reads: int
    fills: int
    updates: int
    instances: int
    tile_words: int
    energy_pj: float
    partition_words: int | None = None


class LevelReport(Model):
    """One memory. `instances` are those in use; `cycles` what its bandwidth makes of the run."""

    name: str
    instances: int
    cycles: int
    energy_pj: float
    tensors: FrozenDict[str, TensorCounts] = FrozenDict()


class Delivery(Model):
    """`accesses` words, each sent to `multicast` sub-clusters; `scatter` groups of that size side by side."""

    multicast: int
    scatter: int
    accesses: int
    hops: float


class NetworkReport(Model):
    """The traffic of one tensor over the network below a level, per instance of the level; energy over all of them."""

    name: str
    tensor: str
    ingresses: int
    deliveries: tuple[Delivery, ...] = ()
    link_transfers: int = 0
    spatial_reductions: int = 0
    hops: float = 0.0
    energy_pj: float = 0.0


class InstanceCounts(Model):
    """A count over the instances of a memory: the sum, and that of the busiest instance."""

    total: int
    most: int


class Served(Model):
    """`words` accesses that each served `children` sub-clusters (or added up what so many sent)."""

    children: int
    words: int


class Accesses(Model):
    """What really happened to one tensor in one memory. `instances` are those that ever held a word of it.

    `served`: the accesses from inside, by how many sub-clusters (or compute units) shared one.
    """

    level: str
    tensor: str
    instances: int
    reads: InstanceCounts
    fills: InstanceCounts
    updates: InstanceCounts
    served: tuple[Served, ...] = ()


class Execution(Model):
    """What a model that runs the mapping saw, be the mapping legal or not.

    Iterations of the problem: `missing` were never executed, `repeated` more than once; `outside` operations were on
    iterations that the problem has not. `wrong_words` of the `result_words` differ from the true result.
    """

    operations: int
    missing: int
    repeated: int
    outside: int
    result_words: int
    wrong_words: int
    accesses: tuple[Accesses, ...] = ()

    @property
    def complete(self) -> bool:
        """Every iteration was executed exactly once, and nothing else."""
        return not (self.missing or self.repeated or self.outside)


class Report(Tabular, Model):
    """What a mapping costs by one model; with `valid` false, `reasons` says why and the figures are absent.

    Energies are in pJ, over all instances. `macs`: operations of the problem.
    `utilization`: macs / (compute units x cycles).
    """

    model: str
    problem: str
    valid: bool
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()
    macs: int
    cycles: int | None = None
    energy_pj: float | None = None
    edp: float | None = None
    """energy_pj x cycles."""
    utilization: float | None = None
    compute_energy_pj: float | None = None
    levels: tuple[LevelReport, ...] = ()
    networks: tuple[NetworkReport, ...] = ()
    execution: Execution | None = None
    """From models that execute the mapping; None from those that calculate."""

    def of(self, objective: Objective) -> float | None:
        """The figure to make small, in pJ x cycles, pJ or cycles; None where the mapping is not valid."""
        return {"edp": self.edp, "energy": self.energy_pj, "cycles": self.cycles}[objective]

    def rows(self) -> list[dict[str, Any]]:
        """One per level and tensor."""
        return [
            {"level": level.name, "tensor": name} | counts.model_dump()
            for level in self.levels
            for name, counts in level.tensors.items()
        ]

    def tables(self) -> list[Table | str]:
        lines: list[Table | str] = [f"{self.problem} by {self.model}: {self.macs:,} operations"]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        if not self.valid:
            return [*lines, "  not valid:", *(f"  - {reason}" for reason in self.reasons)]
        lines.append(
            f"  energy {quantity(self.energy_pj, 'pJ')}, {quantity(self.cycles, 'cycles')}, "
            f"EDP {quantity(self.edp, 'pJ x cycles')}, utilization {quantity(self.utilization, '')}"
        )
        return [*lines, self._counts(), "  counts are words per instance; energy is over all instances"]

    def _counts(self) -> Table:
        table = Table(
            "level", "tensor", numbers("instances", rank=1), numbers("tile words", rank=2), numbers("reads"),
            numbers("fills"), numbers("updates"), numbers("energy", "pJ"),
        )  # fmt: skip
        for level in self.levels:
            for index, (name, each) in enumerate(level.tensors.items()):
                counts = (each.instances, each.tile_words, each.reads, each.fills, each.updates, each.energy_pj)
                table.add_row(level.name if index == 0 else "", name, *counts)
        table.add_row("compute", *[""] * 6, self.compute_energy_pj)
        return table
