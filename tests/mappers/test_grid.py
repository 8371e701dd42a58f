"""Every mapper under every cost model: a valid mapping wherever one exists, or a refusal by name before the search."""

import pytest

from support import ROOT
from support.grid import always_there, grid, table, usable
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 1


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
    """Rows of mappers that need a package which is not installed are not compared."""
    assert always_there()
    there = {each.name for each in usable(MapperSpec)}
    missing = [each.name for each in installed().of_kind(MapperSpec) if each.name not in there]
    lines = (ROOT / "docs/mappers.md").read_text().splitlines(keepends=True)
    manual = "".join(line for line in lines if not line.startswith(tuple(f"| `{name}` |" for name in missing)))
    assert table() in manual, "python benchmarks/grid.py --write"
