"""Command `tilewright export`: results of an exploration as a table in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import options


def export_command(
    store: Annotated[Path, typer.Argument(help="store that `explore --store` wrote", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV or Parquet file (needs pyarrow)")
    ] = None,
    exploration: Annotated[
        str | None, typer.Option(metavar="KEY", help="the one whose key begins so; default: the last one begun")
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="a row for each layer on each machine")] = False,
    json: options.Json = False,
) -> None:
    """Write the points of an exploration, or all its layers, as CSV or Parquet; without -o show them."""
    import tilewright as tw
    from tilewright.cli.common import note, show

    report = tw.explored(store, exploration)
    if output is not None:
        note(f"written to {report.save(output, layers=layers)}")
        return
    show(report, json)
