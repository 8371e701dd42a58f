"""Changes by path: `architecture.replace({"GLB.capacity_words": 65536})`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingOf
from typing import Any, TypeVar

from tilewright.errors import InputError
from tilewright.schema.document import Document, FileModel, suggestion, validate
from tilewright.values import grouped

F = TypeVar("F", bound=FileModel)

ValuePath = tuple[str | int, ...]
"""Path of a value in the plain data of a schema."""


def replaced(old: F, changes: MappingOf[str, Any], paths: Iterable[tuple[str, ValuePath]], what: str) -> F:
    """Return a copy with changed values, validated like a file.

    Args:
        old: the object to copy.
        changes: path -> new value.
        paths: every name of a value, with its path; a name may have two paths if no change uses it.
        what: kind of the object, for messages.

    Raises:
        InputError: a path is unknown or ambiguous, or the result violates the schema.
    """
    known = grouped(paths)
    data = old.model_dump(mode="json")
    for path, value in changes.items():
        if path not in known:
            same = [name for name in known if name.casefold() == path.casefold()]
            raise InputError(
                f"{what} {getattr(old, 'name', '')} has no value at '{path}'{suggestion(path, same or known)}",
                hint=_hint(path, known),
            )
        if len(known[path]) > 1:
            raise InputError(f"'{path}' refers to {len(known[path])} values of this {what}", hint="rename one of them")
        *way, last = known[path][0]
        parent: Any = data
        for step in way:
            parent = parent[step]
        parent[last] = value
    return validate(type(old), Document(data, f"replace({dict(changes)!r})"))


def _hint(path: str, known: Iterable[str]) -> str:
    """Return the siblings of the path, or the possible beginnings if its own is unknown."""
    start = path.rpartition(".")[0] + "."
    beside = [name for name in known if name.startswith(start) and "." not in name.removeprefix(start)]
    if beside:
        return f"known: {', '.join(beside)}"
    return f"paths begin with {', '.join(dict.fromkeys(name.partition('.')[0] for name in known))}"


def paths_below(data: Any, place: ValuePath = (), prefix: str = "") -> Iterator[tuple[str, ValuePath]]:
    """Yield the name and path of every value; list items with a `name` are addressed by it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield f"{prefix}{key}", (*place, key)
            yield from paths_below(value, (*place, key), f"{prefix}{key}.")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            if isinstance(value, dict) and "name" in value:
                yield from paths_below(value, (*place, index), f"{prefix}{value['name']}.")
