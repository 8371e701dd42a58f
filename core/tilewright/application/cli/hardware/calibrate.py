"""Command `tilewright calibrate`: parameters of an architecture, fitted to measured cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.application.cli import options


def calibrate_command(
    arch: Annotated[
        str,
        typer.Argument(
            autocompletion=options.names_of("architecture"),
            help="architecture with first values of its parameters: library name or YAML file",
            show_default=False,
        ),
    ],
    measured: Annotated[
        Path,
        typer.Option(
            metavar="FILE.csv",
            help="measurements: columns mapping, cycles, and maybe problem and weight",
            show_default=False,
        ),
    ],
    test: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="further measurements, which the fit does not see")
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar="PATH,...", help="parameters to fit [default: all bandwidths, and timings that are not neutral]"
        ),
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="parts of the cross-validation")] = 5,
    worst: Annotated[int, typer.Option(metavar="N", min=0, help="rows that fit worst, to show with a reason")] = 5,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="S", min=0, help="time limit; the best values so far are printed [default: none]"),
    ] = None,
    model: Annotated[
        list[str] | None,
        options.plugin_option("cost model", "--model", "NAME", "cost model [default: the one that counts timings]"),
    ] = None,
    model_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="option of the cost model")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="architecture file to write")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="chart of predicted and measured cycles: .svg, .png or .pdf")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit parameters of an architecture to measured cycles, and report the error on unseen measurements."""
    import tilewright as tw
    from tilewright.application.cli.common import key_values, note, print_result

    report = tw.calibrate(
        arch,
        measured,
        model=options.one_name(model, "--model"),
        model_options=key_values(model_option, "--model-option"),
        parameters=parameters,
        test=test,
        folds=folds,
        worst=worst,
        seconds=seconds,
        progress=not quiet,
    )
    if output is not None:
        report.save(output)
    if plot is not None:
        report.plot.scatter().save(plot)
    print_result(report, json, quiet, report.messages())
    if not quiet:
        note("-o FILE writes the architecture" if output is None else f"written to {output}")
