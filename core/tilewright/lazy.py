"""Packages that offer names of their modules, and import a module when one of its names is first asked for."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # without `typing`: see `tilewright/__init__.py`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` (PEP 562) for a package whose `if TYPE_CHECKING:` imports say where its `__all__` is.

    What type checkers read and what runs is thus written once.
    """
    module = sys.modules[package]
    homes: dict[str, str] = {}

    def find(name: str) -> Any:
        if name not in module.__all__:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        if not homes:
            with open(str(module.__file__), encoding="utf-8") as file:
                homes.update(_homes(file.read()))
        home = importlib.import_module(f"{package}.{name}" if homes[name] == package else homes[name])
        value = home if homes[name] == package else getattr(home, name)
        setattr(module, name, value)
        return value

    return find, lambda: list(module.__all__)


def _homes(source: str) -> dict[str, str]:
    """Name -> module, for the imports inside `if TYPE_CHECKING:`."""
    import ast  # not before a name is asked for

    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}
