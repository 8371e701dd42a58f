"""The packages that `plugins new` writes: whole, and loadable under awkward names."""

import configparser
import importlib
import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import cast

import pytest
import yaml

from support import ROOT
from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.names import SPECS, module_of
from tilewright.application.scaffold.package import bounds, new_package
from tilewright.plugin import MapperSpec, Registry, discover
from tilewright.plugin.registry import GROUP
from tilewright.version import __version__

pytestmark = pytest.mark.process

NAMES = ["greedy", "deep-search_2", "none", "class", "batch", "scalar", "cost", "test", "options", "no", "x"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", Kind)
def test_it_loads_and_is_built_with_its_defaults(
    kind: Kind, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_package(kind, name, Registry()).save(tmp_path / "package")
    monkeypatch.syspath_prepend(folder / "src")
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = [EntryPoint(point, value, GROUP) for point, value in project["entry-points"][GROUP].items()]
    try:
        registry = discover(points)
        assert registry.broken == []
        registry.build(registry.find(cast(type[MapperSpec], SPECS[kind]), name), {})  # a child remembers modules
    finally:
        for module in [each for each in sys.modules if each.partition(".")[0] == module_of(name)]:
            del sys.modules[module]
    importlib.invalidate_caches()


@pytest.mark.parametrize("kind", Kind)
def test_every_file_is_what_its_suffix_says(kind: Kind) -> None:
    files = new_package(kind, "deep-search").files

    for path, text in files.items():
        assert "{{" not in text.replace("${{", "") and "MODULE" not in path and "NAME" not in path
        assert text.endswith("\n") or not text
        if path.endswith(".py"):
            compile(text, path, "exec")
    assert yaml.safe_load(files[".github/workflows/tests.yml"])["jobs"]
    assert {"README.md", "tox.ini", "src/tilewright_deep_search/py.typed", "tests/test_deep_search.py"} <= set(files)


def test_the_workflow_runs_each_environment_of_the_matrix_and_a_missing_interpreter_is_an_error() -> None:
    files = new_package(Kind.mapper, "deep-search", Registry()).files
    tox = configparser.ConfigParser(interpolation=None)
    tox.read_string(files["tox.ini"])
    environments = tox["tox"]["env_list"].replace("py3{11,12,13}", "py311, py312, py313").split(", ")
    jobs = yaml.safe_load(files[".github/workflows/tests.yml"])["jobs"]

    assert environments == ["py311", "py312", "py313", "py311-lowest", "py313-newest", "types", "lint"]
    assert jobs["tox"]["strategy"]["matrix"]["environment"] == environments
    assert tox["tox"]["skip_missing_interpreters"] == "false"


def test_its_tools_are_pinned_as_those_of_this_repository() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    pinned = re.findall(r"(?:mypy|ruff)==\S+", new_package(Kind.mapper, "deep-search", Registry()).files["tox.ini"])

    assert sorted(pinned) == sorted([*groups["mypy"], groups["lint"][0]])


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.1.0", ">=0.1,<0.2"),
        ("0.9.7", ">=0.9,<0.10"),
        ("0.2.0.dev1", ">=0.2.0.dev1,<0.3"),
        ("1.0.0rc1", ">=1.0.0rc1,<2"),
        ("2.3.1+local", ">=2.3,<3"),
    ],
)
def test_a_package_works_until_the_next_release_that_may_break_it(version: str, expected: str) -> None:
    assert bounds(version) == expected
    project = tomllib.loads(new_package(Kind.mapper, "deep-search", Registry()).files["pyproject.toml"])["project"]
    assert project["dependencies"] == [f"tilewright{bounds(__version__)}", "numpy>=1.26"]
