"""Command line. Each command has its own module, which is imported when the command runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from tilewright.application.cli import (
    compare,
    convert,
    correlate,
    evaluate,
    library,
    mapping,
    plot,
    plugins,
    schema,
    verify,
)
from tilewright.application.cli.added import CommandsWithPlugins
from tilewright.application.cli.common import exit_with_code, named_estimators
from tilewright.application.cli.hardware import calibrate, estimate, explore, export, report, space
from tilewright.application.cli.options import Command, GroupedCommand, first_line, names_of, with_traceback
from tilewright.application.cli.streams import stdout_for_results
from tilewright.version import __version__

app = typer.Typer(
    name="tilewright",
    cls=CommandsWithPlugins,
    epilog="Plugins may add commands: `tilewright plugins` lists them.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "map": mapping.map_command,
    "evaluate": evaluate.evaluate_command,
    "compare": compare.compare_command,
    "correlate": correlate.correlate_command,
    "calibrate": calibrate.calibrate_command,
    "estimate": estimate.estimate_command,
    "explore": explore.explore_command,
    "export": export.export_command,
    "plot": plot.plot_command,
    "report": report.report_command,
    "space": space.space_command,
    "convert": convert.convert_command,
    "diff-stats": verify.diff_stats_command,
    "verify": verify.verify_command,
}
for _name, _run in _COMMANDS.items():
    app.command(_name, cls=GroupedCommand, short_help=first_line(_run))(with_traceback(_run))
app.add_typer(plugins.app, name="plugins", short_help=plugins.app.info.help)
app.add_typer(library.app, name="library", short_help=library.app.info.help)
app.command("schema", cls=Command, short_help=first_line(schema.schema_command))(schema.schema_command)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tilewright {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _before(
    context: typer.Context,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=names_of("estimator"),
            metavar="NAME",
            help="estimator to query first for components given by size; may be repeated",
        ),
    ] = None,
    estimator_option: Annotated[
        list[str] | None, typer.Option(metavar="[NAME.]KEY=VALUE", help="option of such an estimator")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Any frontend, any mapper, any cost model for spatial accelerators."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
    elif estimator or estimator_option:
        context.with_resource(named_estimators(estimator or [], estimator_option or []))


def main() -> NoReturn:
    """Run the command line.

    Exit codes: 0 done, 1 no valid mapping, 2 invalid input or call, 3 plugin failed, 130
    interrupted (all finished results are printed).
    """
    with stdout_for_results():
        exit_with_code(app)
