"""Files of single problems state no reads: fusion of several has no bound, and the message says what to write."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.schema.workload import Workload

TIMELOOP = """
problem:
  shape:
    name: {name}
    dimensions: [M, N, K]
    data-spaces:
    - {{name: A, projection: [[[M]], [[K]]]}}
    - {{name: B, projection: [[[K]], [[N]]]}}
    - {{name: Z, projection: [[[M]], [[N]]], read-write: true}}
  instance: {{M: 4, N: 8, K: 8}}
"""
UNION = """
problem:
  name: {name}
  operation: GEMM
  dimensions: [M, N, K]
  data-space:
    - {{name: A, projection: [[[M]], [[K]]]}}
    - {{name: B, projection: [[[K]], [[N]]]}}
    - {{name: Z, projection: [[[M]], [[N]]], read-write: true}}
  instance: {{M: 4, N: 8, K: 8}}
"""


@pytest.mark.parametrize("text", [TIMELOOP, UNION])
def test_several_files_state_no_reads(text: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.yaml").write_text(text.format(name=name))
    network = tw.load(tmp_path, "workload")
    assert [(layer.after, dict(layer.reads)) for layer in network.layers] == [(None, {}), (None, {})]
    gain = tw.fusion_gain(network, "eyeriss", objective="energy", progress=False, cache=False)
    assert gain.gain is None and gain.unknown == ("second",)
    assert "add `after: [MAKER]` and `reads: {OPERAND: [{maker: MAKER}]}`" in gain.told

    written = network.to_yaml()
    after = "  - after: [first]\n    reads: {A: [{maker: first}]}\n    problem:\n      name: second"
    stated = written.replace("  - problem:\n      name: second", after)
    assert stated != written
    known = tw.fusion_gain(Workload.from_yaml(stated), "eyeriss", objective="energy", progress=False, cache=False)
    assert known.may_stay == ("first",) and (known.gain or 0) > 0
