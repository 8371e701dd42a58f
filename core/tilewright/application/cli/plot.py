"""Command `tilewright plot`: chart or picture of results, a mapping or an architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="folder of `map -o`, `compare -o` or `correlate -o`, store of `explore --store`, mapping file, or architecture (file or name)",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="energy|latency|roofline|pareto|convergence|scatter|mapping|architecture [default: the first that SOURCE has]",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="file to write, .svg or .png")] = Path(
        "plot.svg"
    ),
    exploration: Annotated[
        str | None, typer.Option(metavar="KEY", help="prefix of an exploration's key [default: the last one begun]")
    ] = None,
) -> None:
    """Draw energy, latency, a roofline, a Pareto front, a search, correlated models, a mapping or an architecture."""
    import tilewright as tw
    from tilewright.application.cli.common import note

    note(f"written to {tw.plot(source, output, kind=kind, exploration=exploration)}")
