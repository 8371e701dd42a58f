"""`tilewright compare`: several mappers, guided by several cost models, priced by all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.mapping import ObjectiveName

if TYPE_CHECKING:
    from tilewright.plugin.mapper import Budget
    from tilewright.plugin.result import Progress as SearchProgress
    from tilewright.run.evaluation import BuiltModel
    from tilewright.run.network import Watch
    from tilewright.run.sweep import SweepPoint
    from tilewright.schema.report import Objective
    from tilewright.schema.workload import DistinctProblem, Workload


def compare_command(
    workload: Annotated[str, typer.Argument(help="as for `map`: a file, a library name, NAME/LAYER, or a formula")],
    arch: Annotated[str, typer.Option("--arch", help="architecture: library name or YAML file")],
    mappers: Annotated[str, typer.Option("--mappers", help="names, with commas between")],
    models: Annotated[str, typer.Option("--models", help="names: each guides every mapper, and prices everything")],
    objective: Annotated[ObjectiveName, typer.Option("--objective", help="what to make small")] = ObjectiveName.edp,
    constraints: Annotated[
        str | None,
        typer.Option("--constraints", help="name, file or none; default: the architecture's published dataflow"),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0.0, help="time per search")] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations",
            min=1,
            help="mappings per search (default 100,000; none with --seconds, or if the mapper ends by itself)",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option("--patience", min=1, help="stop a search after this many mappings without a better one"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same result")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="folder for mapping files, compare.json and compare.csv")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="layers mapped at once, each in a process")] = 1,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="search anew, and keep nothing for the next time")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """The best of every mapper under every model that guided it, priced by all the others."""
    from tilewright.api.load import load_workload
    from tilewright.cli.common import note, print_json
    from tilewright.cli.standing import Standing
    from tilewright.plugin.mapper import Budget
    from tilewright.plugin.registry import installed
    from tilewright.run.cache import ResultCache, default_folder
    from tilewright.run.evaluation import build_model
    from tilewright.run.sweep import sweep

    budget = Budget(evaluations, seconds, patience)
    judges = [build_model(name) for name in _names(models, "--models")]
    network = load_workload(workload, installed())
    contenders = [
        _contender(mapper, judge, arch, constraints, objective.value, budget, seed)
        for judge in judges
        for mapper in _names(mappers, "--mappers")
    ]
    standing = Standing(network, arch, objective.value, contenders, judges, output)
    cache = None if no_cache else ResultCache(default_folder())
    with _watching(network, contenders) as watch, suppress(KeyboardInterrupt):
        for cell in sweep(network, contenders, judges, watch, jobs=jobs, cache=cache):
            standing.add(cell)
    standing.finish()
    for message in standing.messages():
        note(message)
    if json:
        print_json(standing.data())
    else:
        standing.print()
    raise typer.Exit(standing.exit_code)


def _names(text: str, option: str) -> list[str]:
    """`A,B,C`, each once. Raises InputError."""
    from tilewright.errors import InputError

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise InputError(
            f"{option} takes names with commas between, each once, not '{text}'", hint="tilewright plugins"
        )
    return names


def _contender(
    mapper: str, judge: BuiltModel, arch: str, constraints: str | None, objective: Objective, budget: Budget, seed: int
) -> SweepPoint:
    """Raises UnknownPluginError; a mapper that is there but cannot be built is a contender that says why."""
    from tilewright.cli.mapping import method_of
    from tilewright.errors import PluginError
    from tilewright.run.sweep import SweepPoint

    if judge.error is not None:
        return SweepPoint(mapper, judge.name, error=judge.error)
    try:
        name = ObjectiveName(objective)
        return SweepPoint(
            mapper,
            judge.name,
            method_of(arch, constraints, mapper, None, judge.name, None, name, budget, seed),
        )
    except PluginError as error:
        return SweepPoint(mapper, judge.name, error=error)


@contextmanager
def _watching(workload: Workload, contenders: Sequence[SweepPoint]) -> Iterator[Callable[[SweepPoint], Watch] | None]:
    """A bar on stderr: who is at what, and how much is left; nothing when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tilewright.cli.common import figure

    names = [distinct.problem.name for distinct in workload.distinct()]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=len(names) * len(contenders))

        def watch(contender: SweepPoint) -> Watch:
            begun = contenders.index(contender) * len(names)

            def tell(distinct: DistinctProblem, progress: SearchProgress) -> None:
                text = f"{contender.mapper} by {contender.model}: {distinct.problem.name}, best {figure(progress.best)}"
                bar.update(task, description=text, completed=begun + names.index(distinct.problem.name))

            return tell

        yield watch
