"""Pages in a real browser, from disk and without a network: sorted, filtered, and no name run as a script.

Not part of the other environments: `tox run -e browser`. `CHROMIUM` names the browser, `chromium` unless it is set.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

import tilewright as tw
from support.pages import made_up
from tilewright.application.api.page.exploration import exploration_page

SELECT = """
const input = document.querySelector(".filter input");
input.value = "words=4 energy<10";
input.dispatchEvent(new Event("input"));
const heads = [...document.querySelectorAll("#points th")];
heads.find((head) => head.textContent === "cycles").firstChild.click();
document.querySelector('[id$="marks-0-chosen"] use').dispatchEvent(new MouseEvent("click"));
document.getElementById("theme").click();
"""


def shown(page: str, folder: Path, script: str = "") -> str:
    """The document after all scripts, one of our own last: the page's policy has to permit it."""
    policy = re.sub(r"script-src '[^']+'", "script-src 'unsafe-inline'", page) if script else page
    file = folder / "page.html"
    file.write_text(
        policy.replace("</body>", f"<script>{script}</script></body>" if script else "</body>"), encoding="utf-8"
    )
    browser = os.environ.get("CHROMIUM", "chromium")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    words = [browser, *flags, "--window-size=1100,1800", "--virtual-time-budget=10000", "--dump-dom", file.as_uri()]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=240, check=True)
    assert 'data-ready="yes"' in ran.stdout, ran.stderr
    return ran.stdout


def test_an_exploration_is_filtered_and_sorted(tmp_path: Path) -> None:
    report = made_up(300)
    text = shown(exploration_page(report), tmp_path, SELECT)
    kept = [each for each in report.found if each.values["words"] == 4 and each.energy_pj < 10e6]
    rows = re.findall(r'<tr data-mark="[^"]+"([^>]*)><td class="n">(\d+)', text)

    assert 0 < len(kept) < len(report.found)
    assert [int(point) for more, point in rows if "hidden" not in more] == [
        each.index for each in sorted(kept, key=lambda each: each.cycles)
    ]
    assert f"<output>{len(kept)} of {len(report.found)} rows</output>" in text
    assert text.count('class="off') == 3 * (len(report.found) - len(kept))  # three charts
    assert len(re.findall(r'<use[^>]*class="(?:off )?chosen"', text)) == 3 and 'data-theme="dark"' in text
    assert text.count("<title>point ") == 3 * len(report.found)


def test_a_network_is_shown(tmp_path: Path) -> None:
    tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", evaluations=60, folder=tmp_path / "run", cache=False, progress=False)
    page = tw.page(tmp_path / "run", tmp_path / "made.html").read_text(encoding="utf-8")
    text = shown(page, tmp_path)

    assert text.count('role="img"') == 5 and 'id="theme">' in text
    assert text.count('<details id="nest-0" open') == 1


@pytest.mark.parametrize(
    "name", ["</script><script>document.title='run'</script>", "<img src=x onerror=document.title='run'>"]
)
def test_names_are_texts(name: str, tmp_path: Path) -> None:
    text = shown(exploration_page(made_up(20, name=name)), tmp_path)

    assert "<title>run</title>" not in text and "<img" not in text


def test_the_policy_lets_no_other_script_run(tmp_path: Path) -> None:
    page = exploration_page(made_up(20)).replace("</main>", "<script>document.title='run'</script></main>")

    assert "<title>run</title>" not in shown(page, tmp_path)
