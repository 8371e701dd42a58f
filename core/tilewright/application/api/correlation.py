"""`correlate`: several cost models on the same sampled mappings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Unpack, cast

from tilewright.application.api.call_arguments import at_least, checked, names_of, whole
from tilewright.application.api.correlation_report import CorrelationReport
from tilewright.application.api.load.kinds import is_group_file
from tilewright.application.api.plan import Plan, Sources
from tilewright.application.api.progress import sampling_progress
from tilewright.application.api.settings import CorrelateSettings, Searches
from tilewright.application.run.sampling import LayerSample, sample_layer
from tilewright.digests import of_data
from tilewright.errors import CallError, InputError
from tilewright.files import RunFolder
from tilewright.interrupts import stop_requested
from tilewright.schema.group import GroupMapping


def _is_group(workload: Sources) -> bool:
    """Return whether the workload is a group mapping, or a file of one."""
    if isinstance(workload, str | os.PathLike):
        return is_group_file(os.fspath(workload))
    kind = workload.get("kind") if isinstance(workload, Mapping) else None
    several = isinstance(workload, list | tuple) and any(map(_is_group, workload))
    return isinstance(workload, GroupMapping) or kind == "group_mapping" or several


MAX_SAMPLES = 100_000
"""Most mappings per layer, which are kept in memory with their costs."""


@checked
def correlate(workload: Sources, arch: Sources, **settings: Unpack[CorrelateSettings]) -> CorrelationReport:
    """Evaluate sampled mappings under several cost models, and tell how far the models agree.

    This is the function behind `tilewright correlate`. Every model evaluates the same mappings of the space that all of
    them accept. Factorisations are equally likely, and so are the loop orders of one; illegal mappings are left out.

    Args:
        workload, arch: As for `map`.
        **settings: Those of `CorrelateSettings` (tilewright.application.api.settings).

    Returns:
        The report. A model that refuses a layer or some of its mappings has its reasons there. Ctrl-C ends the run and
        returns what was evaluated.

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid; the message names the valid ones.
        OutputError: The folder cannot be written to.

    Example:
        >>> import tilewright as tw
        >>> report = tw.correlate("nk,km->nm; n=4 k=4 m=4", "eyeriss", models="timeloop,pipelined", samples=20)
        >>> len(report.rows())
        3
    """
    models, samples, seed = names_of("models", settings["models"]), settings["samples"], settings["seed"]
    if _is_group(workload):
        raise CallError(
            "correlate samples mappings of layers, and takes no group mappings",
            hint="tilewright evaluate GROUP --models A,B says how models differ on one of them",
        )
    if len(models) < 2:
        raise CallError("correlate compares two or more cost models", hint="such as --models timeloop,oracle")
    whole(2, samples=samples)
    if samples > MAX_SAMPLES:
        raise InputError(f"samples must be at most {MAX_SAMPLES:,}, not {samples:,}")
    whole(0, worst=settings["worst"])
    at_least(0, seconds=settings["seconds"])
    plan = Plan.of(workload, arch, [], models, cast(Searches, settings))
    distinct = plan.workload.distinct()
    folder = None if settings["folder"] is None else RunFolder(settings["folder"])
    if folder is not None:
        content = of_data([[layer.name, layer.problem.content_key] for layer in plan.workload.layers] + ["correlate"])
        names = [model.name for model in plan.models]
        chosen = [[model.record.model_dump(mode="json") for model in plan.models], samples, seed, settings["worst"]]
        given = [part.model_dump(mode="json") for part in (plan.architecture, plan.constraints)]
        run = of_data([content, given, chosen, plan.objective.name])
        folder.acquire(f"{plan.workload.name} by {', '.join(names)}", content, run, force=settings["force"])
    layers: list[LayerSample] = []
    with sampling_progress(plan.workload, samples, plan.progress) as seen:
        for one in distinct:
            if layers and stop_requested():
                break
            name = one.problem.name
            layers.append(
                sample_layer(
                    plan.models,
                    one.problem,
                    plan.architecture,
                    plan.constraints,
                    samples=samples,
                    seed=seed,
                    seconds=settings["seconds"],
                    watch=lambda done, name=name: seen(name, done),  # type: ignore[misc]
                )
            )
    report = CorrelationReport(
        workload=plan.workload,
        architecture=plan.architecture,
        constraints=plan.constraints,
        objective=plan.objective,
        models=plan.models,
        layers=tuple(layers),
        samples=samples,
        seed=seed,
        worst=settings["worst"],
    )
    return report.summarised(folder)
