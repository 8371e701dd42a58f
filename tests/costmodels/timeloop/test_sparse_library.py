"""Sparse architectures of the library give the figures of the published runs that they come from.

The runs are exercise 04.2.1 of Timeloop's tutorial, and two of the artifact of Sparseloop (MICRO 2022): layer L07 of
figure 12 and STC of figure 15. Figures of the latter two are those of Timeloop's 2025 head on the artifact's files.
`dstc`, `scnn` and `extensor_like` have no runs of a public version. The mapping of `dstc` is that of figure 13.
"""

import math

import pytest

from support import EXAMPLE_FILES
from tilewright import library
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

L07 = """
kind: problem
name: grouped-CONV
dimensions: {R: 1, S: 1, E: 32, F: 32, C: 64, M: 64, N: 1, G: 1}
tensors:
  - {name: Weights, role: weight, projection: [C, M, G, R, S], density: {distribution: uniform, density: 0.52}}
  - {name: Inputs, role: input, projection: [N, C, G, R + E, S + F], density: {distribution: uniform, density: 0.73}}
  - {name: Outputs, role: output, projection: [N, G, M, F, E]}
"""
L07_MAPPING = """
kind: mapping
entries:
  - {target: BackingStorage, keep: [Weights, Inputs, Outputs], temporal_tile_sizes: {R: 1, S: 1, E: 32, F: 32, C: 64, M: 64,
      N: 1, G: 1}}
  - {target: BackingStorage, temporal_order: [N, M, C, S, F, E, R], temporal_tile_sizes: {E: 1, F: 1, C: 8, M: 8}, spatial_order: [
      G]}
  - {target: iact_spad, keep: [Inputs]}
  - {target: iact_spad, temporal_order: [F, E, S, R, C, M], spatial_order: [G]}
  - {target: weight_spad, keep: [Weights]}
  - {target: weight_spad, temporal_order: [F, E, S, R, C, M], spatial_order: [G]}
  - {target: psum_spad, keep: [Outputs]}
  - {target: psum_spad, temporal_order: [F, E, S, R, C, M], temporal_tile_sizes: {C: 1, M: 1}, spatial_order: [G]}
  - {target: reg, keep: [Inputs]}
  - {target: reg, temporal_order: [S, R, F, E, C, M], spatial_order: [G]}
"""
GEMM = """
kind: problem
name: gemm-ABZ
dimensions: {M: 512, N: 1024, K: 128}
tensors:
  - {name: A, role: input, projection: [M, K], density: 0.5}
  - {name: B, role: weight, projection: [N, K], density: 1.0}
  - {name: Z, role: output, projection: [M, N]}
"""
GEMM_MAPPING = """
kind: mapping
entries:
  - {target: DRAM, keep: [A, B, Z], temporal_tile_sizes: {M: 512, N: 1024, K: 128}}
  - {target: DRAM, temporal_order: [N, M], spatial_order: [K]}
  - {target: SMEM, keep: [A, B]}
  - {target: SMEM, temporal_order: [N, M], temporal_tile_sizes: {M: 64, N: 128}, spatial_tile_sizes: {M: 16}, spatial_order: [
      N, M]}
  - {target: RF, keep: [Z]}
  - {target: RF, temporal_order: [M, K], temporal_tile_sizes: {K: 32}, spatial_tile_sizes: {M: 1}, spatial_order: [M, K]}
  - {target: RF_X, spatial_tile_sizes: {K: 1}, spatial_order: [M, K]}
  - {target: LRF, keep: [A]}
  - {target: LRF, temporal_order: [M, N], temporal_tile_sizes: {N: 1}, spatial_order: [K]}
"""

PRODUCT = """
kind: problem
name: product
dimensions: {M: %d, N: %d, K: %d}
tensors:
  - {name: A, role: input, projection: [M, K], density: {distribution: uniform, density: %g}}
  - {name: B, role: weight, projection: [N, K], density: {distribution: uniform, density: %g}}
  - {name: Z, role: output, projection: [M, N]}
"""
DSTC_MAPPING = """
kind: mapping
entries:
  - {target: DRAM, keep: [A, B, Z], temporal_tile_sizes: {M: 4096, N: 4096, K: 4096}}
  - {target: DRAM, temporal_order: [N, M], temporal_tile_sizes: {M: 32, N: 32}}
  - {target: GLB, keep: [A, B]}
  - {target: GLB}
  - {target: Buffer, keep: [Z]}
  - {target: Buffer, temporal_order: [K], temporal_tile_sizes: {K: 1}}
  - {target: LineBuffer, keep: [A, B]}
  - {target: LineBuffer, temporal_order: [M, N], temporal_tile_sizes: {M: 8, N: 16}, spatial_tile_sizes: {M: 1}}
  - {target: columns, spatial_tile_sizes: {N: 1}}
"""
CONV = """
kind: problem
name: conv
dimensions: {K: 32, C: 16, P: 16, Q: 16, R: 3, S: 3}
tensors:
  - {name: I, role: input, projection: [C, P + R, Q + S], density: {distribution: uniform, density: 0.4}}
  - {name: W, role: weight, projection: [K, C, R, S], density: {distribution: uniform, density: 0.3}}
  - {name: O, role: output, projection: [K, P, Q]}
"""
SCNN_MAPPING = """
kind: mapping
entries:
  - {target: DRAM, keep: [I, W, O], temporal_tile_sizes: {K: 32, C: 16, P: 16, Q: 16, R: 3, S: 3}}
  - {target: DRAM, temporal_order: [K], temporal_tile_sizes: {K: 8}, spatial_tile_sizes: {Q: 2}}
  - {target: PE_rows, spatial_tile_sizes: {P: 2}}
  - {target: IARAM, keep: [I]}
  - {target: IARAM}
  - {target: OARAM, keep: [O]}
  - {target: OARAM, temporal_order: [C], temporal_tile_sizes: {C: 1}}
  - {target: weight_fifo, keep: [W]}
  - {target: weight_fifo}
  - {target: accumulator, keep: [O]}
  - {target: accumulator, temporal_order: [K, R, S], temporal_tile_sizes: {K: 4, R: 1, S: 1}, spatial_tile_sizes: {P: 1, Q: 1}}
  - {target: multiplier_rows, spatial_tile_sizes: {K: 1}}
"""
EXTENSOR_MAPPING = """
kind: mapping
entries:
  - {target: DRAM, keep: [A, B, Z], temporal_tile_sizes: {M: 1024, N: 1024, K: 1024}}
  - {target: DRAM}
  - {target: LLB, keep: [A, B, Z]}
  - {target: LLB, temporal_order: [N, K], temporal_tile_sizes: {N: 32, K: 128}, spatial_tile_sizes: {M: 8}}
  - {target: PE, keep: [A, B, Z]}
  - {target: PE, temporal_order: [M, N, K], temporal_tile_sizes: {M: 1, N: 1, K: 1}}
"""


@pytest.mark.parametrize(
    ("name", "problem", "mapping", "cycles", "energy_pj", "operations"),
    [
        (
            "eyeriss_gating",
            (EXAMPLE_FILES / "sparse" / "problem.yaml").read_text(encoding="utf-8"),
            (EXAMPLE_FILES / "sparse" / "mapping.yaml").read_text(encoding="utf-8"),
            *(1_916_929, 1_924_263_179.03, 164_472_423),
        ),
        ("eyeriss_v2_pe", L07, L07_MAPPING, 1_592_243, 4_529_257.096, 1_592_243),
        ("sparse_tensor_core", GEMM, GEMM_MAPPING, 32_768, 78_919_729.316, 33_554_432),
    ],
)
def test_a_published_run(
    name: str, problem: str, mapping: str, cycles: float, energy_pj: float, operations: int
) -> None:
    layer = Problem.from_yaml(problem)
    bound = TimeloopModel(TimeloopOptions()).bind(layer, library.architecture(name))
    report = bound.explain(Mapping.from_yaml(mapping))

    assert report.valid, report.reasons
    assert (report.cycles, report.actual_operations) == (cycles, operations)
    assert report.energy_pj == pytest.approx(energy_pj, rel=1e-9)
    assert operations < layer.macs


@pytest.mark.parametrize(
    ("name", "problem", "mapping", "densities", "port", "level"),
    [
        ("dstc", PRODUCT % (4096, 4096, 4096, 0.25, 0.5), DSTC_MAPPING, 0.25 * 0.5, 116, 2),
        ("scnn", CONV, SCNN_MAPPING, 0.4 * 0.3, 0, 0),
        ("extensor_like", PRODUCT % (1024, 1024, 1024, 0.01, 0.01), EXTENSOR_MAPPING, 0.01 * 0.01, 17.064, 0),
    ],
)
def test_only_pairs_of_nonzeros_are_executed(
    name: str, problem: str, mapping: str, densities: float, port: float, level: int
) -> None:
    """The units set the cycles of `scnn`; sums those of `dstc`, and DRAM those of `extensor_like`."""
    layer, architecture = Problem.from_yaml(problem), library.architecture(name)
    report = TimeloopModel(TimeloopOptions()).bind(layer, architecture).explain(Mapping.from_yaml(mapping))

    assert report.valid, report.reasons
    assert report.actual_operations == pytest.approx(densities * layer.macs, rel=1e-3)
    assert report.cycles is not None and report.actual_operations is not None
    busy = math.ceil(report.actual_operations / architecture.compute_instances)
    tensors = report.levels[level].tensors.values()
    written = sum(tensor.updates for tensor in tensors)
    read = sum(tensor.reads for tensor in tensors)
    if not port:
        assert report.cycles == busy
    else:
        assert report.cycles > busy
        assert max(read, written) / port <= report.cycles <= 1.1 * (read + written) / port
