"""Cost model `pipelined`: counts and energies of `timeloop`, with cycles of a schedule that fills, drains and waits."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.compiled import LANES
from tilewright.mapspace.batch import Bools, Floats, MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.costmodel import BatchEvaluator, Costs, Relaxation
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Limit, Report
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.schedule import Traffic, schedule_cycles
from tilewright_costmodels.timeloop.costs import Counts, counts_of
from tilewright_costmodels.timeloop.model import TimeloopEvaluator, TimeloopModel, none_valid
from tilewright_costmodels.timeloop.report import slowed


class PipelinedModel:
    """Timeloop's counts, and the longer of two run times: Timeloop's, and that of a schedule (docs/cycles.md)."""

    def __init__(self, options: TimeloopOptions) -> None:
        self.timeloop = TimeloopModel(options)

    def bind(self, problem: Problem, architecture: Architecture) -> PipelinedEvaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: See `TimeloopModel.bind`.
        """
        return PipelinedEvaluator(self.timeloop.dense(problem, architecture))


class PipelinedEvaluator(BatchEvaluator):
    """The model, bound to one problem and one architecture. It schedules one mapping at a time."""

    def __init__(self, timeloop: TimeloopEvaluator) -> None:
        self.timeloop = timeloop
        self.problem, self.architecture = timeloop.problem, timeloop.architecture
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.timeloop,)

    def traffic(self, batch: MappingBatch) -> tuple[Costs, Floats, list[int], Iterator[Traffic]]:
        """Return costs by `timeloop`, pJ that leak per cycle [n], entries with storage, and the counts of each mapping."""
        kernel = self.timeloop.kernel_for(batch)
        if kernel is None:
            return none_valid(len(batch)), np.zeros(len(batch)), [], iter(())
        counts = counts_of(max(2, -(-len(batch) // LANES)), kernel.tables)
        sound, mappings = self.timeloop.mappings(batch)
        with self._lock:
            costs = kernel.evaluate(mappings, self.timeloop.link_transfers, sound, counts)
        memory = kernel.tables.hardware.memory
        in_use = _by_mapping(counts.in_use)[: len(batch)]
        leakage = (in_use[:, memory["gate"]] * memory["leakage_pj"]).sum(axis=1)
        holding = [int(entry) for entry in kernel.tables.hardware.level["holds"]]
        return costs, leakage, holding, _traffic(counts)

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch."""
        costs, leakage, holding, counted = self.traffic(batch)
        cycles = costs.cycles.copy()
        for number, (mapping, traffic) in enumerate(zip(batch, counted, strict=False)):
            if costs.valid[number]:
                cycles[number] = max(cycles[number], self._scheduled(mapping, holding, traffic))
        with np.errstate(invalid="ignore"):
            energy = np.where(costs.valid, costs.energy_pj + (cycles - costs.cycles) * leakage, np.inf)
        return Costs(costs.valid, energy, cycles)

    def _scheduled(self, mapping: Mapping, holding: list[int], traffic: Traffic) -> int:
        return math.ceil(schedule_cycles(self.problem, self.architecture, mapping, holding, traffic) - 1e-6)

    def explain(self, mapping: Mapping) -> Report:
        """Return the report of one mapping: Timeloop's, with the schedule as a further limit."""
        report = self.timeloop.explain(mapping).model_copy(update={"model": "pipelined"})
        if not report.valid:
            return report
        _, _, holding, counted = self.traffic(MappingBatch.pack(self.problem, [mapping]))
        cycles = self._scheduled(mapping, holding, next(counted))
        return slowed(self.architecture, report, [Limit(name="schedule", action="wait", cycles=cycles)])

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Return lower bounds (see `Bounder`): Timeloop's, because a schedule only adds cycles."""
        return self.evaluate_batch(batch) if entries == len(batch.skeleton) else self.timeloop.bound(batch, entries)

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the costs per word from which mappers derive bounds (see `Relaxable`).

        Fewer words may cost more cycles, so they are no exact account.
        """
        relaxation = self.timeloop.relaxation(skeleton, keeps)
        return None if relaxation is None else replace(relaxation, exact=False)


def _by_mapping(counts: Floats) -> Floats:
    """Return counts [G, ..., B] as [G * B, ...]."""
    return np.moveaxis(counts, -1, 1).reshape(-1, *counts.shape[1:-1])


def _traffic(counts: Counts) -> Iterator[Traffic]:
    moved = (_by_mapping(each) for each in (counts.reads, counts.fills, counts.updates))
    for reads, fills, updates, cycles in zip(*moved, _by_mapping(counts.compute_cycles), strict=True):
        yield Traffic(reads, fills, updates, float(cycles))
