"""Command `tilewright library`: files of the installation to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.application.cli import options

if TYPE_CHECKING:
    from tilewright.schema.workload import Workload


SUMMARY = "List the installed library, print one of its files or a new architecture, or list the layers of a workload."
app = typer.Typer(help=SUMMARY)


@app.callback(invoke_without_command=True)
def library_command(context: typer.Context, json: options.Json = False) -> None:
    """List the installed library, print one of its files or a new architecture, or list the layers of a workload."""
    if context.invoked_subcommand is None:
        _list(json)


@app.command("archs", cls=options.Command)
def archs_command(json: options.Json = False) -> None:
    """List architectures, their constraints, and fitting cost models."""
    _list(json, workloads=False)


@app.command("workloads", cls=options.Command)
def workloads_command(json: options.Json = False) -> None:
    """List workloads, including those of frontends."""
    _list(json, archs=False)


@app.command("show", cls=options.Command)
def show_command(
    name: Annotated[
        str,
        typer.Argument(
            help="architecture, constraints (eyeriss.row_stationary), workload, layer of a workload, or formula",
            show_default=False,
        ),
    ],
    batch: options.Batch = None,
    size: options.Size = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="file to write")] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print a library file, as a start for one of your own."""
    import tilewright as tw
    from tilewright.application.cli.common import note, print_json
    from tilewright.files import write_text

    entry = tw.load(name, **options.frontend_options(batch, size))
    shipped = tw.library.text(name)
    if json:
        print_json((entry if shipped is None else type(entry).from_yaml(shipped)).to_data())
        return
    text = entry.to_yaml() if shipped is None else shipped
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    if not quiet:
        note(f"written to {output}")


@app.command("new", cls=options.Command)
def new_command(
    name: Annotated[str, typer.Argument(help="name of the architecture", show_default=False)],
    array: Annotated[str, typer.Option(metavar="16x16", help="compute units along X and Y, or their number")] = "16x16",
    buffer: Annotated[str, typer.Option(metavar="SIZE", help="capacity of the shared buffer")] = "128 KiB",
    registers: Annotated[str, typer.Option(metavar="SIZE", help="capacity of the registers of each unit")] = "64 words",
    word_bits: Annotated[int, typer.Option(metavar="N", min=1, help="bits of a value")] = 16,
    dram: Annotated[
        str, typer.Option(metavar="RATE", help="bandwidth of DRAM, reads and writes together, such as 25.6GB/s")
    ] = "25.6 GB/s",
    buffer_bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help="bandwidth of the buffer, such as 64B/cycle [default: unlimited]")
    ] = None,
    clock: Annotated[str, typer.Option(metavar="FREQUENCY", help="clock, such as 500MHz")] = "1 GHz",
    technology: Annotated[str, typer.Option(metavar="NODE", help="technology node, such as 28nm")] = "45 nm",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="file to write")] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print an architecture file for a machine of your own, with energies estimated from its sizes."""
    from tilewright.application.api.hardware.machines import architecture_file
    from tilewright.application.cli.common import note, print_json
    from tilewright.files import write_text

    text, architecture = architecture_file(
        name, array, buffer, registers, word_bits, dram, buffer_bandwidth, clock, technology
    )
    if output is not None:
        write_text(output, text)
        if not quiet:
            note(
                f"written to {output}; tilewright map resnet50 --arch {shlex.quote(str(output))} maps a network onto it"
            )
    if json:
        print_json(architecture.to_data())
    elif output is None:
        typer.echo(text, nl=False)


@app.command("layers", cls=options.Command)
def layers_command(
    workload: options.Workload,
    batch: options.Batch = None,
    size: options.Size = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="file for the graph: FILE.graphml or FILE.json"),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List a workload's layers, and the results that they read."""
    from tilewright.application.api.load import load_workload
    from tilewright.application.cli.common import note

    layers = load_workload(workload, options.frontend_options(batch, size))
    if output is not None:
        _write_graph(layers, output)
        if not quiet:
            note(f"written to {output}: {len(layers.layers)} layers, {layers.graph.number_of_edges()} edges")
    _print_layers(layers, json)


def _list(json: bool, archs: bool = True, workloads: bool = True) -> None:
    from tilewright.application.api.load import workload_names
    from tilewright.application.cli.common import print_json, print_tables
    from tilewright.application.documents.listings import LibraryArchitecture, LibraryOutput, LibraryWorkload
    from tilewright.tables import Column, Table, numbers

    rows, names = _architectures() if archs else [], workload_names() if workloads else {}
    if json:
        document = LibraryOutput(
            archs=[LibraryArchitecture(**row) for row in rows],
            workloads=[LibraryWorkload(name=name, source=source) for name, source in names.items()],
        )
        print_json(document.data())
        return
    tables = []
    if rows:
        units, memories = numbers("compute units", rank=1), Column("memories, outermost first", wrapped=True)
        tables.append(Table("architecture", units, memories, Column("constraints (* by default)", wrapped=True),
                            Column("cost models that fit", wrapped=True), more="--json"))  # fmt: skip
        for row in rows:
            rules = [f"*{name}" if name == row["dataflow"] else name for name in row["constraints"]]
            tables[-1].add_row(
                row["name"],
                row["compute_units"],
                ", ".join(row["memories"]),
                ", ".join(rules),
                ", ".join(row["models"]),
            )
    if names:
        tables.append(Table("workload", Column("source", wrapped=True)))
        for name, source in names.items():
            tables[-1].add_row(name, source)
    print_tables(*tables, *(["tilewright plugins fit ARCH prints why other cost models do not fit"] if rows else []))


def _print_layers(workload: Workload, json: bool) -> None:
    from tilewright.application.cli.common import print_json, print_tables
    from tilewright.application.documents.listings import LayersOutput, ListedLayer
    from tilewright.tables import Column, Table, numbers

    if json:
        document = LayersOutput(
            workload=workload.name,
            source=workload.source,
            content=workload.content,
            layers=[
                ListedLayer(
                    name=layer.name,
                    count=layer.count,
                    macs=layer.problem.macs,
                    dimensions=dict(layer.problem.dimensions),
                    stride=layer.problem.stride,
                    dilation=layer.problem.dilation,
                    after=None if layer.after is None else list(layer.after),
                    origin=None if layer.origin is None else layer.origin.model_dump(exclude_none=True),
                )
                for layer in workload.layers
            ],
        )
        print_json(document.data())
        return
    steps = [name for name in ("stride", "dilation") if any(getattr(layer.problem, name) for layer in workload.layers)]
    table = Table(
        "layer",
        numbers("count"),
        numbers("MACs"),
        Column("sizes", wrapped=True),
        *(Column(name, rank=1) for name in steps),
        Column("origin", rank=1, wrapped=True),
        Column("reads results of", wrapped=True),
    )
    for layer in workload.layers:
        after = "not known" if layer.after is None else ", ".join(layer.after) or "-"
        table.add_row(
            *(layer.name, layer.count, layer.problem.macs, layer.problem.long_dimensions),
            *(getattr(layer.problem, name) or "" for name in steps),
            *(str(layer.origin or "-"), after),
        )
    print_tables(table, *workload.told())


def _write_graph(workload: Workload, path: Path) -> None:
    """Write a workload's graph to a file.

    Raises:
        InputError: The suffix of the file selects no format.
        OutputError: The file cannot be written.
    """
    import json

    import networkx as nx

    from tilewright.errors import InputError
    from tilewright.files import write_text

    if path.suffix == ".graphml":
        write_text(path, "\n".join(nx.generate_graphml(workload.graph)) + "\n")
    elif path.suffix == ".json":
        write_text(path, json.dumps(nx.node_link_data(workload.graph, edges="edges"), indent=2))
    else:
        raise InputError(f"cannot write a graph as {path.name}", hint="name a file .graphml or .json")


def _architectures() -> list[dict[str, Any]]:
    from tilewright import fit, library

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
                "models": fit(name).fitting,
                "source": architecture.source,
            }
        )
    return rows
