"""What is in the source roots is in the distribution, and the entry points lead to it."""

import configparser
import importlib.metadata
import importlib.resources
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [Path(path) for path in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
SOURCE_ROOTS = [
    Path("core"),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "plugins").iterdir()),
    Path("adapters"),
]
IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache"}


@pytest.mark.parametrize("root", SOURCE_ROOTS, ids=str)
def test_a_source_root_holds_packages_of_the_wheel_and_nothing_else(root: Path) -> None:
    """A forgotten package would be missing from the wheel; a stray module would be top-level when editable."""
    found = {path.relative_to(ROOT) for path in (ROOT / root).iterdir() if path.name not in IGNORED}

    assert found == {package for package in PACKAGES if package.parent == root}


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_everything_of_a_package_is_installed(package: Path) -> None:
    """Code, type marker and library files; from a wheel this reads the wheel's files."""
    written = [path for path in (ROOT / package).rglob("*") if path.is_file() and not IGNORED & set(path.parts)]
    installed = importlib.resources.files(package.name)
    names = [path.relative_to(ROOT / package).as_posix() for path in written]

    assert {"__init__.py", "py.typed"} <= set(names)
    assert [name for name in names if not installed.joinpath(name).is_file()] == []


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_every_folder_with_code_is_a_package(package: Path) -> None:
    """Without `__init__.py` a folder is a namespace, which type checkers and importlib treat otherwise."""
    folders = {path.parent for path in (ROOT / package).rglob("*.py") if not IGNORED & set(path.parts)}

    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_library_files_are_among_them() -> None:
    folder = importlib.resources.files("tilewright.library")
    found = [path.name for kind in ("architectures", "constraints", "workloads") for path in (folder / kind).iterdir()]

    assert {"eyeriss.yaml", "eyeriss.row_stationary.yaml", "quickflow_convs.yaml"} <= set(found)


def test_templates_of_pages_are_among_them() -> None:
    pages = importlib.resources.files("tilewright.application.api.page") / "templates"
    notebooks = importlib.resources.files("tilewright") / "templates"

    assert {"document.html.jinja", "network.html.jinja", "page.css", "page.js"} <= {
        path.name for path in pages.iterdir()
    }
    assert {path.name for path in notebooks.iterdir()} == {"table.html.jinja", "text.html.jinja"}


def test_entry_points_are_those_of_pyproject_and_resolve() -> None:
    written = PROJECT["project"]["entry-points"]["tilewright"]
    installed = importlib.metadata.distribution("tilewright").entry_points

    assert {each.name: each.value for each in installed.select(group="tilewright")} == written
    without_plugins = {"tilewright", "tilewright_notations"}
    assert sorted(written.values()) == sorted({package.name for package in PACKAGES} - without_plugins)
    for each in installed:
        each.load()


def test_the_installed_version_is_that_of_the_checkout() -> None:
    assert importlib.metadata.version("tilewright") == PROJECT["project"]["version"]


def test_every_environment_of_tox_is_a_job() -> None:
    """The workflow's matrix names all environments that need no other interpreter than those it sets up, or a long time."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    jobs = {name.partition(" ")[0] for name in workflow["jobs"]["tox"]["strategy"]["matrix"]["environment"]}
    names = {name for line in tox["tox"]["env_list"].split() for name in _expanded(line)}

    assert names - jobs == {
        "py311",
        "py313",
        "py312-thirdparty",
        "py311-sample",
    }  # the job `readme` runs the first; others cover the rest
    assert jobs <= names


def _expanded(name: str) -> Iterator[str]:
    """Yield the environments of a pattern such as `py3{11,12}`."""
    before, brace, rest = name.partition("{")
    choices, _, after = rest.partition("}")
    yield from (before + choice + after for choice in choices.split(",")) if brace else (name,)
