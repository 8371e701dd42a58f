"""Command `tilewright explore`: a workload on the architectures of a space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright import api
from tilewright.cli import options
from tilewright.errors import InputError


def explore_command(
    workload: options.Workloads,
    space: Annotated[
        str,
        typer.Option(
            "--space", metavar="SPACE", help="space of architectures: library name or YAML file", show_default=False
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="how often each of several networks is executed  [default: once each]"),
    ] = None,
    mapper: Annotated[
        str | None,
        typer.Option(
            autocompletion=options.names_of("mapper"),
            metavar="NAME",
            help=f"the search for each layer  [default: {api.MAPPER}, or {api.OTHERWISE} for layers of which it can prove nothing]",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(autocompletion=options.names_of("cost model"), metavar="NAME", help="the cost model")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="grid|sunstone_arch|nsga2|tpe",
            help="which points are tried, in which order (nsga2, tpe: extra optuna)",
        ),
    ] = "grid",
    points: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="N points drawn at random by the seed; default: all, in order"),
    ] = None,
    objective: Annotated[str, typer.Option(metavar="edp|energy|cycles", help="what is made small")] = "edp",
    constraints: Annotated[str | None, typer.Option(metavar="FILE|none", help="what mappings have to keep to")] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.0, help="time for each layer on each machine")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="mappings for each layer on each machine")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="the same seed gives the same result")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="layers mapped at once")] = 1,
    cluster: options.Cluster = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="without --store: search anew, and keep no results")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SQLite file for all results; what is there is not searched again"),
    ] = None,
    no_bounds: Annotated[
        bool, typer.Option("--no-bounds", help="search points, too, that another one surely beats")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with what is in the store; done without it, too")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="search again what failed before")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV or Parquet file for all points")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Map a workload onto the machines of a space, and tell which of them no other beats in energy, cycles and area."""
    import tilewright as tw
    from tilewright.cli.common import note, show

    report = tw.explore(
        workload, space, weights=_whole(weights), mapper=mapper, model=model or api.MODEL, points=points, objective=objective,
        constraints=constraints, seconds=seconds, evaluations=evaluations, seed=seed, jobs=jobs, cache=not no_cache, progress=not quiet,
        store=store, retry=retry, resume=resume, strategy=strategy, bounds=not no_bounds, cluster=cluster,
    )  # fmt: skip
    if not report.complete and report.failure is None and (store is not None or not no_cache):
        note("ended before all points were tried: the same command goes on")
    if output is not None:
        note(f"written to {report.save(output)}")
    show(report, json, quiet, report.messages())
    if report.failure is not None:
        raise typer.Exit(report.failure.exit_code)
    if not report.complete:
        raise typer.Exit(1 if report.points else 130)


def _whole(weights: str | None) -> list[int] | None:
    """Return the weights; raise InputError if they are not integers."""
    if weights is None:
        return None
    try:
        return [int(each) for each in weights.split(",")]
    except ValueError:
        raise InputError(f"--weights {weights}: whole numbers were expected", hint="such as --weights 3,1") from None
