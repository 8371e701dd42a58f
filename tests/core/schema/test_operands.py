"""Unit operations: a problem of more operands than a compute unit multiplies is reported wherever it is priced."""

import logging
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.application.conversion.dropped import SIMPLIFICATIONS
from tilewright.plugin import AdapterSpec, InputSet, installed
from tilewright.schema.operands import operand_warnings

MTTKRP = "ikl,kj,lj->ij; i=4 k=4 l=2 j=4"
GEMM = "nk,km->nm; n=4 k=4 m=4"
ARCH = tw.load("sunstone_conventional", "architecture")
UNIT = ARCH.replace({"compute.operands": 3})
SETTINGS: dict[str, Any] = {"mapper": "random", "evaluations": 50, "cache": False, "progress": False}
TOLD = "3 operands are multiplied, and an operation of MAC of sunstone_conventional multiplies 2"
STEP = "write `operands: 3` and its energy under `compute`"


def told(texts: Any) -> list[str]:
    return [text for text in texts if TOLD in text and STEP in text]


def test_the_rule_counts_operands() -> None:
    mttkrp, gemm = tw.load(MTTKRP, "problem"), tw.load(GEMM, "problem")
    assert operand_warnings([gemm], ARCH) == operand_warnings([mttkrp, gemm], UNIT) == ()
    assert len(operand_warnings([mttkrp, gemm, mttkrp], ARCH)) == 1
    assert ARCH.compute.operands == 2 and tw.Architecture.from_yaml(UNIT.to_yaml()) == UNIT


@pytest.mark.parametrize(("arch", "count"), [(ARCH, 1), (UNIT, 0)])
def test_map_compare_front_and_evaluate_warn(arch: tw.Architecture, count: int) -> None:
    report = tw.map(MTTKRP, arch, **SETTINGS)
    assert len(told(report.warnings)) == len(told(report.data()["warnings"])) == len(told([str(report)])) == count
    front = tw.front(MTTKRP, arch, points=2, cache=False, progress=False)
    assert len(told(front.data()["warnings"])) == len(told([str(front)])) == count
    found = tw.evaluate(report.layers[0], models=["timeloop", "pipelined", "oracle"])
    assert [len(told(each.warnings)) for each in found.reports] == [count] * 3
    compared = tw.compare(MTTKRP, arch, mappers=["random"], evaluations=50, cache=False, progress=False)
    assert len(told([str(compared)])) == count


def test_the_energy_is_that_of_the_declared_operation() -> None:
    dear = UNIT.replace({"compute.energy_per_operation_pj": ARCH.compute.energy_per_operation_pj + 1})
    mapping = tw.map(MTTKRP, UNIT, **SETTINGS).layers[0].mapping
    assert mapping is not None
    energies = [tw.evaluate(mapping, problem=MTTKRP, arch=arch).reports[0].energy_pj for arch in (UNIT, dear)]
    assert energies[0] is not None and energies[1] == pytest.approx(energies[0] + 4 * 4 * 2 * 4)


def test_fused_networks_and_explorations_warn(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    network = tw.load(MTTKRP, "workload")
    with caplog.at_level(logging.WARNING, "tilewright"):
        tw.fusion_gain(network, ARCH, objective="energy", cache=False, progress=False)
    assert len(told(caplog.messages)) == 1
    caplog.clear()
    space = {
        "name": "one",
        "base": "sunstone_conventional",
        "choices": {"size": [512]},
        "set": {"L1.capacity_words": "size"},
    }
    with caplog.at_level(logging.WARNING, "tilewright"):
        tw.explore(MTTKRP, space, evaluations=50, mapper="random", cache=tmp_path, progress=False)
    assert [STEP in text and "of one_0 multiplies 2" in text for text in caplog.messages] == [True]


@pytest.mark.parametrize("notation", ["timeloop", "timeloop_v4", "accelforge", "zigzag"])
def test_other_notations_cannot_say_it(notation: str) -> None:
    for arch in (ARCH, UNIT):
        adapter = installed().make(AdapterSpec, notation)
        codes = {reason.code for reason in adapter.expressible(InputSet(architecture=arch)).reasons}
        assert ("operands" in codes) == (arch is UNIT)


def test_a_lossy_conversion_drops_it_by_name() -> None:
    changes = (simplify(InputSet(architecture=UNIT)) for simplify in SIMPLIFICATIONS)
    dropped = {field.what for change in changes if change is not None for field in [change[1]]}
    assert "compute.operands" in dropped
