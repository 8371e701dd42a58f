"""Mappings as directives: those that have a form get MAESTRO's figures, the others the reason."""

from typing import Any

import numpy as np
import pytest

from support.recorded.maestro import load
from tilewright.errors import NotConformableError
from tilewright.mapspace.space import MapSpace
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.model import MaestroModel
from tilewright_notations.directives.plan import plan_of
from tilewright_notations.directives.roles import roles_of
from tilewright_notations.directives.translation import directives_of

ARRAY = """
name: array
clusters:
- name: L2
  memories: [{name: L2, read_energy_pj: 2, write_energy_pj: 3}]
  fanout: {size: %d, network: {bandwidth_words_per_cycle: 1000, latency_cycles: 1}}
- name: Row
  fanout: {size: 4, axis: Y}
- name: PE
  memories: [{name: L1, capacity_words: %d, read_energy_pj: 1, write_energy_pj: 1}]
compute: {energy_per_operation_pj: 1}
"""
GEMM = """
name: gemm
operation: gemm
dimensions: {M: 4, N: 6, K: 8}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
"""
CONV = """
name: conv
operation: conv2d
dimensions: {K: 8, C: 4, P: %d, Q: %d, R: 3, S: 3}
tensors:
- {name: I, role: input, projection: [C, %d*P + R, %d*Q + S]}
- {name: W, role: weight, projection: [K, C, R, S]}
- {name: O, role: output, projection: [K, P, Q]}
"""
ALL = "[A, B, Z]"


def gemm_mapping(l2: str, l1: str, row: str = "", keep: str = ALL) -> str:
    """`l2`, `row` and `l1` are the tile sizes and orders of the entries."""
    return f"""
entries:
- {{target: L2, keep: {keep}, temporal_tile_sizes: {{M: 4, N: 6, K: 8}}}}
- {{target: L2, {l2}}}
- {{target: Row{", " + row if row else ""}}}
- {{target: PE, keep: {ALL}, {l1}}}
- {{target: PE, temporal_tile_sizes: {{M: 1, N: 1, K: 1}}, temporal_order: [M, N, K]}}
"""


def explain(mapping: str, capacity: int = 100, faithful: bool = False) -> Report:
    problem, architecture = Problem.from_yaml(GEMM), Architecture.from_yaml(ARRAY % (4, capacity))
    return (
        MaestroModel(MaestroOptions(faithful=faithful)).bind(problem, architecture).explain(Mapping.from_yaml(mapping))
    )


STEPS = "temporal_tile_sizes: {N: 2, K: 2}, temporal_order: [N, K, M], spatial_tile_sizes: {M: 1}"


def test_the_worked_example_is_what_was_worked_out() -> None:
    """4 x 6 x 8 on 4 PEs in steps of 2 x 2: the first takes 4 + 1 cycles, 11 others 4 each; A moves 80 of 96 words."""
    report = explain(gemm_mapping(STEPS, "temporal_order: [M, N, K]"))
    assert report.valid and (report.macs, report.cycles) == (192, 49)
    l2 = {level.name: level.tensors for level in report.levels}["L2"]
    assert (l2["A"].reads, l2["Z"].updates, l2["A"].fills) == (80, 96, 32)
    assert report.energy_pj == pytest.approx(sum(level.energy_pj for level in report.levels) + 192)
    assert report.utilization == 192 / (16 * 49)


def test_loops_of_a_level_may_stand_in_any_entry_of_it() -> None:
    """Some loops may be in the entry of the PE: the directives are equal."""
    one = explain(gemm_mapping(STEPS, "temporal_order: [M, N, K]"))
    unrolled = "temporal_tile_sizes: {N: 2}, temporal_order: [N, K, M], spatial_tile_sizes: {M: 1}"
    other = explain(gemm_mapping(unrolled, "temporal_tile_sizes: {K: 2}, temporal_order: [K, M, N]"))
    assert one == other


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        (gemm_mapping(STEPS, "temporal_order: [M, N, K]", keep="[A, B]"), "bypass"),
        (
            gemm_mapping(
                "temporal_tile_sizes: {N: 2, K: 4}, temporal_order: [K, N, M]",
                "temporal_order: [M, N, K]",
                row="temporal_tile_sizes: {K: 2}, spatial_tile_sizes: {M: 1}",
            ),
            "repeated",
        ),
        (
            gemm_mapping(
                "temporal_tile_sizes: {N: 3}, temporal_order: [N, K, M], spatial_tile_sizes: {N: 2}",
                "temporal_order: [M, N, K]",
            ),
            "fold",
        ),
    ],
)
def test_what_has_no_directives_is_refused_with_the_reason(mapping: str, code: str) -> None:
    report = explain(mapping)
    assert not report.valid and [reason.code for reason in report.reasons] == [code]


def test_two_copies_of_every_tile_must_fit_unless_faithful() -> None:
    """A tile of 1 x 2, 2 x 2 and 1 x 2 words fits 8 words once; MAESTRO requires 16."""
    mapping = gemm_mapping(STEPS, "temporal_order: [M, N, K]")
    report = explain(mapping, capacity=15)
    assert not report.valid and report.reasons[0].code == "capacity" and "16 words" in report.reasons[0].message
    faithful = explain(mapping, capacity=15, faithful=True)
    assert faithful.valid and faithful.cycles == 49 and any("16 words" in warning for warning in faithful.warnings)
    assert explain(mapping, capacity=16).valid


def test_undercounted_traffic_and_operations_are_warned_of() -> None:
    stride_two = Problem.from_yaml(CONV % (4, 4, 2, 2))
    architecture = Architecture.from_yaml(ARRAY % (4, 10_000))
    mapping = Mapping.from_yaml("""
entries:
- {target: L2, keep: [I, W, O], temporal_tile_sizes: {K: 8, C: 4, P: 4, Q: 4, R: 3, S: 3}}
- {target: L2, temporal_tile_sizes: {P: 2}, spatial_tile_sizes: {K: 2}}
- {target: PE, keep: [I, W, O]}
- {target: PE, temporal_tile_sizes: {K: 1, C: 1, P: 1, Q: 1, R: 1, S: 1}, temporal_order: [K, C, P, Q, R, S]}
""")
    report = MaestroModel(MaestroOptions()).bind(stride_two, architecture).explain(mapping)
    assert report.valid and report.macs == stride_two.macs
    assert any(f"the layer has {stride_two.macs}" in warning for warning in report.warnings)


def test_operations_are_exact_where_tiles_divide_and_there_is_no_stride() -> None:
    problem = Problem.from_yaml(CONV % (4, 6, 1, 1))
    architecture = Architecture.from_yaml(ARRAY % (4, 10_000))
    evaluator = MaestroModel(MaestroOptions()).bind(problem, architecture)
    evaluated = 0
    for mapping in MapSpace.of(problem, architecture, rules=None).sample(np.random.default_rng(7), 300):
        report: Any = evaluator.explain(mapping)
        if report.valid and mapping.is_perfect:
            assert report.columns["num_macs"] == problem.macs, mapping
            evaluated += 1
    assert evaluated >= 10


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        (GEMM.replace("[M, K]", "[M, K, G]").replace("[K, N]", "[K, N, G]").replace("[M, N]", "[M, N, G]")
         .replace("{M: 4", "{G: 2, M: 4"), "operation"),
        (CONV.replace("+ R", "+ 2*R") % (4, 4, 1, 1), "affine"),
    ],
)  # fmt: skip
def test_operations_that_are_no_layer_are_refused(formula: str, code: str) -> None:
    with pytest.raises(NotConformableError) as caught:
        MaestroModel(MaestroOptions()).bind(Problem.from_yaml(formula), Architecture.from_yaml(ARRAY % (4, 100)))
    assert caught.value.reasons[0].code == code


def test_directives_of_a_convolution_are_those_one_would_write() -> None:
    problem, architecture = Problem.from_yaml(CONV % (4, 6, 1, 1)), Architecture.from_yaml(ARRAY % (4, 10_000))
    mapping = Mapping.from_yaml("""
entries:
- {target: L2, keep: [I, W, O], temporal_tile_sizes: {K: 8, C: 4, P: 4, Q: 6, R: 3, S: 3}}
- {target: L2, temporal_tile_sizes: {P: 1, Q: 2, K: 4}, temporal_order: [K, P, Q, C, R, S], spatial_tile_sizes: {K: 1}}
- {target: Row, spatial_tile_sizes: {C: 1}}
- {target: PE, keep: [I, W, O]}
- {target: PE, temporal_tile_sizes: {K: 1, C: 1, P: 1, Q: 1, R: 1, S: 1}, temporal_order: [K, C, P, Q, R, S]}
""")
    layer, hardware = directives_of(problem, mapping, roles_of(problem), plan_of(architecture))
    assert [[str(each) for each in level] for level in layer.levels] == [
        ["SpatialMap(1,1) K", "TemporalMap(3,1) Y", "TemporalMap(4,2) X"],
        ["SpatialMap(1,1) C"],
    ]
    assert (layer.dimensions["Y"], layer.dimensions["X"], layer.cluster_sizes) == (6, 8, (4,))
    assert (hardware.num_pes, hardware.noc_latency) == (16, 1)
    report = MaestroModel(MaestroOptions()).bind(problem, architecture).explain(mapping)
    assert report.valid and not any("operations" in warning for warning in report.warnings)


def test_recorded_layers_that_are_tiles_cost_the_same_by_way_of_a_mapping() -> None:
    """Every recorded matrix product of one level with dividing tiles is written as a mapping."""
    found = 0
    for case in load("cases"):
        if case["type"] != "GEMM" or len(case["levels"]) != 1 or case["hardware"]["simd_lanes"] != 1:
            continue
        mapping = _as_mapping(case)
        if mapping is None:
            continue
        hardware = case["hardware"]
        problem = Problem.from_yaml(GEMM.replace("{M: 4, N: 6, K: 8}", str(case["dimensions"]).replace("'", "")))
        offchip = hardware["offchip_bandwidth"]
        text = (ARRAY % (hardware["num_pes"], 10**6)).replace(
            ": 1000, latency_cycles: 1",
            f": {hardware['noc_bandwidth']}, latency_cycles: {hardware['noc_latency']}",
        )
        text = text.replace(
            "clusters:",
            "clusters:\n- {name: D, memories: [{name: D, read_energy_pj: 9, write_energy_pj: 9, "
            f"read_bandwidth_words_per_cycle: {offchip}}}]}}",
        )
        report = MaestroModel(MaestroOptions()).bind(problem, Architecture.from_yaml(text)).explain(mapping)
        assert report.valid, (case["id"], report.reasons)
        assert report.cycles == case["columns"]["runtime_cycles"], case["id"]
        l2 = {level.name: level.tensors for level in report.levels}["L2"]
        for name, role in (("A", "input"), ("B", "filter")):
            assert l2[name].reads == case["columns"]["tensors"][role]["l2_read"], case["id"]
        assert l2["Z"].updates == case["columns"]["tensors"]["output"]["l2_write"], case["id"]
        found += 1
    assert found >= 5


def _as_mapping(case: dict[str, Any]) -> Mapping | None:
    """None where some tile does not divide or leaves sub-clusters without work."""
    (level,), sizes, pes = case["levels"], case["dimensions"], case["hardware"]["num_pes"]
    temporal, spatial = dict(sizes), {}
    for is_spatial, size, offset, name in level:
        if size != offset or sizes[name] % size or (is_spatial and sizes[name] % (size * pes)):
            return None
        temporal[name] = size * pes if is_spatial else size
        spatial[name] = size
    order = [name for *_, name in level] + sorted(set(sizes) - {name for *_, name in level})
    return Mapping.model_validate(
        {
            "entries": [
                {"target": "D", "keep": ["A", "B", "Z"], "temporal_tile_sizes": sizes},
                {
                    "target": "L2",
                    "keep": ["A", "B", "Z"],
                    "temporal_tile_sizes": temporal,
                    "spatial_tile_sizes": spatial,
                    "temporal_order": order,
                },
                {"target": "PE", "keep": ["A", "B", "Z"]},
                {"target": "PE", "temporal_tile_sizes": {"M": 1, "N": 1, "K": 1}, "temporal_order": ["M", "N", "K"]},
            ]
        }
    )
