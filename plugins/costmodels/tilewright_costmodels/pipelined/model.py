"""Cost model `pipelined`: counts and energies of `timeloop`, with cycles of a schedule that fills, drains and waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.plugin.composed import ComposedModel, CycleLimit
from tilewright.plugin.counts import AccessBatch
from tilewright.prices import is_limited, prices_of
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.vector import Unit, VectorLayer
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.schedule import Traffic, schedule_cycles
from tilewright_costmodels.pipelined.vectors import pipelined_vector
from tilewright_costmodels.vector.counts import Placement


class PipelinedModel(ComposedModel):
    """Timeloop's counts, and the longer of two run times: Timeloop's, and that of a schedule (docs/cycles.md).

    `start_cycles` come on top of both.

    Mappings are scheduled one at a time. Fewer words never take more cycles (docs/optimal.md, Lemma 2) where
    `is_monotone` holds.
    """

    name = "pipelined"
    counted_by = "timeloop"
    monotone = True

    def __init__(self, options: TimeloopOptions) -> None:
        self.counting_options = options.model_dump()

    def priced(self, architecture: Architecture) -> Architecture:
        """Return the architecture, with the shared bandwidths of passing words as limits in each direction."""
        changes: dict[str, object] = {}
        for memory in passing_memories(architecture):
            if (shared := memory.shared_bandwidth_words_per_cycle) is not None:
                changes[f"{memory.name}.shared_bandwidth_words_per_cycle"] = None
                for way in ("read", "write"):
                    name = f"{way}_bandwidth_words_per_cycle"
                    changes[f"{memory.name}.{name}"] = min(shared, getattr(memory, name) or shared)
        return architecture.replace(changes) if changes else architecture

    def is_monotone(self, architecture: Architecture) -> bool:
        """Return whether fewer words never take more cycles.

        They may where words pass through a memory, or where instructions have `load_cycles` or `issue_cycles`.
        """
        instruction = architecture.compute.instruction
        paced = instruction is not None and (instruction.load_cycles or instruction.issue_cycles)
        return not passing_memories(architecture) and not paced

    def explain_vector(self, layer: VectorLayer, architecture: Architecture, unit: Unit) -> Report:
        """Return the report of a vector layer whose rows wait.

        Raises:
            NotConformableError: see `pipelined_vector`.
        """
        return pipelined_vector(Placement(layer, architecture, unit, "pipelined"))

    def limits(self, counts: AccessBatch) -> Iterator[CycleLimit]:
        """Yield the cycles of the schedule."""
        prices = {name: price for name, price in prices_of(counts.architecture).items() if is_limited(price)}
        cycles = np.zeros(len(counts))
        for number in np.flatnonzero(counts.costs.valid):
            reads, fills, updates = counts.reads[number], counts.fills[number], counts.updates[number]
            traffic = Traffic(reads, fills, updates, float(counts.compute_cycles[number]))
            mapping, holding = counts.mappings[int(number)], counts.entries.tolist()
            cycles[number] = schedule_cycles(counts.problem, counts.architecture, prices, mapping, holding, traffic)
        if start := counts.architecture.compute.start_cycles:
            cycles = start + np.maximum(cycles, counts.costs.cycles)
        yield CycleLimit(
            "schedule", "wait", cycles - 1e-6
        )  # sums of fractions may exceed whole cycles by rounding errors


def passing_memories(architecture: Architecture) -> list[Memory]:
    """Return the memories that words pass through."""
    return [memory for memory in architecture.memories if memory.timing.prefetch == "through"]
