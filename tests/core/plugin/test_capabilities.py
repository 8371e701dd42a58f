"""Capabilities judge problems by what a model declares."""

import pytest

from tilewright.plugin.capabilities import Capabilities
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem


@pytest.mark.parametrize(
    ("word", "accepted"), [("CONV1D", True), ("conv1d", True), ("Gemm", True), ("conv3d", False), (None, False)]
)
def test_operations_are_compared_without_case(word: str | None, accepted: bool) -> None:
    problem = Problem.model_validate(
        {
            "name": "one",
            "operation": word,
            "dimensions": {"M": 2},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["M"]},
                {"name": "Z", "role": "output", "projection": ["M"]},
            ],
        }
    )
    architecture = Architecture.model_validate(
        {
            "name": "small",
            "clusters": [{"name": "C1", "memories": [{"name": "L1", "read_energy_pj": 1, "write_energy_pj": 1}]}],
            "compute": {"energy_per_operation_pj": 1},
        }
    )
    for listed in (("conv1d", "gemm"), ("CONV1D", "GEMM")):
        assert bool(Capabilities(operations=listed).judge(problem, architecture)) is accepted
