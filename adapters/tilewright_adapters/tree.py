"""Documents as nodes, for merge keys and includes. Every node keeps its location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import InputError, Location
from tilewright.schema.document import MAX_DEPTH, MAX_NODES, Document, Path_


@dataclass(frozen=True)
class Node:
    """A value with location and tag; `value` is a dict or list of nodes, or a scalar."""

    value: Any
    place: Location
    tag: str | None = None


def node_of(document: Document) -> Node:
    """Return a document as nodes."""

    def node(value: Any, path: Path_) -> Node:
        if isinstance(value, dict):
            value = {key: node(child, (*path, key)) for key, child in value.items()}
        elif isinstance(value, list):
            value = [node(child, (*path, index)) for index, child in enumerate(value)]
        return Node(value, document.locate(path), document.tags.get(path))

    return node(document.data, ())


def document_of(node: Node, source: str) -> Document:
    """Return the nodes as a document. Raises InputError if they are too many or too deep."""
    marks: dict[Path_, Location] = {}
    tags: dict[Path_, str] = {}

    def plain(node: Node, path: Path_) -> Any:
        if len(marks) >= MAX_NODES or len(path) > MAX_DEPTH:
            raise InputError("the document is too large with everything that it includes", location=node.place)
        marks[path] = node.place
        if node.tag is not None:
            tags[path] = node.tag
        if isinstance(node.value, dict):
            return {key: plain(child, (*path, key)) for key, child in node.value.items()}
        if isinstance(node.value, list):
            return [plain(child, (*path, index)) for index, child in enumerate(node.value)]
        return node.value

    return Document(plain(node, ()), source, marks, tags)
