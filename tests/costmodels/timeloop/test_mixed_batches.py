"""Mappings that are evaluated together cost what each costs alone, and distances beyond 64 bits are refused."""

import numpy as np
import pytest

from tilewright.application.run.evaluation import build_model, evaluate
from tilewright.mapspace.batch import MappingBatch
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

HARDWARE = """
name: limited
clusters:
- {name: D, memories: [{name: D, read_energy_pj: 9, write_energy_pj: 8, read_bandwidth_words_per_cycle: 1}]}
- name: G
  memories: [{name: G, read_energy_pj: 1, write_energy_pj: 2, BANDWIDTHS}]
  fanout: {size: 4}
compute: {energy_per_operation_pj: 1}
"""
PROBLEM = Problem.from_yaml(
    """
name: small
dimensions: {M: 4, K: 6}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K]}
- {name: Z, role: output, projection: [M]}
"""
)


def mapping(keep: str, tile: int) -> Mapping:
    return Mapping.from_yaml(
        f"""
entries:
- {{target: D, keep: [A, B, Z], temporal_tile_sizes: {{M: 4, K: 6}}}}
- {{target: G, keep: [{keep}], temporal_tile_sizes: {{M: 2, K: {tile}}}, temporal_order: [M, K]}}
- {{target: G, temporal_tile_sizes: {{M: 2, K: 1}}, temporal_order: [K], spatial_tile_sizes: {{M: 1, K: 1}}}}
"""
    )


@pytest.mark.parametrize("bandwidths", [f"{way}_bandwidth_words_per_cycle: 0.5" for way in ("read", "write", "shared")])
@pytest.mark.parametrize("tile", [3, 4])
def test_what_one_mapping_bypasses_costs_another_nothing(bandwidths: str, tile: int) -> None:
    """Tiles of 3 divide 6, those of 4 do not. Each kept set fills its own lane of the same vector."""
    hardware = Architecture.from_yaml(HARDWARE.replace("BANDWIDTHS", bandwidths))
    model = installed().make(CostModelSpec, "timeloop").bind(PROBLEM, hardware)
    kept = [mapping(keep, tile) for keep in ("A, B, Z", "A", "B", "Z", "B, Z", "")]
    together = model.evaluate_batch(MappingBatch.pack(PROBLEM, kept))
    alone = [model.evaluate_batch(MappingBatch.pack(PROBLEM, [each])) for each in kept]
    assert together.valid.all() and len(set(together.cycles.tolist())) > 2
    for name in ("energy_pj", "cycles"):
        assert getattr(together, name).tolist() == np.concatenate([getattr(each, name) for each in alone]).tolist()


@pytest.mark.parametrize(("dimensions", "valid"), [(30, True), (31, False)])
def test_distances_of_tiles_beyond_64_bits_are_refused(dimensions: int, valid: bool) -> None:
    """A tensor of n dimensions of size 2 has 4^n numbers of shifts; 2^62 are refused."""
    names = [f"D{number}" for number in range(dimensions)]
    problem = Problem.model_validate(
        {
            "name": "cube",
            "dimensions": dict.fromkeys(names, 2),
            "tensors": [
                {"name": "A", "role": "input", "projection": names},
                {"name": "Z", "role": "output", "projection": names[:1]},
            ],
        }
    )
    ones = dict.fromkeys(names, 1)
    entries = [
        {"target": "D", "keep": ["A", "Z"], "temporal_tile_sizes": dict.fromkeys(names, 2)},
        {"target": "G", "keep": [], "temporal_tile_sizes": ones, "temporal_order": names},
        {"target": "G", "spatial_tile_sizes": ones},
    ]
    hardware = Architecture.from_yaml(HARDWARE.replace(", BANDWIDTHS", ""))
    report = evaluate(build_model("timeloop"), problem, hardware, Mapping.model_validate({"entries": entries}))
    assert report.valid == valid
    assert [(reason.code, reason.where) for reason in report.reasons] == ([] if valid else [("overflow", "A")])
