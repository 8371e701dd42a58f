"""Digests of code and of data, independent of installation time and place."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

_IMPORT = re.compile(rb"^\s*(?:from|import) (tilewright_\w+)", re.MULTILINE)


def of_code(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files, in any order."""
    parts = sorted(_content(file, file.stat().st_mtime_ns) for file in files)
    return sha256(b"".join(parts)).hexdigest()


def of_data(data: object) -> str:
    """Return a digest of JSON data, independent of the order of keys."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def of_search(parts: Mapping[str, Any], packages: Iterable[str]) -> str:
    """Return the key of a search, from JSON data and from the packages with the code that it runs."""
    data = {
        **parts,
        "tilewright": importlib.metadata.version("tilewright"),
        "code": {package: of_package(package) for package in sorted({"tilewright", *packages})},
    }
    return of_data(data)


@cache
def of_package(package: str) -> str:
    """Return the digest of a package's code, the same for all installations; empty without files.

    The code includes the packages `tilewright_*` that it imports.
    """
    packages, files = [package], list[Path]()
    for name in packages:
        with suppress(ValueError):  # a module without a spec, such as __main__
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.origin is not None:
                root = Path(spec.origin)
                modules = list(root.parent.rglob("*.py")) if spec.submodule_search_locations else [root]
                imported = {name.decode() for path in modules for name in _IMPORT.findall(path.read_bytes())}
                packages += sorted(imported - set(packages))
                files += modules
    return of_code(files) if files else ""


@cache
def _content(file: Path, changed: int) -> bytes:
    return sha256(file.read_bytes()).digest()
