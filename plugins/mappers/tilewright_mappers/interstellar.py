"""Mapper `interstellar`: channels across the array, then every tiling and every reusing order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, reuse_orders, used, with_orders
from tilewright.plugin import Proposals, Run, Task
from tilewright.schema.problem import Problem
from tilewright.schema.structure import recognise
from tilewright_mappers import InterstellarOptions

PRESET = {"conv": "CK", "conv_transpose": "CK", "gemm": "KM"}
"""Letters of the input and output channels, per structure."""


@dataclass(frozen=True)
class Interstellar:
    """Passes over all tilings, level by level, `width` of them at a time, until all are seen."""

    options: InterstellarOptions

    def search(self, task: Task, run: Run) -> Proposals:
        space, width = task.space, self.options.width
        orders = [reuse_orders(task.problem)] * len(space.temporal_slots)
        complete = False
        while not complete:
            complete = True
            for placement in Placement.each(space, run.rng):
                rows = placement.subsample(_unrolled(placement), width)
                for slot in reversed(space.temporal_slots[1:]):
                    if run.exhausted:
                        break
                    rows = placement.subsample(placement.into(slot, rows), width)
                for part in np.array_split(np.arange(len(rows)), max(1, len(rows) // 32)):
                    yield with_orders(rows.take(part), orders)
                complete &= not placement.subsampled


def _unrolled(placement: Placement) -> Candidates:
    """Return the unrollings over channels that use all units; else the fullest over any dimensions."""
    rows = placement.fullest(placement.unroll(placement.start, channels(placement.space.problem)))
    if used(rows)[0] == placement.space.architecture.compute_instances:
        return rows
    return placement.fullest(placement.unroll(placement.start))


def channels(problem: Problem) -> list[int]:
    """Return the input and output channels; all dimensions if the structure is unknown."""
    structure = recognise(problem)
    if structure is None:
        return list(range(len(problem.dimensions)))
    letters = PRESET[structure.kind]
    return [problem.dimension_names.index(name) for letter in letters for name in structure.parts.get(letter, ())]
