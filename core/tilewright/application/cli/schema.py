"""Command `tilewright schema`: JSON schema of a kind of file, for editors and other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS = (
    "problem", "workload", "architecture", "mapping", "constraints", "space", "mapped", "group_mapping", "certificate",
    "report",
)  # fmt: skip
"""Kinds of files."""


def schema_command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"one of {', '.join(KINDS)}", autocompletion=lambda: list(KINDS))
    ],
) -> None:
    """Print the JSON schema of a kind of file."""
    from tilewright.application.api.call_arguments import one_of
    from tilewright.application.api.load.kinds import SCHEMAS
    from tilewright.application.cli.common import print_json
    from tilewright.application.exploration.space import ArchitectureSpace
    from tilewright.reports import Report
    from tilewright.schema.mapped.certificate import Certificate

    others: dict[str, type[BaseModel]] = {"space": ArchitectureSpace, "certificate": Certificate, "report": Report}
    print_json((SCHEMAS | others)[one_of("kind", kind, KINDS)].model_json_schema())
