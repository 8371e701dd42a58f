"""Architectures of FactorFlow's repository, and Tilewright's layers by name."""

import json

from support import DATA
from tilewright import library
from tilewright.schema.problem import Problem

FACTORFLOW = json.loads((DATA / "library/factorflow.json").read_text())["architectures"]
OURS = {"eyeriss": "eyeriss", "simba": "simba", "gemmini": "gemmini", "tpu": "tpu_v1"}
"""FactorFlow's architectures -> ours."""
ROLES = {"in": "input", "w": "weight", "out": "output"}
"""FactorFlow's words for tensors -> our roles."""


def layers(workload: str) -> dict[str, Problem]:
    return {layer.name: layer.problem for layer in library.workload(workload).layers}
