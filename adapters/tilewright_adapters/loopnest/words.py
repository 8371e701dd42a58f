"""Lines of names, quoted texts and `key=value` pairs; `#` starts a comment, indentation is ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

from tilewright.errors import InputError, Location
from tilewright.files import MAX_TEXT, read_text

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)=")
_END = re.compile(r"[^\s#,;:]+")
_CONSTANTS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Line:
    """One line with content: its first word and the rest."""

    keyword: str
    rest: str
    location: Location

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise InputError with the location of this line."""
        raise InputError(message, location=self.location, hint=hint)

    def arguments(self) -> Arguments:
        """Return names, then `key=value` pairs. Raises InputError."""
        arguments = Arguments()
        position = 0
        while position < len(self.rest):
            if self.rest[position].isspace():
                position += 1
                continue
            key = _KEY.match(self.rest, position)
            value, position = self._value(key.end() if key else position)
            if key is None:
                arguments.words.append(value)
            elif key[1] in arguments.pairs:
                self.fail(f"'{key[1]}' is repeated")
            else:
                arguments.pairs[key[1]] = value
        return arguments

    def _value(self, position: int) -> tuple[Any, int]:
        if self.rest[position : position + 1] in ('"', "[", "{"):
            try:
                return json.JSONDecoder().raw_decode(self.rest, position)
            except ValueError as error:
                self.fail(f"cannot read '{self.rest[position:].strip()}': {error}")
        word = _END.match(self.rest, position)
        if word is None:
            self.fail(f"expected a value at '{self.rest[position:].strip()}'")
        text = word[0]
        if text in _CONSTANTS:
            return _CONSTANTS[text], word.end()
        try:
            return json.loads(text), word.end()
        except ValueError:
            return text, word.end()


@dataclass
class Arguments:
    """Arguments that follow a keyword."""

    words: list[Any] = field(default_factory=list)
    pairs: dict[str, Any] = field(default_factory=dict)

    def nested(self) -> dict[str, Any]:
        """Return the pairs as data: `network.latency_cycles=3` is a key inside `network`."""
        data: dict[str, Any] = {}
        for key, value in self.pairs.items():
            *outer, last = key.split(".")
            inner = data
            for step in outer:
                inner = inner.setdefault(step, {})
            inner[last] = value
        return data


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file that have content. Raises InputError."""
    for number, text in enumerate(read_text(path).splitlines(), start=1):
        if len(text) > MAX_TEXT:
            message = f"a line of {len(text):,} characters; at most {MAX_TEXT:,} are read"
            raise InputError(message, location=Location(str(path), number))
        words = _without_comment(text).split(maxsplit=1)
        if words:
            yield Line(words[0], words[1] if len(words) > 1 else "", Location(str(path), number))


def _without_comment(text: str) -> str:
    quoted = escaped = False
    for position, letter in enumerate(text):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = quoted
        elif letter == '"':
            quoted = not quoted
        elif letter == "#" and not quoted:
            return text[:position]
    return text


def word(value: object) -> str:
    """Return a value in the form that `Line.arguments` reads back."""
    if (
        isinstance(value, str)
        and _BARE.fullmatch(value)
        and value not in _CONSTANTS
        and value not in ("NaN", "Infinity")
    ):
        return value
    if isinstance(value, tuple):
        value = [model.model_dump(mode="json") if isinstance(model, BaseModel) else model for model in value]
    return json.dumps(dict(value) if isinstance(value, Mapping) else value)


def pairs(model: BaseModel, skip: tuple[str, ...] = ("name",), prefix: str = "") -> str:
    """Return the fields that are not at their default, each as ` key=value`."""
    text = ""
    for key, info in type(model).model_fields.items():
        value = getattr(model, key)
        if key in skip or (not info.is_required() and value == info.default):
            continue
        text += pairs(value, (), f"{prefix}{key}.") if isinstance(value, BaseModel) else f" {prefix}{key}={word(value)}"
    return text
