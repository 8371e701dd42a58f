"""Paths of inputs: a file, a folder's files, or one of a file's layers, `workload.yaml/conv1`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import InputError, Location
from tilewright.files import file_and_member
from tilewright.schema.document import suggestion

SHOWN = 20
"""Maximum number of folders that a hint searches."""


def chosen(names: Sequence[str], named: str | None, place: Location, kind: str) -> int:
    """Return the index of the selected name; a single one need not be selected.

    Args:
        names: the names in the file.
        named: the selected name, or None.
        place: location of the names.
        kind: kind of the names, for messages.

    Raises:
        InputError: the name is unknown, or none of several is selected.
    """
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    if named is None and len(names) > 1:
        raise InputError(
            f"{place.source}: the file has {len(names)} {kind}s; select one",  # no line: all of it was read
            hint=f"write {place.source}/{kind.upper()}; known: {shown}",
        )
    if named is not None and named not in names:
        raise InputError(
            f"there is no {kind} {named}{suggestion(named, names)}", location=place, hint=f"known: {shown}"
        )
    return names.index(named) if named is not None else 0


def files_of(paths: Sequence[Path], suffixes: tuple[str, ...], tool: str) -> list[Path]:
    """Return the paths, with each folder replaced by its files with these suffixes, sorted by name.

    A file of a folder that is given by itself, too, counts once.

    Raises:
        InputError: a folder has no such files.
    """
    alone = {os.path.realpath(file_and_member(path)[0]) for path in paths if not os.path.isdir(path)}
    members: list[Path] = []
    for path in paths:
        if not os.path.isdir(path):
            members.append(path)
            continue
        inside = sorted(member for member in path.iterdir() if member.suffix in suffixes and member.is_file())
        if not inside:
            raise InputError(f"{path} has no {tool} files", hint=_elsewhere(path, suffixes))
        members += [member for member in inside if os.path.realpath(member) not in alone]
    return members


def _elsewhere(folder: Path, suffixes: tuple[str, ...]) -> str:
    """Return a hint with the subfolders that have such files."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and os.access(path, os.R_OK | os.X_OK))[:SHOWN]
    having = [path.name for path in inside if any(file.suffix in suffixes for file in path.iterdir())]
    if having:
        return f"give files of one set from its folders: {', '.join(having)}"
    return f"expected names that end in {', '.join(suffixes)}"
