"""`compare`: several mappers under several cost models, evaluated by all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright.api.comparison_report import ComparisonReport, save_row
from tilewright.api.load import Source, load_architecture, load_constraints, load_workload
from tilewright.api.mapping import cache_of, configured
from tilewright.api.mapping_report import made
from tilewright.api.progress import is_shown, sweep_bar
from tilewright.api.words import at_least, budget_of, checked, names_of, objective_of, options_by_name
from tilewright.errors import PluginError
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Mapper
from tilewright.run.evaluation import build_model
from tilewright.run.sweep import SweepPoint, SweepRow, sweep


@checked
def compare(
    workload: Source,
    arch: Source,
    *,
    mappers: str | Sequence[str | Mapper],
    models: str | Sequence[str | CostModel],
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
) -> ComparisonReport:
    """Let every mapper search under every cost model, and evaluate each best mapping by all of these models; what
    `tilewright compare` does.

    Args:
        mappers, models: names of installed plugins, or objects of your own.
        mapper_options, model_options: options for all of them; `{"gamma": {...}}` for one.
        Everything else: as for `map`; limits count for each search.

    Returns:
        The report. A mapper that finds nothing, a model that refuses, and a plugin that crashes or is not installed are rows
        with their reasons. Ctrl-C ends the sweep and returns what is done.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong; the message says what would be right.
    """
    at_least(1, jobs=jobs)
    is_shown(progress)
    budget, goal = budget_of(seconds, evaluations, patience), objective_of(objective)
    some_models, some_mappers = names_of("models", models), names_of("mappers", mappers)
    for_model = options_by_name(model_options, [_name(model) for model in some_models])
    for_mapper = options_by_name(mapper_options, [_name(mapper) for mapper in some_mappers], "mapper_options")
    built = [build_model(model, for_model[_name(model)]) for model in some_models]
    network, architecture = load_workload(workload), load_architecture(arch)
    rules = load_constraints(constraints, architecture)

    def point(mapper: str | Mapper, number: int) -> SweepPoint:
        model, name = built[number], _name(mapper)
        if model.error is not None:
            return SweepPoint(name, model.name, error=model.error)
        try:
            run = configured(architecture, rules, mapper, for_mapper[name], model, goal, budget, seed)
            return SweepPoint(name, model.name, run)
        except PluginError as error:
            return SweepPoint(name, model.name, error=error)

    points = [point(mapper, number) for number in range(len(built)) for mapper in some_mappers]
    path = None if folder is None else made(Path(folder))
    rows: list[SweepRow] = []
    kept = cache_of(cache, *some_mappers, *some_models)
    with sweep_bar(network, points, progress) as bar, suppress(KeyboardInterrupt):
        for row in sweep(network, points, built, bar.watch if bar else None, jobs=jobs, cache=kept):
            rows.append(row)
            if path is not None:
                save_row(path, len(rows), row)
    report = ComparisonReport(network, architecture, goal, tuple(points), tuple(built), tuple(rows), path)
    if path is not None:
        report.save_summary(path)
    return report


def _name(plugin: object) -> str:
    return plugin if isinstance(plugin, str) else type(plugin).__name__
