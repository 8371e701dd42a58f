"""Documents assembled from several files, by templates and the tags `!include` and `!includedir`.

Included values keep the locations in their own files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError
from tilewright.schema.document import Document, parse_document, suggestion
from tilewright_adapters.templates import MAX_DEPTH, MAX_FILES, PART, Rendered, inside, rendered
from tilewright_adapters.tree import Node, document_of, node_of

_FILE = "!include"
_FOLDER = ("!includedir", "!include_dir")
_SUFFIX = ".yaml"


def assembled(path: Path, folders: tuple[str, ...], values: Mapping[str, object], inherits: bool = False) -> Document:
    """Return a file with everything that it includes, as one document.

    Args:
        path: the file.
        folders: real paths of the folders that files may be included from.
        values: values of template variables.
        inherits: see `rendered`.

    Raises:
        InputError: the file is invalid; with file and line.
    """
    return _Assembly(folders, values, inherits).document(path, 0)


@dataclass
class _Assembly:
    folders: tuple[str, ...]
    values: Mapping[str, object]
    inherits: bool
    files: int = 0

    def document(self, path: Path, depth: int) -> Document:
        self.files += 1
        if self.files > MAX_FILES or depth > MAX_DEPTH:
            raise InputError(
                f"{path}: {'too many files are included' if depth <= MAX_DEPTH else 'files include one another'}"
            )
        whole = rendered(path, self.folders, self.values, self.inherits)
        document = parse_document(whole.text, source=str(path))
        if not {PART, _FILE, *_FOLDER} & set(document.tags.values()):
            return document
        return document_of(self._with_parts(node_of(document), path, whole, depth), str(path))

    def _with_parts(self, node: Node, path: Path, whole: Rendered, depth: int) -> Node:
        if isinstance(node.value, dict):
            parts = {key: self._with_parts(child, path, whole, depth) for key, child in node.value.items()}
            return Node(parts, node.place, node.tag)
        if isinstance(node.value, list):
            return Node([self._with_parts(child, path, whole, depth) for child in node.value], node.place, node.tag)
        if node.tag == PART:
            return self._part(node, whole, depth)
        if node.tag == _FILE:
            return node_of(self.document(self._included_file(node, path), depth + 1))
        if node.tag in _FOLDER:
            folder = self._included_file(node, path)
            if not os.path.isdir(folder):
                raise InputError(f"{folder} is not a folder", location=node.place)
            names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
            files = [self._within(str(folder / name), name, node, path) for name in names]
            return Node([node_of(self.document(file, depth + 1)) for file in files], node.place)
        return node

    def _part(self, node: Node, whole: Rendered, depth: int) -> Node:
        """Return what a template included, or the values below the keys that follow its tag."""
        number, *keys = str(node.value).split(".")
        if not number.isdecimal() or int(number) >= len(whole.parts) or depth > MAX_DEPTH:
            raise InputError(f"{PART} refers to nothing here", location=node.place)
        part = whole.parts[int(number)]
        documents = []
        for file in part.files:
            real, name, text = whole.texts[file]
            self.files += 1
            if self.files > MAX_FILES:
                raise InputError("too many files are included", location=node.place)
            document = node_of(parse_document(text, source=name))
            documents.append(_at(self._with_parts(document, Path(real), whole, depth + 1), (*part.keys, *keys)))
        return Node(documents, node.place) if part.several else documents[0]

    def _included_file(self, node: Node, path: Path) -> Path:
        """Return the file that a tag names, relative to the file with the tag."""
        name = str(node.value).rstrip(",").strip()
        return self._within(os.path.join(os.path.dirname(os.path.realpath(path)), name), name, node, path)

    def _within(self, wanted: str, name: str, node: Node, path: Path) -> Path:
        wanted = os.path.normpath(wanted)
        if not name or "\0" in name or not inside(self.folders, wanted):
            raise InputError(
                f"{name or 'nothing'} is outside the given folders",
                location=node.place,
                hint=f"give {name} (or its folder) in addition to {path}",
            )
        return Path(wanted)


def _at(node: Node, keys: tuple[str, ...]) -> Node:
    for key in keys:
        if not isinstance(node.value, dict) or key not in node.value:
            known = list(map(str, node.value)) if isinstance(node.value, dict) else []
            raise InputError(f"there is no '{key}' to include{suggestion(key, known)}", location=node.place)
        node = node.value[key]
    return node
