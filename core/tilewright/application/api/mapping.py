"""`map`: the best mapping for every layer of a workload; `space`: all mappings of one problem."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Unpack

from tilewright.application.algorithms.expansion import BuiltAlgorithm, Expansion
from tilewright.application.api.call_arguments import checked, names_of, one_of, options_by_name
from tilewright.application.api.load import Source, load_architecture, load_constraints, load_problem, with_factors
from tilewright.application.api.load.places import located
from tilewright.application.api.mapping_report import MappingReport
from tilewright.application.api.plan import Plan, Sources, folder_of
from tilewright.application.api.progress import counted_progress, mapping_progress
from tilewright.application.api.sensitivity import changes, checked_percent, effects
from tilewright.application.api.settings import MapSettings
from tilewright.application.exploration.cluster import Cluster
from tilewright.application.run.artifacts.layers import save_layer
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import record_of
from tilewright.application.run.network import MappedLayer, map_workload
from tilewright.application.run.vector_network import counted_vectors, dependences
from tilewright.errors import InputError, PluginError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.unmatched import unmatched
from tilewright.schema.workload import Workload


@checked
def map(
    workload: Sources,
    arch: Sources,
    **settings: Unpack[MapSettings],
) -> MappingReport:
    """Map every distinct layer of a workload onto an architecture, as `tilewright map` does.

    Args:
        workload, arch: Names, files, dicts or objects, as for `load`. A workload may be a formula.
            Files of other tools are accepted, too: one file, several (such as an architecture and
            its energy table), or a folder. Mapping rules in these files become constraints.
        **settings: Those of `MapSettings` (tilewright.application.api.settings).

    Returns:
        The report. A layer without a mapping has a reason. Ctrl-C ends the search and returns the finished part.

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid; the message names the valid ones.
        PluginError: Mapper or model cannot be built.
        OutputError: The folder cannot be written to. A later fault, such as a full disk, is reported as `unwritten`.

    Example:
        >>> import tilewright as tw
        >>> report = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False)
        >>> report.complete, report.macs
        (True, 512)
    """
    plan, configuration = Plan.of_one(workload, arch, settings)
    algorithms, cluster = settings["algorithms"], settings["cluster"]
    more = checked_percent(settings["sensitivity"])
    if more is not None and (algorithms or cluster):
        raise InputError(
            "sensitivity is for layers that are searched here unchanged", hint="leave algorithms and cluster out"
        )
    network = plan.workload
    counted = one_of("movement", settings["movement"], ("counted", "none")) == "counted"
    if network.vectors and plan.architecture.units:
        dependences(network)  # a cycle is an error, which no search should precede
    built = None if algorithms is None else _built(algorithms, settings["algorithm_options"])
    expansion = None if built is None else Expansion.of(network, built, counted)
    searched = network if expansion is None else expansion.workload
    folder = folder_of(settings, searched, [(configuration.mapper_record.name, configuration)])
    layers: list[MappedLayer] = []
    for layer in searched_layers(searched, plan, configuration, arch, cluster):
        layers.append(layer)
        if folder is not None:
            steps_of = () if expansion is None else expansion.records(layer.distinct.layers)
            save_layer(folder, len(layers), layer, configuration, steps_of)
    vectors = counted_vectors(configuration.model, network, plan.architecture)
    report = MappingReport(network, configuration, tuple(layers), expansion=expansion, vectors=vectors)
    if more is not None and report.complete:
        told = []
        with counted_progress(changes(plan.architecture), "changes", plan.progress) as display:
            for effect in effects(network, configuration, report.layers, more, jobs=plan.jobs, cache=plan.results):
                told.append(effect)
                if display:
                    display.show(len(told), f"{effect.part} {effect.what}")
        report = replace(report, sensitivity=tuple(told))
    return report.summarised(folder)


def searched_layers(
    searched: Workload, plan: Plan, configuration: RunConfiguration, arch: Sources, cluster: str | None
) -> Iterator[MappedLayer]:
    """Search each distinct problem, by a cluster or here, show the progress, and yield it with the place of its error."""
    with ExitStack() as closing:
        engine = None if cluster is None else closing.enter_context(Cluster(cluster, configuration))
        seen = closing.enter_context(mapping_progress(searched, configuration.budget, plan.objective, plan.progress))
        watch = seen.watch if seen else None
        for layer in map_workload(searched, configuration, watch, jobs=plan.jobs, cache=plan.results, engine=engine):
            yield replace(layer, error=located(layer.error, arch))
            if seen:
                seen.done(layer.distinct)


def _built(algorithms: str | Sequence[str], options: MappingOf[str, Any] | None) -> list[BuiltAlgorithm]:
    """Return the algorithms; one that cannot be built has its error as the reason.

    Raises:
        UnknownPluginError, InputError: A name or an option is invalid.
    """
    names = names_of("algorithms", algorithms)
    of_each = options_by_name(options, names, "algorithm_options")
    built = []
    for name in names:
        registration = installed().find(AlgorithmSpec, name)
        record = record_of(registration, of_each[name])
        try:
            built.append(BuiltAlgorithm(record, installed().make(AlgorithmSpec, name, of_each[name])))
        except PluginError as error:
            built.append(BuiltAlgorithm(record, None, error))
    return built


@checked
def space(problem: Source, arch: Source, constraints: Source | None = None, factors: str | None = None) -> MapSpace:
    """Return the space of mappings from which `map` chooses, for one problem and architecture.

    The default constraints are the published dataflow of the architecture. The space also contains
    mappings that some mappers or cost models do not accept.

    Args:
        problem, arch: Names, files, dicts or objects, as for `load`. The problem may be a formula.
        constraints, factors: As for `map`; `none` allows everything that the hardware can do.

    Raises:
        InputError, UnknownNameError: An argument is invalid, or the constraints do not suit the space.

    Example:
        >>> import tilewright as tw
        >>> tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss").size
        232
    """
    architecture = load_architecture(arch)
    rules = with_factors(load_constraints(constraints, architecture), factors)
    one, shaped = load_problem(problem), rules.shape(architecture)
    for text in unmatched([one], shaped, rules):
        warnings.warn(text, stacklevel=3)  # `checked` adds a frame
    one = rules.labelled(one)
    variant = rules.rules_for(one, shaped)
    return MapSpace.of(one, shaped, variant, factors=rules.factors_for(one, variant))
