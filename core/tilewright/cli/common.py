"""What several commands share: options that plugins define, numbers for people, messages beside the result."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tilewright.errors import InputError
from tilewright.schema.document import parse_document

if TYPE_CHECKING:
    from rich.console import Console


def note(message: str) -> None:
    """A message to the person, never mixed with the result."""
    typer.echo(message, err=True)


def console() -> Console:
    """Where tables go: as wide as the terminal, and wide enough for every column in a file or a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)


def print_json(data: Any) -> None:
    """One JSON document on stdout; infinities would not be JSON and are refused."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def key_values(items: Iterable[str], option: str) -> dict[str, Any]:
    """`KEY=VALUE` words as a dict; values are read as YAML scalars. Raises InputError."""
    result: dict[str, Any] = {}
    for item in items:
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise InputError(f"{option} takes KEY=VALUE, not '{item}'")
        result[key] = parse_document(value, source=f"{option} {item}").data
    return result


def options_by_name(options: dict[str, Any], names: Sequence[str], option: str) -> dict[str, dict[str, Any]]:
    """Options of several plugins: `KEY` goes to all, `NAME.KEY` to one.

    >>> options_by_name({"a": 1, "x.b": 2}, ["x", "y"], "--model-option")
    {'x': {'a': 1, 'b': 2}, 'y': {'a': 1}}

    Raises:
        InputError: a name that is not among them.
    """
    result: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in options.items():
        name, dot, rest = key.partition(".")
        if dot and name not in result:
            raise InputError(f"{option} {key}: '{name}' is none of {', '.join(names)}", hint=f"add --model {name}")
        for taker in [name] if dot else names:
            result[taker][rest if dot else key] = value
    return result


def figure(value: float | None, digits: int = 4) -> str:
    """A number for a table: whole where it is short, else with a power of ten.

    >>> figure(12345), figure(0.25), figure(3.03128357e16), figure(None)
    ('12,345', '0.25', '3.031e+16', '-')
    """
    if value is None or math.isinf(value) or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e8:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"


def percent(part: float, whole: float) -> str:
    """A share; `-` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "-"
