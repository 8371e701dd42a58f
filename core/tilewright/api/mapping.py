"""`map`: the best mapping of every layer of a workload; `space`: all mappings of one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal, Unpack

from tilewright import api
from tilewright.algorithms.expansion import BuiltAlgorithm, Expansion
from tilewright.api.load import Source, load_architecture, load_constraints, load_problem, with_factors
from tilewright.api.mapping_report import MappingReport
from tilewright.api.progress import mapping_progress
from tilewright.api.settings import Plan, Settings, Sources, folder_of
from tilewright.api.words import checked, names_of, one_of, options_by_name
from tilewright.errors import PluginError
from tilewright.exploration.cluster import Cluster
from tilewright.interrupts import keeping
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Mapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.run.evaluation import record_of
from tilewright.run.network import MappedLayer, map_workload
from tilewright.run.written.layers import save_layer
from tilewright.schema.unmatched import unmatched


@checked
@keeping()
def map(
    workload: Sources,
    arch: Sources,
    *,
    mapper: str | Mapper | None = None,
    model: str | CostModel = api.MODEL,
    algorithms: str | Sequence[str] | None = None,
    movement: Literal["counted", "none"] = "counted",
    algorithm_options: MappingOf[str, Any] | None = None,
    cluster: str | None = None,
    **settings: Unpack[Settings],
) -> MappingReport:
    """Map every distinct layer of a workload onto an architecture; what `tilewright map` does.

    Args:
        workload, arch: names, files, dicts or objects, as for `load`; a workload may be a formula. Other tools' files, too: one, several
            (an architecture and its energy table) or a folder. What they say of mappings are the constraints then.
        mapper, model: names of installed plugins, or objects of your own; `timeloop` by default, and `optimal`, or `quickflow` for layers of which
            nothing can be proved.
        algorithms: names of installed algorithms, such as `native,ttgt`: all steps of all ways that they offer for a layer are mapped, each
            under the same limits, and the report tells what each way costs.
        movement: whether what algorithms lay out anew in the outermost memory is `counted`, or `none` of it.
        algorithm_options: options of the algorithms; `{"NAME": {...}}` for one of several.
        cluster: the address of a Dask scheduler (extra `dask`), whose workers search in place of `jobs` processes here.
        objective: what to make small: edp, energy or cycles.
        constraints: a name, a file, a dict, an object, or `none`; by default the architecture's published dataflow.
        factors: perfect (every tile divides the one it is cut from) or ragged (the last piece of a dimension may be smaller);
            by default as the constraints say, which is perfect unless they say otherwise.
        seconds, evaluations, patience: limits for each distinct layer; without seconds and evaluations 100,000 mappings, unless the
            mapper ends by itself.
        seed: the same seed gives the same result.
        mapper_options, model_options: options of the mapper and of the cost model.
        jobs: layers mapped at once, each in a process.
        progress: whether a bar is shown on stderr; None: in a terminal or a notebook.
        cache: whether results are found again and kept; or the folder for them.
        folder: where each layer's mapping file is written as soon as it is found, and then the summaries. A folder belongs to
            one run: what an earlier one of the same workload left there is replaced, that of another is refused.
        resume: go on with this very run in `folder`: the layers that it finished come from the cache.
        force: replace the files of another workload's run, too.
        notation: that of other tools' files, such as timeloop, where it cannot be told by reading them.
        reading: options of that notation's adapter, such as `{"set": {"architecture": "eyeriss_like"}}`.

    Returns:
        The report; a layer without a mapping says why. Ctrl-C ends the search and returns what is done.

    Raises:
        CallError, InputError, UnknownNameError: a word is wrong; the message says what would be right.
        PluginError: mapper or model cannot be built.
        OutputError: the folder cannot be written to. What is found later on, such as a full disk, is `unwritten` of the report.
    """
    plan, configuration = Plan.of_one(workload, arch, mapper, model, settings)
    network = plan.workload
    counted = one_of("movement", movement, ("counted", "none")) == "counted"
    expansion = None if algorithms is None else Expansion.of(network, _built(algorithms, algorithm_options), counted)
    searched = network if expansion is None else expansion.workload
    folder = folder_of(settings, searched, [(configuration.mapper_record.name, configuration)])
    layers: list[MappedLayer] = []
    with ExitStack() as closing:
        engine = None if cluster is None else closing.enter_context(Cluster(cluster, configuration))
        seen = closing.enter_context(mapping_progress(searched, configuration.budget, plan.objective, plan.progress))
        watch = seen.watch if seen else None
        for layer in map_workload(searched, configuration, watch, jobs=plan.jobs, cache=plan.results, engine=engine):
            layers.append(layer)
            if folder is not None:
                steps_of = () if expansion is None else expansion.records(layer.distinct.layers)
                save_layer(folder, len(layers), layer, configuration, steps_of)
            if seen:
                seen.done(layer.distinct)
    return MappingReport(network, configuration, tuple(layers), expansion=expansion).summarised(folder)


def _built(algorithms: str | Sequence[str], options: MappingOf[str, Any] | None) -> list[BuiltAlgorithm]:
    """The algorithms; one that cannot be built says why. Raises UnknownPluginError, InputError."""
    names = names_of("algorithms", algorithms)
    of_each = options_by_name(options, names, "algorithm_options")
    found = []
    for name in names:
        registration = installed().find(AlgorithmSpec, name)
        record = record_of(registration, of_each[name])
        try:
            found.append(BuiltAlgorithm(record, installed().make(AlgorithmSpec, name, of_each[name])))
        except PluginError as error:
            found.append(BuiltAlgorithm(record, None, error))
    return found


@checked
def space(problem: Source, arch: Source, constraints: Source | None = None, factors: str | None = None) -> MapSpace:
    """All mappings that `map` chooses from: of one problem on one architecture, by default under its published dataflow.
    What a mapper or a cost model declares not to accept is still in it.

    Args:
        problem, arch: names, files, dicts or objects, as for `load`; the problem may be a formula.
        constraints, factors: as for `map`; `none` is everything that the hardware can do.

    Raises:
        InputError, UnknownNameError: a word is wrong, or the constraints cannot bound such a space.
    """
    architecture = load_architecture(arch)
    rules = with_factors(load_constraints(constraints, architecture), factors)
    one, shaped = load_problem(problem), rules.shape(architecture)
    for text in unmatched([one], shaped, rules):
        warnings.warn(text, stacklevel=3)  # `checked` is between
    return MapSpace.of(one, shaped, rules.rules_for(one, shaped), factors=rules.factors)
