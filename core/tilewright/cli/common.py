"""What commands share: results for people or programs, options that plugins define, and how they end: with an exit code, and
every error in one style, on stderr and under --json on stdout too."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.errors import TilewrightError
    from tilewright.tables import Table

ClickException = typer.BadParameter.__mro__[2]
"""Click's, or that which newer typers carry."""
LISTS = {"arch": "library archs", "workload": "library workloads", "mappers": "plugins", "models": "plugins"}
"""Parameter -> the command that lists what it may be."""


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
    from tilewright.errors import printable

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
    """`KEY=VALUE` words as a dict; values are read as YAML scalars, but for numbers behind zeros, which name files
    (`layer=007`). Raises InputError."""
    from tilewright.errors import InputError
    from tilewright.schema.document import parse_document

    result: dict[str, Any] = {}
    for item in items or ():
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise InputError(f"{option} takes KEY=VALUE, not '{item}'")
        is_name = len(value) > 1 and value.isdecimal() and value[0] == "0"
        result[key] = value if is_name else parse_document(value, source=f"{option} {item}").data
    return result


def named_estimators(names: list[str], given: list[str]) -> AbstractContextManager[None]:
    """The estimators that a command asks first. Raises InputError, UnknownPluginError."""
    import tilewright as tw
    from tilewright.api.words import options_by_name
    from tilewright.errors import InputError

    if not names:
        raise InputError("--estimator-option is for estimators that are named", hint="add --estimator NAME")
    own = options_by_name(key_values(given, "--estimator-option"), names, "estimator_options")
    return tw.estimators(*names, **own)


def ended(app: typer.Typer) -> NoReturn:
    """Run a command to its end."""
    try:
        code = _command(app)(prog_name="tilewright", standalone_mode=False)
    except BrokenPipeError:  # the reader of a pipe has gone
        sys.exit(0)
    except typer.Abort:
        code = 130
    except Exception as error:
        from tilewright.errors import TilewrightError  # only now: listing plugins should start quickly

        if isinstance(error, ClickException):
            error = _misused(error)
        if not isinstance(error, TilewrightError):
            raise
        tell(error)
        sys.exit(error.exit_code)
    if code == 130:
        note("interrupted")
    sys.exit(code or 0)


@cache
def _command(app: typer.Typer) -> Any:
    """Made of the signatures of all commands, once a process."""
    return typer.main.get_command(app)


def tell(error: TilewrightError, data: dict[str, Any] | None = None) -> None:
    """Say what is wrong.

    Args:
        data: what else stands in the JSON document.
    """
    lines = [f"error: {error.headline}"]
    if error.headline != error.message:
        lines[0] += ":"
        lines += [f"  - {reason}" for reason in error.reasons]
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    note("\n".join(lines))
    if "--json" in sys.argv:
        print_json({"schema_version": 1} | (data or {}) | {"error": error.data()})


def _misused(error: Any) -> TilewrightError:
    """A call that the parser of arguments refused."""
    from tilewright.errors import CallError

    context, parameter = getattr(error, "ctx", None), getattr(getattr(error, "param", None), "name", None)
    where = context.command_path if context else "tilewright"
    what = error.format_message().rstrip(".").replace("Value error, ", "")
    hint = f"{where} --help says what it takes"
    if what.startswith("Missing") and parameter in LISTS:
        hint = f"tilewright {LISTS[parameter]} lists them; {hint}"
    return CallError(f"{where}: {what[:1].lower()}{what[1:]}", hint=hint)


def reading(values: Iterable[str] | None, dense: bool, dataflow: str | None) -> dict[str, Any]:
    """What `--set`, `--dense` and `--dataflow` say to the reader of another tool's files. Raises InputError."""
    given = key_values(values, "--set")
    said = ({"set": given} if given else {}) | ({"dense": True} if dense else {})
    return said | ({} if dataflow is None else {"dataflow": dataflow})
