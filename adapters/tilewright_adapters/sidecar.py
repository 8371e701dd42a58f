"""Sidecar file for content that a tool's files cannot express: names, energies, tiles.

The tool ignores the file. It is valid only while the tool's own files have not changed.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.plugin.adapter import SIDECAR, InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import Document, FileModel, dump_yaml, read_document, validate
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

PARTS: dict[str, type[FileModel]] = {"problem": Problem, "architecture": Architecture, "mapping": Mapping}
_WHOLE = PARTS | {"group": GroupMapping}
"""Parts of an input set that a sidecar may have alone."""
ALL = PARTS | {"constraints": Constraints}


def write(
    tool: str, title: str, parts: MappingOf[str, FileModel | None], lost: str = "Names, energies and tiles"
) -> dict[str, str]:
    """Return the file with these parts.

    Args:
        tool: its key in the file.
        title: its name in messages.
        parts: the parts by name.
        lost: what the tool's files cannot express.
    """
    head = f"# {lost} that {title}'s files cannot express. Only Tilewright reads this file.\n"
    data = {name: None if part is None else part.to_data() for name, part in parts.items()}
    return {SIDECAR: head + dump_yaml({tool: data})}


def beside(files: dict[str, str], plain: InputSet, inputs: InputSet, tool: str, title: str) -> dict[str, str]:
    """Return the tool's files, and a sidecar if they express less than the inputs.

    `plain` is the result of reading the tool's files.
    """
    same = plain.constraints is None and all(getattr(plain, part) == getattr(inputs, part) for part in _WHOLE)
    return files if same else files | write(tool, title, given(inputs))


def given(inputs: InputSet) -> dict[str, FileModel]:
    """Return the parts that are present, by name."""
    return {name: getattr(inputs, name) for name in _WHOLE if getattr(inputs, name) is not None}


def different(inputs: InputSet, plain: InputSet) -> dict[str, FileModel | None]:
    """Return the parts of the inputs, constraints included, that differ from `plain`, by name."""
    return {name: getattr(inputs, name) for name in ALL if getattr(inputs, name) != getattr(plain, name)}


def read(path: Path, tool: str, title: str, needed: Sequence[str] = ()) -> tuple[InputSet, Document]:
    """Return the parts and the document.

    Raises:
        InputError: the file is no such sidecar, or lacks a part of `needed`.
    """
    document = read_document(path)
    data = document.data.get(tool) if isinstance(document.data, dict) else None
    if not isinstance(data, dict) or not data or not set(needed) <= set(data) <= set(_WHOLE):
        message = f"{path} is not a sidecar of {title}'s files; expected {tool}: {', '.join(needed or PARTS)}"
        raise InputError(message)
    parts: dict[str, Any] = {name: validate(_WHOLE[name], document.at(tool, name)) for name in data}
    return InputSet(**parts), document


def stale(document: Document, tool: str, title: str) -> InputError:
    """Return the error that the tool's files have changed."""
    return InputError(
        f"this sidecar was written for other {title} files",
        location=document.locate((tool,)),
        hint=f"omit it to read {title}'s files alone",
    )
