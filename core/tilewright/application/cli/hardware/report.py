"""Command `tilewright report`: HTML page of a mapped network, of two that it compares, or of an exploration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report_command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER|STORE [FOLDER]",
            help="folder of `map -o`, two such folders to compare, or store of `explore --store`",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="page to write")] = Path("report.html"),
    exploration: Annotated[
        str | None, typer.Option(metavar="KEY", help="prefix of an exploration's key [default: the last one begun]")
    ] = None,
) -> None:
    """Write a self-contained HTML page of a mapped network, of two, or of an exploration."""
    import tilewright as tw
    from tilewright.application.cli.common import note

    note(f"open {tw.page(sources, output, exploration=exploration)}")
