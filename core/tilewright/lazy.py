"""Lazy exports of packages: a module is imported on the first access to one of its names."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # without `typing`: see `tilewright/__init__.py`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` (PEP 562) for a package with lazy exports.

    The imports under `if TYPE_CHECKING:` define where the names in `__all__` come from. Type
    checkers and the running program thus read the same list.
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
    """Return the module of each name imported under `if TYPE_CHECKING:`."""
    import ast  # imported on first access to a name

    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}
