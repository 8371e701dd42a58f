"""Plain data from YAML events, with limits enforced during parsing and a location for every value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import InputError, Location
from tilewright.files import MAX_TEXT, read_text

MAX_NODES = 100_000
"""Maximum number of values in a document, including those that aliases repeat: seconds of work."""
MAX_DEPTH = 100

Path_ = tuple[str | int, ...]


_Events: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class Loader(_Events):  # type: ignore[misc]
    """A source of events, from libyaml if PyYAML has it, which is ten times faster.

    Scalars follow the core schema of YAML 1.2.
    """


class _Whole(yaml.SafeLoader):
    """A source of events that reads a character in two halves, as JSON may escape it; libyaml refuses that."""


_HALVES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]")
"""The escapes of the two halves of a character beyond 16 bits."""

Loader.yaml_implicit_resolvers = _Whole.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


@dataclass(frozen=True)
class Document:
    """Plain data with the location of every value.

    Attributes:
        data: dicts, lists and scalars.
        source: file name, or a name for the text, used in messages.
        marks: path into `data` -> location.
        tags: path into `data` -> application tag of that value, such as `!Container`; `data` does not depend on it.
        repeated: path -> location of a repeated key, if these are allowed; the last value counts.
    """

    data: Any
    source: str
    marks: Mapping[Path_, Location] = field(default_factory=dict)
    tags: Mapping[Path_, str] = field(default_factory=dict)
    repeated: Mapping[Path_, Location] = field(default_factory=dict)

    def locate(self, path: Path_) -> Location:
        """Return the location of `path`, or of its nearest known ancestor."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.marks:
                return self.marks[path[:end]]
        return Location(self.source)

    def at(self, *path: str | int) -> Document:
        """Return the part of the document below `path`."""
        data = self.data
        for step in path:
            data = data[step]
        marks = {where[len(path) :]: mark for where, mark in self.marks.items() if where[: len(path)] == path}
        tags = {where[len(path) :]: tag for where, tag in self.tags.items() if where[: len(path)] == path}
        return Document(data, self.source, marks, tags)


def read_document(path: str | Path, *, repeated_keys: bool = False) -> Document:
    """Read a YAML or JSON file.

    Args:
        path: path of the file.
        repeated_keys: allow them, for tools that silently use the last value.

    Raises:
        InputError: the file is absent, unreadable, too large or not YAML; with line and column.
    """
    return parse_document(read_text(path), source=str(Path(path)), repeated_keys=repeated_keys)


def parse_document(text: str, *, source: str = "<text>", repeated_keys: bool = False) -> Document:
    """Parse one YAML or JSON document from text, with the arguments and errors of `read_document`."""
    odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if odd is not None:
        place = Location(source, text.count("\n", 0, odd.start()) + 1)
        raise InputError(f"character {ord(odd[0]):#x} is not allowed in YAML", location=place)
    loader = _Whole(text) if _HALVES.search(text) else Loader(text)
    try:
        builder = _Builder(loader, source, repeated_keys)
        data = builder.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(source, mark.line + 1, mark.column + 1) if mark else Location(source)
        begun = f" {error.context} that begins in line {error.context_mark.line + 1}" if error.context_mark else ""
        raise InputError(f"not valid YAML: {error.problem or error.context}{begun}", location=place) from None
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", location=Location(source)) from None
    finally:
        loader.dispose()
    return Document(data, source, builder.marks, builder.tags, builder.repeated)


@dataclass(frozen=True)
class _Anchored:
    """A value that aliases may repeat.

    `path` is its path, or None for a key. `text` is the source text of a scalar.
    """

    value: Any
    path: Path_ | None
    text: str | None = None


class _Builder:
    """Builds plain data from events and records the locations."""

    def __init__(self, loader: Any, source: str, repeated_keys: bool) -> None:
        self.loader = loader  # a `Loader`, most of whose methods have no types
        self.source = source
        self.repeated_keys = repeated_keys
        self.repeated: dict[Path_, Location] = {}
        self.marks: dict[Path_, Location] = {}
        self.tags: dict[Path_, str] = {}
        self.anchored: dict[str, _Anchored | None] = {}
        self.nodes = 0

    def document(self) -> Any:
        """Return the only document. Raises InputError."""
        self.loader.get_event()  # the stream begins
        if self.loader.check_event(yaml.StreamEndEvent):
            raise InputError("the document is empty", location=Location(self.source))
        self.loader.get_event()  # the document begins
        data = self._value(())
        self.loader.get_event()  # the document ends
        if not self.loader.check_event(yaml.StreamEndEvent):
            raise InputError("a second document begins; expected one", location=self._place(self.loader.peek_event()))
        return data

    def _place(self, event: Any) -> Location:
        return Location(self.source, event.start_mark.line + 1, event.start_mark.column + 1)

    def _count(self, path: Path_, place: Location) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise InputError(f"the document is too large: it has more than {MAX_NODES:,} values", location=place)
        if len(path) > MAX_DEPTH:
            raise InputError(f"the document is too deep: it has more than {MAX_DEPTH} levels", location=place)
        self.marks[path] = place

    def _event(self) -> Any:
        """Return the next event; the two halves of a character are joined."""
        event = self.loader.get_event()
        if isinstance(event, yaml.ScalarEvent) and not event.value.isascii():
            with suppress(UnicodeDecodeError):  # half a character; the reader of the text reports it
                event.value = event.value.encode("utf-16", "surrogatepass").decode("utf-16")
        return event

    def _value(self, path: Path_) -> Any:
        event = self._event()
        place = self._place(event)
        if isinstance(event, yaml.AliasEvent):
            return self._repeated(self._meant(event, place), path, place)
        self._count(path, place)
        if event.tag is not None and event.tag.startswith("!"):
            self.tags[path] = event.tag
        if event.anchor is not None:
            self.anchored[event.anchor] = None  # not complete
        text = None
        value: Any
        if isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(path)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(path)
        else:
            text, value = self._text(event, place), self._scalar(event, place)
        if event.anchor is not None:
            self.anchored[event.anchor] = _Anchored(value, path, text)
        return value

    def _sequence(self, path: Path_) -> list[Any]:
        result: list[Any] = []
        while not self.loader.check_event(yaml.SequenceEndEvent):
            result.append(self._value((*path, len(result))))
        self.loader.get_event()
        return result

    def _mapping(self, path: Path_) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        while not self.loader.check_event(yaml.MappingEndEvent):
            event = self._event()
            place = self._place(event)
            key = self._key(event, place)
            if key in result and not self.repeated_keys:
                raise InputError(f"key '{key}' is repeated", location=place)
            if key in result:
                self.repeated[(*path, key)] = place
            result[key] = self._value((*path, key))
        self.loader.get_event()
        return result

    def _key(self, event: Any, place: Location) -> str:
        text = None
        if isinstance(event, yaml.AliasEvent):
            text = self._meant(event, place).text
        elif isinstance(event, yaml.ScalarEvent):
            text = self._text(event, place)
            if event.anchor is not None:
                self.anchored[event.anchor] = _Anchored(self._scalar(event, place), None, text)
        if text is None:
            raise InputError("a key is not a scalar; expected a plain word", location=place)
        return text

    def _text(self, event: Any, place: Location) -> str:
        text = str(event.value)
        if len(text) > MAX_TEXT:
            raise InputError(f"a text has {len(text):,} characters; expected at most {MAX_TEXT:,}", location=place)
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"{text!r} has half a character", location=place)
        return text

    def _meant(self, event: Any, place: Location) -> _Anchored:
        anchored = self.anchored.get(event.anchor)
        if anchored is None:
            inside = "is inside the value that it repeats" if event.anchor in self.anchored else "has no anchor"
            raise InputError(f"the alias *{event.anchor} {inside}", location=place)
        return anchored

    def _repeated(self, anchored: _Anchored, path: Path_, place: Location) -> Any:
        """Return a copy of an anchored value, with marks at the new path."""
        if anchored.path is None:
            self._count(path, place)
            return anchored.value
        return self._copied(anchored.value, anchored.path, path)

    def _copied(self, value: Any, old: Path_, new: Path_) -> Any:
        self._count(new, self.marks[old])
        if old in self.tags:
            self.tags[new] = self.tags[old]
        if isinstance(value, dict):
            return {key: self._copied(child, (*old, key), (*new, key)) for key, child in value.items()}
        if isinstance(value, list):
            return [self._copied(child, (*old, index), (*new, index)) for index, child in enumerate(value)]
        return value

    def _scalar(self, event: Any, place: Location) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        try:
            kind = tag.rpartition(":")[2]
            if kind == "int":
                return int(event.value, 0) if re.match(r"0[ox]", event.value) else int(event.value)
            if kind == "float":
                return float(event.value.replace(".inf", "inf").replace(".nan", "nan").lower())
            if kind == "bool":
                return event.value.lower() == "true"
            if kind == "null":
                return None
            return str(event.value)
        except ValueError as error:
            raise InputError(str(error), location=place) from None
