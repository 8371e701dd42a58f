"""The kernel gives the same figures compiled and as the plain Python that it is written in."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.exhaustive

FIGURES = """
import json, sys
import numpy as np
import tilewright as tw
from tilewright.plugin import CostModelSpec, installed

rows = []
for layer, arch in (("quickflow_convs/VIII", "eyeriss"), ("quickflow_convs/VIII", "simba"), ("factorflow_gemms/MB6", "tpu_v1")):
    space = tw.space(layer, arch)
    wired = space.architecture.replace({f"{each.name}.fanout.network.energy_per_hop_pj": 0.5 for each in space.architecture.clusters})
    drawn = space.sample(np.random.default_rng(3), 24)
    for hardware in (space.architecture, wired)[: 1 if arch == "tpu_v1" else 2]:
        evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, hardware)
        costs = evaluator.evaluate_candidates(drawn)
        tiles = evaluator.evaluate_batch(drawn.batch())
        for found in (costs, tiles):
            rows.append([found.valid.tolist(), np.nan_to_num(found.energy_pj).tolist(), np.nan_to_num(found.cycles).tolist()])
json.dump(rows, sys.stdout)
"""


def figures(**environment: str) -> list[list[list[float]]]:
    run = subprocess.run(
        [sys.executable, "-c", FIGURES], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    rows: list[list[list[float]]] = json.loads(run.stdout)
    return rows


def test_interpreted_equals_compiled() -> None:
    compiled, interpreted = figures(), figures(NUMBA_DISABLE_JIT="1")

    assert any(any(valid) for valid, _, _ in compiled)
    for ours, theirs in zip(compiled, interpreted, strict=True):
        assert ours[0] == theirs[0] and ours[2] == theirs[2]
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12)
