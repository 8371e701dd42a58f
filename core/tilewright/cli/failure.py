"""How a command ends: its exit code, and every error in one style, for people on stderr and under --json on stdout too."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from tilewright.cli.common import note, print_json

if TYPE_CHECKING:
    from tilewright.errors import TilewrightError

UsageError, ClickException = typer.BadParameter.__mro__[1:3]
"""Click's; which newer typers carry themselves."""
LISTS = {"arch": "library archs", "workload": "library workloads", "mappers": "plugins", "models": "plugins"}
"""Parameter -> the command that lists what it may be."""


def ended(app: typer.Typer) -> NoReturn:
    """Run a command to its end."""
    try:
        code = app(prog_name="tilewright", standalone_mode=False)
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
    what = error.format_message().rstrip(".")
    hint = f"{where} --help says what it takes"
    if what.startswith("Missing") and parameter in LISTS:
        hint = f"tilewright {LISTS[parameter]} lists them; {hint}"
    return CallError(f"{where}: {what[:1].lower()}{what[1:]}", hint=hint)
