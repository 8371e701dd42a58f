"""Every mapper under every cost model: a valid mapping wherever one exists, or a refusal by name before the search."""

import pytest

from support import ROOT
from support.grid import always_there, grid, table, usable
from tilewright.plugin.specs import CostModelSpec, MapperSpec

pytestmark = pytest.mark.exhaustive


@pytest.mark.parametrize("model", [each.name for each in usable(CostModelSpec)])
def test_a_valid_mapping_wherever_one_exists_or_a_refusal(model: str) -> None:
    outcomes = grid(model)
    assert len(outcomes) == 18 * len(usable(MapperSpec))
    assert any(each.exists for each in outcomes)
    assert [each for each in outcomes if not each.good] == []
    refusing = [each for each in outcomes if each.refused]
    assert [
        each for each in refusing if not any(name in each.refused for name in (each.mapper, model, each.problem))
    ] == []


def test_the_manual_has_the_table() -> None:
    assert always_there()
    assert table() in (ROOT / "docs/mappers.md").read_text(), "python benchmarks/grid.py --write"
