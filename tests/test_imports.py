"""The law of imports: core imports no plugin, plugins import core and never one another."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {
    "tilewright": ROOT / "core" / "tilewright",
    **{path.name: path for path in sorted((ROOT / "plugins").glob("*/tilewright_*"))},
    **{path.name: path for path in sorted((ROOT / "adapters").glob("tilewright_*"))},
}


def imported(source: str) -> Iterator[str]:
    """Top-level names of all imports, those inside functions and for type checking included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", OURS)
def test_a_package_imports_itself_and_core_only(package: str) -> None:
    files = sorted(OURS[package].rglob("*.py"))
    faults = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(path.read_text(encoding="utf-8"))
        if name in {*OURS, "core", "plugins", "adapters", "tests"} - {package, "tilewright"}
    ]

    assert len(OURS) == 5 and files and faults == []


def test_a_sin_would_be_seen() -> None:
    hidden = (
        "def f():\n    if x:\n        import tilewright_mappers.random\n        from tilewright_adapters import a\n"
    )

    assert list(imported(hidden)) == ["tilewright_mappers", "tilewright_adapters"]
