"""`map`: the best mapping of every layer of a workload; `space`: all mappings of one."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingOf
from pathlib import Path
from typing import Any

from tilewright.api import defaults
from tilewright.api.load import Source, load_architecture, load_constraints, load_problem, load_workload
from tilewright.api.mapping_report import MappingReport, made, save_layer
from tilewright.api.progress import is_shown, mapping_bar
from tilewright.api.words import at_least, budget_of, checked, objective_of
from tilewright.errors import InputError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec
from tilewright.run.cache import ResultCache, default_folder
from tilewright.run.configuration import RunConfiguration, with_default
from tilewright.run.evaluation import BuiltModel, build_model, record_of
from tilewright.run.network import MappedLayer, map_workload
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.report import Objective


@checked
def map(
    workload: Source,
    arch: Source,
    *,
    mapper: str | Mapper = defaults.MAPPER,
    model: str | CostModel = defaults.MODEL,
    objective: str = "edp",
    constraints: Source | None = None,
    seconds: float | None = None,
    evaluations: int | None = None,
    patience: int | None = None,
    seed: int = 0,
    mapper_options: MappingOf[str, Any] | None = None,
    model_options: MappingOf[str, Any] | None = None,
    jobs: int = 1,
    progress: bool | None = None,
    cache: bool | str | os.PathLike[str] = True,
    folder: str | os.PathLike[str] | None = None,
) -> MappingReport:
    """Map every distinct layer of a workload onto an architecture; what `tilewright map` does.

    Args:
        workload, arch: names, files, dicts or objects, as for `load`; a workload may be a formula.
        mapper, model: names of installed plugins, or objects of your own that keep their promises.
        objective: what to make small: edp, energy or cycles.
        constraints: a name, a file, a dict, an object, or `none`; by default the architecture's published dataflow.
        seconds, evaluations, patience: limits for each distinct layer; without seconds and evaluations 100,000 mappings, unless the
            mapper ends by itself.
        seed: the same seed gives the same result.
        jobs: layers mapped at once, each in a process.
        progress: whether a bar is shown on stderr; None: in a terminal or a notebook.
        cache: whether results are found again and kept; or the folder for them.
        folder: where each layer's mapping file is written as soon as it is found, and then the summaries.

    Returns:
        The report; a layer without a mapping says why. Ctrl-C ends the search and returns what is done.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong; the message says what would be right.
        PluginError: mapper or model cannot be built.
    """
    at_least(1, jobs=jobs)
    is_shown(progress)
    architecture = load_architecture(arch)
    built = build_model(model, model_options)
    if built.error is not None:
        raise built.error
    configuration = configured(
        architecture,
        load_constraints(constraints, architecture),
        mapper,
        mapper_options,
        built,
        objective_of(objective),
        budget_of(seconds, evaluations, patience),
        seed,
    )
    network = load_workload(workload)
    kept = cache_of(cache, mapper, model)
    path = None if folder is None else made(Path(folder))
    layers: list[MappedLayer] = []
    with mapping_bar(network, configuration.budget, progress) as bar:
        for layer in map_workload(network, configuration, bar.watch if bar else None, jobs=jobs, cache=kept):
            layers.append(layer)
            if path is not None:
                save_layer(path, len(layers), layer, configuration)
            if bar:
                bar.done(layer.distinct)
    report = MappingReport(network, configuration, tuple(layers), path)
    if path is not None:
        report.save_summary(path)
    return report


@checked
def space(problem: Source, arch: Source, constraints: Source | None = None) -> MapSpace:
    """All mappings that `map` chooses from: of one problem on one architecture, by default under its published dataflow.
    What a mapper or a cost model declares not to accept is still in it.

    Args:
        problem, arch: names, files, dicts or objects, as for `load`; the problem may be a formula.
        constraints: as for `map`; `none` is everything that the hardware can do.

    Raises:
        InputError, UnknownNameError: a word is wrong, or the constraints cannot bound such a space.
    """
    architecture = load_architecture(arch)
    rules = load_constraints(constraints, architecture)
    one, shaped = load_problem(problem), rules.shape(architecture)
    return MapSpace.of(one, shaped, rules.rules_for(one, shaped))


def configured(
    architecture: Architecture,
    constraints: Constraints,
    mapper: str | Mapper,
    mapper_options: MappingOf[str, Any] | None,
    model: BuiltModel,
    objective: Objective,
    budget: Budget,
    seed: int,
) -> RunConfiguration:
    """Build the mapper. Raises UnknownPluginError, InputError, PluginError."""
    at_least(0, seed=seed)
    options = dict(mapper_options or {})
    if isinstance(mapper, str):
        registration = installed().find(MapperSpec, mapper)
        spec = registration.spec if isinstance(registration.spec, MapperSpec) else None
        record = record_of(registration, options)
        mapper = installed().make(MapperSpec, mapper, options)
    elif callable(getattr(mapper, "search", None)) and not options:
        record, spec = PluginRecord(name=type(mapper).__name__), None
    else:
        raise InputError(
            f"{mapper!r} is no mapper", hint="give a name, or an object with search() and no mapper_options"
        )
    return RunConfiguration(
        architecture=architecture,
        constraints=constraints,
        mapper=mapper,
        mapper_record=record,
        model=model,
        objective=objective,
        budget=with_default(budget, spec),
        seed=seed,
        mapper_capabilities=Capabilities() if spec is None else spec.capabilities,
    )


def cache_of(cache: bool | str | os.PathLike[str], *plugins: object) -> ResultCache | None:
    """Results are kept of named plugins only: nobody knows when an object becomes another."""
    if cache is False or not all(isinstance(plugin, str) for plugin in plugins):
        return None
    return ResultCache(default_folder() if cache is True else Path(cache))
