"""Pages: self-contained, of bounded size, and no name is markup."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.pages import made_up
from tilewright.api.page.contents import of_exploration
from tilewright.api.page.document import document
from tilewright.errors import InputError, OutputError

HOSTILE = "</script><script>alert(1)</script>&<img src=x onerror=alert(2)>"


def embedded(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mapped") / "run"
    tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", evaluations=60, folder=path, cache=False, progress=False)
    return path


def test_a_page_loads_nothing_from_elsewhere() -> None:
    page = document(of_exploration(made_up(20)))

    assert "default-src 'none'" in page
    assert re.findall(r"https?://[^\"']*", page) == ["http://www.w3.org/2000/svg"] * 1
    assert not re.search(r"<(link|img|iframe|script)[^>]+(src|href)=", page)


@pytest.mark.exhaustive
def test_two_thousand_points_stay_below_two_megabytes() -> None:
    report = made_up(2000, layers=24)
    page = document(of_exploration(report))

    assert len(page.encode()) < 2_000_000
    assert len(embedded(page)["points"]) == len(report.found) == 1800


def test_names_are_never_markup() -> None:
    data = of_exploration(made_up(20, name=HOSTILE))
    page = document(data)

    assert embedded(page) == json.loads(json.dumps(data)) and HOSTILE in data["title"]
    assert page.count("<script") == page.count("</script>") == 2 and "<img" not in page


def test_what_it_shows_is_what_the_report_says() -> None:
    report = made_up(50)
    data = of_exploration(report)

    assert {point[0] for point in data["points"] if point[1]} == {each.index for each in report.front}
    assert data["best"] == [report.found[0].index] and data["baseline"] == [0]
    assert [row[:2] for row in data["without"]] == [["words < 4", 5]]
    assert all(len(row) == len(data["places"]) for each in data["detailed"] for row in each["energies"])


def test_a_mapped_network_has_a_page(folder: Path, tmp_path: Path) -> None:
    data = embedded(tw.page(folder, tmp_path / "page.html").read_text(encoding="utf-8"))
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["layers"][0]
    (layer,) = data["layers"]

    assert sum(layer["energies"]) == pytest.approx(written["best"]["energy_pj"])
    assert layer["nest"] == written["nest"] and layer["binds"]
    assert layer["speed"] <= min(data["units"], layer["intensity"] * data["rate"]) * (1 + 1e-9)  # under the roof
    assert ["tilewright", tw.__version__] in data["provenance"]


def test_a_store_has_a_page(tmp_path: Path) -> None:
    space = {"kind": "space", "name": "s", "base": "eyeriss", "choices": {"GlobalBuffer.capacity_words": [64, 4096]}}
    tw.explore("nk,km->nm; n=8 k=8 m=8", space, evaluations=40, store=tmp_path / "s.sqlite", progress=False)
    data = embedded(tw.page(tmp_path / "s.sqlite", tmp_path / "page.html").read_text(encoding="utf-8"))

    assert data["kind"] == "exploration" and len(data["points"]) == 2


def test_what_has_no_page_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no summary.json"):
        tw.page(tmp_path)
    with pytest.raises(InputError, match="there is no store"):
        tw.page(tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="has no explorations"):
        tw.page(folder, exploration="a")
    with pytest.raises(OutputError):
        tw.page(folder, tmp_path / "none" / "page.html")
    for text in ("[]", "{", '{"layers": [{}]}'):
        (tmp_path / "summary.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="was not written by"):
            tw.page(tmp_path)
