"""Command `tilewright correlate`: several cost models on the same sampled mappings."""

from __future__ import annotations

import typer

from tilewright.application.api.settings import CorrelateSettings
from tilewright.application.cli import options


@options.with_settings(CorrelateSettings)
def correlate_command(flags: options.Flags, workload: options.Workloads, arch: options.Arch) -> None:
    """Evaluate sampled mappings under several cost models, and tell how far the models agree."""
    import tilewright as tw
    from tilewright.application.api.load.kinds import is_group_file
    from tilewright.application.cli.common import print_result

    source = workload if any(map(is_group_file, workload)) else flags.loaded(workload)  # groups are refused by name
    report = tw.correlate(source, arch, **flags.settings())
    print_result(report, flags.json, flags.quiet, report.messages())
    if report.unwritten is not None:
        raise typer.Exit(report.unwritten.exit_code)
    raise typer.Exit(0 if report.correlations else 3 if report.failed else 1)
