"""Report: everything a cost model has to say about one mapping. Its JSON form is what `evaluate --json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import model_validator

from tilewright.errors import Reason
from tilewright.schema.architecture import Architecture
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
    """One memory. `instances` are those in use; `cycles` what its bandwidth makes of the run.

    `used_words` of the `capacity_words` of an instance are taken by the tiles; None: not told, or no limit.
    """

    name: str
    instances: int
    cycles: int
    energy_pj: float
    tensors: FrozenDict[str, TensorCounts] = FrozenDict()
    used_words: int | None = None
    capacity_words: int | None = None


LimitAction = Literal["compute", "read", "write", "access", "send", "collect", "load", "unload"]


class Limit(Model):
    """What a run may have to wait for: compute, a memory's reads or writes, the NoC.

    `cycles`: what the run would take if everything else were faster. `binding_cycles`: those of the report's cycles in
    which all else waits for this; those of all limits add up to the report's. `words` pass at `words_per_cycle`, both of
    the busiest instance.
    """

    name: str
    action: LimitAction
    cycles: int
    binding_cycles: int = 0
    words: int | None = None
    words_per_cycle: float | None = None


def overlapping(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """The limits of a run in which everything overlaps: the slowest (of equals the first) binds all of its cycles."""
    found = list(limits)
    slowest = max(range(len(found)), key=lambda index: found[index].cycles)
    found[slowest] = found[slowest].model_copy(update={"binding_cycles": found[slowest].cycles})
    return tuple(found)


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
    What a model does not know is None, or empty.
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
    limits: tuple[Limit, ...] = ()
    busy_units: float | None = None
    """Compute units at work while there is computing, on average."""
    compute_units: int | None = None
    architecture: str | None = None
    clock_ghz: float | None = None
    execution: Execution | None = None
    """From models that execute the mapping; None from those that calculate."""

    @model_validator(mode="after")
    def _limits_add_up(self) -> Self:
        wrong = self.contradiction()
        if wrong is not None:
            raise ValueError(wrong)
        return self

    def contradiction(self) -> str | None:
        """What is wrong with the limits; None if they explain the cycles."""
        if not self.limits or self.cycles is None:
            return None
        bound = sum(limit.binding_cycles for limit in self.limits)
        if bound != self.cycles:
            return f"limits bind {bound} cycles of {self.cycles}"
        for limit in self.limits:
            if not 0 <= limit.binding_cycles <= limit.cycles <= self.cycles:
                return f"{limit.name} {limit.action} binds {limit.binding_cycles} of its {limit.cycles} cycles"
        return None

    def on(self, architecture: Architecture) -> Self:
        """With what the architecture says beside the figures: its name, clock and compute units, what its memories hold."""
        memories = {memory.name: memory.usable_words for memory in architecture.memories}
        levels = [
            level
            if level.used_words is not None or level.name not in memories
            else level.model_copy(
                update={
                    "used_words": sum(counts.tile_words for counts in level.tensors.values()),
                    "capacity_words": memories[level.name],
                }
            )
            for level in self.levels
        ]
        return self.model_copy(
            update={
                "levels": tuple(levels),
                "compute_units": architecture.compute_instances,
                "architecture": architecture.name,
                "clock_ghz": architecture.clock_ghz,
            }
        )

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
