"""`interstellar`: input and output channels over the array, then every tiling and every reusing order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Ints
from tilewright.mapspace.constructive.placement import Spreading, reuse_orders, temporal_slots, used, with_orders
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.schema.problem import Problem
from tilewright.schema.structure import recognise

PRESET = {"conv": "CK", "conv_transpose": "CK", "gemm": "KM"}
"""The letters of a structure that its input and output channels have."""


@dataclass(frozen=True)
class InterstellarMapper:
    """Passes over all tilings level by level, `width` of them at a time, until it has seen them all."""

    width: int

    def search(self, task: Task, run: Run) -> Proposals:
        space = task.space
        orders = reuse_orders(task.problem)
        loops = temporal_slots(space)
        complete = False
        while not complete:
            complete = True
            for spreading in Spreading.each(space, run.rng):
                rows = spreading.thin(_unrolled(spreading), self.width)
                for slot in reversed(loops[1:]):
                    if run.exhausted:
                        break
                    rows = spreading.thin(spreading.into(slot, rows), self.width)
                for part in np.array_split(rows, max(1, len(rows) // 32)):
                    trips, order = with_orders(space, part, [orders] * len(loops))
                    yield spreading.batch(trips, order)
                complete &= not spreading.thinned


def _unrolled(spreading: Spreading) -> Ints:
    """The unrollings over channels that use all units, or, if there is none, those over any dimensions that use most."""
    rows = spreading.fullest(spreading.unroll(spreading.start, channels(spreading.space.problem)))
    if used(spreading.space, rows)[0] == spreading.space.architecture.compute_instances:
        return rows
    return spreading.fullest(spreading.unroll(spreading.start))


def channels(problem: Problem) -> list[int]:
    """The dimensions that are input or output channels; all, if the problem is of no known structure."""
    structure = recognise(problem)
    if structure is None:
        return list(range(len(problem.dimensions)))
    letters = PRESET[structure.kind]
    return [problem.dimension_names.index(name) for letter in letters for name in structure.parts.get(letter, ())]
