"""The command line. Commands live in modules of their own and are imported when they are called."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from tilewright.cli import compare, convert, evaluate, library, mapping, plugins, schema, verify

app = typer.Typer(
    name="tilewright",
    help="Any frontend, any mapper, any cost model for spatial accelerators.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("map")(mapping.map_command)
app.command("evaluate")(evaluate.evaluate_command)
app.command("compare")(compare.compare_command)
app.command("convert")(convert.convert_command)
app.command("verify")(verify.verify_command)
app.add_typer(plugins.app, name="plugins")
app.command("library")(library.library_command)
app.command("schema")(schema.schema_command)


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 done, 1 no valid mapping, 2 wrong input or call, 3 a plugin failed."""
    try:
        app()
    except BrokenPipeError:  # the reader of a pipe has gone
        sys.exit(0)
    except Exception as error:
        from tilewright.errors import TilewrightError  # only now: listing plugins should start quickly

        if not isinstance(error, TilewrightError):
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(0)
