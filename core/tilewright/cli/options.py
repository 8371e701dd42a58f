"""Options shared by several commands."""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate

import typer

if TYPE_CHECKING:
    from tilewright.schema.workload import Workload as LoadedWorkload


def _hush(quiet: bool) -> bool:
    if quiet:
        logging.getLogger("tilewright").setLevel(logging.ERROR)
    return quiet


def names_of(kind: str) -> Callable[[str], list[str]]:
    """Return a shell completion for a name, or for the last name of a list with commas.

    Args:
        kind: `workload`, `architecture`, or a kind of plugin (`mapper`, `cost model`, `adapter`).
    """

    def complete(incomplete: str) -> list[str]:
        from tilewright import library
        from tilewright.api.load import workload_names
        from tilewright.plugin import installed

        if kind == "workload":
            names = list(workload_names())
        elif kind == "architecture":
            names = list(library.names("architectures"))
        else:
            names = [each.name for each in installed().registrations if each.spec.kind == kind]
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def _work(metavar: str) -> Any:
    return typer.Argument(
        autocompletion=names_of("workload"),
        help="ONNX file, workload or problem YAML, library name (resnet50), NAME/LAYER, FILE/LAYER, a formula, or another "
        "tool's files or folder of layers",
        metavar=metavar,
        show_default=False,
    )


Workload = Annotated[str, _work("WORKLOAD")]
Workloads = Annotated[list[str], _work("WORKLOAD...")]
Arch = Annotated[
    list[str],
    typer.Option(
        "--arch",
        autocompletion=names_of("architecture"),
        metavar="ARCH",
        help="architecture: library name, YAML file, or another tool's file; repeat for several files",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_hush, help="print only results and errors")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="value of a variable in templates or in Timeloop problems",
    ),
]
Dense = Annotated[
    bool, typer.Option("--dense", help="ignore sparse features, and list them; values are those of the dense problem")
]
Dataflow = Annotated[
    str | None,
    typer.Option("--dataflow", metavar="FILE", help="dataflow of layers in MAESTRO files without their own"),
]
Notation = Annotated[
    str | None,
    typer.Option(
        "--from",
        autocompletion=names_of("adapter"),
        metavar="NOTATION",
        help="notation of the input files [default: detected]",
    ),
]
Problem = Annotated[
    str | None, typer.Option("--problem", metavar="PROBLEM", help="problem file, formula or NAME/LAYER")
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Dask scheduler of the workers, such as tcp://host:8786 (extra dask)"),
]
OtherArch = Annotated[str | None, typer.Option("--arch", metavar="ARCH", help="architecture name or file")]


@dataclass(frozen=True)
class RunFlags:
    """Options shared by `map` and `compare`."""

    objective: Annotated[
        str,
        typer.Option(metavar="edp|energy|cycles", help="metric to minimise (edp = energy x cycles)"),
    ] = "edp"
    constraints: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE|none", help="constraints on mappings [default: the published dataflow of ARCH]"
        ),
    ] = None
    factors: Annotated[
        str | None,
        typer.Option(
            metavar="perfect|ragged",
            help="perfect: every tile divides the enclosing one; ragged: the last tile may be smaller [default: perfect]",
        ),
    ] = None
    seconds: Annotated[float | None, typer.Option(metavar="S", min=0.0, help="time per search of a distinct layer")] = (
        None
    )
    evaluations: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="mappings per search [default: 100,000; no limit with --seconds, or if the mapper terminates on its own]",
        ),
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="stop a search after this many mappings without improvement"),
    ] = None
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="seed of the search; equal seeds give equal results")
    ] = 0
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="folder for mapping files and summaries")
    ] = None
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="batch size of an ONNX, MLIR or PyTorch model")
    ] = None
    size: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="a dynamic dimension of an ONNX, MLIR or PyTorch model")
    ] = None
    mapper_option: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME.]KEY=VALUE", help="option of the mappers, or of one as NAME.KEY=VALUE"),
    ] = None
    model_option: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME.]KEY=VALUE", help="option of the cost models, or of one as NAME.KEY=VALUE"),
    ] = None
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="layers mapped in parallel, each in a process")
    ] = 1
    no_cache: Annotated[bool, typer.Option("--no-cache", help="search again, and store no results")] = False
    resume: Annotated[
        bool, typer.Option("--resume", help="continue the run in DIR; finished layers come from the cache")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="replace files of another workload's run in DIR")] = False
    notation: Notation = None
    values: Set = None
    dense: Dense = False
    dataflow: Dataflow = None
    json: Json = False
    quiet: Quiet = False

    def loaded(self, workload: list[str]) -> LoadedWorkload | list[str]:
        """Return the workload with the requested sizes; files of other tools are returned unchanged.

        Raises:
            InputError, UnknownNameError: The workload or a size is invalid.
        """
        import tilewright as tw
        from tilewright.api.load.kinds import is_foreign
        from tilewright.cli.common import key_values

        if not self.batch and not self.size and (len(workload) > 1 or is_foreign(workload[0])):
            return workload
        sizes: dict[str, Any] = {} if self.batch is None else {"batch": self.batch}
        if self.size:
            sizes["sizes"] = key_values(self.size, "--size")
        if len(workload) > 1:
            raise tw.errors.InputError("--batch and --size are for one workload", hint="map them individually")
        return tw.load(workload[0], "workload", **sizes)

    def settings(self) -> dict[str, Any]:
        """Return the options as keywords of `tw.map` and `tw.compare`."""
        from tilewright.cli.common import key_values, reading

        same = (
            "objective",
            "constraints",
            "factors",
            "seconds",
            "evaluations",
            "patience",
            "seed",
            "jobs",
            "resume",
            "force",
            "notation",
        )
        return {name: getattr(self, name) for name in same} | {
            "mapper_options": key_values(self.mapper_option, "--mapper-option"),
            "model_options": key_values(self.model_option, "--model-option"),
            "progress": not self.quiet,
            "cache": not self.no_cache,
            "folder": self.output,
            "reading": reading(self.values, self.dense, self.dataflow),
        }


def with_run_flags(command: Callable[Concatenate[RunFlags, ...], None]) -> Callable[..., None]:
    """Return a command with the options of `RunFlags` after its own parameters.

    The command receives a `RunFlags` object as its first argument.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for each in inspect.signature(RunFlags, eval_str=True).parameters.values()
    ]
    names = {each.name for each in shared}

    @functools.wraps(command)
    def call(**words: Any) -> None:
        command(RunFlags(**{name: words.pop(name) for name in names}), **words)

    parameters = sorted([*own, *shared], key=lambda each: each.default is not inspect.Parameter.empty)
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def with_traceback(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has `--traceback` after its own parameters."""

    @functools.wraps(command)
    def call(traceback: bool, **words: Any) -> None:
        from tilewright.plugin.guard.calls import TRACEBACK

        if not traceback:
            command(**words)
            return
        os.environ[TRACEBACK] = "1"  # processes that search inherit it
        try:
            command(**words)
        finally:
            del os.environ[TRACEBACK]

    own = inspect.signature(command, eval_str=True).parameters.values()
    flag = inspect.Parameter(
        "traceback",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=False,
        annotation=Annotated[bool, typer.Option("--traceback", help="print the traceback of a plugin that fails")],
    )
    call.__signature__ = inspect.Signature([*own, flag])  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in (*own, flag)}
    return call
