"""Command `tilewright explore`: a workload on the architectures of a space."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tilewright.application.api.settings import ExploreSettings
from tilewright.application.cli import options


@options.with_settings(ExploreSettings)
def explore_command(
    flags: options.Flags,
    workload: options.Workloads,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="SPACE", help="space of architectures: library name or YAML file", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV or Parquet file for all points")
    ] = None,
) -> None:
    """Map a workload onto the architectures of a space, or onto one with varied fields; report the Pareto-optimal ones.

    An architecture is Pareto-optimal if no other one is better in energy, cycles or area without
    being worse in another of them.
    """
    import tilewright as tw
    from tilewright.application.cli.common import note, print_result

    settings = flags.settings()
    report = tw.explore(flags.loaded(workload), space, **settings)
    if not report.complete and report.failure is None and (settings["store"] is not None or settings["cache"]):
        note("ended before all points were tried; the same command continues")
    if output is not None:
        note(f"written to {report.save(output)}")
    print_result(report, flags.json, flags.quiet, report.messages())
    if settings["store"] is not None and report.found and not flags.quiet:
        note(f"a page of it: tilewright report {shlex.quote(str(settings['store']))}")
    if report.failure is not None:
        raise typer.Exit(report.failure.exit_code)
    if not report.complete:
        raise typer.Exit(1 if report.points else 130)
