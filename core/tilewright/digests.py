"""Digests: the same for equal code, wherever and whenever it was installed, and for equal data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path


def of_code(files: Iterable[Path]) -> str:
    """Changes with what stands in any of the files."""
    parts = sorted(_content(file, file.stat().st_mtime_ns) for file in files)
    return sha256(b"".join(parts)).hexdigest()


def of_data(data: object) -> str:
    """Of JSON data, in whatever order its keys stand."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@cache
def _content(file: Path, changed: int) -> bytes:
    return sha256(file.read_bytes()).digest()
