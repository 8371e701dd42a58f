"""Cursor: a value of a document with its location, so that every error has file and line."""

from __future__ import annotations

import keyword
import re
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tilewright.errors import InputError
from tilewright.expressions import FUNCTIONS, KNOWN
from tilewright.schema.document import Document, suggestion
from tilewright.values import plain_fault

MAX_NUMBER = 1e300
MAX_WHOLE = 2**62
"""Maximum values; larger numbers are implausible for hardware and would overflow floats."""
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Cursor:
    """A value inside a document; `replacement` holds a merged or computed value, if any."""

    document: Document
    path: tuple[str | int, ...] = ()
    replacement: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        if self.replacement:
            return self.replacement[0]
        data = self.document.data
        for step in self.path:
            data = data[step]
        return data

    @property
    def shown(self) -> str:
        """Value for messages, shortened."""
        return reprlib.repr(self.value)

    def child(self, step: str | int) -> Cursor:
        return Cursor(self.document, (*self.path, step), (self.replacement[0][step],) if self.replacement else ())

    def with_value(self, value: object) -> Cursor:
        """Return a cursor at the same location with another value."""
        return Cursor(self.document, self.path, (value,))

    def error(self, message: str, hint: str | None = None) -> InputError:
        """Return an error with the location of this value."""
        return InputError(message, location=self.document.locate(self.path), hint=hint)

    def fields(self, what: str) -> dict[str, Cursor]:
        """Return the entries of a mapping, with `-` in keys replaced by `_`. Raises InputError."""
        if not isinstance(self.value, dict):
            raise self.error(f"{what} must be a mapping of names to values (found {self.shown})")
        result: dict[str, Cursor] = {}
        for key in self.value:
            name = key.replace("-", "_")
            if name in result:
                raise self.child(key).error(f"'{key}' is repeated in another spelling")
            result[name] = self.child(key)
        return result

    def items(self, what: str) -> list[Cursor]:
        """Return the elements of a list. Raises InputError."""
        if not isinstance(self.value, list):
            raise self.error(f"{what} must be a list (found {self.shown})")
        return [self.child(index) for index in range(len(self.value))]

    def text(self, what: str) -> str:
        """Return a text that is not empty. Raises InputError."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error(f"{what} must be a word (found {self.shown})")
        return self.value.strip()

    def names(self, what: str, known: Iterable[str]) -> tuple[str, ...]:
        """Return a list of known names without repetitions. Raises InputError."""
        result = tuple(item.choice(what, known) for item in self.items(f"{what} list"))
        if len(set(result)) != len(result):
            raise self.error(f"a {what} is repeated: {', '.join(result)}")
        return result

    def choice(self, what: str, known: Iterable[str]) -> str:
        """Return one of the known names. Raises InputError."""
        name, options = str(self.value), list(known)
        if name not in options:
            raise self.error(
                f"there is no {what} '{name}'{suggestion(name, options)}", hint=f"one of {', '.join(options)}"
            )
        return name

    def whole(self, what: str, least: int = 1) -> int:
        """Return an integer of at least `least`. Raises InputError."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_WHOLE:
            large = " and at most 2^62" if isinstance(value, int) and value > MAX_WHOLE else ""
            raise self.error(
                f"{what} must be a whole number, at least {least}{large} (found {self.shown})", _arithmetic(value)
            )
        return value

    def number(self, what: str, least: float = 0.0) -> float:
        """Return a finite number of at least `least`. Raises InputError."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= MAX_NUMBER:
            raise self.error(
                f"{what} must be a finite number, at least {least:g} (found {self.shown})", _arithmetic(value)
            )
        return float(value)

    def truth(self, what: str) -> bool:
        """Return a truth value; like Timeloop, also from a text such as `"True"`. Raises InputError."""
        value = _TRUTHS.get(self.value.strip().lower()) if isinstance(self.value, str) else self.value
        if not isinstance(value, bool):
            raise self.error(f"{what} must be True or False (found {self.shown})")
        return value

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Convert validation errors inside the `with` block to InputError at this location."""
        try:
            yield
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            message = plain_fault(fault)
            raise self.error(f"{where}: {message} (found {fault['input']!r})" if where else message) from None


def refuse_unknown(fields: dict[str, Cursor], known: Iterable[str], what: str) -> None:
    """Raise InputError for the first field that is not in `known`."""
    options = sorted(known)
    for name, cursor in fields.items():
        if name not in options:
            raise cursor.error(
                f"{what} has no '{name}'{suggestion(name, options)}", hint=f"known: {', '.join(options)}"
            )


def strange_fields(fields: dict[str, Cursor], known: Iterable[str], what: str) -> Iterator[str]:
    """Yield a warning for each field not in `known`; users keep notes there.

    Raises:
        InputError: a field looks like a misspelt known one.
    """
    options = sorted(known)
    for name, cursor in fields.items():
        if name in options:
            continue
        meant = suggestion(name, options)
        if meant:
            raise cursor.error(f"{what} has no '{name}'{meant}", hint=f"known: {', '.join(options)}")
        yield f"{cursor.document.locate(cursor.path)}: {what} has no '{name}' in Timeloop: ignored"


def _arithmetic(value: object) -> str | None:
    """Return a hint if the value looks like a variable or expression that could not be evaluated."""
    if not isinstance(value, str) or not (value.isidentifier() or any(sign in value for sign in "+-*/(%")):
        return None
    names = sorted(set(re.findall(r"\b[A-Za-z_]\w*", value)) - set(FUNCTIONS) - set(keyword.kwlist))
    given = f"{', '.join(names)}: give each a number, also by --set NAME=NUMBER; " if names else ""
    return f"{given}expressions may use variables, attributes of the component and of the containers around it, and {KNOWN}"
