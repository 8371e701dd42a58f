"""Command `tilewright compare`: several mappers under several cost models."""

from __future__ import annotations

import typer

from tilewright.application.api.settings import CompareSettings
from tilewright.application.cli import options


@options.with_settings(CompareSettings)
def compare_command(flags: options.Flags, workload: options.Workloads, arch: options.Arch) -> None:
    """Run every mapper under every cost model, and evaluate each best mapping with all models."""
    import tilewright as tw
    from tilewright.application.cli.common import print_result

    report = tw.compare(flags.loaded(workload), arch, **flags.settings())
    print_result(report, flags.json, flags.quiet, report.messages())
    if report.unwritten is not None:
        raise typer.Exit(report.unwritten.exit_code)
    if report.complete and any(row.reports for row in report.searches):
        raise typer.Exit
    failures = [row.layer.error.exit_code for row in report.searches if row.layer.error is not None]
    raise typer.Exit(max(failures) if report.complete and len(failures) == len(report.searches) else 1)
