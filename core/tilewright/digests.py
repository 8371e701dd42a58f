"""Digests of code and of data, independent of installation time and place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path


def of_code(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files, in any order."""
    parts = sorted(_content(file, file.stat().st_mtime_ns) for file in files)
    return sha256(b"".join(parts)).hexdigest()


def of_data(data: object) -> str:
    """Return a digest of JSON data, independent of the order of keys."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@cache
def _content(file: Path, changed: int) -> bytes:
    return sha256(file.read_bytes()).digest()
