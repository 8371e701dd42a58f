"""MAESTRO's own figures, reproduced on every number of its CSV."""

from typing import Any

import pytest

from support.recorded.maestro import differences, hardware_of, layer_of, load
from tilewright.errors import NotConformableError
from tilewright_costmodels.maestro.figures import figures_of
from tilewright_costmodels.maestro.machine import PJ_PER_MAC, TENSORS, machine_of_directives
from tilewright_costmodels.maestro.tables import L1, L2

CASES = load("cases")
SOUND = [case for case in CASES if case["status"] != "nonsense"]


def test_every_recorded_layer_is_here() -> None:
    assert len(CASES) == 173 and len(SOUND) == 172
    assert sum(case["status"] == "ok" for case in CASES) == 165


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case["id"])
def test_every_figure_is_maestros(case: dict[str, Any]) -> None:
    figures = figures_of(layer_of(case), hardware_of(case), machine_of_directives(layer_of(case), hardware_of(case)))
    assert differences(figures.columns(), case["columns"]) == []
    screen = {
        "total_energy": figures.energy_pj / PJ_PER_MAC,
        "l1_size_req": dict(zip(TENSORS, figures.required[L1], strict=True)),
        "l2_size_req": dict(zip(TENSORS, figures.required[L2], strict=True)),
    }
    assert differences(screen, case["screen"]) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_true_operation_count_is_known(case: dict[str, Any]) -> None:
    assert layer_of(case).macs == case["macs"]
    if case["status"] != "nonsense":
        assert (case["columns"]["num_macs"] == case["macs"]) == (case["status"] == "ok")


def test_a_runtime_of_zero_is_no_result() -> None:
    """MAESTRO prints runtime 0 and negative counts for one published dataflow on a narrow layer."""
    (case,) = (case for case in CASES if case["status"] == "nonsense")
    with pytest.raises(NotConformableError, match="performs no operation"):
        figures_of(layer_of(case), hardware_of(case), machine_of_directives(layer_of(case), hardware_of(case)))
