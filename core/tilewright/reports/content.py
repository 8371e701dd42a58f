"""Content of a report: metrics, and values derived from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from tilewright.errors import Reason
from tilewright.reports.parts import (
    Accesses,
    Execution,
    LevelReport,
    Limit,
    MeshReport,
    NetworkReport,
    TensorCounts,
)
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright.values import Model, attributes

LEAKAGE = "leakage"
"""Label that replaces the tensor's name for leakage."""


@dataclass(frozen=True)
class EnergyPart:
    """Energy of one tensor in one component, or of its leakage.

    `tensor` is None for compute and for energy that the model assigns to no component.
    """

    place: str
    tensor: str | None
    energy_pj: float
    counts: TensorCounts | None = None


class ReportContent(Model):
    """Cost of a mapping by one model; if `valid` is false, only `reasons` are given.

    Energies are in pJ, over all instances. Values that a model does not provide are None or empty.
    """

    model: str
    """Name of the cost model."""
    problem: str
    """Name of the problem."""
    valid: bool
    """Whether the mapping is legal for the model."""
    reasons: tuple[Reason, ...] = ()
    """Why it is not."""
    warnings: tuple[str, ...] = ()
    """Parts that the model does not count, or counts in another way."""
    macs: int
    """Operations of the problem."""
    cycles: int | None = None
    """Length of the run."""
    energy_pj: float | None = None
    """Energy of the run."""
    edp: float | None = None
    """energy_pj x cycles."""
    utilization: float | None = None
    """macs / (compute units x cycles); on sparse hardware, only operations that take a cycle count."""
    compute_energy_pj: float | None = None
    """Energy of the operations."""
    actual_operations: int | None = None
    """Operations that sparse hardware executes; None on dense hardware."""
    gated_operations: int | None = None
    """Operations that take their cycle, but little energy; None on dense hardware."""
    skipped_operations: int | None = None
    """Operations that take no cycle; None on dense hardware."""
    levels: tuple[LevelReport, ...] = ()
    """Memories, outermost first."""
    networks: tuple[NetworkReport, ...] = ()
    """Networks between them."""
    meshes: tuple[MeshReport, ...] = ()
    """Words on the links of meshes."""
    limits: tuple[Limit, ...] = ()
    """Possible bottlenecks."""
    busy_units: float | None = None
    """Average number of compute units at work while computing."""
    compute_units: int | None = None
    """Compute units of the architecture."""
    architecture: str | None = None
    """Name of the architecture."""
    clock_ghz: float | None = None
    """Its clock frequency in GHz."""
    area_um2: float | None = None
    """Area of all memories and compute units of the architecture; None if a part's is unknown."""
    accesses: tuple[Accesses, ...] = ()
    """Accesses of each layer of a group; empty for single layers."""
    layer_limits: FrozenDict[str, tuple[Limit, ...]] = Field(default=FrozenDict(), exclude=True)
    """Layer of a group -> its limits. Layers run in sequence, each as long as its slowest limit."""
    execution: Execution | None = None
    """Result of models that execute the mapping; None from models that calculate."""

    @model_validator(mode="after")
    def _limits_add_up(self) -> Self:
        wrong = self.contradiction()
        if wrong is not None:
            raise ValueError(wrong)
        return self

    def contradiction(self) -> str | None:
        """Return how limits contradict the cycles; None if the limits explain the cycles."""
        if not self.limits or self.cycles is None:
            return None
        bound = sum(limit.binding_cycles for limit in self.limits)
        if bound != self.cycles:
            return f"limits bind {bound} cycles of {self.cycles}"
        for limit in self.limits:
            if not 0 <= limit.binding_cycles <= limit.cycles <= self.cycles:
                return f"{limit.name} {limit.action} binds {limit.binding_cycles} of its {limit.cycles} cycles"
        return None

    def on(self, architecture: Architecture, problem: Problem) -> Self:
        """Return a copy with the architecture's name, clock, area, compute units and memory use."""
        memories = {memory.name: memory for memory in architecture.memories}
        levels = [
            level
            if level.used_words is not None or level.name not in memories
            else level.model_copy(
                update={
                    "used_words": math.ceil(
                        sum(
                            counts.stored_words * memories[level.name].words_of(problem.tensor(name))
                            for name, counts in level.tensors.items()
                        )
                    ),
                    "capacity_words": memories[level.name].usable_words,
                }
            )
            for level in self.levels
        ]
        return self.model_copy(
            update={
                "levels": tuple(levels),
                "compute_units": architecture.compute_instances,
                "architecture": architecture.name,
                **attributes(architecture, "clock_ghz area_um2"),
            }
        )

    def with_costs(self, energy_pj: float, cycles: int, compute_units: int, **others: Any) -> Self:
        """Return a valid copy with these costs, derived metrics (EDP, utilization), and `others`."""
        costs = {
            "valid": True,
            "energy_pj": energy_pj,
            "cycles": cycles,
            "edp": energy_pj * cycles,
            "compute_units": compute_units,
            "utilization": self.macs / (compute_units * cycles),
        }
        return self.model_copy(update=costs | others)

    def of(self, objective: Objective | str) -> float | None:
        """Return the value of an objective, in its unit; None if invalid."""
        if self.energy_pj is None or self.cycles is None:
            return None
        return Objective.named(objective).value(self.energy_pj, self.cycles)

    @property
    def pj_per_mac(self) -> float | None:
        return None if self.energy_pj is None else self.energy_pj / self.macs

    @property
    def seconds(self) -> float | None:
        """Run time in seconds; None if the architecture has no clock."""
        return seconds_of(self.cycles, self.clock_ghz)

    @property
    def giga_macs_per_second(self) -> float | None:
        """Throughput in GMAC/s; None if the architecture has no clock."""
        return None if not self.seconds else self.macs / self.seconds * 1e-9

    @property
    def area_mm2(self) -> float | None:
        """Area in mm2; None if the area of a part is unknown."""
        return None if self.area_um2 is None else self.area_um2 * 1e-6

    @property
    def gops(self) -> float | None:
        """Throughput in GOPS, two operations per MAC; None if the architecture has no clock."""
        return None if self.giga_macs_per_second is None else 2 * self.giga_macs_per_second

    @property
    def gops_per_watt(self) -> float | None:
        """Efficiency in GOPS/W: 2 / (nJ per MAC), independent of the clock."""
        return 2e3 / self.pj_per_mac if self.pj_per_mac else None

    @property
    def slowest(self) -> tuple[Limit, ...]:
        """Bottlenecks, sorted by binding cycles, then by the cycles that they would need alone."""
        return tuple(sorted(self.limits, key=lambda limit: (-limit.binding_cycles, -limit.cycles)))

    @property
    def limited_by(self) -> str | None:
        """Name of the limit that binds most cycles; None if the model has no limits."""
        return self.slowest[0].title if self.limits else None

    def energy_parts(self) -> Iterator[EnergyPart]:
        """Yield the energy by component: memories outermost first, NoCs, compute.

        The parts add up to the total energy.
        """
        parts = [
            *(part for level in self.levels for part in _parts_of(level)),
            *(
                EnergyPart(f"NoC of {network.name}", network.tensor, network.energy_pj)
                for name in dict.fromkeys(network.name for network in self.networks)
                for network in self.networks
                if network.name == name and network.energy_pj
            ),
        ]
        if self.compute_energy_pj is not None:
            parts.append(EnergyPart("compute", None, self.compute_energy_pj))
        yield from parts
        rest = (self.energy_pj or 0.0) - sum(part.energy_pj for part in parts)
        if abs(rest) > 1e-6 * (self.energy_pj or 0.0):
            yield EnergyPart("unnamed parts", None, rest)


def seconds_of(cycles: int | None, clock_ghz: float | None) -> float | None:
    """Return the run time in seconds; None without cycles or a clock."""
    return cycles / clock_ghz * 1e-9 if cycles is not None and clock_ghz else None


def _parts_of(level: LevelReport) -> Iterator[EnergyPart]:
    for name, counts in level.tensors.items():
        yield EnergyPart(level.name, name, counts.energy_pj, counts)
    if level.leakage_pj:
        yield EnergyPart(level.name, LEAKAGE, level.leakage_pj)
