"""Command `tilewright plot`: chart or picture of results, a mapping or an architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot_command(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="folder of `map -o`, `compare -o` or `correlate -o`, store of `explore --store`, mapping file, or architecture (file or name). Several folders of `map --pareto`, or stores, have their fronts in one chart",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="objective|energy|latency|roofline|pareto|sweep|convergence|scatter|mapping|architecture [default: the first that SOURCE has]",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="file to write, .svg, .png or .pdf")
    ] = Path("plot.svg"),
    exploration: Annotated[
        str | None, typer.Option(metavar="KEY", help="prefix of an exploration's key [default: the last one begun]")
    ] = None,
    width: Annotated[
        float | None, typer.Option(metavar="INCHES", help="width, such as 3.5 for a column [default: as needed]")
    ] = None,
    font_size: Annotated[float | None, typer.Option(metavar="POINTS", help="size of the text [default: 9]")] = None,
    colour: Annotated[
        list[str] | None,
        typer.Option(
            "--colour", "--color", metavar="NAME=COLOUR", help="colour of a mapper or another series; may be repeated"
        ),
    ] = None,
) -> None:
    """Draw energy, latency, a roofline, a Pareto front, a search, correlated models, a mapping or an architecture."""
    import tilewright as tw
    from tilewright.application.cli.common import note

    parts = [item.partition("=") for item in colour or ()]
    for name, _, value in parts:
        if not name or not value:
            raise tw.errors.InputError("--colour takes NAME=COLOUR", hint="such as --colour optimal=#4477aa")
    colours = {name: value for name, _, value in parts} or None
    written = tw.plot(
        source[0] if len(source) == 1 else source,
        output,
        kind=kind,
        exploration=exploration,
        width=width,
        font_size=font_size,
        colours=colours,
    )
    note(f"written to {written}")
