"""Mappings that FactorFlow found, as mappings of our map spaces."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import library
from tilewright.batch import MappingBatch
from tilewright.mapspace import MapSpace

DATA = Path(__file__).parent / "data/mappers/factorflow.json"


@dataclass(frozen=True)
class FactorFlowRun:
    """What FactorFlow found for one layer; `fits`: within the exact capacities."""

    architecture: str
    layer: str
    conv: bool
    fits: bool
    edp_j_cycles: float
    levels: list[dict[str, Any]]
    cpu_seconds: float
    evaluations: int

    tool = "FactorFlow, recorded"

    def __str__(self) -> str:
        return f"{self.architecture}-{self.layer}"

    @property
    def workload(self) -> str:
        return "quickflow_convs" if self.conv else "factorflow_gemms"

    @property
    def space(self) -> MapSpace:
        architecture = library.architecture(self.architecture)
        layers = library.workload(self.workload).layers
        problem = next(each.problem for each in layers if each.name == self.layer)
        dataflow = library.default_constraints(self.architecture)
        assert dataflow is not None
        return MapSpace.of(problem, architecture, dataflow.rules_for(problem, architecture))

    def mapping(self, space: MapSpace) -> MappingBatch:
        """The mapping, as a batch of one."""
        names = space.problem.dimension_names
        trips = np.ones((1, len(space.slots), len(names)), dtype=np.int64)
        order = np.tile(np.arange(len(names), dtype=np.int8), (1, len(space.skeleton), 1))
        for index, (slot, level) in enumerate(zip(space.slots, self._levels(names), strict=False)):
            assert slot.spatial == ("order" not in level)
            for name, factor in level["factors"].items():
                trips[0, index, names.index(name)] = factor
            if not slot.spatial:
                named = [names.index(name) for name in level["order"]]
                order[0, slot.entry] = [*(d for d in range(len(names)) if d not in named), *named]
        return replace(space.build(trips), order=order)

    def _levels(self, names: tuple[str, ...]) -> list[dict[str, Any]]:
        """With our names; the two outermost memories of TPUv1, which stand side by side, as one."""
        ours = {"M": "K"} if self.conv else {}
        levels = [
            {
                "factors": {ours.get(name, name): factor for name, factor in level["factors"].items()},
                **({"order": [ours.get(name, name) for name in level["order"]]} if "order" in level else {}),
            }
            for level in self.levels
        ]
        if self.levels[1]["level"] == "WeightsDRAM":
            outer, inner = levels[:2]
            factors = {name: outer["factors"].get(name, 1) * inner["factors"].get(name, 1) for name in names}
            first = [name for name in outer["order"] if name in outer["factors"]]
            levels[:2] = [
                {"factors": factors, "order": [*first, *(name for name in inner["order"] if name not in first)]}
            ]
        return levels


def runs() -> list[FactorFlowRun]:
    """All recorded runs."""
    return [FactorFlowRun(**each) for each in json.loads(DATA.read_text())["runs"]]
