"""Networks of dMazeRunner: layers with their multiplications and repetitions."""

import json
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright_frontends.dmazerunner import DMazeRunnerFrontend

NETWORK = Path(__file__).parents[1] / "data" / "dmazerunner" / "net.json"
CONV: dict[str, Any] = {
    "name": "c",
    "size_tensor_A": [1, 3, 9, 9],
    "size_tensor_B": [4, 3, 3, 3],
    "strides": [2, 2],
}


def test_layers_repeat_as_often_as_the_file_says() -> None:
    workload = tw.load(NETWORK, "workload")
    assert [(layer.name, layer.problem.macs, layer.count) for layer in workload.layers] == [
        ("features.0", 1 * 8 * 3 * 4 * 3 * 9, 1),  # (9 - 3) // 2 + 1 rows, (7 - 3) // 2 + 1 columns
        ("qk", 7 * 5 * 64, 12),
        ("features.1", 2 * 16 * 6 * 6 * 9, 3),
    ]
    assert workload.layers[2].problem.operation == "depthwise_conv2d"
    assert workload.layers[1].origin is not None and workload.layers[1].origin.line == 6
    assert tw.load(f"{NETWORK}/qk", "problem").macs == 2240


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("CONV", {"size_tensor_B": [4, 2, 3, 3]}, "c: the channels of the input and of the filters differ: 3 and 2"),
        ("DW_CONV", {}, "c: a depthwise convolution has one filter for each channel: 4 and 1"),
        ("CONV", {"size_tensor_A": [1, 3, 2, 9]}, "c: a filter of 3 x 3 is larger than its input of 2 x 9"),
        ("GEMM", {}, r"GEMM\[0\]"),
        ("CONV", {"instances": 0}, r"CONV\[0\].instances"),
        ("POOL", {}, "unknown key 'POOL'"),
    ],
)
def test_what_is_wrong_has_its_line(kind: str, changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(json.dumps({kind: [CONV | changes]}), encoding="utf-8")
    with pytest.raises(InputError, match=rf"net.json:1:\d+: .*{words}"):
        tw.load(tmp_path / "net.json", "workload")


def test_other_files_are_not_recognised(tmp_path: Path) -> None:
    frontend = DMazeRunnerFrontend()
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    assert not any(frontend.recognises(str(path)) for path in (*tmp_path.iterdir(), tmp_path, "absent.json"))
