"""What several commands share: options that plugins define, and results for people or programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import typer

from tilewright.errors import InputError
from tilewright.schema.document import parse_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table


class Shown(Protocol):
    """A result of the Python functions."""

    def data(self) -> dict[str, Any]: ...

    def tables(self, width: int) -> Sequence[Table | str]: ...


def show(result: Shown, json: bool, messages: Iterable[str] = ()) -> None:
    """The result on stdout, as JSON or as tables; messages to the person on stderr."""
    for message in messages:
        note(message)
    if json:
        print_json(result.data())
        return
    out = console()
    for part in result.tables(out.width):
        out.print(part)


def note(message: str) -> None:
    """A message to the person, never mixed with the result."""
    typer.echo(message, err=True)


def console() -> Console:
    """Where tables go: as wide as the terminal, and wide enough for every column in a file or a pipe."""
    from rich.console import Console

    from tilewright.tables import WIDE

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False)


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
