"""Command `tilewright schema`: JSON schema of a kind of file, for editors and other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.application.documents import OUTPUT_KINDS, output_model

if TYPE_CHECKING:
    from pydantic import BaseModel

FILE_KINDS = (
    "problem", "workload", "architecture", "mapping", "constraints", "space", "mapped", "group_mapping", "full_mapping",
    "full_group_mapping", "certificate", "report",
)  # fmt: skip
"""Kinds of files."""
KINDS = (*FILE_KINDS, *OUTPUT_KINDS)
"""Kinds of files, and of documents that commands print."""


def schema_command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"one of {', '.join(KINDS)}", autocompletion=lambda: list(KINDS))
    ],
) -> None:
    """Print the JSON schema of a kind of file, or of what a command prints with --json."""
    from tilewright.application.api.call_arguments import one_of
    from tilewright.application.cli.common import print_json

    print_json(json_schema(one_of("kind", kind, KINDS)))


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a kind.

    That of a file accepts its short and its full form. That of an output accepts keys that later versions add.
    """
    from tilewright.application.api.load.kinds import SCHEMAS
    from tilewright.application.exploration.space import ArchitectureSpace
    from tilewright.reports import Report
    from tilewright.schema.group.full import FullGroup
    from tilewright.schema.mapped.certificate import Certificate
    from tilewright.schema.mapping.full import FullMapping

    others: dict[str, type[BaseModel]] = {
        "space": ArchitectureSpace,
        "full_mapping": FullMapping,
        "full_group_mapping": FullGroup,
        "certificate": Certificate,
        "report": Report,
    }
    model = output_model(kind) if kind in OUTPUT_KINDS else (SCHEMAS | others)[kind]
    version = model.model_fields["schema_version"].default if "schema_version" in model.model_fields else 1
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:tilewright:{kind}:{version}"}
    return head | model.model_json_schema()
