"""Attributes of memories: which figures they change, and which are refused."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.schema.report import Report
from tilewright_adapters.timeloop import TimeloopAdapter

MATMUL = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - name: DRAM
      class: DRAM
      attributes: {width: 64, block-size: 4, word-bits: 16}
    subtree:
    - name: chip
      local:
      - name: GLB
        class: SRAM
        attributes: {depth: 4096, width: 64, block-size: 4, word-bits: 16, ATTRIBUTES}
      - name: "RF[0..3]"
        class: regfile
        attributes: {depth: 64, width: 16, word-bits: 16}
      - name: "MACC[0..3]"
        class: intmac
        attributes: {datawidth: 16}
problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: True}
  instance: {M: 8, N: 8, K: 8}
mapping:
- {target: DRAM, type: temporal, factors: "M=1 N=1 K=1", permutation: MNK}
- {target: GLB, type: temporal, factors: "M=2 N=8 K=1", permutation: MNK}
- {target: GLB, type: spatial, factors: M=4 N=1 K=1, permutation: MNK, split: 1}
- {target: RF, type: temporal, factors: "M=1 N=1 K=8", permutation: KMN}
"""


def evaluated(folder: Path, attributes: str) -> Report:
    path = folder / "matmul.yaml"
    path.write_text(MATMUL.replace("ATTRIBUTES", attributes))
    (report,) = tw.evaluate([path], notation="timeloop").reports
    return report


@pytest.mark.parametrize(
    ("attributes", "cycles"),
    [
        ("bandwidth: 1", 1152),  # 576 reads at a half per cycle; 192 writes at a half are hidden
        ("read_bandwidth: 0.5, write_bandwidth: 0.5", 1152),
        ("shared_bandwidth: 0.5", 1536),
        ("bandwidth: 1, shared_bandwidth: 0.5", 1536),
        ("bandwidth: 1, read_bandwidth: 9", 384),
    ],
)
def test_the_old_bandwidth_is_halved_and_is_not_shared(tmp_path: Path, attributes: str, cycles: int) -> None:
    assert evaluated(tmp_path, attributes).cycles == cycles


def test_the_sample_has_no_shared_bandwidth() -> None:
    sample = Path(__file__).parents[4] / "examples/timeloop/sample.cfg"
    architecture = TimeloopAdapter().parse([sample]).architecture
    assert architecture is not None
    found = [
        (m.name, m.read_bandwidth_words_per_cycle, m.shared_bandwidth_words_per_cycle) for m in architecture.memories
    ]
    assert found == [("DRAM", 2.0, None), ("Buffer", None, None), ("Scratchpad", None, None)]
