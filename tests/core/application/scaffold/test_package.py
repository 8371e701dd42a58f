"""The packages that `plugins new` writes: whole, and loadable under awkward names."""

import importlib
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import cast

import pytest
import yaml

from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.names import SPECS, module_of
from tilewright.application.scaffold.package import new_package
from tilewright.plugin import MapperSpec, Registry, discover
from tilewright.plugin.registry import GROUP

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
