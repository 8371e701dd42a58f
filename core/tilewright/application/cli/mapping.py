"""Command `tilewright map`: a network onto an accelerator."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tilewright.application.api.keywords import settings_of
from tilewright.application.api.settings import FrontSettings, GenerateSettings, MapSettings
from tilewright.application.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tilewright.application.api.mapping_report import MappingReport
    from tilewright.errors import TilewrightError
    from tilewright.schema.origin import Origin


@options.with_settings(MapSettings)
def map_command(
    flags: options.Flags,
    workload: options.Workloads,
    arch: options.ArchOfNetwork = [],  # noqa: B006 -- typer wants a list; nothing changes it
    pareto: Annotated[int | None, options.option(settings_of(FrontSettings)["points"])] = None,
    budget_cycles: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="with --pareto: least energy of the network within N cycles in total"),
    ] = None,
    prefill: Annotated[int | None, options.option(settings_of(GenerateSettings)["prefill"])] = None,
    decode: Annotated[int | None, options.option(settings_of(GenerateSettings)["decode"])] = None,
    kv_block: Annotated[int | None, options.option(settings_of(GenerateSettings)["kv_block"])] = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="show the network graph with energy and cycles of each layer")
    ] = False,
    fuse: Annotated[
        bool,
        typer.Option(
            "--fuse",
            help="keep intermediate results on chip: of a network, or of a group file whose layers share loops",
        ),
    ] = False,
) -> None:
    """Map every distinct layer of a workload onto an architecture."""
    import tilewright as tw
    from tilewright.application.api.load.kinds import is_group_file
    from tilewright.application.cli.common import print_result, print_tables

    settings = flags.settings()
    if not arch and not (fuse and any(map(is_group_file, workload))):
        raise tw.errors.CallError("tilewright map: missing option '--arch'", hint=_arch_hint(workload))
    if (prefill, decode, kv_block) != (None, None, None):
        other = fuse or graph or (pareto, budget_cycles) != (None, None)
        _generate(flags, workload, arch, {"prefill": prefill, "decode": decode, "kv_block": kv_block}, other)
    if fuse:
        _fuse(flags, workload, arch, pareto is not None or budget_cycles is not None, graph)
    if budget_cycles is not None and pareto is None:
        raise tw.errors.CallError("--budget-cycles chooses among the points of --pareto N; give both")
    if pareto is not None:
        if settings["algorithms"] or settings["cluster"] or graph:
            raise tw.errors.CallError("--pareto excludes --algorithms, --cluster and --graph")
        taken = {name: settings[name] for name in settings_of(FrontSettings) if name != "points"}
        fronts = tw.front(flags.loaded(workload), arch, points=pareto, **taken)
        if budget_cycles is None:
            print_result(fronts, flags.json, flags.quiet, fronts.messages())
        else:
            print_result(fronts.within(budget_cycles), flags.json, flags.quiet, fronts.messages())
        raise typer.Exit(
            _code(
                fronts.complete and not fronts.stopped,
                [fronts.unwritten, *(error for front in fronts.fronts for error in front.errors)],
            )
        )
    report = tw.map(flags.loaded(workload), arch, **settings)
    print_result(report, flags.json, flags.quiet, report.messages())
    if graph and not flags.json:
        from tilewright.application.api.graph_table import graph_table

        print_tables("", graph_table(report.graph))
    told = flags.json or flags.quiet or report.is_one or (report.expansion is not None and report.folder is None)
    if not told:
        _tell_how_to_see_one(report, workload)
    raise typer.Exit(
        _code(report.complete and not report.stopped, [report.unwritten, *(layer.error for layer in report.layers)])
    )


def _generate(
    flags: options.Flags, workload: list[str], arch: list[str], sizes: dict[str, int | None], others: bool
) -> NoReturn:
    """Print the passes of a language model. Raises CallError, and Exit."""
    import tilewright as tw
    from tilewright.application.cli.common import print_result

    settings, known = flags.settings(), settings_of(MapSettings)
    taken = {name: settings[name] for name in settings_of(GenerateSettings) if name in settings}
    odd = [
        known[name].spelled[0]
        for name in known
        if name not in taken and (settings[name] or None) != (known[name].default or None)
    ]
    odd += [f"--{name}" for name in ("size", "density", "branch") if getattr(flags, name)]
    if others or odd:
        told = ", ".join(odd) or "--fuse, --graph, --pareto and --budget-cycles"
        hint = "--prefill and --decode set the sizes of all passes, and --batch the number of sequences"
        raise tw.errors.CallError(f"--prefill excludes {told}", hint=hint)
    if sizes["prefill"] is None:
        hint = "add --prefill N, the tokens of the prompt; one step alone: --size seq=1 --size cache=N"
        raise tw.errors.CallError("--decode generates tokens after a prompt, which is missing", hint=hint)
    if len(workload) != 1:
        raise tw.errors.CallError(f"--prefill is for one language model, not for {len(workload)} workloads")
    given: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    report = tw.generate(workload[0], arch, batch=flags.batch, **given, **taken)
    print_result(report, flags.json, flags.quiet, report.messages())
    errors = [report.unwritten, *(layer.error for layer in report.run.layers)]
    raise typer.Exit(_code(report.complete and not report.stopped, errors))


def _fuse(flags: options.Flags, workload: list[str], arch: list[str], others: bool, graph: bool) -> NoReturn:
    """Print the fused mapping of a group file or a network, and write that of a group. Raises CallError, and Exit."""
    import tilewright as tw
    from tilewright.application.api.load.kinds import is_group_file
    from tilewright.application.cli.common import print_result

    if others:
        raise tw.errors.CallError("--fuse excludes --pareto and --budget-cycles")
    settings, known = flags.settings(), settings_of(MapSettings)
    if not any(map(is_group_file, workload)):
        from tilewright.application.api.fusion_graph import FusionGraph

        network = tw.fuse_network(flags.loaded(workload), arch, **settings)
        shown = FusionGraph(network) if graph else network
        print_result(shown, flags.json, flags.quiet, network.messages())
        raise typer.Exit(_code(True, [network.unwritten, *network.errors]))
    used = ("objective", "mapper", "mapper_options", "model", "model_options", "seconds", "folder", "force")
    given = [
        name for name in known if name in flags.chosen and (settings[name] or None) != (known[name].default or None)
    ]
    odd = [known[name].spelled[0] for name in given if name not in used] + (["--graph"] if graph else [])
    if len(workload) != 1 or len(arch) > 1 or odd:
        what = "--fuse of a group takes one group file, at most one architecture, --objective, --mapper, --model, --seconds, --output and --force"
        raise tw.errors.CallError(f"{what}; not {', '.join(odd) or 'several files'}")
    report = tw.fuse(workload[0], *arch, **{name: settings[name] for name in used if settings[name] is not None})
    print_result(report, flags.json, flags.quiet, report.messages())
    raise typer.Exit(_code(True, [report.unwritten]))


def _arch_hint(workload: list[str]) -> str:
    """Return how to give the architecture; it may be among the workloads."""
    from tilewright import library
    from tilewright.application.api.load.kinds import is_architecture, is_foreign

    machines = [name for name in workload if name in library.names("architectures") or is_architecture(name)]
    if machines:
        return f"{machines[0]} is an architecture: --arch {machines[0]}"
    if len(workload) == 1 and os.path.isdir(workload[0]):
        return f"if {workload[0]} has the architecture, too: tilewright map {workload[0]} --arch {workload[0]}"
    if len(workload) > 1 and all(map(is_foreign, workload)):
        return (
            "name each file of the architecture and of its constraints: tilewright map PROBLEM --arch FILE --arch FILE"
        )
    return "tilewright library archs lists them; tilewright map --help lists its arguments"


def _code(complete: bool, errors: Iterable[TilewrightError | None]) -> int:
    """Return the exit code for the most severe error."""
    return max((error.exit_code for error in errors if error is not None), default=0 if complete else 1)


def _tell_how_to_see_one(report: MappingReport, workload: list[str]) -> None:
    """Print the command that shows one layer.

    With a folder, it evaluates the layer's file. Otherwise it repeats the call for that layer
    alone, and the cache answers.
    """
    from tilewright.application.cli.common import note
    from tilewright.application.run.artifacts.layers import layer_file

    words: list[str] | None
    for number, layer in enumerate(report.layers, start=1):
        if layer.report is not None:
            if report.folder is not None:
                words = ["evaluate", str(report.folder / layer_file(number, layer))]
            else:
                words = _of_one(sys.argv[1:], workload, layer.name, layer.distinct.origin)
            if words is None:
                note("with -o FOLDER, the mapping of each layer is in a file")
            else:
                note(f"a layer with its mapping: {shlex.join(['tilewright', *words])}")
            return


def _of_one(words: list[str], workload: list[str], layer: str, origin: Origin | None = None) -> list[str] | None:
    """Return the words of a call for one layer; None if it is unknown which source has the layer.

    The layer is the one that a source picks, or a part of the only source that is no folder of further files.
    """
    picked = [argument for argument in workload if argument.endswith(f"/{layer}") and not os.path.exists(argument)]
    files = [argument for argument in workload if not os.path.isdir(argument)]
    source = [workload, picked, files][0 if len(workload) == 1 else 1 if picked else 2]
    if len(source) != 1:
        return None
    dropped = {file for file in files if file != source[0]}
    part = source[0] if picked else _of_layer(source[0], layer, origin)
    if part is None:
        return None
    before = ["", *words]  # the same folder may be after --arch, too
    return [
        part if word == source[0] and last != "--arch" else word
        for last, word in zip(before, words, strict=False)
        if word not in dropped
    ]


def _of_layer(workload: str, layer: str, origin: Origin | None) -> str | None:
    """Return the argument that selects one layer; for a folder, the name of its file, or a layer of that; None: unknown."""
    if not os.path.isdir(workload):
        return f"{workload}/{layer}"
    files = [path for path in Path(workload).iterdir() if path.stem == layer]
    if len(files) == 1:
        return str(files[0])
    file = Path(workload) / (origin.file or "") if origin is not None else None
    return f"{file}/{origin.node}" if origin is not None and file is not None and file.is_file() else None
