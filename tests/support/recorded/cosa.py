"""The layers that CoSA was measured on, with its own schedules as mappings of our map spaces."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from support import DATA
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

RECORDED = json.loads((DATA / "mappers/cosa_authors.json").read_text())
ARCHITECTURE = Architecture.model_validate(RECORDED["architecture"])
ORDER = "RSPQCKN"
"""Order of the loops of every memory except the global buffer, from the inside."""
SPLITS = {
    "Array": ("GlobalBuffer",),
    "Element": ("InputBuffer",),
    "Lane": ("WeightBuffer", "AccumulationBuffer"),
    "Unit": ("Registers",),
}
"""Cluster -> the levels of CoSA whose spatial loops are below it."""


@dataclass(frozen=True)
class CosaLayer:
    """One layer. `authors`: schedules by form, `head` and `isca`."""

    name: str
    sizes: dict[str, int]
    strides: tuple[int, int]
    authors: dict[str, dict[str, Any]]

    @property
    def problem(self) -> Problem:
        high, wide = self.strides
        tensors = [
            {"name": "W", "role": "weight", "projection": ["R", "S", "C", "K"]},
            {"name": "I", "role": "input", "projection": [f"{high}*P + R", f"{wide}*Q + S", "C", "N"]},
            {"name": "O", "role": "output", "projection": ["P", "Q", "K", "N"]},
        ]
        return Problem.model_validate(
            {"name": self.name, "operation": "conv2d", "dimensions": self.sizes, "tensors": tensors}
        )

    @property
    def space(self) -> MapSpace:
        return MapSpace.of(self.problem, ARCHITECTURE, rules=None)

    def mapping(self, form: str, space: MapSpace) -> MappingBatch:
        """The authors' schedule, as a batch of one."""
        schedule, names = self.authors[form], space.problem.dimension_names
        trips = np.ones((1, len(space.slots), len(names)), dtype=np.int64)
        order = space.plain_order[None].copy()
        placed = 1
        for index, slot in enumerate(space.slots):
            entry = space.skeleton.entries[slot.entry]
            levels = SPLITS[entry.target] if slot.spatial else (entry.inside or "",)
            for level in levels:
                for name, factor in schedule["splits" if slot.spatial else "loops"].get(level, {}).items():
                    trips[0, index, names.index(name)] *= factor
                    placed *= factor
            if not slot.spatial:
                given = schedule["global_buffer_order"] if levels == ("GlobalBuffer",) else ORDER
                inside_out = [*given, *(name for name in ORDER if name not in given)]
                order[0, space.temporal_slots.index(index)] = [names.index(name) for name in reversed(inside_out)]
        assert placed == space.problem.macs, "every factor has its place"
        return Candidates(space, trips, order).batch()


def layers() -> list[CosaLayer]:
    """All recorded layers."""
    return [
        CosaLayer(
            layer["layer"].replace("/", "_"),
            layer["sizes"],
            tuple(layer["strides"]),
            {schedule["form"]: schedule for schedule in layer["authors"]},
        )
        for layer in RECORDED["layers"]
    ]
