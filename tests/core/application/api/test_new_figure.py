"""A new figure is one entry in one file: it then is in JSON, CSV, data frames, tables and pages of all results."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.products import products
from tilewright.application.api.page.exploration import exploration_page
from tilewright.figures import Figure
from tilewright.reports.costs import COSTS
from tilewright.tables import as_text, numbers

QUICK: dict[str, Any] = {"evaluations": 60, "cache": False, "progress": False}
KEY, TITLE = "pj_per_operation", "per operation"
FIGURE = Figure(
    KEY, numbers(TITLE, "pJ/op", decimals=3), of=lambda cost: _ratio(cost.energy_pj, getattr(cost, "macs", None))
)


def _ratio(energy: float | None, macs: int | None) -> float | None:
    return energy / macs if energy is not None and macs else None


@pytest.fixture(autouse=True)
def new_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change nothing but the sheet, as an edit of its file would. Pages have no charts, which take most of the time."""
    for page in ("network", "exploration"):
        monkeypatch.setattr(f"tilewright.application.api.page.{page}.chart", lambda *_: None)
    monkeypatch.setitem(COSTS.figures, KEY, FIGURE)
    for name, view in COSTS.views.items():
        monkeypatch.setitem(COSTS.views, name, f"{view} {KEY}")


def test_map_has_it(tmp_path: Path) -> None:
    report = tw.map(products(16, (8, 32, 8)), "eyeriss", mapper="random", folder=tmp_path / "run", **QUICK)
    first, total = report.data()["layers"][0], report.data()["totals"]
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    with (tmp_path / "run" / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert first["best"][KEY] == report.rows()[0][KEY] == first["best"]["energy_pj"] / first["macs"]
    assert total[KEY] == total["energy_pj"] / total["macs"]
    assert [float(row[KEY]) for row in rows] == [row[KEY] for row in report.rows()]
    assert json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["totals"][KEY] == total[KEY]
    assert TITLE in str(report) and f">{TITLE}, pJ/op</button>" in page and f"<dt>{TITLE}</dt>" in page
    both = tw.page([tmp_path / "run", tmp_path / "run"], tmp_path / "both.html").read_text(encoding="utf-8")
    assert f"{TITLE} B / A" in both


def test_other_results_have_it() -> None:
    layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", **QUICK)
    models = tw.evaluate(layer.layers[0], models=["timeloop", "oracle"])
    compared = tw.compare("nk,km->nm; n=8 k=8 m=8", "eyeriss", mappers=["random"], models=["timeloop"], **QUICK)
    front = tw.front(products(16, (8, 32, 8)), "eyeriss", points=2, mapper="random", **QUICK)
    space = {"kind": "space", "name": "s", "base": "eyeriss", "choices": {"GlobalBuffer.capacity_words": [64, 4096]}}
    explored = tw.explore("nk,km->nm; n=8 k=8 m=8", space, mapper="random", evaluations=40, cache=False, progress=False)

    assert f"  {TITLE} " in as_text(tw.evaluate(layer.layers[0]).tables(), None)
    assert compared.data()["rows"][0]["prices"][0][KEY] == compared.rows()[0][KEY] is not None
    assert front.data()["layers"][0]["points"][0][KEY] == front.rows()[0][KEY] is not None
    for report in (models, front, front.within(1e9), explored):
        rows, energies = report.rows(), [row["energy_pj"] for row in report.rows()]
        assert all((row[KEY] is None) == (energy is None) for row, energy in zip(rows, energies, strict=True))
        assert TITLE in as_text(report.tables(), None)
    assert f">{TITLE}, pJ/op</button>" in exploration_page(explored)
