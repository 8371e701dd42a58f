"""The commands of README and manual run as they stand, from a clone of the repository; so do those that hints name.

A block of commands is marked `sh`. One with files of the reader's own is marked `sh pattern`, synopses are `text`. What installs things
and the README's test command are run where the continuous integration starts from nothing.
"""

import glob
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from support import ROOT
from support.command import Command, command
from support.manual_commands import FENCE, PAGES, blocks, clone_of_the_manual, commands
from support.schemas import written_faults
from tilewright.plugin import installed

pytestmark = pytest.mark.manual

COMMAND = re.compile(r"^(?:\S*/)?tilewright ", flags=re.MULTILINE)


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with what a clone has for users; searches are short."""
    clone_of_the_manual(tmp_path / "clone", monkeypatch)
    return tmp_path / "clone"


@pytest.fixture
def run_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What `tilewright --help` prints."""
    return command(monkeypatch, capsys)("--help").out


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")])
def test_commands_run(
    page: str, clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What they print as JSON, and write, fits the schemas. A command may say that a package is missing that its block installs."""
    run: Command = command(monkeypatch, capsys)
    for block in blocks(page, "sh"):
        for words in commands(block):
            given = [name for word in words for name in sorted(glob.glob(word)) or [word]]
            ran = run(*given)
            missing = "pip install" in block and "which is not installed" in ran.err
            assert ran.code == 0 or missing, (words, ran.err)
            assert ran.out + ran.err and "Traceback" not in ran.err, (words, ran.err)
    assert written_faults(clone) == {}


def test_every_command_has_a_section_with_its_synopsis_and_an_example(run_help: str) -> None:
    sections = {text.partition("\n")[0]: text for text in PAGES["docs/commands.md"].split("\n## ")}
    names = re.findall(r"^  ([a-z][a-z-]*)  ", run_help.partition("\nCommands:\n")[2], flags=re.MULTILINE)

    assert len(names) >= 17
    assert [
        name for name in names if not re.search(rf"```sh[^`]*^tilewright {name}\b", sections[name], re.MULTILINE)
    ] == []
    assert [name for name in names if f"```text\ntilewright {name} " not in sections[name]] == []


def test_pages_write_to_folders_of_their_own() -> None:
    """So a user may read them in any order."""
    texts = PAGES | {
        path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/plugins").glob("*.md"))
    }
    written: dict[str, set[str]] = {}
    for page, text in texts.items():
        for name in re.findall(
            r"(?: -o |--store |\bsave\(\"|folder=\")([\w./]+)", "".join(block for _, block in FENCE.findall(text))
        ):
            written.setdefault(name, set()).add(page)

    assert {name: pages for name, pages in written.items() if len(pages) > 1 and not name.isupper()} == {}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_stands_where_it_is_tested_or_is_marked(page: str) -> None:
    unmarked = [text for mark, text in FENCE.findall(PAGES[page]) if mark not in ("sh", "sh pattern", "text")]

    assert [text for text in unmarked if COMMAND.search(text)] == []


def test_a_pattern_is_no_command_in_disguise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It names files of which there is none in a clone."""
    monkeypatch.chdir(ROOT)
    for page in PAGES:
        for block in blocks(page, "sh pattern"):
            names = re.findall(r"\b[\w./]+\.(?:onnx|mlir|pt2|yaml|csv|txt|m)\b", block)
            assert names and not any(Path(name).exists() for name in names), (page, block)


def test_hints_name_packages_that_the_project_declares() -> None:
    """Not extras of Tilewright: nobody knows from where it was installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        re.split(r"[><=~! ]", each)[0]
        for each in (
            *project["dependencies"],
            *(name for extra in project["optional-dependencies"].values() for name in extra),
        )
    }
    hints = [registration.spec.hint for registration in installed().registrations if registration.spec.hint]
    named = [word for hint in hints if hint.startswith("pip install ") for word in shlex.split(hint)[2:]]

    assert named and {re.split(r"[><=]", word)[0] for word in named} <= declared
