"""`tilewright evaluate --from maestro`: a tool's own files, priced without a mapping of ours."""

from pathlib import Path
from typing import Any

from command import Command
from maestro_cases import differences, load


def write(case: dict[str, Any], folder: Path) -> None:
    (folder / "case.m").write_text(case["mapping_file"])
    (folder / "hardware.m").write_text(case["hardware_file"])


def test_evaluate_prints_maestros_figures(tilewright: Command, tmp_path: Path) -> None:
    case = next(case for case in load("cases") if case["id"] == "hand_014")
    write(case, tmp_path)
    words = ["evaluate", "--from", "maestro", tmp_path / "case.m", tmp_path / "hardware.m", "--model", "maestro"]
    (result,) = tilewright(*words, "--json").data["results"]
    assert differences(result["columns"], case["columns"]) == []
    assert result["valid"] and result["macs"] == 480 and result["cycles"] == 193
    assert "MAESTRO counts 336 operations; the layer has 480" in result["warnings"]
    assert "193 cycles" in tilewright(*words).out


def test_models_of_mappings_refuse_directives(tilewright: Command, tmp_path: Path) -> None:
    write(load("cases")[0], tmp_path)
    words = ["evaluate", "--from", "maestro", tmp_path / "case.m", tmp_path / "hardware.m", "--model", "timeloop"]
    (result,) = tilewright(*words, "--json").data["results"]
    assert not result["valid"] and result["reasons"][0]["code"] == "notation"
