"""Options shared by several commands."""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate

import typer
from typer.core import TyperCommand

from tilewright.application.api.keywords import REQUIRED, Setting, settings_of
from tilewright.application.api.settings import MARKED, Searches

if TYPE_CHECKING:
    from tilewright.schema.workload import Workload as LoadedWorkload

PANELS = {
    "Limits of a search": ("seconds", "evaluations", "patience", "gap", "seed"),
    "Options of plugins": ("mapper_options", "model_options", "strategy_options"),
    "Algorithms": ("algorithms", "movement", "algorithm_options"),
    "The run": ("jobs", "cache", "resume", "folder", "force", "cluster", "store", "retry"),
    "Input files": ("notation", "batch", "size", "density", "branch", "values", "dense", "one_energy", "dataflow"),
    "What is printed": ("graph", "json", "quiet", "traceback", "help"),
}
"""Headings of options in `--help`, with parameter names. Other options come first."""
KEYWORD = inspect.Parameter.KEYWORD_ONLY
SPELLINGS = {"--mapper": "--mappers", "--mappers": "--mapper", "--model": "--models", "--models": "--model"}
"""Singular and plural of options. A command shows one of them in its help, and takes both."""
NAMED = ("mapper", "cost model")
"""Kinds of plugins whose names are given as a list with commas, or by repeating the option."""


def _hush(quiet: bool) -> bool:
    if quiet:
        logging.getLogger("tilewright").setLevel(logging.ERROR)
    return quiet


class Command(TyperCommand):
    """Command that refuses a second value for an option that takes one, instead of dropping the first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, list(args))
        order: list[Any] = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for parameter in order:
            if (
                parameter.param_type_name == "option"
                and not parameter.multiple
                and not parameter.is_flag
                and order.count(parameter) > 1
            ):
                from tilewright.errors import CallError

                form = f"{parameter.opts[0]} {parameter.metavar or 'VALUE'}"
                once = f"separate its values by commas: {form}" if "," in form else f"keep one of them: {form}"
                raise CallError(
                    f"{ctx.command_path}: {parameter.opts[0]} is given {order.count(parameter)} times", hint=once
                )
        return rest


class GroupedCommand(Command):
    """Command whose `--help` lists options under the headings of `PANELS`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        headings = {name: heading for heading, names in PANELS.items() for name in names}
        blocks: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", "Options", *PANELS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                spelled = record[0].replace(f", {SPELLINGS.get(parameter.opts[0])} ", " ")
                blocks["Arguments" if is_argument else headings.get(parameter.name or "", "Options")].append(
                    (spelled, record[1])
                )
        for heading, records in blocks.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def first_line(command: Callable[..., Any]) -> str:
    """Return a command's summary in full; a list of commands would cut a long one."""
    return (command.__doc__ or "").partition("\n")[0]


def names_of(kind: str) -> Callable[[str], list[str]]:
    """Return a shell completion for a name, or for the last name of a list with commas.

    Args:
        kind: `workload`, `architecture`, or a kind of plugin (`mapper`, `cost model`, `adapter`).
    """

    def complete(incomplete: str) -> list[str]:
        from tilewright import library
        from tilewright.application.api.load import workload_names
        from tilewright.plugin import installed

        if kind == "workload":
            names = list(workload_names())
        elif kind == "architecture":
            names = list(library.names("architectures"))
        else:
            names = [registration.name for registration in installed().registrations if registration.spec.kind == kind]
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def names(given: list[str] | None) -> str | None:
    """Return the names of a repeated option, each a name or a list with commas, as one list; None if there are none."""
    return ",".join(given) if given else None


def one_name(given: list[str] | None, option: str) -> str | None:
    """Return the name given to an option that takes one name; None if it is not given.

    Raises:
        CallError: Several names are given.
    """
    listed = [name.strip() for name in (names(given) or "").split(",") if name.strip()]
    if len(listed) > 1:
        from tilewright.errors import CallError

        raise CallError(
            f"{option} takes one name here, not {', '.join(listed)}",
            hint=f"keep one of them: {option} {listed[0]}; tilewright compare takes several: --mappers A,B --models X,Y",
        )
    return names(given)


def plugin_option(kind: str, spelling: str, metavar: str, text: str) -> Any:
    """Return an option for the names of plugins; `names` and `one_name` read it."""
    return typer.Option(
        spelling, SPELLINGS[spelling], autocompletion=names_of(kind), metavar=metavar, help=text, show_default=False
    )


Model = Annotated[list[str] | None, plugin_option("cost model", "--model", "NAME", f"cost model [default: {MARKED}]")]
Models = Annotated[
    list[str] | None,
    plugin_option("cost model", "--models", "X,Y,...", f"cost models; may be repeated [default: {MARKED}]"),
]


def option(setting: Setting) -> Any:
    """Return the option of a setting."""
    first, *others = setting.spelled
    return typer.Option(
        f"{first}/{setting.off}" if setting.off else first,
        *others,
        *(SPELLINGS[spelling] for spelling in setting.spelled if spelling in SPELLINGS),
        metavar=setting.metavar or None,
        min=setting.least,
        help=(setting.option_help or setting.help) + f" [default: {setting.unset}]" * bool(setting.unset),
        autocompletion=names_of(setting.plugins) if setting.plugins else None,
        show_default=setting.default is not REQUIRED,
    )


def _work(metavar: str) -> Any:
    return typer.Argument(
        autocompletion=names_of("workload"),
        help="ONNX file, workload or problem YAML, library name (resnet50), NAME/LAYER, FILE/LAYER, a formula, or another "
        "tool's files or folder of layers",
        metavar=metavar,
        show_default=False,
    )


def _hardware(more: str = "") -> Any:
    return typer.Option(
        "--arch",
        autocompletion=names_of("architecture"),
        metavar="ARCH",
        help=f"architecture: library name, YAML file, or another tool's file; repeat for several files{more}",
        show_default=False,
    )


Workload = Annotated[str, _work("WORKLOAD")]
Workloads = Annotated[list[str], _work("WORKLOAD...")]
Arch = Annotated[list[str], _hardware()]
ArchOfNetwork = Annotated[list[str], _hardware("; a group has one in its file")]
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
OneEnergy = Annotated[
    bool,
    typer.Option(
        "--one-energy", help="every access costs the dearest action of a Timeloop energy table, as before June 2021"
    ),
]
Dataflow = Annotated[
    str | None,
    typer.Option("--dataflow", metavar="FILE", help="dataflow of layers in MAESTRO files without their own"),
]
Notation = Annotated[str | None, option(settings_of(Searches)["notation"])]
Problem = Annotated[
    str | None, typer.Option("--problem", metavar="PROBLEM", help="problem file, formula or NAME/LAYER")
]
OtherArch = Annotated[str | None, typer.Option("--arch", metavar="ARCH", help="architecture name or file")]


Batch = Annotated[
    int | None, typer.Option("--batch", metavar="N", min=1, help="batch size of an ONNX, MLIR or PyTorch model")
]
Size = Annotated[
    list[str] | None,
    typer.Option("--size", metavar="NAME=N", help="a dynamic dimension of an ONNX, MLIR or PyTorch model"),
]


def frontend_options(
    batch: int | None, size: list[str] | None, density: str | None = None, branch: list[str] | None = None
) -> dict[str, Any]:
    """Return `--batch`, `--size`, `--density` and `--branch` as options of the frontend that reads a model. Raises InputError."""
    from tilewright.application.cli.common import key_values

    sizes: dict[str, Any] = {} if batch is None else {"batch": batch}
    sizes |= {"sizes": key_values(size, "--size")} if size else {}
    sizes |= {"density": density} if density else {}
    return sizes | ({"branches": key_values(branch, "--branch")} if branch else {})


@dataclass(frozen=True)
class Flags:
    """Options of `map`, `compare` and `explore`: the settings of their functions, and how to load and print."""

    chosen: dict[str, Any]
    """Settings by name."""
    batch: Batch = None
    size: Size = None
    density: Annotated[
        str | None,
        typer.Option(metavar="from-weights", help="densities of an ONNX model's weights: their fractions of nonzeros"),
    ] = None
    branch: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=then|else", help="branch of an If in an ONNX model that data decide, not sizes"),
    ] = None
    values: Set = None
    dense: Dense = False
    one_energy: OneEnergy = False
    dataflow: Dataflow = None
    json: Json = False
    quiet: Quiet = False

    def loaded(self, workload: list[str]) -> LoadedWorkload | list[str]:
        """Return the workload with the requested sizes; files of other tools are returned unchanged.

        Raises:
            InputError, UnknownNameError: The workload or a size is invalid.
        """
        import tilewright as tw
        from tilewright.application.api.load.kinds import is_foreign

        sizes = frontend_options(self.batch, self.size, self.density, self.branch)
        if not sizes and (len(workload) > 1 or is_foreign(workload[0], self.chosen["notation"])):
            return workload
        if len(workload) > 1:
            raise tw.errors.InputError(
                "--batch, --size, --density and --branch are for one workload", hint="map them individually"
            )
        return tw.load(workload[0], "workload", **sizes)

    def settings(self) -> dict[str, Any]:
        """Return the options as keywords of the Python function."""
        from tilewright.application.cli.common import reading

        rest = {"progress": not self.quiet, "reading": reading(self.values, self.dense, self.dataflow, self.one_energy)}
        return self.chosen | rest


def with_settings(kind: type) -> Callable[[Callable[Concatenate[Flags, ...], None]], Callable[..., None]]:
    """Return a decorator that adds the options of settings and of `Flags` after the command's own.

    The command receives a `Flags` object as its first argument.

    Args:
        kind: A class of `tilewright.application.api.settings`.
    """
    settings = {name: setting for name, setting in settings_of(kind).items() if name not in ("progress", "reading")}

    def decorate(command: Callable[Concatenate[Flags, ...], None]) -> Callable[..., None]:
        parameters = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        shared = list(inspect.signature(Flags, eval_str=True).parameters.values())[1:]

        @functools.wraps(command)
        def call(**words: Any) -> None:
            chosen = {name: _keyword(setting, words.pop(name)) for name, setting in settings.items()}
            command(Flags(chosen, **{parameter.name: words.pop(parameter.name) for parameter in shared}), **words)

        options = {name: Annotated[_type(setting), option(setting)] for name, setting in settings.items()}
        generated = [
            inspect.Parameter(
                name, KEYWORD, annotation=options[name], default=False if setting.negated else setting.default
            )
            for name, setting in settings.items()
        ]
        _spell_out(call, [*parameters, *generated, *shared])
        return call

    return decorate


def _type(setting: Setting) -> Any:
    """Return the type of a setting on the command line."""
    if setting.plugins in NAMED:
        return list[str] if setting.default is REQUIRED else list[str] | None
    first = setting.annotation.partition(" ")[0]
    kind: Any = {"int": int, "float": float, "bool": bool, "MappingOf[str,": list[str]}.get(first, str)
    return kind | None if setting.default is None else kind


def _keyword(setting: Setting, value: Any) -> Any:
    """Return the value of an option as that of the Python keyword.

    Raises:
        InputError: The value has another form.
    """
    from tilewright.application.cli.common import integers, key_values

    if setting.plugins in NAMED:
        takes_several = "Sequence[" in setting.annotation
        return names(value) if takes_several else one_name(value, setting.spelled[0])
    if setting.negated:
        return not value
    if setting.annotation.startswith("MappingOf"):
        return key_values(value, setting.spelled[0])
    if setting.annotation.startswith("Sequence[int]"):
        return integers(value, setting.spelled[0])
    return value


def _spell_out(call: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Give a command these parameters, all by keyword, so that typer reads them."""
    call.__signature__ = inspect.Signature([parameter.replace(kind=KEYWORD) for parameter in parameters])  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


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

    parameters = inspect.signature(command, eval_str=True).parameters.values()
    flag = inspect.Parameter(
        "traceback",
        KEYWORD,
        default=False,
        annotation=Annotated[bool, typer.Option("--traceback", help="print the traceback of a plugin that fails")],
    )
    _spell_out(call, [*parameters, flag])
    return call
