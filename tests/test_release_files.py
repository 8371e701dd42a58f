"""Files beside the code that a release needs: citation, constraints, workflows."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from support import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKED = ("testing", "frames", "milp", "mlir", "optuna", "checkout")
"""Extras whose packages are in the constraints."""


def required() -> Iterator[Requirement]:
    """Yield what a checkout needs directly."""
    project = PROJECT["project"]
    names = [*project["dependencies"], *(name for extra in LOCKED for name in project["optional-dependencies"][extra])]
    names += [name for group in PROJECT["dependency-groups"].values() for name in group if isinstance(name, str)]
    yield from (one for one in map(Requirement, names) if one.name not in ("tilewright", *LEFT_OUT))


LEFT_OUT = ("sphinx", "myst-parser", "furo", "cosmic-ray")
"""Packages of groups that `dev` does not have."""


def test_the_constraints_have_a_version_of_each_direct_requirement() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict[str, set[str]]()
    for line in lines:
        one = Requirement(line)
        assert one.url is None and re.fullmatch(r"==[\w.]+", str(one.specifier)), line
        pinned.setdefault(one.name, set()).add(str(one.specifier)[2:])
    for one in required():
        versions = pinned.get(one.name.lower(), set())
        assert versions and all(one.specifier.contains(version) for version in versions), one


def test_the_citation_is_that_of_the_project() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    assert (citation["version"], citation["license"], citation["abstract"]) == (
        project["version"],
        project["license"],
        project["description"],
    )
    assert citation["authors"] == project["authors"] and citation["cff-version"] == "1.2.0"


def test_each_supported_python_and_system_is_tried() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["candidate"]["strategy"]["matrix"]
    said = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d", name)]
    assert {*said} <= {*matrix["python"]} and {each.partition("-")[0] for each in matrix["system"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


@pytest.mark.parametrize("name", ["tests", "newest", "release"])
def test_workflows_use_environments_that_exist(name: str) -> None:
    text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    for environment in re.findall(r"tox run -e ([\w-]+)", text):
        assert f"[testenv:{environment}]" in tox
    assert all((ROOT / path).exists() for path in re.findall(r"(?<![\w/])tests/[\w./]+\w", text))
