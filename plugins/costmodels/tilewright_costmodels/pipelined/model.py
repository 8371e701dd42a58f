"""Cost model `pipelined`: counts and energies of `timeloop`, with cycles of a schedule that fills, drains and waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.plugin.composed import ComposedModel, CycleLimit
from tilewright.plugin.counts import AccessBatch
from tilewright.prices import is_limited, prices_of
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.schedule import Traffic, schedule_cycles


class PipelinedModel(ComposedModel):
    """Timeloop's counts, and the longer of two run times: Timeloop's, and that of a schedule (docs/cycles.md).

    `start_cycles` come on top of both.

    Mappings are scheduled one at a time. Fewer words never take more cycles (docs/optimal.md, Lemma 2).
    """

    name = "pipelined"
    counted_by = "timeloop"
    monotone = True

    def __init__(self, options: TimeloopOptions) -> None:
        self.counting_options = options.model_dump()

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
