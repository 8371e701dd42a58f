"""The manual's Python code and the notebook's cells run unchanged."""

import json
import re
import runpy
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilewright
import tilewright.plugin
import tilewright.testing
from support.command import Command, command
from support.schemas import written_faults
from tilewright.application.run import configuration

pytestmark = pytest.mark.manual

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/machine.md",
    "docs/reports.md",
    "docs/fusion.md",
    "docs/vector.md",
    "docs/python.md",
    "docs/mapspace.md",
    "docs/library.md",
    "docs/spaces.md",
    "docs/json.md",
]
WITH_A_PACKAGE = [
    "docs/plugins.md",
    "docs/plugins/hooks.md",
    *(
        f"docs/plugins/{kind}.md"
        for kind in (
            "adapter",
            "algorithm",
            "composed",
            "costmodel",
            "estimator",
            "frontend",
            "groupmapper",
            "mapper",
            "strategy",
        )
    ),
]
"""Pages whose blocks need the package that they are about: `test_plugin_pages`, and `test_hooks_page`."""
ALL = [path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]


@pytest.fixture(autouse=True)
def quick_and_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Searches without a limit of their own are short; files, caches and windows go nowhere."""
    monkeypatch.setattr(configuration, "DEFAULT_EVALUATIONS", 200)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def searched_once(monkeypatch: pytest.MonkeyPatch, quick_and_elsewhere: None, cache: Path) -> None:
    """Pages begin with the same network: what one of them searched the others find again."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(cache))


def blocks(page: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("searched_once")
def test_blocks_run(page: str) -> None:
    names: dict[str, Any] = {"__name__": "manual"}
    found = blocks(page)
    for number, block in enumerate(found):
        exec(compile(block, f"{page}, block {number}", "exec"), names)

    assert found and "tilewright" in found[0]
    assert written_faults(Path.cwd()) == {}


def test_the_loop_nest_of_the_manual_is_what_its_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("docs/json.md")
    exec(block, {})
    (shown,) = re.findall(
        r"^```text\n(.*?)^```", (ROOT / "docs/json.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )

    assert capsys.readouterr().out == shown


def test_the_published_schemas_are_those_that_the_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "docs/schema_files.py"))
    published = {path.name: path.read_text(encoding="utf-8") for path in script["FOLDER"].iterdir()}

    assert published == script["texts"](), "python docs/schema_files.py writes them"


def test_the_sidebar_is_short_and_has_every_page_once() -> None:
    module = runpy.run_path(str(ROOT / "docs/contents.py"))
    top = [page for pages in module["SECTIONS"].values() for page in pages]
    listed = [*top, *(page for pages in module["BELOW"].values() for page in pages)]

    assert len(top) <= 15 and set(module["BELOW"]) <= set(listed)
    assert sorted([*listed, "index"]) == sorted(
        page.removeprefix("docs/").removesuffix(".md") for page in ALL if page != "README.md"
    )


def test_no_page_with_python_is_left_out() -> None:
    assert {page for page in ALL if blocks(page)} == {*PAGES, *WITH_A_PACKAGE}


def test_the_pictures_of_the_manual_are_those_that_the_script_draws(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "docs/pictures.py"))["main"](tmp_path / "pictures")
    shown = set(
        re.findall(r"pictures/([\w-]+\.svg)", "".join((ROOT / page).read_text(encoding="utf-8") for page in ALL))
    )

    assert (
        {path.name for path in (tmp_path / "pictures").iterdir()}
        == {path.name for path in (ROOT / "docs/pictures").iterdir()}
        == shown
    )


@pytest.mark.parametrize("door", [tilewright, tilewright.plugin, tilewright.testing], ids=lambda door: door.__name__)
def test_every_public_name_is_in_the_reference(door: ModuleType) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    documented = {path.rpartition(".")[2] for path in re.findall(r"^\.\. auto\w+:: (\S+)", text, flags=re.MULTILINE)}

    assert set(door.__all__) - {"__version__"} - documented == set()


@pytest.mark.parametrize("page", sorted((ROOT / "docs/reference").glob("*.md")), ids=lambda page: page.stem)
def test_the_reference_has_the_summaries_of_docstrings(page: Path) -> None:
    module = runpy.run_path(str(ROOT / "docs/reference/summaries.py"))
    text = page.read_text(encoding="utf-8")

    assert module["updated"](text) == text, "python docs/reference/summaries.py writes the tables"
    if page.stem == "operations":  # a table of data
        return
    assert "| name | summary |" in text and "{eval-rst}" not in text
    assert module["updated"](text).count(".. auto") == module["as_directives"](text).count(".. auto") > 15


@pytest.mark.usefixtures("searched_once")
def test_comparisons_in_the_manual_are_true() -> None:
    """Lines that compare show what holds."""
    names: dict[str, Any] = {}
    for block in blocks("docs/python.md")[:3]:
        exec(block, names)
    shown = [line for block in blocks("docs/python.md")[1:3] for line in block.splitlines() if " == " in line]

    assert len(shown) == 2 and all(eval(line, names) is True for line in shown)


@pytest.mark.parametrize(
    "page", [page for page in ALL if "\n$ tilewright " in (ROOT / page).read_text(encoding="utf-8")]
)
def test_what_commands_are_said_to_print_is_what_they_print(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    monkeypatch.chdir(ROOT)
    text = (ROOT / page).read_text(encoding="utf-8")
    told = re.findall(r"^\$ tilewright (.*)\n((?:(?!\$ |```).*\n)*)", text, flags=re.MULTILINE)
    for words, shown in told:
        ran = run(*words.split())
        assert (ran.out + ran.err).strip() == shown.strip(), words

    assert told and all(len(line) <= 120 for _, shown in told for line in shown.splitlines())


@pytest.mark.parametrize(("file", "title"), [("three_layers", "three_layers"), ("two_products", "two products")])
def test_the_table_of_compare_is_what_compare_prints(
    file: str, title: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it but the seconds."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    (words,) = re.findall(rf"^```sh\ntilewright (compare examples/{file}.*?)```", text, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(rf"^```text\n({title} .*?)```", text, re.DOTALL | re.MULTILINE)
    ran = command(monkeypatch, capsys)(*shlex.split(words.replace("\\\n", " ")))

    seconds = re.compile(r" +<?\d+\.\d(?= |$)", re.MULTILINE)
    assert seconds.sub(" S", shown) == seconds.sub(" S", ran.out)


def test_the_comparison_of_the_tutorial_has_the_optimum(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"^tilewright (compare .*)$", text, re.MULTILINE)
    ran = command(monkeypatch, capsys)(*words.split())
    (row,) = (line for line in ran.out.splitlines() if " optimal " in line)

    assert "x optimum" in ran.out and re.search(r"optimal +464\.2 +1\.00 +1\.00  yes", row)


def test_the_tutorial_shows_what_map_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(configuration, "DEFAULT_EVALUATIONS", None)
    ran = command(monkeypatch, capsys)("map", "quickflow_convs/V", "--arch", "eyeriss")
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    shown = [
        line
        for block in re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert len(shown) > 20 and [line for line in shown if line not in ran.out.splitlines()] == []


@pytest.mark.parametrize("notebook", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)

    assert len(cells) > 3 and all(cell["outputs"] == [] for cell in cells)
    assert all(layer.edp for layer in names["sweep"].values()) and len(names["sweep"]) == 5
