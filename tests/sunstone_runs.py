"""Mappings that Sunstone found, as mappings of our map spaces."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.batch import MappingBatch
from tilewright.mapspace import MapSpace

DATA = Path(__file__).parent / "data/mappers/sunstone.json"


@dataclass(frozen=True)
class SunstoneRun:
    """What Sunstone found for one layer on its conventional architecture."""

    layer: str
    edp_pj_cycles: float
    cpu_seconds: float
    evaluations: int
    levels: list[dict[str, Any]]

    tool = "Sunstone, recorded"
    architecture = "sunstone_conventional"

    @property
    def workload(self) -> str:
        return "sunstone_layers" if self.layer.startswith(("resnet18", "incv3")) else "sunstone_kernels"

    def mapping(self, space: MapSpace) -> MappingBatch:
        """The mapping, as a batch of one."""
        names = space.problem.dimension_names
        assert [slot.spatial for slot in space.slots][:5] == [False, False, True, True, False]
        trips = np.ones((1, len(space.slots), len(names)), dtype=np.int64)
        order = np.tile(np.arange(len(names), dtype=np.int8), (1, len(space.skeleton), 1))
        for index, (slot, level) in enumerate(zip(space.slots, self.levels, strict=False)):
            for name, factor in level["factors"].items():
                trips[0, index, names.index(name)] = factor
            if not slot.spatial:
                named = [names.index(name) for name in level["order"]]
                order[0, slot.entry] = [*(d for d in range(len(names)) if d not in named), *named]
        return replace(space.build(trips), order=order)


def runs() -> list[SunstoneRun]:
    """All recorded runs."""
    return [SunstoneRun(**each) for each in json.loads(DATA.read_text())["runs"]]
