"""`tilewright compare`: several mappers under several cost models, evaluated by all of them."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.cli import options


def compare_command(
    workload: options.Workload,
    arch: options.Arch,
    mappers: Annotated[str, typer.Option("--mappers", help="names of mappers, with commas between")],
    models: Annotated[str, typer.Option("--models", help="names of cost models; every mapper searches under each")],
    objective: options.Objective = "edp",
    constraints: options.Constraints = None,
    seconds: options.Seconds = None,
    evaluations: options.Evaluations = None,
    patience: options.Patience = None,
    seed: options.Seed = 0,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    no_cache: options.NoCache = False,
    json: options.Json = False,
) -> None:
    """Let every mapper search under every cost model, and evaluate each best mapping by all of these models."""
    import tilewright as tw
    from tilewright.cli.common import show

    report = tw.compare(
        workload,
        arch,
        mappers=mappers,
        models=models,
        objective=objective,
        constraints=constraints,
        seconds=seconds,
        evaluations=evaluations,
        patience=patience,
        seed=seed,
        jobs=jobs,
        cache=not no_cache,
        folder=output,
    )
    show(report, json, report.messages())
    raise typer.Exit(0 if report.complete and any(row.reports for row in report.searches) else 1)
