"""Plan of a run: its settings checked, and its plugins built."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import (
    budget_of,
    objective_of,
    one_of,
    options_by_name,
    part_of,
    whole,
)
from tilewright.application.api.keywords import settings_of
from tilewright.application.api.load import Source, load_architecture, load_constraints, load_workload, with_factors
from tilewright.application.api.load.foreign import foreign
from tilewright.application.api.load.kinds import is_foreign
from tilewright.application.api.settings import (
    ExploreSettings,
    FrontSettings,
    GenerateSettings,
    MapSettings,
    Searches,
    Settings,
)
from tilewright.application.run.cache import ResultCache
from tilewright.application.run.configuration import RunConfiguration, acquire, with_default
from tilewright.application.run.evaluation import BuiltModel, build_model, record_of
from tilewright.application.run.vector_network import not_counted_here
from tilewright.errors import InputError, OutputError, PluginError
from tilewright.files import RunFolder, cache_folder, file_and_member, is_file
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec, CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints
from tilewright.schema.divisors import sizes_with_few_divisors
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.objective import EDP, KNOWN, Objective
from tilewright.schema.operands import operand_warnings
from tilewright.schema.unsearched import unsearched_notes
from tilewright.schema.workload import Layer, Workload

Sources = Source | Sequence[str | os.PathLike[str]]
"""One source, or several files of one tool that are read together."""


@dataclass(frozen=True)
class _BuiltMapper:
    """Mapper with its record, and with its spec if it is an installed plugin."""

    mapper: Mapper
    record: PluginRecord
    spec: MapperSpec | None = None


@dataclass(frozen=True)
class Plan:
    """Run with checked arguments and built plugins."""

    workload: Workload
    architecture: Architecture
    constraints: Constraints
    objective: Objective
    budget: Budget
    seed: int
    jobs: int
    progress: bool | None
    cache: bool | str | os.PathLike[str]
    models: tuple[BuiltModel, ...]
    mappers: MappingOf[str, _BuiltMapper | PluginError]
    """Mappers by name, or the error if one could not be built."""
    network_bits: bool = False
    expressible: tuple[str, Capabilities] | None = None
    named: bool = True
    """Whether all plugins are installed ones and none is an object."""

    @classmethod
    def of(cls, workload: Sources, arch: Sources, mappers: list[Any], models: list[Any], settings: Searches) -> Plan:
        """Check the arguments and build the plugins.

        Raises:
            InputError, UnknownNameError: An argument is invalid.
        """
        words: dict[str, Any] = {name: setting.default for name, setting in settings_of(Searches).items()} | {
            **settings
        }
        whole(1, jobs=words["jobs"])
        whole(0, seed=words["seed"])
        budget = budget_of(words["seconds"], words["evaluations"], words["patience"])
        chosen = None if words["objective"] is None else objective_of(words["objective"])
        for_model = options_by_name(words["model_options"], [name_of(model) for model in models])
        for_mapper = options_by_name(words["mapper_options"], [name_of(mapper) for mapper in mappers], "mapper_options")
        if words["gap"] is not None:
            for_mapper = _with_gap(for_mapper, mappers, part_of("gap", words["gap"]))
        built = tuple(build_model(model, for_model[name_of(model)]) for model in models)
        built_mappers = {name_of(mapper): _built(mapper, for_mapper[name_of(mapper)]) for mapper in mappers}
        network, architecture, constraints, stated, theirs_uneven = _given(workload, arch, words)
        uneven = words["uneven"]
        notation = _notation(words["expressible"])
        if uneven is None and theirs_uneven and not constraints.uneven and notation is None:
            uneven = _searches_uneven(built, list(built_mappers.values()))
        constraints = with_factors(constraints, words["factors"], uneven)
        network = _labelled(network, constraints)
        _tell_of_ragged_tiles(network, constraints)
        named = all(isinstance(plugin, str) for plugin in (*mappers, *models))
        return cls(
            workload=network,
            architecture=architecture,
            constraints=constraints,
            objective=_stated(stated) if chosen is None else chosen,
            budget=budget,
            seed=words["seed"],
            jobs=words["jobs"],
            progress=words["progress"],
            cache=words["cache"] if named else False,  # objects have no version to key results by
            models=built,
            mappers=built_mappers,
            network_bits=one_of("value_bits", words["value_bits"], ("architecture", "network")) == "network",
            expressible=notation,
            named=named,
        )

    def configuration(self, mapper: str | Mapper, model: BuiltModel, compared: bool = False) -> RunConfiguration:
        """Return the run configuration of a mapper and a model.

        If mappers are compared, `--evaluations` and `--patience` limit those only that do not limit themselves: a
        prover that is cut gives no optimum to compare with.

        Raises:
            PluginError: The mapper could not be built.
        """
        built = self.mappers[name_of(mapper)]
        if isinstance(built, PluginError):
            raise built
        budget = self.budget
        if compared and built.spec is not None and built.spec.limits_itself:
            budget = Budget(seconds=budget.seconds)
        return RunConfiguration(
            architecture=self.architecture,
            constraints=self.constraints,
            mapper=built.mapper,
            mapper_record=built.record,
            model=model,
            objective=self.objective,
            budget=with_default(budget, built.spec),
            seed=self.seed,
            mapper_capabilities=Capabilities() if built.spec is None else built.spec.capabilities,
            network_bits=self.network_bits,
            expressible=self.expressible,
        )

    @classmethod
    def of_one(
        cls,
        workload: Sources,
        arch: Sources,
        settings: MapSettings | FrontSettings | GenerateSettings | ExploreSettings,
    ) -> tuple[Plan, RunConfiguration]:
        """Return the plan and configuration of one mapper and one cost model.

        If no mapper is given, the default mapper is used, with the fallback mapper for layers where
        it can prove nothing.

        Raises:
            InputError, UnknownNameError: An argument is invalid.
            PluginError: Mapper or model cannot be built.
        """
        mapper, model = settings["mapper"], settings["model"]
        model = installed().default(CostModelSpec, "search") if model is None else model
        named = installed().default(MapperSpec, "search") if mapper is None else mapper
        both = mapper is None and not settings.get("mapper_options")
        fallbacks = [installed().default(MapperSpec, "fallback")] if both else []
        plan = cls.of(workload, arch, [named, *fallbacks], [model], settings)
        (built,) = plan.models
        if built.error is not None:
            raise built.error
        configuration = plan.configuration(named, built)
        for fallback in fallbacks:
            configuration = replace(configuration, fallback=plan.configuration(fallback, built))
        return plan, configuration

    @property
    def results(self) -> ResultCache | None:
        """Cache of results, or None if there is none."""
        if self.cache is False:
            return None
        try:
            return ResultCache(cache_folder() if self.cache is True else Path(self.cache))
        except OutputError as error:
            logging.getLogger("tilewright").warning("warning: results are not cached: %s", error)
            return None


def _built(mapper: str | Mapper, options: MappingOf[str, Any]) -> _BuiltMapper | PluginError:
    """Return the built mapper, or the error of a plugin that cannot be built.

    Raises:
        UnknownPluginError, InputError: The name or an option is invalid.
    """
    if not isinstance(mapper, str):
        if not callable(getattr(mapper, "search", None)) or options:
            raise InputError(
                f"{mapper!r} is not a mapper", hint="give a name, or an object with search() and no mapper_options"
            )
        return _BuiltMapper(guarded_mapper(mapper), PluginRecord(name=name_of(mapper)))
    registration = installed().find(MapperSpec, mapper)
    assert isinstance(registration.spec, MapperSpec)
    try:
        built = installed().make(MapperSpec, mapper, options)
    except PluginError as error:
        return error
    return _BuiltMapper(built, record_of(registration, options), registration.spec)


def _with_gap(
    options: MappingOf[str, dict[str, Any]], mappers: Sequence[str | Mapper], gap: float
) -> dict[str, dict[str, Any]]:
    """Return the options of mappers, with a gap for the provers that take one. Raises InputError if there is none."""
    specs = {name: installed().find(MapperSpec, name).spec for name in mappers if isinstance(name, str)}
    provers = [
        name
        for name, spec in specs.items()
        if isinstance(spec, MapperSpec) and spec.limits_itself and "gap" in spec.options.model_fields
    ]
    if not provers:
        raise InputError("none of the mappers proves up to a gap", hint="leave --gap out, or take --mapper optimal")
    return {name: {"gap": gap, **values} if name in provers else values for name, values in options.items()}


def _notation(name: str | None) -> tuple[str, Capabilities] | None:
    """Return a notation with the mappings that its adapter declares; None if none is given. Raises UnknownPluginError."""
    if name is None:
        return None
    spec = installed().find(AdapterSpec, name).spec
    if spec.capabilities == Capabilities():
        raise InputError(
            f"adapter {name} declares no limits on mappings", hint="leave --expressible out, or give timeloop"
        )
    return name, spec.capabilities


def _searches_uneven(models: Sequence[BuiltModel], mappers: Sequence[_BuiltMapper | PluginError]) -> bool:
    """Return whether to search the uneven space of another tool: all accept it, and the mappers are provers.

    Others would share their limits among its parts.

    If not, log that the space is smaller than the tool's.
    """
    specs = [mapper.spec for mapper in mappers if isinstance(mapper, _BuiltMapper)]
    searching = [spec for spec in specs if spec is None or "fallback" not in spec.default_for]
    accepting = all(model.capabilities.uneven_mappings for model in models)
    if accepting and all(spec and spec.limits_itself and spec.capabilities.uneven_mappings for spec in searching):
        return True
    text = "note: these files' tool also searches uneven mappings; even ones are searched here (--uneven searches both)"
    logging.getLogger("tilewright").warning("%s", text)
    return False


def _stated(word: str | None) -> Objective:
    """Return the objective of a search for which none is given: the one that the files state, else edp. Raises InputError."""
    try:
        return EDP if word is None else Objective.named(word)
    except InputError:
        names = ", ".join(objective.name for objective in KNOWN)
        message = f"these files minimise {word}, which is no objective here"
        raise InputError(message, hint=f"give --objective with one of {names}") from None


def _given(
    work: Sources, arch: Sources, words: MappingOf[str, Any]
) -> tuple[Workload, Architecture, Constraints, str | None, bool]:
    """Return workload, architecture, constraints, and what files of other tools state: objective, and uneven mappings.

    Hardware files of other tools are read together with each problem. Their mapping rules apply
    unless constraints are given.

    Raises:
        InputError, UnknownNameError: A source is invalid.
    """
    works, hardware = _several(work), _several(arch)
    chosen, notation, reading = words["constraints"], words["notation"], words["reading"]
    foreign_hardware = len(hardware) > 1 or is_foreign(hardware[0])
    theirs = [is_foreign(source, notation) for source in works]
    if (notation or reading) and not foreign_hardware and not any(theirs):
        raise InputError(
            "none of the files is another tool's; --from, --set, --dense, --one-energy and --dataflow are for such files",
            hint="leave them out; a field of an architecture changes in its file, or by "
            "`tilewright explore NET --arch ARCH --vary FIELD=VALUE`",
        )
    if not foreign_hardware:
        architecture = load_architecture(hardware[0])
        constraints = load_constraints(chosen, architecture)
        network, objective = _network(works, theirs, notation, reading)
        return network, architecture, constraints, objective, False
    if all(theirs):
        layers = None
        inputs = foreign(works, hardware, notation, reading)
    else:
        layers, _ = _network(works, theirs, notation, reading)
        inputs = foreign(layers if chosen is None else None, hardware, notation, reading)
    layers = inputs.workload or layers
    assert layers is not None  # both sources were given
    layers = _mappable(layers)
    assert inputs.architecture is not None  # some layer was read together with it
    rules = inputs.constraints or NO_CONSTRAINTS
    if chosen is not None:
        rules = load_constraints(chosen, inputs.architecture)
    return layers, inputs.architecture, rules, inputs.objective, inputs.uneven


def warn_of_inputs(workload: Workload, configuration: RunConfiguration, counts_vectors: bool = False) -> None:
    """Log what results without messages of their own do not say.

    That is which problems need an operation of more operands, and which rules of files are not searched.
    """
    problems = [distinct.problem for distinct in workload.distinct()]
    for text in operand_warnings(problems, configuration.architecture):
        logging.getLogger("tilewright").warning("warning: %s", text)
    for text in unsearched_notes(configuration.constraints, problems):
        logging.getLogger("tilewright").warning("note: %s", text)
    for text in () if counts_vectors else not_counted_here(workload, configuration.architecture):
        logging.getLogger("tilewright").warning("note: %s", text)


def _labelled(workload: Workload, constraints: Constraints) -> Workload:
    """Return the workload with the labels of rules for layers, and log which of their words select none."""
    words = {word for variant in constraints.variants for word in variant.layers}
    if not words:
        return workload
    labelled = [layer.model_copy(update={"problem": constraints.labelled(layer.problem)}) for layer in workload.layers]
    for word in sorted(words - {layer.problem.label for layer in labelled}):
        names = ", ".join(layer.name for layer in workload.layers[:5])
        text = f"constraints {constraints.name}: layers '{word}' is no layer, pattern or label here; layers are {names}, ..."
        logging.getLogger("tilewright").warning("warning: %s", text)
    return workload.model_copy(update={"layers": tuple(labelled)})


def _tell_of_ragged_tiles(workload: Workload, constraints: Constraints) -> None:
    """Log which sizes give their layers ragged tiles, if constraints leave that to the sizes."""
    if constraints.factors == "as_needed":
        problems = [distinct.problem for distinct in workload.distinct()]
        for size, first in sizes_with_few_divisors(problems).items():
            layers = [problem.name for problem in problems if size in problem.sizes]
            more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
            text = f"note: few tiles divide {size} ({first}): tiles of {layers[0]}{more} may be ragged"
            logging.getLogger("tilewright").warning("%s", text)


def _several(source: Sources) -> list[Any]:
    """Return the sources as a list.

    Raises:
        InputError: The list is empty, or contains objects other than files.
    """
    if not isinstance(source, list | tuple):
        return [source]
    if not source or (len(source) > 1 and not all(isinstance(item, str | os.PathLike) for item in source)):
        raise InputError(
            "a list of sources must contain only files", hint="give file names, or a single name or object"
        )
    return list(source)


def _network(
    works: list[Any], theirs: list[bool], notation: str | None, reading: MappingOf[str, Any] | None
) -> tuple[Workload, str | None]:
    """Return the layers of one source, or of several files, as a workload, and the objective that the files state.

    `theirs` states of each source whether another tool's adapter reads it.

    Raises:
        InputError: A source is invalid, or Tilewright's files are mixed with those of another tool.
    """
    if all(theirs):
        inputs = foreign(works, [], notation, reading)
        assert inputs.workload is not None
        return _mappable(inputs.workload), inputs.objective
    if any(theirs):
        raise InputError("some of these files are Tilewright's and some another tool's", hint="map them in two calls")
    parts = [load_workload(work) for work in works]
    if len(parts) == 1:
        return _mappable(parts[0]), None
    connected = _connected(works, parts)
    layers = tuple(connected.get(layer.name, layer) for part in parts for layer in part.layers)
    names = [layer.name for layer in layers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two layers are called {twice}", hint="give them names of their own, or map them in two calls"
        )
    unmapped = tuple(operator for part in parts for operator in part.unmapped)
    vectors = tuple(vector for part in parts for vector in part.vectors)
    name, content = "+".join(part.name for part in parts), Workload.content_of(parts)
    return _mappable(Workload(name=name, content=content, layers=layers, unmapped=unmapped, vectors=vectors)), None


def _connected(works: Sequence[Any], parts: Sequence[Workload]) -> dict[str, Layer]:
    """Return the layers that are picked from one network, NAME/LAYER, with the edges that they have there."""
    picked = dict[str, list[str]]()
    for work, part in zip(works, parts, strict=True):
        if isinstance(work, str | os.PathLike):
            base, member = file_and_member(work)
            if not is_file(base):
                base, _, member = os.fspath(work).partition("/")
            if member:
                picked.setdefault(base, []).append(part.layers[0].name)
    several = {base: names for base, names in picked.items() if len(names) > 1}
    return {layer.name: layer for base, names in several.items() for layer in load_workload(base).picked(names)}


def _mappable(workload: Workload) -> Workload:
    """Return the workload, or raise InputError if it has no layer."""
    if not workload.layers:
        because: dict[str, dict[str, None]] = {}
        for unmapped in workload.unmapped:
            because.setdefault(unmapped.reason, {})[unmapped.operator] = None
        lines = "".join(f"\n  {', '.join(operators)}: {reason}" for reason, operators in because.items())
        raise InputError(
            f"{workload.name} has no layer that can be mapped{lines and f'; its operators are{lines}'}",
            hint="layers are convolutions and products of matrices or tensors",
        )
    return workload


def folder_of(
    settings: Settings,
    workload: Workload,
    points: Sequence[tuple[str, RunConfiguration | None]],
    *,
    fused: bool = False,
) -> RunFolder | None:
    """Return the folder for the files of this run. `points` are names and configurations of its searches.

    Raises:
        InputError: The folder belongs to another run, or `resume` lacks a folder or a cache.
        OutputError: The folder cannot be written to.
    """
    if settings["resume"] and (settings["folder"] is None or settings["cache"] is False):
        raise InputError("resume needs a folder with a run, and the cache for its finished layers", hint="give both")
    if settings["folder"] is None:
        return None
    folder = RunFolder(settings["folder"])
    acquire(folder, workload, points, fused=fused, resume=settings["resume"], force=settings["force"])
    return folder


def name_of(plugin: object) -> str:
    """Return the name of a plugin, or of an object used as one."""
    return plugin if isinstance(plugin, str) else type(plugin).__name__
