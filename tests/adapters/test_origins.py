"""Origins of layers from other tools' files: the name in the file, and its line if the reader knows it."""

import pytest

import tilewright as tw
from support import EXAMPLE_FILES


@pytest.mark.parametrize(
    ("file", "origins"),
    [
        ("timeloop/problem.yaml", {"problem": "conv1d, problem.yaml:3:3"}),
        (
            "accelforge/workload.yaml",
            {"Matmul1": "Matmul1, workload.yaml:6:5", "Matmul2": "Matmul2, workload.yaml:12:5"},
        ),
        ("zigzag/workload.yaml", {"conv1": "conv1, workload.yaml:2:3", "fc": "fc, workload.yaml:11:3"}),
        ("maestro/mapping.m", {"conv": "conv, mapping.m", "pointwise": "pointwise, mapping.m"}),
    ],
)
def test_layers_keep_their_names_and_lines(file: str, origins: dict[str, str]) -> None:
    workload = tw.load(EXAMPLE_FILES / file, "workload")
    assert {layer.name: str(layer.origin) for layer in workload.layers} == origins
