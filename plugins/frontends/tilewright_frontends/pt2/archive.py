"""The archive: a zip file with the program as JSON, and weights, which are not read.

torch 2.8 writes FOLDER/models/NAME.json (the "PT2 archive"), earlier versions write serialized_exported_program.json.
"""

from __future__ import annotations

import json
import lzma
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from tilewright.errors import InputError

PROGRAM = re.compile(r"(?:[^/]+/)?(?:models/[^/]+\.json|serialized_exported_program\.json)")
MAX_BYTES = 100 * 2**20
"""Maximum size of the JSON in bytes."""
MAX_FILES = 100_000
DAMAGE = (
    OSError, ValueError, NotImplementedError, RuntimeError, EOFError, struct.error, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""Errors that `zipfile` and its decompressors raise for a damaged archive."""
MAJOR = 8
"""Major version of torch.export's schema that is read; minor versions only add fields."""


def read_program(path: Path) -> dict[str, Any]:
    """Return the only program of an archive.

    Raises:
        InputError: the file is no such archive, holds several programs, or has another major version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            name = _program(path, archive)
            text = _text(path, archive, name)
    except DAMAGE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read {path}: {error}", hint="torch.export.save(program, FILE) writes it") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {name} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("graph_module"), dict):
        raise InputError(f"{path}: {name} is not an exported program: it has no graph_module")
    version = data.get("schema_version")
    major = version.get("major") if isinstance(version, dict) else None
    if major != MAJOR:
        raise InputError(
            f"{path} has version {major} of torch.export's schema; expected {MAJOR}",
            hint=f"export it with a torch that writes version {MAJOR}, or as ONNX",
        )
    return data


def _program(path: Path, archive: zipfile.ZipFile) -> str:
    names = archive.namelist()
    if len(names) > MAX_FILES:
        raise InputError(f"{path} has {len(names):,} files; expected at most {MAX_FILES:,}")
    programs = [name for name in names if PROGRAM.fullmatch(name)]
    if len(programs) != 1:
        what = f"several programs: {', '.join(programs[:10])}" if programs else "no program (models/NAME.json)"
        raise InputError(f"{path} has {what}", hint="torch.export.save(program, FILE) writes one")
    return programs[0]


def _text(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the text of a member, reading at most MAX_BYTES regardless of its stated size."""
    with archive.open(name) as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise InputError(f"{path}: {name} has more than {MAX_BYTES:,} bytes")
    return text
