"""Fused mappings that AccelForge's mapper finds in its own regression cases, read and evaluated here.

The files have its architectures with the energies of its estimators, and its mappings. `figures.json` has its figures
(version 1.0.467): pJ, seconds, leakage, and values that each memory reads and writes. One mapping was found by `--fuse`
here (with the axes' dimensions as constraints): AccelForge's model prices it below the mapping of its own mapper.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright_adapters.accelforge import AccelForgeAdapter

DATA = Path(__file__).parents[2] / "data" / "groups" / "regression"
FIGURES: dict[str, Any] = json.loads((DATA / "figures.json").read_text())
TIMELOOP = build_model("timeloop", {"link_transfers": False})


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_are_accelforges_with_reads_of_sums_that_leave_and_leakage(name: str) -> None:
    group = AccelForgeAdapter().parse([DATA / f"{name}.yaml"]).group
    assert group is not None
    report, expected = evaluate_group(TIMELOOP, group), FIGURES[name]
    assert report.valid and report.energy_pj is not None
    ours = {
        (access.level, access.layer, access.tensor.rpartition(".")[2]): (
            access.reads.total,
            access.fills.total + access.updates.total,
        )
        for access in report.accesses
    }
    reading = {each.name: each.read_energy_pj / each.block_words for each in group.architecture.memories}
    drained = 0.0
    for memory, layer, tensor, reads, writes in expected["accesses"]:
        drains = reads - ours[memory, layer, tensor][0]
        path, own = group.paths[layer], group.paths[layer].problem.tensor(tensor)
        home = group.architecture.cluster(path.mapping.entries[path.keepers(tensor)[0]].target).memory_for(own)
        leaves = own.is_output and home is not None and memory != home.name
        assert ours[memory, layer, tensor][1] == writes
        assert drains == 0 or (leaves and drains > 0)
        drained += drains * reading[memory]
    assert report.cycles is not None and group.architecture.clock_ghz is not None
    exact = expected["seconds"] * group.architecture.clock_ghz * 1e9
    assert exact - 1e-3 <= report.cycles <= exact + len(group.layers)  # each layer takes whole cycles
    assert report.energy_pj + drained + expected["leakage_pj"] == pytest.approx(expected["energy_pj"], rel=1e-6)


def test_accelforges_model_prices_the_mapping_found_here_below_its_own() -> None:
    theirs, found = (FIGURES[f"matmuls_eyeriss{each}"] for each in ("", "_found_here"))
    assert found["energy_pj"] < 0.871 * theirs["energy_pj"] and found["seconds"] == theirs["seconds"]
