"""`tilewright map`: a network onto an accelerator."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright import api
from tilewright.cli import options


@options.with_run_flags
def map_command(
    flags: options.RunFlags,
    workload: options.Workload,
    arch: options.Arch,
    mapper: Annotated[
        str, typer.Option(metavar="NAME", help="mapper that searches; `tilewright plugins` lists them")
    ] = api.MAPPER,
    model: Annotated[str, typer.Option(metavar="NAME", help="cost model that the search uses")] = api.MODEL,
) -> None:
    """Map every distinct layer of a workload onto an architecture."""
    import tilewright as tw
    from tilewright.cli.common import show

    report = tw.map(flags.loaded(workload), arch, mapper=mapper, model=model, **flags.settings())
    show(report, flags.json, flags.quiet, report.messages())
    failures = [layer.error.exit_code for layer in report.layers if layer.error is not None]
    raise typer.Exit(max(failures, default=0 if report.complete else 1))
