"""Command `tilewright convert`: files of one notation, written in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.application.cli import options

if TYPE_CHECKING:
    from tilewright.application.conversion.conversion import Conversion


def convert_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="all files of one input set", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Option(
            "--to",
            autocompletion=options.names_of("adapter"),
            metavar="NOTATION",
            help="target notation",
            show_default=False,
        ),
    ],
    source: options.Notation = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="folder for the files [default: print them]")
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="drop parts that the target cannot express, and list them")
    ] = False,
    values: options.Set = None,
    dense: options.Dense = False,
    one_energy: options.OneEnergy = False,
    dataflow: options.Dataflow = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert files from one notation to another.

    Parts that the target cannot express are refused with all reasons, or dropped with --lossy.
    """
    import tilewright as tw
    from tilewright.application.cli.common import note, print_error, print_json, reading
    from tilewright.errors import NotConformableError

    try:
        made = tw.convert(files, source, target, lossy=lossy, reading=reading(values, dense, dataflow, one_energy))
    except NotConformableError as error:
        print_error(error, _data(source, target) | {"refused": True, "reasons": error.data()["reasons"]})
        raise typer.Exit(error.exit_code) from None
    notes = [f"warning: {warning}" for warning in made.warnings] + [f"dropped {field}" for field in made.dropped]
    if output is not None:
        others = sorted(
            path.name
            for path in (output.iterdir() if output.is_dir() else ())
            if path.name not in made.files and path.suffix in {Path(name).suffix for name in made.files}
        )
        made.save(output)
        if others:
            notes.append(f"warning: {output} also has {', '.join(others)}, which this conversion did not write")
        notes.append(f"written to {output}: {', '.join(made.files)} (by {' and '.join(made.adapters)})")
    for text in () if quiet else notes:
        note(text)
    if json:
        print_json(_data(made.route[0], target, made, output))
    elif output is None:
        typer.echo(str(made), nl=len(made.files) > 1)


def _data(
    source: str | None, target: str, made: Conversion | None = None, output: Path | None = None
) -> dict[str, Any]:
    data: dict[str, Any] = {"schema_version": 1, "from": source, "to": target, "refused": False, "reasons": []}
    if made is None:
        return data
    return data | {
        "route": list(made.route),
        "adapters": list(made.adapters),
        "files": [
            {"name": name, "path": None if output is None else str(output / name), "text": text}
            for name, text in made.files.items()
        ],
        "warnings": list(made.warnings),
        "dropped": [{"what": field.what, "message": field.message} for field in made.dropped],
    }
