"""Command `tilewright export`: results of an exploration as a table in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.application.cli import options


def export_command(
    store: Annotated[Path, typer.Argument(help="store from `explore --store`", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV or Parquet file (needs pyarrow)")
    ] = None,
    exploration: Annotated[
        str | None, typer.Option(metavar="KEY", help="prefix of an exploration's key [default: the last one begun]")
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="one row per layer on each architecture")] = False,
    json: options.Json = False,
) -> None:
    """Write the points of an exploration, or all its layers, as CSV or Parquet. Without -o, print them."""
    import tilewright as tw
    from tilewright.application.cli.common import note, print_result

    report = tw.explored(store, exploration)
    if output is not None:
        note(f"written to {report.save(output, layers=layers)}")
        return
    print_result(report, json)
