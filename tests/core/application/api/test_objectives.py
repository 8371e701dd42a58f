"""Every search takes products of other powers than EDP's, or names what it does not cover."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from tilewright.errors import CallError
from tilewright.plugin.specs import MapperSpec

PRODUCT = "nk,km->nm; n=16 k=16 m=16"
EVERY = sorted({each.name for each in tw.installed().of_kind(MapperSpec)} - {"mindmappings", "exhaustive"})
"""All but two that tests of their own try with all objectives: one needs other libraries, one a smaller space."""


@pytest.mark.parametrize("mapper", EVERY)
def test_every_mapper_minimises_ed2p(mapper: str) -> None:
    options = {"array": 0, "inner": 0, "outer": 0} if mapper == "dmazerunner" else None
    words: dict[str, Any] = {"objective": "ed2p", "evaluations": 300, "cache": False, "progress": False}
    report = tw.map(PRODUCT, "union_edge", mapper=mapper, mapper_options=options, **words)
    (layer,) = report.layers
    assert layer.result is not None and layer.report is not None, layer.error
    energy, cycles = layer.energy_pj or 0.0, layer.cycles or 0
    assert layer.result.value == pytest.approx(energy * cycles**2, rel=1e-9)
    assert layer.result.value == pytest.approx(layer.report.of("ed2p"), rel=1e-12)


def test_a_group_is_fused_for_ed2p_and_its_certificate_holds(tmp_path: Path) -> None:
    costs = {}
    for objective in ("energy", "cycles", "ed2p"):
        result = tw.fuse(EXAMPLE_FILES / "two_products.yaml", objective=objective, folder=tmp_path / objective)
        assert result.proved and result.bound == result.fused.of(objective)
        costs[objective] = result.fused.of("ed2p")
    assert costs["ed2p"] == min(cost for cost in costs.values() if cost is not None)
    file = tmp_path / "ed2p" / "group.certificate.yaml"
    assert "no fused mapping of the space has less ED2P than" in file.read_text()
    checked = tw.verify_certificate(file, samples=5, limit=5)
    assert checked.right, str(checked)


def test_a_front_has_no_objective() -> None:
    with pytest.raises(CallError, match="a front always covers energy and cycles"):
        tw.front(PRODUCT, "union_edge", objective="ed2p")
