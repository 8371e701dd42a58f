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
        typer.Option(metavar="N,N,...", help="executions of each of several networks  [default: once each]"),
    ] = None,
    mapper: Annotated[
        str | None,
        typer.Option(
            autocompletion=options.names_of("mapper"),
            metavar="NAME",
            help=f"mapper for each layer  [default: {api.MAPPER}, or {api.FALLBACK_MAPPER} for layers where it can prove nothing]",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(autocompletion=options.names_of("cost model"), metavar="NAME", help="the cost model")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="grid|sunstone_arch|nsga2|tpe",
            help="choice and order of the points (nsga2, tpe: extra optuna)",
        ),
    ] = "grid",
    points: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="try N points, drawn at random with the seed [default: all, in order]"),
    ] = None,
    objective: Annotated[str, typer.Option(metavar="edp|energy|cycles", help="metric to minimise")] = "edp",
    constraints: Annotated[str | None, typer.Option(metavar="FILE|none", help="constraints on mappings")] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.0, help="time per layer on each architecture")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="mappings per layer on each architecture")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="seed of the search; equal seeds give equal results")
    ] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="layers mapped in parallel")] = 1,
    cluster: options.Cluster = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="without --store: search again, and store no results")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SQLite file for results; stored ones are not searched again"),
    ] = None,
    no_bounds: Annotated[
        bool, typer.Option("--no-bounds", help="also search points whose bounds are dominated")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="continue with the results in the store (always on)")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="repeat failed searches")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV or Parquet file for all points")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Map a workload onto the architectures of a space, and report the Pareto-optimal ones.

    An architecture is Pareto-optimal if no other one is better in energy, cycles or area without
    being worse in another of them.
    """
    import tilewright as tw
    from tilewright.cli.common import note, print_result

    report = tw.explore(
        workload, space, weights=_whole(weights), mapper=mapper, model=model or api.MODEL, points=points, objective=objective,
        constraints=constraints, seconds=seconds, evaluations=evaluations, seed=seed, jobs=jobs, cache=not no_cache, progress=not quiet,
        store=store, retry=retry, resume=resume, strategy=strategy, bounds=not no_bounds, cluster=cluster,
    )  # fmt: skip
    if not report.complete and report.failure is None and (store is not None or not no_cache):
        note("ended before all points were tried; the same command continues")
    if output is not None:
        note(f"written to {report.save(output)}")
    print_result(report, json, quiet, report.messages())
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
        raise InputError(f"--weights {weights}: expected integers", hint="such as --weights 3,1") from None
