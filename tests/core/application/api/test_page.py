"""Pages: self-contained, of bounded size, no name is markup, and figures are those of the reports."""

import json
import re
from pathlib import Path

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from support.pages import Tables, made_up
from tilewright.application.api.page.exploration import exploration_page
from tilewright.errors import InputError, OutputError

HOSTILE = "</script><script>alert(1)</script>&<img src=x onerror=alert(2)>$x^{2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mapped") / "run"
    tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", evaluations=60, folder=path, cache=False, progress=False)
    return path


def test_a_page_loads_nothing_from_elsewhere(folder: Path) -> None:
    for page in (exploration_page(made_up(20)), (folder / "report.html").read_text(encoding="utf-8")):
        assert "default-src 'none'" in page and re.search(r"script-src 'sha256-[^']+'", page)
        assert set(re.findall(r"https?://[^\"']*", page)) == {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }
        assert not re.search(r"<(link|img|iframe|script)[^>]*(src|href)=", page)
        assert "<metadata" not in page and page.count("<style") == 1


def test_identifiers_are_unique_and_every_reference_leads_somewhere(folder: Path) -> None:
    for page in (exploration_page(made_up(20)), (folder / "report.html").read_text(encoding="utf-8")):
        names = re.findall(r'\bid="([^"]+)"', page)
        used = (
            re.findall(r'(?:href="#|url\(#)([\w-]+)', page)
            + " ".join(re.findall(r'aria-labelledby="([^"]+)"', page)).split()
        )

        assert len(names) == len(set(names)) and used and set(used) <= set(names)


@pytest.mark.exhaustive
def test_two_thousand_points_stay_below_two_megabytes() -> None:
    report = made_up(2000, layers=24)
    page = exploration_page(report)

    assert len(page.encode()) < 2_000_000
    assert len(Tables(page).rows["points"]) - 1 == len(report.found) == 1800


def test_names_are_never_markup() -> None:
    page = exploration_page(made_up(20, name=HOSTILE))

    assert page.count("<script") == page.count("</script>") == 1 and "<img" not in page
    assert "&lt;img src=x" in page and "$x^{2" in page


def test_the_points_are_those_of_the_report() -> None:
    report = made_up(50)
    page = exploration_page(report)
    rows = Tables(page).rows["points"]
    front = {row[0] for row in rows[1:] if row[-1] == "front"}

    assert front == {str(each.index) for each in report.front}
    assert [row[0] for row in rows[1:]] == [str(each.index) for each in report.found]
    assert rows[0][4:6] == ["energy, uJ", "cycles"] and float(rows[1][4]) == pytest.approx(
        report.found[0].energy_pj / 1e6, rel=1e-3
    )
    assert Tables(page).rows["without"][1][:2] == ["words < 4", "5"]


def test_marks_of_a_chart_belong_to_rows() -> None:
    report = made_up(50)
    page = exploration_page(report)
    marks = re.findall(r'<tr data-mark="(\w+)-(\d+)"', page)
    chart = page[page.index("<svg") : page.index("</svg>")]

    assert sorted(int(at) for group, at in marks if group == "chosen") == list(range(len(report.front)))
    assert len(marks) == len(report.found)
    assert (
        sum(chart.count(f'id="front-marks-{panel}-{group}"') for panel in range(3) for group in ("chosen", "others"))
        == 6
    )


def test_a_mapped_network_has_a_page(folder: Path, tmp_path: Path) -> None:
    page = tw.page(folder, tmp_path / "page.html").read_text(encoding="utf-8")
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    (layer,) = written["layers"]
    head, row = Tables(page).rows["layers"]
    shown = dict(zip(head, row, strict=True))

    assert shown["layer"] == layer["name"] and shown["sizes"] == "n=8 k=8 m=8"
    assert shown["cycles"] == f"{layer['best']['cycles']:,}" and shown["proved"] == "no"
    unit = next(name for name in head if name.startswith("energy, "))
    chart = page[page.index("<svg") : page.index("</svg>")]
    assert f">{unit.partition(', ')[2]}</text>" in chart  # the chart has the unit of the table
    assert all(text in page for text in ("GlobalBuffer", "stationary for", "<dt>EDP</dt>", tw.__version__))
    assert page == (folder / "report.html").read_text(encoding="utf-8")


def test_two_networks_have_a_page_side_by_side(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    tw.map("nk,km->nm; n=8 k=8 m=16", "eyeriss", evaluations=60, folder=other, cache=False, progress=False)
    page = tw.page([folder, other], tmp_path / "page.html").read_text(encoding="utf-8")
    totals = {row[0]: row[1:] for row in Tables(page).rows["totals"]}
    energies = [
        json.loads((each / "summary.json").read_text(encoding="utf-8"))["totals"]["energy_pj"]
        for each in (folder, other)
    ]

    assert totals["MACs"] == ["512", "1,024", "2.000"]
    assert float(totals["energy"][2]) == pytest.approx(energies[1] / energies[0], abs=1e-3)
    assert totals["figure"][:2] == ["A: run", "B: other"]


def test_a_store_has_a_page(tmp_path: Path) -> None:
    space = {"kind": "space", "name": "s", "base": "eyeriss", "choices": {"GlobalBuffer.capacity_words": [64, 4096]}}
    tw.explore("nk,km->nm; n=8 k=8 m=8", space, evaluations=40, store=tmp_path / "s.sqlite", progress=False)
    page = tw.page(tmp_path / "s.sqlite", tmp_path / "page.html").read_text(encoding="utf-8")

    assert len(Tables(page).rows["points"]) == 3 and "for k in" in page
    assert all(text in page for text in ('<div class="nest">', "<strong>GlobalBuffer</strong>", "k=8 m=8", "mac: "))


def test_what_has_no_page_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no summary.json"):
        tw.page(tmp_path)
    with pytest.raises(InputError, match="there is no file or folder"):
        tw.page(tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="has no explorations"):
        tw.page(folder, exploration="a")
    with pytest.raises(InputError, match="two runs must be folders"):
        tw.page([folder, folder / "summary.json"])
    with pytest.raises(InputError, match="one or two runs, not 3"):
        tw.page([folder] * 3)
    with pytest.raises(OutputError):
        tw.page(folder, tmp_path / "none" / "page.html")
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    written["layers"][0]["best"]["energy_pj"] = float("inf")
    for text in ("[]", "{", '{"layers": [{}]}', "[" * 100_000, json.dumps(written)):
        (tmp_path / "summary.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="was not written by|is damaged"):
            tw.page(tmp_path)


def test_a_network_has_a_row_of_totals_its_machine_and_the_mappers_figures_last(tmp_path: Path) -> None:
    report = tw.map(
        EXAMPLE_FILES / "three_layers.workload.yaml",
        "simba",
        mapper="random",
        evaluations=50,
        folder=tmp_path / "run",
        cache=False,
        progress=False,
    )
    data = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    for layer in data["layers"]:
        layer["search"]["figures"] = {"states": 3.0}
    (tmp_path / "run" / "summary.json").write_text(json.dumps(data), encoding="utf-8")
    page = tw.page(tmp_path / "run", tmp_path / "page.html").read_text(encoding="utf-8")
    head, *rows, total = Tables(page).rows["layers"]
    assert len(rows) == len(report.layers) > 1 and total[0] == "total" and "<tfoot>" in page
    figures = dict(zip(head, total, strict=True))
    assert figures["count"] == f"{sum(layer.count for layer in report.layers)}"
    assert figures["cycles x count"] == f"{report.cycles:,}" and figures["share, %"] == "100.0"
    assert "chart: architecture simba" in page
    assert page.index("<h2>Provenance") < page.index("<h2>Figures of the mapper")
    assert re.search(r"<details><summary>\d+ searches</summary>", page)
    assert page.count('<details id="nest-') == page.count('" open>') + len(report.layers) - 1


def test_lists_of_layers_have_no_row_of_totals(folder: Path) -> None:
    assert "<tfoot>" not in (folder / "report.html").read_text(encoding="utf-8")
