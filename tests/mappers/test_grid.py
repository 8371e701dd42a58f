"""Every mapper under every cost model: a valid mapping wherever one exists, or a refusal by name before the search."""

import re

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
    assert any(outcome.exists for outcome in outcomes)
    assert [outcome for outcome in outcomes if not outcome.good] == []
    refusing = [outcome for outcome in outcomes if outcome.refused]
    assert [
        each for each in refusing if not any(name in each.refused for name in (each.mapper, model, each.problem))
    ] == []


def test_the_manual_has_the_table() -> None:
    """Mappers that need a package which is not installed are not compared."""
    assert always_there()
    there = {each.name for each in usable(MapperSpec)}
    missing = {each.name for each in installed().of_kind(MapperSpec)} - there
    page = (ROOT / "docs/mappers.md").read_text(encoding="utf-8")
    manual = page.partition("<!-- grid -->\n")[2].partition("\n<!-- end of grid -->")[0]
    kept = {name: cells for name, cells in rows(manual).items() if name not in missing}
    assert manual.splitlines()[:2] == table().splitlines()[:2]
    assert kept == rows(table()), "python benchmarks/grid.py --write"


def rows(text: str) -> dict[str, str]:
    """Return the cells of every mapper of the table."""
    matches = re.findall(r"^\| (`.*?`) \| (.*) \|$", text, re.MULTILINE)
    return {name: cells for names, cells in matches for name in re.findall(r"`(\w+)`", names)}
