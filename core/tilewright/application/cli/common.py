"""Common parts of commands: output for users and programs, plugin options, errors and exit codes.

All errors have one style. They go to stderr, and under --json to stdout as well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import typer

from tilewright.application.cli.streams import StdoutError
from tilewright.interrupts import preserving_results, stop_requested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.errors import TilewrightError
    from tilewright.tables import Table

ClickException = typer.BadParameter.__mro__[2]
"""Base class of usage errors: Click's, or the copy inside newer versions of typer."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""
LISTS = {"arch": "library archs", "workload": "library workloads", "mappers": "plugins", "models": "plugins"}
"""Commands that list the valid values of a parameter."""


class Shown(Protocol):
    """Result of a Python function that can be printed."""

    def data(self) -> dict[str, Any]: ...

    def tables(self) -> Sequence[Table | str]: ...


def print_result(result: Shown, json: bool, quiet: bool = False, messages: Iterable[str] = ()) -> None:
    """Print a result to stdout, as JSON or as tables, and messages to stderr.

    With `quiet`, only errors are printed to stderr.
    """
    for message in messages:
        if not quiet or message.startswith("error:"):
            note(message)
    if json:
        print_json(result.data())
        return
    if tables := result.tables():
        print_tables(*tables)


def note(message: str) -> None:
    """Print a message to stderr, separate from the result."""
    from tilewright.errors import printable

    typer.echo(printable(message), err=True)


def print_tables(*parts: Table | str) -> None:
    """Print tables or lines to stdout.

    A terminal gets as many columns as fit. A file or a pipe gets all columns, without markup.
    """
    from tilewright.tables import as_text, text_width

    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    typer.echo(as_text(parts, text_width(), str if plain else lambda line: typer.style(line, bold=True)))


def print_json(data: Any) -> None:
    """Print one JSON document to stdout; infinities are refused, because JSON has none."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def key_values(items: Iterable[str] | None, option: str) -> dict[str, Any]:
    """Return `KEY=VALUE` arguments as a dict, with values read as YAML scalars.

    Numbers with leading zeros stay text, because they are names (`layer=007`).

    Raises:
        InputError: An argument is not of this form, or a key occurs twice.
    """
    from tilewright.errors import InputError
    from tilewright.schema.document import parse_document

    result: dict[str, Any] = {}
    for item in items or ():
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise InputError(f"{option} takes KEY=VALUE, not '{item}'")
        if key in result:
            raise InputError(f"{option} has {key} twice", hint=f"keep one of them: {option} {key}=VALUE")
        is_name = len(value) > 1 and value.isdecimal() and value[0] == "0"
        result[key] = value if is_name else parse_document(value, source=f"{option} {item}").data
    return result


def integers(text: str | None, option: str) -> list[int] | None:
    """Return the integers of a list with commas; raise InputError if there are others."""
    from tilewright.errors import InputError

    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text}: expected integers", hint=f"such as {option} 3,1") from None


def named_estimators(names: list[str], given: list[str]) -> AbstractContextManager[None]:
    """Return a context in which a command queries these estimators first.

    Raises:
        InputError, UnknownPluginError: A name or an option is invalid.
    """
    import tilewright as tw
    from tilewright.application.api.call_arguments import options_by_name
    from tilewright.errors import InputError

    if not names:
        raise InputError("--estimator-option needs a named estimator", hint="add --estimator NAME")
    options = options_by_name(key_values(given, "--estimator-option"), names, "estimator_options")
    return tw.estimators(*names, **options)


def exit_with_code(app: typer.Typer) -> NoReturn:
    """Run a command and exit with its code."""
    with preserving_results():
        code = _run(app)
        if stop_requested():
            code = INTERRUPTED
        if code == INTERRUPTED:
            note("interrupted")
        sys.exit(code)


def _run(app: typer.Typer) -> int:
    """Run a command and return its exit code."""
    try:
        return _command(app)(prog_name="tilewright", standalone_mode=False) or 0
    except BrokenPipeError:  # the reader of the pipe has closed it
        return 0
    except typer.Abort:
        return INTERRUPTED
    except Exception as error:
        # imported late, so that listing plugins starts quickly
        from tilewright.errors import CallError, OutputError, TilewrightError

        if isinstance(error, ClickException):
            error = _misused(error)
        if isinstance(error, MemoryError):
            hint = "give a smaller problem, fewer --jobs, or more memory (ulimit -v)"
            error = CallError("there is not enough memory", hint=hint)
        if isinstance(error, StdoutError):
            hint = "with -o, the commands that search write files"
            error = OutputError(f"cannot write to stdout: {error}", hint=hint)
        if not isinstance(error, TilewrightError):
            raise
        print_error(error)
        return error.exit_code


@cache
def _command(app: typer.Typer) -> Any:
    """Return the command built from the signatures of all commands, once per process."""
    return typer.main.get_command(app)


def print_error(error: TilewrightError, data: dict[str, Any] | None = None) -> None:
    """Print an error.

    Args:
        data: The JSON document. Default: one with the error alone.
    """
    from tilewright.application.documents.listings import ErrorData, ErrorOutput

    lines = [f"error: {error.headline}"]
    if error.headline != error.message:
        lines[0] += ":"
        lines += [f"  - {reason}" for reason in error.reasons]
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    note("\n".join(lines))
    if "--json" in sys.argv:
        with suppress(StdoutError):  # there is nowhere to print it
            print_json(data or ErrorOutput(error=ErrorData(**error.data())).data())


_NO_NUMBER = ("a number", "is not a valid float", "is not a valid float range")
"""Ends of messages about numbers, by newer and older versions of typer."""
_UNITS = {"S": "seconds", "NM": "nanometres"}
"""Units of options, by the form of their values."""


def _misused(error: Any) -> TilewrightError:
    """Return a CallError for arguments that the parser refused."""
    from tilewright.errors import CallError
    from tilewright.values import plainly

    context, option = getattr(error, "ctx", None), getattr(error, "param", None)
    parameter = getattr(option, "name", None)
    where = context.command_path if context else "tilewright"
    what = error.format_message().rstrip(".").replace("Value error, ", "")
    start, colon, rest = what.partition(": ")
    what = f"{start}{colon}{plainly(rest)}"
    if what.endswith(_NO_NUMBER) and (unit := _UNITS.get(getattr(option, "metavar", None) or "")):
        what = f"{start}{colon}expected a number of {unit}, without a unit"
    hint = f"{where} --help lists its arguments"
    if what.startswith("Missing") and parameter in LISTS:
        hint = f"tilewright {LISTS[parameter]} lists them; {hint}"
    return CallError(f"{where}: {what[:1].lower()}{what[1:]}", hint=hint)


def reading(
    values: Iterable[str] | None, dense: bool, dataflow: str | None, one_energy: bool = False
) -> dict[str, Any]:
    """Return `--set`, `--dense`, `--one-energy` and `--dataflow` as options for the reader of another tool's files.

    Raises:
        InputError: An argument of `--set` is invalid.
    """
    given = key_values(values, "--set")
    said = ({"set": given} if given else {}) | ({"dense": True} if dense else {})
    said |= {"one_energy": True} if one_energy else {}
    return said | ({} if dataflow is None else {"dataflow": dataflow})
