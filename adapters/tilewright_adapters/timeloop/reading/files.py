"""Reading of Timeloop's files: YAML, templates, libconfig (.cfg), and printed loop nests (.txt)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.errors import InputError, Location
from tilewright.files import file_and_member, read_text
from tilewright.schema.document import Document, parse_document
from tilewright_adapters.assembled import assembled
from tilewright_adapters.members import chosen, files_of
from tilewright_adapters.templates import folders_of, is_template
from tilewright_adapters.timeloop.reading.libconfig import parse_libconfig
from tilewright_adapters.timeloop.reading.nest import is_nest, parse_nest
from tilewright_adapters.timeloop.reading.sections import ignored, is_timeloop, unread

SUFFIXES = (".yaml", ".yml", ".cfg", ".jinja", ".jinja2", ".j2")
"""Suffixes of the files that are read from a folder."""
_COPIES = "flattened_architecture"
"""Part of the names of Accelergy's copies of the architecture, which lack its tree."""


def read_files(
    paths: Sequence[Path], values: Mapping[str, object], searched: Sequence[str] = ()
) -> tuple[list[Document], list[str]]:
    """Return all documents, including those in folders, and warnings.

    Args:
        paths: files, folders, or LIST/LAYER. Files of a folder without any section of Timeloop are
            left out, with a warning.
        values: values of template variables.
        searched: folders from which templates may include files.

    Raises:
        InputError: a file is invalid, or a folder has no such files; with file and line.
    """
    paths = [_named(path) for path in paths]
    folders = folders_of(paths, searched)
    files = files_of(paths, SUFFIXES, "Timeloop")
    copies = [path for path in files if _COPIES in path.name and path not in paths]
    documents, warnings = [], []
    for path in files:
        if path in copies:
            continue
        if sections := _unrendered(path):
            warnings += [f"{path}: {ignored(name)}" for name in sections]
            continue
        document = _document(path, folders, values)
        if path in paths or is_timeloop(document):
            documents.append(document)
        else:
            warnings.append(f"{path} is left out: it has no section of Timeloop")
    return documents, warnings


def _unrendered(path: Path) -> tuple[str, ...]:
    """Return the sections of a template that has only sections that are not read; its variables need no values."""
    text = read_text(path) if path.suffix != ".cfg" else ""
    return unread(text) if is_template(text) else ()


def listed_layers(path: Path) -> tuple[str, ...]:
    """Return the file names, without suffix, in a list; empty for other files. Raises InputError."""
    text = read_text(path)
    if not text.lstrip().startswith("-"):
        return ()
    names = parse_document(text, source=str(path)).data
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return ()
    return tuple(names)


def _named(path: Path) -> Path:
    """Return the file of a layer: LIST/LAYER is the file LAYER next to the list. Raises InputError."""
    file, layer = file_and_member(path)
    if layer is None:
        return path
    names = listed_layers(Path(file)) if Path(file).suffix in (".yaml", ".yml") else ()
    if not names:
        raise InputError(f"{file} is not a list of layers; other Timeloop files have one layer", hint=f"omit /{layer}")
    chosen(names, layer, Location(file), "layer")
    return Path(file).parent / f"{layer}{Path(file).suffix}"


def _document(path: Path, folders: tuple[str, ...], values: Mapping[str, object]) -> Document:
    if path.suffix == ".cfg":
        return parse_libconfig(read_text(path), str(path))
    if path.suffix == ".txt":
        text = read_text(path)
        if not is_nest(text):
            raise InputError(
                "not a loop nest printed by Timeloop (map.txt)",
                location=Location(str(path)),
                hint="to compare statistics (stats.txt), run `tilewright diff-stats`",
            )
        return parse_nest(text, str(path))
    return assembled(path, folders, values)
