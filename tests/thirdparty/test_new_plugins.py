"""A package of every kind, as `tilewright plugins new` writes it: it installs, its own matrix is green, and it keeps its promises.

Run by `tox run -e plugins-new`, which knows the wheel that the packages are to take for Tilewright.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.package import new_package

BATCHED = "batched"
"""The package of `plugins new costmodel --batch`, which is no kind."""
NAMES = {
    "mapper": "hill-climber",
    "groupmapper": "tiles",
    "costmodel": "roofline",
    BATCHED: "fast-roof",
    "composed": "banked",
    "frontend": "tables",
    "adapter": "nests",
    "estimator": "macros",
    "algorithm": "slices",
    "strategy": "descent",
}


def run(*words: str | Path, folder: Path, **environment: str) -> str:
    """Return the output of a command that must succeed."""
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def tox(environments: str, *words: str | Path, folder: Path, work: Path) -> str:
    """Return what environments of a package's matrix print; they must be green, with this wheel for Tilewright."""
    # what other environments compiled is not compiled again; what installs packages is told where they are
    shared = ("-x", "testenv.pass_env+=NUMBA_CACHE_DIR", "-x", "testenv.pass_env+=UV_*", "--workdir", work)
    command = (sys.executable, "-m", "tox", "run", "-e", environments, *shared, "--", *words)
    return run(*command, folder=folder, TILEWRIGHT=os.environ["TOX_PACKAGE"])


@dataclass(frozen=True)
class Installed:
    """All packages, and what `py` of their matrix printed; they share environments of tox, so all end up installed in one."""

    folders: dict[str, Path]
    tested: dict[str, str]
    work: Path

    @property
    def programs(self) -> Path:
        return self.work / "py" / ("Scripts" if os.name == "nt" else "bin")

    def tilewright(self, *words: str, folder: Path) -> Any:
        """Return the JSON that the command line of this environment prints."""
        return json.loads(run(self.programs / "tilewright", *words, "--json", folder=folder))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    fresh = tmp_path_factory.mktemp("fresh")
    folders, tested = {}, {}
    for kind, name in NAMES.items():
        written = Kind.costmodel if kind == BATCHED else Kind(kind)
        folders[kind] = new_package(written, name, batch=kind == BATCHED).save(fresh / f"tilewright-{name}")
    for kind, folder in folders.items():
        tested[kind] = tox("py", folder=folder, work=fresh / "tox")
    return Installed(folders, tested, fresh / "tox")


@pytest.mark.parametrize("kind", NAMES)
def test_its_matrix_is_green(kind: str, installed: Installed) -> None:
    assert re.search(r"\d\d passed in", installed.tested[kind])
    assert "congratulations" in installed.tested[kind]


def test_all_show_up(installed: Installed, tmp_path: Path) -> None:
    listed = installed.tilewright("plugins", folder=tmp_path)
    found = {row["name"]: row["distribution"] for row in listed["plugins"]}

    assert listed["broken"] == []
    assert {name: found[name] for name in NAMES.values()} == {name: f"tilewright-{name}" for name in NAMES.values()}


@pytest.mark.parametrize("kind", NAMES)
def test_the_commands_that_it_names_work(kind: str, installed: Installed) -> None:
    """The commands of the README's sections Use and Test work, `plugins check` included; its matrix has run pytest."""
    folder = installed.folders[kind]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^## (?:Use|Test)\n+```sh\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE)
    commands = [line for block in blocks for line in block.splitlines() if line not in ("tox", "python -m pytest")]
    path = f"{installed.programs}{os.pathsep}{os.environ['PATH']}"

    assert any(f"plugins check tilewright-{NAMES[kind]}/{NAMES[kind]}" in line for line in commands)
    for command in commands:
        run("bash", "-c", command, folder=folder, PATH=path)


def test_what_is_written_is_typed_and_in_style(installed: Installed) -> None:
    """The environments `types` and `lint` are the same in all packages, so those of one check all."""
    folders = installed.folders
    printed = tox("types,lint", *folders.values(), folder=folders["mapper"], work=installed.work)

    modules = [path for folder in folders.values() for path in folder.rglob("*.py")]
    assert f"no issues found in {len(modules)} source files" in printed and "All checks passed!" in printed
    assert f"{len(modules) + len(folders)} files already formatted" in printed  # ruff formats READMEs, too


def test_the_oldest_versions_that_it_claims_are_tried(installed: Installed) -> None:
    """The environment is the same in all packages. An estimator has the shortest checks."""
    printed = tox("py311-lowest", folder=installed.folders["estimator"], work=installed.work)
    library = installed.work / "py311-lowest" / "lib" / "python3.11" / "site-packages"

    assert re.search(r"\d\d passed in", printed) and "py311-lowest: OK" in printed
    assert [path.name for path in library.glob("numpy-*.dist-info")] == ["numpy-1.26.0.dist-info"]
