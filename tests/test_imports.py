"""The law of imports: core imports no plugin, plugins import core and never one another.

Adapters and cost models share the notations of other tools.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from support import ROOT

OURS = {
    "tilewright": ROOT / "core" / "tilewright",
    **{path.name: path for path in sorted((ROOT / "plugins").glob("*/tilewright_*"))},
    **{path.name: path for path in sorted((ROOT / "adapters").glob("tilewright_*"))},
}
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
                graph.add_edges_from((name, each if each in files else node.module) for each in targets)
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
