"""Command `tilewright schema`: JSON schema of a kind of file, for editors and other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS = (
    "problem", "workload", "architecture", "mapping", "constraints", "space", "mapped", "group_mapping", "certificate",
    "group_certificate", "network_certificate", "report",
)  # fmt: skip
"""Kinds of files."""


def schema_command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"one of {', '.join(KINDS)}", autocompletion=lambda: list(KINDS))
    ],
) -> None:
    """Print the JSON schema of a kind of file."""
    from tilewright.application.api.call_arguments import one_of
    from tilewright.application.cli.common import print_json
    from tilewright.application.exploration.space import ArchitectureSpace
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.constraints import Constraints
    from tilewright.schema.group import GroupMapping
    from tilewright.schema.mapped import MappedProblem
    from tilewright.schema.mapped.certificate import Certificate
    from tilewright.schema.mapped.fusion import GroupCertificate, NetworkCertificate
    from tilewright.schema.mapping import Mapping
    from tilewright.schema.problem import Problem
    from tilewright.schema.report import Report
    from tilewright.schema.workload import Workload

    models: dict[str, type[BaseModel]] = {
        "problem": Problem,
        "workload": Workload,
        "architecture": Architecture,
        "mapping": Mapping,
        "constraints": Constraints,
        "space": ArchitectureSpace,
        "mapped": MappedProblem,
        "group_mapping": GroupMapping,
        "certificate": Certificate,
        "group_certificate": GroupCertificate,
        "network_certificate": NetworkCertificate,
        "report": Report,
    }
    print_json(models[one_of("kind", kind, KINDS)].model_json_schema())
