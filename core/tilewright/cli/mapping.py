"""`tilewright map`: a network onto an accelerator."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.api import defaults
from tilewright.cli import options


def map_command(
    workload: options.Workload,
    arch: options.Arch,
    mapper: Annotated[
        str, typer.Option("--mapper", help="mapper that searches; `tilewright plugins` lists them")
    ] = defaults.MAPPER,
    model: Annotated[str, typer.Option("--model", help="cost model that the search uses")] = defaults.MODEL,
    objective: options.Objective = "edp",
    constraints: options.Constraints = None,
    seconds: options.Seconds = None,
    evaluations: options.Evaluations = None,
    patience: options.Patience = None,
    seed: options.Seed = 0,
    output: options.Output = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="batch size of an ONNX model")] = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", help="NAME=N, a dynamic dimension of an ONNX model")
    ] = None,
    mapper_option: Annotated[list[str] | None, typer.Option("--mapper-option", help="KEY=VALUE for the mapper")] = None,
    model_option: Annotated[list[str] | None, typer.Option("--model-option", help="KEY=VALUE for the model")] = None,
    jobs: options.Jobs = 1,
    no_cache: options.NoCache = False,
    json: options.Json = False,
) -> None:
    """Map every distinct layer of a workload onto an architecture."""
    import tilewright as tw
    from tilewright.cli.common import key_values, show

    sizes = {} if batch is None else {"batch": batch}
    report = tw.map(
        tw.load(workload, "workload", **sizes, **({"sizes": key_values(size, "--size")} if size else {})),
        arch,
        mapper=mapper,
        model=model,
        objective=objective,
        constraints=constraints,
        seconds=seconds,
        evaluations=evaluations,
        patience=patience,
        seed=seed,
        mapper_options=key_values(mapper_option, "--mapper-option"),
        model_options=key_values(model_option, "--model-option"),
        jobs=jobs,
        cache=not no_cache,
        folder=output,
    )
    show(report, json, report.messages())
    failures = [layer.error.exit_code for layer in report.layers if layer.error is not None]
    raise typer.Exit(max(failures, default=0 if report.complete else 1))
