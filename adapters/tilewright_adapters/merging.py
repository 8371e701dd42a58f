"""YAML's merge keys: `<<`, and Timeloop v4's `<<<`, which also merges nested values."""

from __future__ import annotations

from tilewright.errors import InputError
from tilewright.schema.document import Document
from tilewright_adapters.tree import Node, document_of, node_of

_SHALLOW, _DEEP = "<<", "<<<"
_ALONE = "!nomerge"
"""Tag of a value that `<<<` does not merge."""


def merged(document: Document) -> Document:
    """Return the document with merge keys resolved.

    Of two values for a key, the one that is not merged takes precedence, then the one merged first.
    `<<<` also merges mappings inside both values, and concatenates lists.

    Raises:
        InputError: a merged value is not a mapping.
    """
    if not any(path and path[-1] in (_SHALLOW, _DEEP) for path in document.marks):
        return document
    return document_of(_followed(node_of(document)), document.source)


def _followed(node: Node) -> Node:
    if isinstance(node.value, list):
        return Node([_followed(child) for child in node.value], node.place, node.tag)
    if not isinstance(node.value, dict):
        return node
    inside = {key: _followed(child) for key, child in node.value.items()}
    for key in (_SHALLOW, _DEEP):
        base = inside.pop(key, None)
        for part in base.value if base and isinstance(base.value, list) else [base] if base else []:
            if not isinstance(part.value, dict):
                raise InputError(f"{key} can merge mappings only", location=part.place)
            inside = _laid_over(part.value, inside, deep=key == _DEEP)
    return Node(inside, node.place, node.tag)


def _laid_over(base: dict[str, Node], top: dict[str, Node], deep: bool) -> dict[str, Node]:
    result = base | top
    for key in base.keys() & top.keys() if deep else ():
        below, above = base[key], top[key]
        if above.tag == _ALONE:
            continue
        if isinstance(below.value, dict) and isinstance(above.value, dict):
            result[key] = Node(_laid_over(below.value, above.value, deep), above.place, above.tag)
        elif isinstance(below.value, list) and isinstance(above.value, list):
            result[key] = Node([*above.value, *below.value], above.place, above.tag)
    return result
