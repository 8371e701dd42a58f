"""`tilewright schema`: the JSON schema of a file kind, for editors and other languages."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel


class Kind(StrEnum):
    """File kinds."""

    problem = "problem"
    workload = "workload"
    architecture = "architecture"
    mapping = "mapping"
    constraints = "constraints"
    space = "space"
    mapped = "mapped"
    report = "report"


def schema_command(kind: Annotated[Kind, typer.Argument(help="which kind of file")]) -> None:
    """Print the JSON schema of a kind of file."""
    from tilewright.cli.common import print_json
    from tilewright.exploration.space import ArchitectureSpace
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.constraints import Constraints
    from tilewright.schema.mapped import MappedProblem
    from tilewright.schema.mapping import Mapping
    from tilewright.schema.problem import Problem
    from tilewright.schema.report import Report
    from tilewright.schema.workload import Workload

    models: dict[Kind, type[BaseModel]] = {
        Kind.problem: Problem,
        Kind.workload: Workload,
        Kind.architecture: Architecture,
        Kind.mapping: Mapping,
        Kind.constraints: Constraints,
        Kind.space: ArchitectureSpace,
        Kind.mapped: MappedProblem,
        Kind.report: Report,
    }
    print_json(models[kind].model_json_schema())
