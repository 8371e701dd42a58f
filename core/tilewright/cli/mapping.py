"""`tilewright map`: a network onto an accelerator."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tilewright.plugin.mapper import Budget
    from tilewright.run.configuration import RunConfiguration


class ObjectiveName(StrEnum):
    """What to make small."""

    edp = "edp"
    energy = "energy"
    cycles = "cycles"


def map_command(
    workload: Annotated[
        str,
        typer.Argument(help="ONNX file, workload or problem YAML, library name (resnet50), NAME/LAYER, or a formula"),
    ],
    arch: Annotated[str, typer.Option("--arch", help="architecture: library name or YAML file")],
    mapper: Annotated[str, typer.Option("--mapper", help="search to use")] = "random",
    model: Annotated[str, typer.Option("--model", help="cost model that guides it")] = "timeloop",
    objective: Annotated[ObjectiveName, typer.Option("--objective", help="what to make small")] = ObjectiveName.edp,
    constraints: Annotated[
        str | None,
        typer.Option("--constraints", help="name, file or none; default: the architecture's published dataflow"),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0.0, help="time per distinct layer")] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations",
            min=1,
            help="mappings per distinct layer (default 100,000; none with --seconds, or if the mapper ends by itself)",
        ),
    ] = None,
    patience: Annotated[
        int | None, typer.Option("--patience", min=1, help="stop a layer after this many mappings without a better one")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same result")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="folder for mapping files and summaries")
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="batch size of an ONNX model")] = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", help="NAME=N, a dynamic dimension of an ONNX model")
    ] = None,
    mapper_option: Annotated[list[str] | None, typer.Option("--mapper-option", help="KEY=VALUE for the mapper")] = None,
    model_option: Annotated[list[str] | None, typer.Option("--model-option", help="KEY=VALUE for the model")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="layers mapped at once, each in a process")] = 1,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="search anew, and keep nothing for the next time")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Map every distinct layer of a workload onto an architecture and price it."""
    from tilewright.api.load import load_workload
    from tilewright.cli.common import key_values, note, print_json
    from tilewright.cli.outcome import Outcome
    from tilewright.cli.progress import watching
    from tilewright.plugin.mapper import Budget
    from tilewright.plugin.registry import installed
    from tilewright.run.cache import ResultCache, default_folder
    from tilewright.run.network import map_workload

    budget = Budget(evaluations, seconds, patience)
    method = method_of(arch, constraints, mapper, mapper_option, model, model_option, objective, budget, seed)
    frontend_options: dict[str, object] = {} if batch is None else {"batch": batch}
    if size:
        frontend_options["sizes"] = key_values(size, "--size")
    network = load_workload(workload, installed(), frontend_options)
    outcome = Outcome(network, method, output)
    cache = None if no_cache else ResultCache(default_folder())
    with watching(network, method.budget) as bar:
        for layer in map_workload(network, method, bar.watch if bar else None, jobs=jobs, cache=cache):
            outcome.add(layer)
            if bar:
                bar.done(layer.distinct)
    outcome.finish()
    for message in outcome.messages():
        note(message)
    if json:
        print_json(outcome.data())
    else:
        outcome.print()
    raise typer.Exit(outcome.exit_code)


def method_of(
    arch: str,
    constraints: str | None,
    mapper: str,
    mapper_option: list[str] | None,
    model: str,
    model_option: list[str] | None,
    objective: ObjectiveName,
    budget: Budget,
    seed: int,
) -> RunConfiguration:
    from tilewright.api.load import load_architecture, load_constraints
    from tilewright.cli.common import key_values
    from tilewright.plugin.registry import installed
    from tilewright.plugin.specs import MapperSpec
    from tilewright.run.configuration import RunConfiguration, with_default
    from tilewright.run.evaluation import build_model, record_of

    registry = installed()
    for_mapper = key_values(mapper_option or [], "--mapper-option")
    for_model = key_values(model_option or [], "--model-option")
    architecture = load_architecture(arch)
    built = build_model(model, for_model)
    if built.error is not None:
        raise built.error
    registration = registry.find(MapperSpec, mapper)
    spec = registration.spec
    assert isinstance(spec, MapperSpec)
    return RunConfiguration(
        architecture=architecture,
        constraints=load_constraints(constraints, architecture),
        mapper=registry.make(MapperSpec, mapper, for_mapper),
        mapper_record=record_of(registration, for_mapper),
        model=built,
        objective=objective.value,
        budget=with_default(budget, spec),
        seed=seed,
    )
