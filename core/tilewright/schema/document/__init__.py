"""YAML and JSON documents that record the location of every value.

Files are untrusted. The parser builds plain data only, limits size and depth during parsing,
aliases included, and refuses repeated keys. Booleans and numbers follow YAML 1.2: dimensions called
`N`, `Y` or `NO` stay names, and `1e-3` is a number.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from tilewright.errors import InputError, Location
from tilewright.schema.document.reading import (
    MAX_DEPTH,
    MAX_NODES,
    Document,
    Loader,
    Path_,
    parse_document,
    read_document,
)
from tilewright.schema.document.suggestions import missing_key, suggestion, unknown_key
from tilewright.values import MisplacedError, Model, plain_fault

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "YAML_SUFFIXES",
    "Document",
    "FileModel",
    "Path_",
    "commented",
    "dump_yaml",
    "parse_document",
    "read_document",
    "suggestion",
    "validate",
]

YAML_SUFFIXES = (".yaml", ".yml", ".json")
"""Suffixes of files in YAML or JSON."""

MAX_FAULTS = 10
"""Maximum number of errors reported for one document."""


M = TypeVar("M", bound=BaseModel)


class FileModel(Model):
    """A schema with a file of its own. Infinite values of plugin options are written as constants."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    @classmethod
    def from_yaml(cls, text: str, *, source: str = "<text>") -> Self:
        """Parse from text. Raises InputError with line and column of every error."""
        return validate(cls, parse_document(text, source=source))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read from a file. Raises InputError with line and column of every error."""
        return validate(cls, read_document(path))

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object, without defaults."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        head = {key: getattr(self, key) for key in ("schema_version", "kind") if hasattr(self, key)}
        return head | data

    def to_yaml(self) -> str:
        """Return the YAML form; `from_yaml` reads it back to an equal object."""
        return dump_yaml(self.to_data(), flat=True)

    def to_json(self) -> str:
        """Return the JSON form; `from_yaml` reads it too, because JSON is YAML."""
        return json.dumps(self.to_data(), indent=2)


class _Dumper(yaml.SafeDumper):
    """A dumper that indents lists below their key and never writes aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Write text with unprintable characters in double quotes, with escapes."""
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
_Dumper.yaml_implicit_resolvers = {
    first: [*resolvers, *Loader.yaml_implicit_resolvers.get(first, [])]
    for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
}


class _FlatDumper(_Dumper):
    """A dumper that puts a memory, a tensor or an entry on one line.

    It does so for keys whose values are scalars or collections of scalars.
    """

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = all(
            isinstance(value, yaml.ScalarNode) or all(isinstance(part, yaml.ScalarNode) for part in _parts(value))
            for _, value in node.value
        )
        return node

    def serialize(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            node.flow_style = False
        super().serialize(node)


def _parts(node: yaml.Node) -> list[yaml.Node]:
    return [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else list(node.value)


def dump_yaml(data: Any, flat: bool = False) -> str:
    """Return readable YAML: short collections on one line, order kept.

    With `flat`, collections of short collections are on one line, too.
    """
    dumper = _FlatDumper if flat else _Dumper
    return yaml.dump(data, Dumper=dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)


def commented(text: str) -> str:
    """Return the lines of a text as YAML comments."""
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def validate(model: type[M], document: Document) -> M:
    """Validate a document against a schema.

    Raises:
        InputError: the document is invalid; every error has file, line, column, the found value and the expected one.
    """
    try:
        return model.model_validate(document.data, context={"folder": os.path.dirname(document.source)})
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r} has half a character", location=document.locate(())) from None
    except ValidationError as error:
        errors = _caused(error.errors(include_url=False))
        faults = [_describe(fault, model, document) for fault in errors[:MAX_FAULTS]]
        location, first = faults[0]
        rest = "".join(f"\n{place}: {text}" for place, text in faults[1:])
        more = f"\nand {len(errors) - MAX_FAULTS:,} more" if len(errors) > MAX_FAULTS else ""
        raise InputError(first + rest + more, location=location) from None


def _caused(errors: Sequence[Any]) -> list[Any]:
    """Return the faults without those of lists that are too short because their items have faults."""
    places = [fault["loc"] for fault in errors]
    return [
        fault
        for fault in errors
        if fault["type"] != "too_short"
        or not any(place[: len(fault["loc"])] == fault["loc"] and len(place) > len(fault["loc"]) for place in places)
    ]


_UNITS = {
    "words": "words", "words_per_cycle": "words per cycle", "bits": "bits", "pj": "pJ", "pj_per_cycle": "pJ per cycle",
    "um2": "um^2", "ghz": "GHz", "nm": "nm", "cycles": "cycles",
}  # fmt: skip
"""Ends of the names of fields -> their unit."""


def _unit(name: str) -> str:
    """Return ` of words` for the field `capacity_words`, otherwise an empty text."""
    ends = [end for end in _UNITS if name.endswith(f"_{end}")]
    return f" of {_UNITS[max(ends, key=len)]}" if ends else ""


def _describe(fault: Any, model: type[BaseModel], document: Document) -> tuple[Location, str]:
    cause = fault.get("ctx", {}).get("error")
    within = cause.path if isinstance(cause, MisplacedError) else ()
    path = _real_path((*fault["loc"], *within), document.data)
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    prefix = f"{where}: " if where else ""
    kind, message, value = fault["type"], plain_fault(fault), fault["input"]
    if within:
        prefix = ""
    if kind == "extra_forbidden":
        message = unknown_key(path, document.data, model)
        prefix = ""
    elif kind == "union_tag_not_found":
        message = f"{fault['ctx']['discriminator']} is missing"
    elif kind == "union_tag_invalid":
        context = fault["ctx"]
        message = f"{context['discriminator']}: expected one of {context['expected_tags']} (found '{context['tag']}')"
    elif kind == "missing":
        message = missing_key(fault["loc"][-1], path, model)
    elif kind not in ("value_error", "assertion_error", "too_short", "too_long"):
        shape = "a list" if isinstance(value, list) else "keys and values" if isinstance(value, dict) else repr(value)
        unit = _unit(str(path[-1])) if path and kind.startswith(("int", "float")) and isinstance(value, str) else ""
        message = f"{message}{unit} (found {shape})"
    return document.locate(path), prefix + message


def _real_path(loc: tuple[int | str, ...], data: Any) -> Path_:
    """Return the steps of an error's path that exist in the data.

    Pydantic adds steps for unions and validators.
    """
    path: list[str | int] = []
    for step in loc:
        if isinstance(data, dict) and step in data:
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            continue
        path.append(step)
    return tuple(path)
