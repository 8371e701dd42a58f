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
MAESTRO = """
Network both {
  Layer first { Type: CONV Dimensions { K 4, C 4, R 1, S 1, Y 4, X 4 } }
  Layer second { Type: CONV Dimensions { K 4, C 4, R 1, S 1, Y 4, X 4 } }
}
"""
PAIRS = {text: {f"{name}.yaml": text.format(name=name) for name in ("first", "second")} for text in (TIMELOOP, UNION)}


@pytest.mark.parametrize(
    ("files", "operand"),
    [(PAIRS[TIMELOOP], "A"), (PAIRS[UNION], "A"), ({"both.m": MAESTRO}, "Inputs")],
    ids=["Timeloop", "Union", "MAESTRO"],
)
def test_several_problems_state_no_reads(files: dict[str, str], operand: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    network = tw.load(tmp_path if len(files) > 1 else tmp_path / "both.m", "workload")
    assert [(layer.after, dict(layer.reads)) for layer in network.layers] == [(None, {}), (None, {})]
    gain = tw.fusion_gain(network, "eyeriss", objective="energy", progress=False, cache=False)
    assert gain.gain is None and gain.unknown == ("second",)
    assert "add `after: [MAKER]` and `reads: {OPERAND: [{maker: MAKER}]}`" in gain.told

    written = network.to_yaml()
    after = f"  - after: [first]\n    reads: {{{operand}: [{{maker: first}}]}}\n    problem:\n      name: second"
    stated = written.replace("  - problem:\n      name: second", after)
    assert stated != written
    known = tw.fusion_gain(Workload.from_yaml(stated), "eyeriss", objective="energy", progress=False, cache=False)
    assert known.may_stay == ("first",) and (known.gain or 0) > 0
