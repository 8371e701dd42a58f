"""Published optima that benchmarks compare with: FFM's lines add up to its energy, and GOMA's optima are found again."""

import csv
import importlib.util
import math
import sys
from types import ModuleType

import pytest

from support import ROOT


def script(name: str) -> ModuleType:
    """Return a script of benchmarks/ as a module."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / f"benchmarks/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_lines_of_ffm_add_up() -> None:
    ffm = script("ffm")
    compute = 2 * 32 * 2048 * 2048 * 128 * 0.084e-9
    words = math.fsum(ffm.millijoules(key[1], moved) for key, moved in ffm.recorded().items())
    assert words + compute == pytest.approx(ffm.FFM_MJ, rel=1e-6)


@pytest.mark.exhaustive
def test_fused_attention_costs_no_more_than_ffm() -> None:
    ffm = script("ffm")
    report, _ = ffm.searched(600)  # the first search compiles
    text, energy = ffm.compared(report)
    differing = [line.split(" | ")[:3] for line in text.splitlines()[2:] if not line.endswith("+0.0000 |")]
    assert report.proved and energy < ffm.FFM_MJ
    assert [line[1:] for line in differing] == [["LocalBuffer", "S"], ["LocalBuffer", "Z"], ["", ""]]


@pytest.mark.exhaustive
@pytest.mark.parametrize("machine", ["eyeriss", "gemmini", "a100", "tpu_v1"])
def test_optima_of_goma_are_found(machine: str) -> None:
    goma = script("goma")
    with goma.OPTIMA.open(encoding="utf-8", newline="") as file:
        row = next(each for each in csv.DictReader(file) if each["machine"] == machine and each["gemm"] == "q_proj")
    result, _ = goma.solution(row, "edp")
    assert result.proved == "yes" and result.value == pytest.approx(goma.theirs(row)[1], rel=1e-9)
