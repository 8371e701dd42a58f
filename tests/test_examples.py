"""The examples run, and say what their comments say."""

import subprocess
import sys
from pathlib import Path

import pytest

from support import EXAMPLE_FILES
from support.command import Command, command

pytestmark = pytest.mark.manual


def test_the_worked_mapping_is_valid_and_fills_the_array(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    ran = run(
        "evaluate", "--mapping", EXAMPLE_FILES / "gemm.mapping.yaml", "--problem", EXAMPLE_FILES / "gemm.problem.yaml",
        "--arch", EXAMPLE_FILES / "small.arch.yaml", "--json",
    )  # fmt: skip
    (result,) = ran.data["results"]
    assert result["valid"], result["reasons"]
    weights = next(level for level in result["levels"] if level["name"] == "WeightRegister")["tensors"]["Weights"]
    assert weights["instances"] == 256 and weights["tile_words"] == 1


def test_the_figures_of_figure_9_say_why_they_cost_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    for example, units, cycles in (("9a", "256", "4,096"), ("9b", "1,024", "1,024")):
        said = run("evaluate", "--from", "union", EXAMPLE_FILES / f"union_figure_{example}.yaml").out
        assert "16,448, limited by DRAM reads" in said and "65,792 words at 4 per cycle" in said
        (computing,) = (line for line in said.splitlines() if "units work" in line)
        assert computing.split()[1] == cycles and f"{units} of 2,048 units work" in computing


@pytest.mark.parametrize("script", sorted(EXAMPLE_FILES.glob("*.py")), ids=lambda path: path.name)
def test_scripts_run(script: Path) -> None:
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "best EDP" in ran.stdout
