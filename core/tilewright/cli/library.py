"""`tilewright library`: what comes with the installation."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tilewright.schema.workload import Workload


class Shelf(StrEnum):
    """What to list."""

    all = "all"
    archs = "archs"
    workloads = "workloads"
    show = "show"


def library_command(
    shelf: Annotated[Shelf, typer.Argument(help="archs, workloads, all, or show WORKLOAD")] = Shelf.all,
    workload: Annotated[str | None, typer.Argument(help="show: a workload, as for `map`")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="show: write its graph to FILE.graphml or FILE.json")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List the library's architectures (with their constraints) and workloads, or show what feeds what in a workload."""
    from tilewright.api.load import load_workload, workload_names
    from tilewright.cli.common import print_json, print_tables
    from tilewright.errors import InputError
    from tilewright.tables import Column, Table, numbers

    if shelf == Shelf.show:
        if workload is None:
            raise InputError("library show needs a workload", hint="tilewright library show resnet50")
        _show(load_workload(workload), output, json)
        return
    if workload is not None or output is not None:
        raise InputError(f"library {shelf} takes no workload", hint=f"tilewright library show {workload or 'WORKLOAD'}")
    archs = _architectures() if shelf != Shelf.workloads else []
    workloads = workload_names() if shelf != Shelf.archs else {}
    if json:
        found = {
            "schema_version": 1,
            "archs": archs,
            "workloads": [{"name": n, "source": s} for n, s in workloads.items()],
        }
        print_json(found)
        return
    tables = []
    if archs:
        tables.append(
            Table(
                "architecture",
                numbers("compute units"),
                Column("memories, outermost first", wrapped=True),
                Column("constraints (* by default)", wrapped=True),
            )
        )
        for arch in archs:
            names = [f"*{name}" if name == arch["dataflow"] else name for name in arch["constraints"]]
            tables[-1].add_row(arch["name"], arch["compute_units"], ", ".join(arch["memories"]), ", ".join(names))
    if workloads:
        tables.append(Table("workload", Column("source", wrapped=True)))
        for name, source in workloads.items():
            tables[-1].add_row(name, source)
    print_tables(*tables)


def _show(workload: Workload, output: Path | None, json: bool) -> None:
    """The layers, each with those whose results it reads."""
    from tilewright.cli.common import note, print_json, print_tables
    from tilewright.tables import Column, Table, numbers

    if output is not None:
        _write_graph(workload, output)
        note(f"written to {output}: {len(workload.layers)} layers, {workload.graph.number_of_edges()} edges")
    if json:
        layers = [
            {
                "name": each.name,
                "macs": each.problem.macs,
                "dimensions": dict(each.problem.dimensions),
                "after": each.after,
            }
            for each in workload.layers
        ]
        print_json({"schema_version": 1, "workload": workload.name, "source": workload.source, "layers": layers})
        return
    table = Table(
        "layer",
        numbers("MACs"),
        Column("dimensions longer than 1", wrapped=True),
        Column("reads results of", wrapped=True),
    )
    for layer in workload.layers:
        table.add_row(layer.name, layer.problem.macs, layer.problem.long_dimensions, ", ".join(layer.after) or "-")
    print_tables(table)


def _write_graph(workload: Workload, path: Path) -> None:
    """Raises InputError: the name does not say how to write it, or it cannot be written."""
    import json

    import networkx as nx

    from tilewright.errors import InputError

    try:
        if path.suffix == ".graphml":
            nx.write_graphml_xml(workload.graph, path)
        elif path.suffix == ".json":
            path.write_text(json.dumps(nx.node_link_data(workload.graph, edges="edges"), indent=2), encoding="utf-8")
        else:
            raise InputError(f"a graph cannot be written as {path.name}", hint="name a file .graphml or .json")
    except OSError as error:
        raise InputError(f"cannot write to {path}: {error.strerror}") from None


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
