"""Checks of a spec at registration."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.conventions import TOPICS
from tilewright.plugin.guard.calls import described
from tilewright.plugin.interface import check_interface
from tilewright.plugin.specs import KINDS, Approximation, PluginSpec

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*")
MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


def whole_spec(spec: object) -> PluginSpec[Any]:
    """Return a copy of a spec with valid values.

    Raises:
        ValueError: It is not a plugin spec, or a value is invalid.
        InterfaceError: It was written for an interface that this host does not accept.
    """
    kind = next((kind for kind in KINDS if isinstance(spec, kind)), None)
    if kind is None:
        names = [base.__name__ for base in KINDS]
        raise ValueError(f"expected a {', '.join(names[:-1])} or {names[-1]}, got {described(spec)}")
    values: dict[str, Any] = {entry.name: getattr(spec, entry.name) for entry in fields(kind)}
    name = values["name"]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a plugin: a letter, then letters, digits, '_', '-' or '.'")
    if _is_version(values["interface"]):
        check_interface(name, values["interface"])
    for field, value in values.items():
        good, expected = EXPECTED[field]
        if not good(value):
            raise ValueError(f"the {field} of '{name}' is {_shown(value)}, expected {expected}")
        if isinstance(value, Mapping):
            values[field] = dict(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            values[field] = tuple(value)
    return kind(**values)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | int | float | bool | None) else described(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _names(good: Callable[[str], object]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return listed and all(_is_text(item) and good(item) for item in value)  # type: ignore[attr-defined]

    return check


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _is_text(key) and key and _is_text(text) and text for key, text in value.items()
    )


def _are_examples(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _is_text(name)
        and name
        and isinstance(attributes, Mapping)
        and all(_is_text(key) and isinstance(attribute, int | float | str) for key, attribute in attributes.items())
        for name, attributes in value.items()
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_approximations(value: object) -> bool:
    return isinstance(value, Sequence) and all(
        isinstance(approximation, Approximation)
        and _is_text(approximation.code)
        and _is_text(approximation.meaning)
        and callable(approximation.detect)
        for approximation in value
    )


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_text, "a text"),
    "summary": (_is_text, "one line of text"),
    "factory": (callable, "something that can be called"),
    "options": (lambda value: isinstance(value, type) and issubclass(value, BaseModel), "a pydantic model class"),
    "capabilities": (lambda value: isinstance(value, Capabilities), "Capabilities"),
    "needs": (_names(MODULE.fullmatch), "a tuple of names of modules"),
    "hint": (lambda value: value is None or _is_text(value), "a text or None"),
    "interface": (_is_version, "a whole number of at least 1"),
    "programs": (_is_table, "options with names of programs"),
    "default_for": (_names(bool), "a tuple of names of tasks"),
    "ends": (_is_flag, "True or False"),
    "starts_with": (_names(bool), "a tuple of names of mappers"),
    "proof_version": (lambda value: value is None or _is_version(value), "a whole number of at least 1, or None"),
    "figures": (_names(bool), "a tuple of names of figures"),
    "gap_reasons": (_is_table, "figures with sentences"),
    "limits_itself": (_is_flag, "True or False"),
    "narrow_option": (_is_text, "a text"),
    "executes": (_is_flag, "True or False"),
    "samples": (_is_flag, "True or False"),
    "together": (_is_flag, "True or False"),
    "space": (_is_text, "a text"),
    "approximations": (_are_approximations, "a tuple of Approximation"),
    "conventions": (
        lambda value: _is_table(value) and set(value) <= set(TOPICS),
        f"rules by topic, one of {', '.join(TOPICS)}",
    ),
    "components": (_are_examples, "names of components, each with attributes of an example"),
    "example_nm": (lambda value: _is_number(value) and value > 0, "a technology node in nanometres"),
    "priority": (lambda value: value is None or _is_number(value), "a number or None"),
    "signs": (_names(lambda key: key.strip(".")), "keys of files, such as ('arch', 'architecture.subtree')"),
    "suffixes": (
        _names(lambda value: re.fullmatch(r"\.[^./\\]+(\.[^./\\]+)*", value)),
        "a tuple of suffixes such as '.onnx'",
    ),
    "library": (_is_table, "names with one line each"),
    "expects": (lambda value: isinstance(value, Mapping), "sources with (layers, multiplications) each"),
}
"""Field of a spec -> (check of its value, expected value as text)."""
