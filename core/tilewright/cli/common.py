"""What several commands share: options that plugins define, and results for people or programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import typer

from tilewright.errors import InputError, printable
from tilewright.schema.document import parse_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.tables import Table


class Shown(Protocol):
    """A result of the Python functions."""

    def data(self) -> dict[str, Any]: ...

    def tables(self) -> Sequence[Table | str]: ...


def show(result: Shown, json: bool, quiet: bool = False, messages: Iterable[str] = ()) -> None:
    """The result on stdout, as JSON or as tables; messages to the person on stderr, errors only if that wants quiet."""
    for message in messages:
        if not quiet or message.startswith("error:"):
            note(message)
    if json:
        print_json(result.data())
        return
    print_tables(*result.tables())


def note(message: str) -> None:
    """A message to the person, never mixed with the result."""
    typer.echo(printable(message), err=True)


def print_tables(*parts: Table | str) -> None:
    """On stdout: for a terminal as wide as it is, for a file or a pipe with every column and without markup."""
    from tilewright.tables import as_text, text_width

    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    typer.echo(as_text(parts, text_width(), str if plain else lambda line: typer.style(line, bold=True)))


def print_json(data: Any) -> None:
    """One JSON document on stdout; infinities would not be JSON and are refused."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def key_values(items: Iterable[str] | None, option: str) -> dict[str, Any]:
    """`KEY=VALUE` words as a dict; values are read as YAML scalars. Raises InputError."""
    result: dict[str, Any] = {}
    for item in items or ():
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise InputError(f"{option} takes KEY=VALUE, not '{item}'")
        result[key] = parse_document(value, source=f"{option} {item}").data
    return result
