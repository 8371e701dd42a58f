"""Command `tilewright evaluate`: cost of a mapping by one or several models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.application.cli import options


def evaluate_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="mapping file, or all files of a tool's input set"),
    ] = None,
    mapping: Annotated[Path | None, typer.Option(metavar="FILE", help="mapping file")] = None,
    problem: options.Problem = None,
    arch: options.OtherArch = None,
    notation: options.Notation = None,
    models: options.Models = None,
    model_option: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME.]KEY=VALUE", help="option of the cost models, or of one as NAME.KEY=VALUE"),
    ] = None,
    values: options.Set = None,
    dense: options.Dense = False,
    one_energy: options.OneEnergy = False,
    dataflow: options.Dataflow = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="print all energies, limits, counts and memory contents")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print the cost of a mapping.

    A file written by `map` is complete; --problem and --arch replace its parts.
    """
    import tilewright as tw
    from tilewright.application.cli.common import key_values, print_result, reading
    from tilewright.errors import InputError, PluginError

    given = [*(files or []), *([] if mapping is None else [mapping])]
    if not given:
        raise InputError("nothing to evaluate", hint="give --mapping FILE, or all FILES of another tool's input set")
    report = tw.evaluate(
        given[0] if notation is None and len(given) == 1 else given,
        problem,
        arch,
        models=options.names(models),
        model_options=key_values(model_option, "--model-option"),
        notation=notation,
        reading=reading(values, dense, dataflow, one_energy),
    )
    if report.failures:
        raise PluginError(report.failures[0])
    shown = report.explained() if explain else report
    print_result(shown, json, quiet, [f"warning: {warning}" for warning in report.warnings])
