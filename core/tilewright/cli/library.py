"""`tilewright library`: what comes with the installation."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class Shelf(StrEnum):
    """What to list."""

    all = "all"
    archs = "archs"
    workloads = "workloads"


def library_command(
    shelf: Annotated[Shelf, typer.Argument(help="archs, workloads or both")] = Shelf.all,
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List the library's architectures (with their constraints) and workloads."""
    from tilewright.api.load import workload_names
    from tilewright.cli.common import console, print_json
    from tilewright.plugin.registry import installed

    archs = _architectures() if shelf != Shelf.workloads else []
    workloads = workload_names(installed()) if shelf != Shelf.archs else {}
    if json:
        found = {
            "schema_version": 1,
            "archs": archs,
            "workloads": [{"name": n, "source": s} for n, s in workloads.items()],
        }
        print_json(found)
        return
    from rich.table import Table

    out = console()
    if archs:
        table = Table(
            "architecture", "compute units", "memories, outermost first", "constraints (* by default)", box=None
        )
        for arch in archs:
            names = [f"*{name}" if name == arch["dataflow"] else name for name in arch["constraints"]]
            table.add_row(arch["name"], f"{arch['compute_units']:,}", ", ".join(arch["memories"]), ", ".join(names))
        out.print(table)
    if workloads:
        table = Table("workload", "source", box=None)
        for name, source in workloads.items():
            table.add_row(name, source)
        out.print(table)


def _architectures() -> list[dict[str, Any]]:
    from tilewright import library

    rows: list[dict[str, Any]] = []
    for name in library.names("architectures"):
        architecture = library.architecture(name)
        dataflow = library.default_constraints(name)
        rows.append(
            {
                "name": name,
                "compute_units": architecture.compute_instances,
                "memories": [memory.name for memory in architecture.memories],
                "constraints": sorted(library.constraints_for(name)),
                "dataflow": dataflow.name if dataflow else None,
                "source": architecture.source,
            }
        )
    return rows
