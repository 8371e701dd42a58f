"""One of several layers in a file, named behind it: `workload.yaml/conv1`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import InputError
from tilewright.files import is_file
from tilewright.schema.document import Document, suggestion


def file_and_member(path: Path) -> tuple[Path, str | None]:
    """The file itself, and what stands behind it."""
    return (path.parent, path.name) if not os.path.exists(path) and is_file(path.parent) else (path, None)


def chosen(names: Sequence[str], named: str | None, document: Document, kind: str) -> int:
    """Which of the names is meant; the only one need not be named. `kind`: what they are, in messages.

    Raises:
        InputError: none is, or it could be several.
    """
    if named is None and len(names) > 1:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise InputError(
            f"{len(names)} {kind}s; one is read at a time",
            location=document.locate(()),
            hint=f"name one: {document.source}/{kind.upper()}, of {shown}",
        )
    if named is not None and named not in names:
        raise InputError(f"there is no {kind} {named}{suggestion(named, names)}", location=document.locate(()))
    return names.index(named) if named is not None else 0
