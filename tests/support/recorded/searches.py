"""Mappings that other tools found, as mappings of our map spaces."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from support import DATA
from tilewright import library
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace

FOLDER = DATA / "mappers"


@dataclass(frozen=True)
class RecordedRun:
    """Result of a tool for one layer.

    `fits`: within the exact capacities. `edp_pj_cycles`: by the tool's own model. `evaluations`: number
    of mappings evaluated.
    """

    architecture: str
    workload: str
    layer: str
    fits: bool
    edp_pj_cycles: float
    levels: Sequence[dict[str, Any]]
    cpu_seconds: float
    evaluations: int
    tool: str

    def __str__(self) -> str:
        return f"{self.architecture}-{self.layer}"

    @cached_property
    def space(self) -> MapSpace:
        architecture = library.architecture(self.architecture)
        layers = library.workload(self.workload).layers
        problem = next(layer.problem for layer in layers if layer.name == self.layer)
        dataflow = library.default_constraints(self.architecture)
        rules = None if dataflow is None else dataflow.rules_for(problem, architecture)
        return MapSpace.of(problem, architecture, rules)

    @property
    def candidates(self) -> Candidates:
        """The mapping, as candidates of one."""
        space = self.space
        names = space.problem.dimension_names
        trips = np.ones((1, len(space.slots), len(names)), dtype=np.int64)
        order = space.plain_order[None].copy()
        for index, (slot, level) in enumerate(zip(space.slots, self.levels, strict=False)):
            assert slot.spatial == ("order" not in level)
            for name, factor in level["factors"].items():
                trips[0, index, names.index(name)] = factor
            if not slot.spatial:
                named = [names.index(name) for name in level["order"]]
                order[0, space.temporal_slots.index(index)] = [
                    *(d for d in range(len(names)) if d not in named),
                    *named,
                ]
        return Candidates(space, trips, order)

    @property
    def mapping(self) -> MappingBatch:
        """Return the mapping by its tile sizes."""
        return self.candidates.batch()


def factorflow() -> list[RecordedRun]:
    """All runs of FactorFlow."""
    return [
        RecordedRun(
            architecture=run["architecture"],
            workload="quickflow_convs" if run["conv"] else "factorflow_gemms",
            layer=run["layer"],
            fits=run["fits"],
            edp_pj_cycles=run["edp_j_cycles"] * 1e12,
            levels=_renamed(run["levels"], {"M": "K"} if run["conv"] else {}),
            cpu_seconds=run["cpu_seconds"],
            evaluations=run["evaluations"],
            tool="FactorFlow",
        )
        for run in json.loads((FOLDER / "factorflow.json").read_text())["runs"]
    ]


def _renamed(levels: Sequence[dict[str, Any]], ours: dict[str, str]) -> list[dict[str, Any]]:
    """Return the levels with Tilewright's names; the two parallel outermost memories of TPUv1 are one."""
    renamed: list[dict[str, Any]] = [
        {
            "factors": {ours.get(name, name): factor for name, factor in level["factors"].items()},
            **({"order": [ours.get(name, name) for name in level["order"]]} if "order" in level else {}),
        }
        for level in levels
    ]
    if levels[1]["level"] == "WeightsDRAM":
        outer, inner = renamed[:2]
        names = dict.fromkeys([*outer["factors"], *inner["factors"]])
        factors = {name: outer["factors"].get(name, 1) * inner["factors"].get(name, 1) for name in names}
        first = [name for name in outer["order"] if name in outer["factors"]]
        renamed[:2] = [{"factors": factors, "order": [*first, *(name for name in inner["order"] if name not in first)]}]
    return renamed


def sunstone() -> list[RecordedRun]:
    """All runs of Sunstone on its conventional architecture."""
    return [
        RecordedRun(
            architecture="sunstone_conventional",
            workload="sunstone_layers" if run["layer"].startswith(("resnet18", "incv3")) else "sunstone_kernels",
            layer=run["layer"],
            fits=True,
            edp_pj_cycles=run["edp_pj_cycles"],
            levels=run["levels"],
            cpu_seconds=run["cpu_seconds"],
            evaluations=run["evaluations"],
            tool="Sunstone",
        )
        for run in json.loads((FOLDER / "sunstone.json").read_text())["runs"]
    ]
