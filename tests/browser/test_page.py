"""Pages in a real browser, from disk and without a network: drawn, answering a selection, and no name run as a script.

Not part of the other environments: `tox run -e browser`. `CHROMIUM` names the browser, `chromium` unless it is set.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

import tilewright as tw
from support.pages import made_up
from tilewright.api.page.contents import of_exploration
from tilewright.api.page.document import document

SELECT = """
const grab = document.querySelector('.grab[data-axis="0"]');
const box = document.getElementById("parallel").getBoundingClientRect();
const at = (share) => ({ clientX: box.left + 60, clientY: box.top + share * box.height, bubbles: true });
grab.dispatchEvent(new PointerEvent("pointerdown", at(0.05)));
grab.dispatchEvent(new PointerEvent("pointermove", at(0.2)));
grab.dispatchEvent(new PointerEvent("pointerup", at(0.2)));
document.querySelector(".point").dispatchEvent(new PointerEvent("pointerenter"));
"""


def shown(page: str, folder: Path, script: str = "") -> str:
    """The document after all scripts, one of our own last."""
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    browser = os.environ.get("CHROMIUM", "chromium")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    words = [browser, *flags, "--window-size=1100,1800", "--virtual-time-budget=10000", "--dump-dom", file.as_uri()]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=240, check=True)
    assert 'data-ready="yes"' in ran.stdout, ran.stderr
    return ran.stdout


def test_an_exploration_is_drawn_and_answers_a_selection(tmp_path: Path) -> None:
    report = made_up(2000, layers=24)
    found = shown(document(of_exploration(report)), tmp_path, SELECT)
    kept = sum(each.values["words"] == 4 for each in report.found)  # the upper end of the first axis

    assert found.count('class="line') == found.count("<circle") == len(report.found)
    assert f"{kept:,} of {len(report.found):,} points selected" in found
    off = len(re.findall(r'class="line(?: front)? off"', found))
    assert off == len(report.found) - kept
    assert found.count('class="cell"') == 24 * 4
    assert re.search(r'id="told">point \d+: words \d', found)


def test_a_network_is_drawn(tmp_path: Path) -> None:
    tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", evaluations=60, folder=tmp_path / "run", cache=False, progress=False)
    page = tw.page(tmp_path / "run", tmp_path / "made.html").read_text(encoding="utf-8")
    found = shown(page, tmp_path)

    assert found.count('class="bar"') == 6 and found.count("<circle") == 1 and found.count("<details") == 1


@pytest.mark.parametrize(
    "name", ["</script><script>document.title='run'</script>", "<img src=x onerror=document.title='run'>"]
)
def test_names_are_texts(name: str, tmp_path: Path) -> None:
    found = shown(document(of_exploration(made_up(20, name=name))), tmp_path)

    assert "<title>run</title>" not in found and "<img" not in found
