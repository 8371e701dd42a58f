"""Suggestions: the name that was probably meant by one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel

from tilewright.schema.document.reading import Path_

MAX_WORD = 100
"""Maximum length of a word for which similar ones are suggested."""
MAX_KEYS = 3
"""Maximum number of keys that are suggested for one."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` if a similar word is known, otherwise an empty text.

    >>> suggestion("eyeris", ["eyeriss", "simba"])
    "; did you mean 'eyeriss'?"
    """
    if len(word) > MAX_WORD:
        return ""
    known = [name for name in known if len(name) <= MAX_WORD]
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    near = near or [name for name in known if name.lower() == word.lower()]
    return f"; did you mean '{near[0]}'?" if near and near[0] != word else ""


def unknown_key(path: Path_, data: Any, model: type[BaseModel]) -> str:
    """Return the message about a key that its place in a schema does not have.

    It suggests the keys that contain the words of this one, then a similar key. Otherwise it lists the keys.

    Args:
        path: steps to the key.
        data: the document.
        model: the schema.
    """
    key, given = str(path[-1]), _siblings(path, data)
    parts = _parts_at(path[:-1], model)
    most = max((len(given & part.keys()) for part in parts), default=0)
    known = list(dict.fromkeys(name for part in parts if len(given & part.keys()) == most for name in part))
    words = set(key.split("_"))
    longer = [name for name in known if words <= set(name.split("_"))]
    if 0 < len(longer) <= MAX_KEYS:
        return f"unknown key '{key}'; did you mean {_joined(longer)}?"
    near = suggestion(key, known)
    rest = [name for name in known if name not in given]
    return f"unknown key '{key}'" + (near or (f"; expected one of {', '.join(rest)}" if rest else ""))


def missing_key(key: str | int, path: Path_, model: type[BaseModel]) -> str:
    """Return the message about a key that is missing at a path, and what may replace it.

    Energies are estimated from a component.
    """
    estimated = "energy" in str(key) and any("component" in part for part in _parts_at(path, model))
    return f"'{key}' is missing" + ("; give it, or 'component' with what the part is built from" if estimated else "")


def _joined(names: list[str]) -> str:
    *others, last = [f"'{name}'" for name in names]
    return f"{', '.join(others)} or {last}" if others else last


def _siblings(path: Path_, data: Any) -> set[str]:
    """Return the keys next to the last step of a path, itself included."""
    for step in path[:-1]:
        data = data[step]
    return {key for key in data if isinstance(key, str)} if isinstance(data, dict) else set()


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _parts_at(path: Path_, model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return the keys, with their schemas, of each part that a schema allows at a path.

    A document may state a part in a shorter form, which has no path in the schema. Then these are all parts.
    """
    schema = _schema(model)
    definitions = schema.get("$defs", {})

    def choices(part: dict[str, Any]) -> list[dict[str, Any]]:
        if "$ref" in part:
            return choices(definitions[part["$ref"].rpartition("/")[2]])
        return [choice for one in part["anyOf"] for choice in choices(one)] if "anyOf" in part else [part]

    def inside(part: dict[str, Any], step: str | int) -> list[dict[str, Any]]:
        if isinstance(step, int):
            places = part.get("prefixItems", ())
            inner = places[step] if step < len(places) else part.get("items")
        else:
            inner = part.get("properties", {}).get(step, part.get("additionalProperties"))
        return choices(inner) if isinstance(inner, dict) else []

    parts = choices(schema)
    for step in path:
        parts = [inner for part in parts for inner in inside(part, step)]
    properties = [part["properties"] for part in parts if "properties" in part]
    return properties or [part.get("properties", {}) for part in (schema, *definitions.values())]
