"""`tilewright convert`: a tool's files in another tool's notation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tilewright.cli import options

if TYPE_CHECKING:
    from tilewright.conversion.conversion import Conversion
    from tilewright.errors import NotConformableError


def convert_command(
    files: Annotated[list[Path], typer.Argument(help="all files of one input set")],
    source: Annotated[str, typer.Option("--from", help="their notation; `tilewright` for our own YAML files")],
    target: Annotated[str, typer.Option("--to", help="the notation to write")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="folder for the files; else printed")] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="leave out what cannot be said there, and list it")] = False,
    json: options.Json = False,
) -> None:
    """Write files of one notation in another. What the other cannot hold is refused with every reason, unless --lossy."""
    import tilewright as tw
    from tilewright.cli.common import note, print_json
    from tilewright.errors import NotConformableError

    try:
        made = tw.convert(files, source, target, lossy=lossy)
    except NotConformableError as error:
        if json:
            reasons = [reason.model_dump(mode="json") for reason in error.reasons]
            print_json(_data(source, target) | {"refused": True, "reasons": reasons})
        _refuse(error, target, lossy)
    for warning in made.warnings:
        note(f"warning: {warning}")
    for field in made.dropped:
        note(f"dropped {field}")
    if output is not None:
        made.save(output)
        note(f"written to {output}: {', '.join(made.files)} (by {' and '.join(made.adapters)})")
    if json:
        print_json(_data(source, target, made, output))
    elif output is None:
        typer.echo(str(made), nl=len(made.files) > 1)


def _refuse(error: NotConformableError, target: str, lossy: bool) -> NoReturn:
    from tilewright.cli.common import note

    more = "nor can enough of it be left out" if lossy else "--lossy writes what it can hold and lists the rest"
    note(f"error: {target} cannot hold all of this ({more}):")
    for reason in error.reasons:
        note(f"  - {reason}")
    raise typer.Exit(error.exit_code)


def _data(source: str, target: str, made: Conversion | None = None, output: Path | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"schema_version": 1, "from": source, "to": target, "refused": False, "reasons": []}
    if made is None:
        return found
    return found | {
        "route": list(made.route),
        "adapters": list(made.adapters),
        "files": [
            {"name": name, "path": None if output is None else str(output / name), "text": text}
            for name, text in made.files.items()
        ],
        "warnings": list(made.warnings),
        "dropped": [{"what": field.what, "message": field.message} for field in made.dropped],
    }
