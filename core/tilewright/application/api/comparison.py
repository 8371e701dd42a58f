"""`compare`: several mappers under several cost models, with every result evaluated by all models."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Unpack

from tilewright.application.api.call_arguments import checked, names_of
from tilewright.application.api.comparison_report import ComparisonReport, save_row
from tilewright.application.api.hardware.fits import Fit, advice, fit_of, refused_models
from tilewright.application.api.plan import Plan, Sources, folder_of, name_of
from tilewright.application.api.progress import sweep_progress
from tilewright.application.api.settings import CompareSettings
from tilewright.application.run.evaluation import BuiltModel
from tilewright.application.run.sweep import SweepPoint, SweepRow, sweep, without_refuted
from tilewright.errors import OptionError, PluginError
from tilewright.plugin.mapper import Mapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec


@checked
def compare(
    workload: Sources,
    arch: Sources,
    **settings: Unpack[CompareSettings],
) -> ComparisonReport:
    """Run every mapper under every cost model, and evaluate each best mapping with all models.

    This is the function behind `tilewright compare`.

    Args:
        workload, arch: As for `map`.
        **settings: Those of `CompareSettings` (tilewright.application.api.settings).

    Returns:
        The report. A model that fits no layer is named before the search, and in a table of its own.
        A mapper without a result, a model that refuses, and a plugin that crashes or is not installed
        appear as rows with their reasons. A bound above what another search found is such a crash, and is dropped. Ctrl-C ends the sweep and returns the finished part.

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid; the message names the valid ones.

    Example:
        >>> import tilewright as tw
        >>> report = tw.compare("nk,km->nm; n=4 k=4 m=4", "eyeriss", mappers="random,local", evaluations=50, cache=False)
        >>> [row["mapper"] for row in report.rows()]
        ['random', 'local']
    """
    models = settings["models"]
    models = installed().default(CostModelSpec, "search") if models is None else models
    some_models, some_mappers = names_of("models", models), names_of("mappers", settings["mappers"])
    with _telling_how_options_are_for_one():
        plan = Plan.of(workload, arch, some_mappers, some_models, settings)
        points = [_point(plan, mapper, model) for model in plan.models for mapper in some_mappers]
    network = plan.workload
    fits = _refusing(plan)
    folder = folder_of(settings, network, [(point.mapper, point.configuration) for point in points])
    rows: list[SweepRow] = []
    with sweep_progress(network, points, plan.objective, plan.progress) as seen:
        watch = seen.watch if seen else None
        for row in sweep(network, points, plan.models, watch, jobs=plan.jobs, cache=plan.results):
            rows.append(row)
            if folder is not None:
                save_row(folder, len(rows), row)
    report = ComparisonReport(
        network,
        plan.architecture,
        plan.objective,
        tuple(points),
        plan.models,
        tuple(without_refuted(rows, plan.models)),
        fits,
    )
    return report.summarised(folder)


def _refusing(plan: Plan) -> tuple[Fit, ...]:
    """Return which models fit which layers, and log those that fit none before the search begins."""
    fits = tuple(
        fit_of(model, distinct.problem, plan.architecture, plan.constraints)
        for model in plan.models
        for distinct in plan.workload.distinct()
    )
    for model in refused_models(fits):
        first = next(fit for fit in fits if fit.model == model)
        text = f"warning: cost model {model} does not fit {plan.architecture.name} and is left out: {first.reason}; {advice(first, fits)}"
        logging.getLogger("tilewright").warning("%s", text)
    return fits


@contextmanager
def _telling_how_options_are_for_one() -> Iterator[None]:
    """Add a hint to errors about options that only one of several plugins accepts, a common mistake."""
    try:
        yield
    except OptionError as error:
        error.hint = "NAME.KEY=VALUE, or {NAME: {KEY: VALUE}}, sets an option of one plugin"
        raise


def _point(plan: Plan, mapper: str | Mapper, model: BuiltModel) -> SweepPoint:
    """Return a point for a mapper under a model; a plugin that cannot be built is recorded as the reason."""
    name = name_of(mapper)
    if model.error is not None:
        return SweepPoint(name, model.name, error=model.error)
    try:
        return SweepPoint(name, model.name, plan.configuration(mapper, model, compared=True))
    except PluginError as error:
        return SweepPoint(name, model.name, error=error)
