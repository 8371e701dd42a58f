"""Timeloop's files as documents: YAML, templates of it, libconfig where the name ends in .cfg, and nests as it prints them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tilewright.errors import InputError
from tilewright.files import read_text
from tilewright.schema.document import Document
from tilewright_adapters.assembled import assembled
from tilewright_adapters.templates import folders_of
from tilewright_adapters.timeloop.reading.libconfig import parse_libconfig
from tilewright_adapters.timeloop.reading.nest import is_nest, parse_nest

SUFFIXES = (".yaml", ".yml", ".cfg", ".jinja", ".jinja2", ".j2")
"""Of the files that are read where a folder is given."""
_COPIES = "flattened_architecture"
"""Accelergy writes the architecture once more, without its tree, into files of such names."""


def read_files(paths: Sequence[Path], values: Mapping[str, object]) -> list[Document]:
    """All documents; of a folder, its files.

    Args:
        values: of the variables that templates name.

    Raises:
        InputError: with file and line; a folder without such files.
    """
    folders = folders_of(paths)
    return [_document(path, folders, values) for path in _files(paths)]


def _files(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        named = [each for each in path.iterdir() if each.suffix in SUFFIXES and _COPIES not in each.name]
        inside = sorted(each for each in named if each.is_file())
        if not inside:
            raise InputError(f"{path} has no files of Timeloop", hint=f"their names end in {', '.join(SUFFIXES)}")
        yield from inside


def _document(path: Path, folders: tuple[str, ...], values: Mapping[str, object]) -> Document:
    if path.suffix == ".cfg":
        return parse_libconfig(read_text(path), str(path))
    if path.suffix == ".txt":
        text = read_text(path)
        if not is_nest(text):
            raise InputError(
                f"{path} is no loop nest that Timeloop prints (map.txt)",
                hint="a report (stats.txt) is laid beside ours by `tilewright diff-stats`",
            )
        return parse_nest(text, str(path))
    return assembled(path, folders, values)
