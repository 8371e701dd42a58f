"""Command `tilewright convert`: files of one notation, written in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.application.cli import options

if TYPE_CHECKING:
    from tilewright.application.conversion.conversion import Conversion
    from tilewright.application.documents.listings import ConvertOutput

FULL = "mapping.full.json"
"""Name of the file that `--full` writes."""


def convert_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="all files of one input set", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--to",
            autocompletion=options.names_of("adapter"),
            metavar="NOTATION",
            help="target notation",
            show_default=False,
        ),
    ] = None,
    source: options.Notation = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="folder for the files [default: print them]")
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="drop parts that the target cannot express, and list them")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="instead of --to: all loops and tiles of the mapping, as JSON")
    ] = False,
    values: options.Set = None,
    dense: options.Dense = False,
    one_energy: options.OneEnergy = False,
    dataflow: options.Dataflow = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert files from one notation to another, or write all loops and tiles of a mapping.

    Parts that the target cannot express are refused with all reasons, or dropped with --lossy.
    """
    import tilewright as tw
    from tilewright.application.api.conversion import full_form_of
    from tilewright.application.api.evaluation import inputs_by
    from tilewright.application.cli.common import note, print_error, print_json, reading
    from tilewright.application.conversion.conversion import write_files
    from tilewright.application.documents.listings import ConvertOutput, ErrorData
    from tilewright.errors import CallError, NotConformableError

    given = reading(values, dense, dataflow, one_energy)
    if full == (target is not None):
        raise CallError("convert needs either --to NOTATION or --full", hint="tilewright plugins lists the notations")
    if target is None:
        if lossy:
            raise CallError("--lossy is for --to; the full form has the whole mapping")
        inputs = inputs_by(files[0] if len(files) == 1 else files, None, None, source, given)
        text = full_form_of(inputs).to_json()
        if output is None or json:
            typer.echo(text)
        if output is not None:
            write_files(output, {FULL: text + "\n"})
            if not quiet:
                note(f"written to {output / FULL}")
        return
    try:
        made = tw.convert(files, source, target, lossy=lossy, reading=given)
    except NotConformableError as error:
        refused = ConvertOutput(
            source=source, to=target, refused=True, reasons=list(error.reasons), error=ErrorData(**error.data())
        )
        print_error(error, refused.data())
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
        print_json(_document(target, made, output).data())
    elif output is None:
        typer.echo(str(made), nl=len(made.files) > 1)


def _document(target: str, made: Conversion, output: Path | None) -> ConvertOutput:
    from tilewright.application.documents.listings import ConvertOutput, DroppedRow, WrittenFile

    return ConvertOutput(
        source=made.route[0],
        to=target,
        refused=False,
        reasons=[],
        route=list(made.route),
        adapters=list(made.adapters),
        files=[
            WrittenFile(name=name, path=None if output is None else str(output / name), text=text)
            for name, text in made.files.items()
        ],
        warnings=list(made.warnings),
        dropped=[DroppedRow(what=field.what, message=field.message) for field in made.dropped],
    )
