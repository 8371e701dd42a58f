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

NAMES = {
    "mapper": "hill-climber",
    "groupmapper": "tiles",
    "costmodel": "roofline",
    "batched": "fast-roof",
    "composed": "banked",
    "frontend": "tables",
    "adapter": "nests",
    "estimator": "macros",
    "algorithm": "slices",
    "strategy": "descent",
}

FORMS = {"batched": ("costmodel", "--batch")}
"""Words of `plugins new` for packages whose name here is no kind."""


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


@dataclass(frozen=True)
class Installed:
    """All packages, and what their matrix printed; they share one environment of tox, where all end up installed."""

    folders: dict[str, Path]
    tested: dict[str, str]
    programs: Path

    def tilewright(self, *words: str, folder: Path) -> Any:
        """Return the JSON that the command line of this environment prints."""
        return json.loads(run(self.programs / "tilewright", *words, "--json", folder=folder))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    fresh = tmp_path_factory.mktemp("fresh")
    wheel = {"TILEWRIGHT": os.environ["TOX_PACKAGE"]}
    folders, tested = {}, {}
    for kind, name in NAMES.items():
        words = FORMS.get(kind, (kind,))
        run(sys.executable, "-m", "tilewright", "plugins", "new", *words, name, folder=fresh)
        folders[kind] = fresh / f"tilewright-{name}"
    for kind, folder in folders.items():
        tox = (sys.executable, "-m", "tox", "run", "-e", "py", "--skip-missing-interpreters", "false")
        # what other environments compiled is not compiled again; what installs packages is told where they are
        shared = ("-x", "testenv.pass_env+=NUMBA_CACHE_DIR", "-x", "testenv.pass_env+=UV_*")
        tested[kind] = run(*tox, *shared, "--workdir", fresh / "tox", folder=folder, **wheel)
    return Installed(folders, tested, fresh / "tox" / "py" / ("Scripts" if os.name == "nt" else "bin"))


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


def test_what_is_written_is_typed_and_in_style(installed: Installed, tmp_path: Path) -> None:
    run(sys.executable, "-m", "ruff", "check", *installed.folders.values(), folder=tmp_path)
    run(sys.executable, "-m", "ruff", "format", "--check", *installed.folders.values(), folder=tmp_path)
    types = (sys.executable, "-m", "mypy", "--strict", "--python-executable", installed.programs / "python")
    run(*types, *(folder / "src" for folder in installed.folders.values()), folder=tmp_path)
