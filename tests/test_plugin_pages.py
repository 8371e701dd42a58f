"""The manual's pages on plugins of one's own: they show what `plugins new` writes, and what they go on to say runs with it."""

import importlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import ROOT
from support.command import command
from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.names import module_of
from tilewright.application.scaffold.package import Package, new_package
from tilewright.plugin import Registry, installed

pytestmark = pytest.mark.manual

PAGES = {kind: ROOT / "docs" / "plugins" / f"{kind}.md" for kind in Kind}
OVERVIEW = ROOT / "docs" / "plugins.md"


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    return [shlex.split(line) for block in blocks(page, "sh") for line in block.splitlines()]


def package_of(kind: Kind) -> Package:
    """Return the package that the page's first command writes."""
    program, *words, name = commands(PAGES[kind])[0]
    assert [program, *words] == ["tilewright", "plugins", "new", kind.value]
    return new_package(kind, name, Registry())


@pytest.fixture
def package(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Written and put on the path with its metadata, as installing it would; its folder is the current one."""
    package = package_of(kind)
    folder = package.save(tmp_path / package.distribution)
    project = tomllib.loads(package.files["pyproject.toml"])["project"]
    metadata = folder / "src" / f"{module_of(package.name)}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    ((point, module),) = project["entry-points"]["tilewright"].items()
    (metadata / "entry_points.txt").write_text(f"[tilewright]\n{point} = {module}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder / "src")
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    installed.cache_clear()
    yield package
    installed.cache_clear()
    for name in [each for each in sys.modules if each.partition(".")[0] == module]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.mark.parametrize("kind", Kind)
def test_they_show_the_modules_that_are_written(kind: Kind) -> None:
    files = package_of(kind).files
    shown = {path: text for path, text in (split(block) for block in blocks(PAGES[kind], "python")) if path}

    assert shown == {path: text for path, text in files.items() if path.startswith("src/") and path.endswith(".py")}


def split(block: str) -> tuple[str, str]:
    """Path and text of a block that shows a file; no path for one that does not."""
    first, _, rest = block.partition("\n")
    return (first.removeprefix("# "), rest) if first.startswith("# src/") else ("", block)


def run(page: Path) -> list[str]:
    """The blocks of a page that show no file."""
    rest = [text for path, text in (split(block) for block in blocks(page, "python")) if not path]
    names: dict[str, Any] = {"__name__": "manual"}
    for number, block in enumerate(rest):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    return rest


@pytest.mark.parametrize("kind", Kind)
def test_their_python_runs(kind: Kind, package: Package) -> None:
    assert module_of(package.name) in run(PAGES[kind])[0]


@pytest.mark.parametrize("kind", [Kind.mapper])
def test_the_overview_is_about_the_same_mapper(kind: Kind, package: Package) -> None:
    assert commands(OVERVIEW)[0] == commands(PAGES[kind])[0]
    for block in blocks(OVERVIEW, "toml"):
        assert block.partition("\n")[2] in package.files["pyproject.toml"]
    assert package.distribution in run(OVERVIEW)[-1]


@pytest.mark.parametrize("kind", Kind)
def test_their_commands_run(
    kind: Kind, package: Package, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rest, tilewright = commands(PAGES[kind])[1:], command(monkeypatch, capsys)
    for program, *words in rest:
        done = tilewright(*words)
        assert program == "tilewright" and done.code == 0, f"{shlex.join(words)}\n{done.out}\n{done.err}"

    assert ["plugins", "check"] in [words[1:3] for words in rest]
