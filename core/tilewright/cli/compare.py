"""Command `tilewright compare`: several mappers under several cost models."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright import api
from tilewright.cli import options


@options.with_run_flags
def compare_command(
    flags: options.RunFlags,
    workload: options.Workloads,
    arch: options.Arch,
    mappers: Annotated[
        str,
        typer.Option(
            autocompletion=options.names_of("mapper"),
            metavar="A,B,...",
            help="mappers, separated by commas",
            show_default=False,
        ),
    ],
    models: Annotated[
        str,
        typer.Option(
            autocompletion=options.names_of("cost model"),
            metavar="X,Y,...",
            help="cost models, each used by every mapper",
        ),
    ] = api.MODEL,
) -> None:
    """Run every mapper under every cost model, and evaluate each best mapping with all models."""
    import tilewright as tw
    from tilewright.cli.common import print_result

    report = tw.compare(flags.loaded(workload), arch, mappers=mappers, models=models, **flags.settings())
    print_result(report, flags.json, flags.quiet, report.messages())
    if report.unwritten is not None:
        raise typer.Exit(report.unwritten.exit_code)
    if report.complete and any(row.reports for row in report.searches):
        raise typer.Exit
    failures = [row.layer.error.exit_code for row in report.searches if row.layer.error is not None]
    raise typer.Exit(max(failures) if report.complete and len(failures) == len(report.searches) else 1)
