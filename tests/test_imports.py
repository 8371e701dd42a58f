"""The law of imports: core imports no plugin, plugins import core and never one another.

Adapters and cost models share the notations of other tools.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import tilewright
import tilewright.plugin
import tilewright.testing
from support import ROOT

OURS = {
    "tilewright": ROOT / "core" / "tilewright",
    **{path.name: path for path in sorted((ROOT / "plugins").glob("*/tilewright_*"))},
    **{path.name: path for path in sorted((ROOT / "adapters").glob("tilewright_*"))},
}
THIRD = ROOT / "tests" / "thirdparty"
NOTATIONS = "tilewright_notations"
SHARING = {"tilewright_adapters", "tilewright_costmodels"}


def imported(source: str) -> Iterator[str]:
    """Top-level names of all imports, those inside functions and for type checking included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", OURS)
def test_a_package_imports_itself_core_and_shared_notations_only(package: str) -> None:
    lawful = {package, "tilewright", *([NOTATIONS] if package in SHARING else [])}
    files = sorted(OURS[package].rglob("*.py"))
    faults = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(path.read_text(encoding="utf-8"))
        if name in {*OURS, "core", "plugins", "adapters", "tests"} - lawful
    ]

    assert len(OURS) == 9 and files and faults == []


def test_a_violation_would_be_seen() -> None:
    hidden = (
        "def f():\n    if x:\n        import tilewright_mappers.random\n        from tilewright_adapters import a\n"
    )

    assert list(imported(hidden)) == ["tilewright_mappers", "tilewright_adapters"]


def modules(package: str) -> dict[str, Path]:
    """Dotted name -> file."""
    root = OURS[package].parent
    names = {path: path.relative_to(root).with_suffix("").as_posix().replace("/", ".") for path in root.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items() if name.split(".")[0] == package}


def import_graph(files: dict[str, Path]) -> "nx.DiGraph[str]":
    """Edge: one module names another in an import, also in a function or for type checking only."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lazy = "lazy_exports" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}  # a door of names
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not lazy:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                graph.add_edges_from((name, target if target in files else node.module) for target in targets)
    return graph


@pytest.mark.parametrize("package", OURS)
def test_no_modules_import_one_another_in_a_circle(package: str) -> None:
    files = modules(package)
    circles = [sorted(group) for group in nx.strongly_connected_components(import_graph(files)) if len(group) > 1]

    assert len(files) > 3 and circles == []


def test_a_circle_would_be_seen(tmp_path: Path) -> None:
    for name, text in (("a", "from b import f"), ("b", "def g():\n    from c import h"), ("c", "from a import k")):
        (tmp_path / f"{name}.py").write_text(text)

    graph = import_graph({name: tmp_path / f"{name}.py" for name in "abc"})

    assert nx.number_strongly_connected_components(graph) == 1


@pytest.mark.parametrize("package", OURS)
def test_no_module_is_longer_than_700_lines(package: str) -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in OURS[package].rglob("*.py")}

    assert lines and {str(path): count for path, count in lines.items() if count > 700} == {}


def test_shown_code_and_written_packages_import_public_names_only() -> None:
    """The code of the manual, of the templates, and of two packages as third parties write them."""
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    code = [
        block for page in pages for block in re.findall(r"^```python.*?\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    ]
    files = [*(OURS["tilewright"] / "application/scaffold/templates").rglob("*.py*")]
    files += [path for name in ("genetic", "scalesim") for path in (THIRD / f"tilewright-{name}" / "src").rglob("*.py")]
    code += [path.read_text(encoding="utf-8") for path in files]
    doors = {door.__name__: set(door.__all__) for door in (tilewright, tilewright.plugin, tilewright.testing)}
    doors["tilewright.errors"] = set(dir(tilewright.errors))
    named = r"^ *from (tilewright[.\w]*) import (?:\(([^)]*)\)|(.*))"
    imports = [found for text in code for found in re.findall(named, text, re.MULTILINE)]
    private = [
        f"{module}: {name}"
        for module, several, one in imports
        if module == "tilewright" or module.startswith("tilewright.")
        for name in re.findall(r"(\w+)(?: as \w+)?", re.sub("#.*", "", several or one))
        if name not in doors.get(module, ())
    ]
    wholes = {module for text in code for module in re.findall(r"^ *import (tilewright\.[.\w]+)", text, re.MULTILINE)}

    assert len(imports) > 90 and private == [] and wholes <= doors.keys()
