"""Settings that `map` and `compare` share: what may be said, the defaults, and what is made of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

from tilewright import api
from tilewright.api.load import Source, load_architecture, load_constraints, load_workload, with_factors
from tilewright.api.load.foreign import foreign
from tilewright.api.load.kinds import is_foreign
from tilewright.api.progress import is_shown
from tilewright.api.words import at_least, budget_of, objective_of, options_by_name
from tilewright.errors import InputError, OutputError, PluginError
from tilewright.files import RunFolder, cache_folder
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec
from tilewright.run.cache import ResultCache
from tilewright.run.configuration import RunConfiguration, claim, with_default
from tilewright.run.evaluation import BuiltModel, build_model, record_of
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.report import Objective
from tilewright.schema.workload import Workload

Sources = Source | Sequence[str | os.PathLike[str]]
"""One source, or several files of a tool that are read together."""


class Settings(TypedDict, total=False):
    """Keyword, type and default; `map` says what they mean."""

    objective: Annotated[str, "edp"]
    constraints: Annotated[Source | None, None]
    factors: Annotated[str | None, None]
    seconds: Annotated[float | None, None]
    evaluations: Annotated[int | None, None]
    patience: Annotated[int | None, None]
    seed: Annotated[int, 0]
    mapper_options: Annotated[MappingOf[str, Any] | None, None]
    model_options: Annotated[MappingOf[str, Any] | None, None]
    jobs: Annotated[int, 1]
    progress: Annotated[bool | None, None]
    cache: Annotated[bool | str | os.PathLike[str], True]
    folder: Annotated[str | os.PathLike[str] | None, None]
    resume: Annotated[bool, False]
    force: Annotated[bool, False]
    notation: Annotated[str | None, None]
    reading: Annotated[MappingOf[str, Any] | None, None]


DEFAULTS = {name: get_args(hint)[1] for name, hint in get_type_hints(Settings, include_extras=True).items()}


@dataclass(frozen=True)
class _BuiltMapper:
    """A mapper, which one it is, and what it declares; an object says nothing."""

    mapper: Mapper
    record: PluginRecord
    spec: MapperSpec | None = None


@dataclass(frozen=True)
class Plan:
    """A run whose words are checked and whose plugins are built."""

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
    """By name; or why one could not be built."""
    named: bool = True
    """All plugins are installed ones, not objects."""

    @classmethod
    def of(cls, workload: Sources, arch: Sources, mappers: list[Any], models: list[Any], settings: Settings) -> Plan:
        """Raises InputError, UnknownNameError: a word is wrong."""
        words = {**DEFAULTS, **settings}
        at_least(1, jobs=words["jobs"])
        at_least(0, seed=words["seed"])
        is_shown(words["progress"])
        budget = budget_of(words["seconds"], words["evaluations"], words["patience"])
        objective = objective_of(words["objective"])
        for_model = options_by_name(words["model_options"], [name_of(model) for model in models])
        for_mapper = options_by_name(words["mapper_options"], [name_of(each) for each in mappers], "mapper_options")
        built = tuple(build_model(model, for_model[name_of(model)]) for model in models)
        built_mappers = {name_of(each): _built(each, for_mapper[name_of(each)]) for each in mappers}
        network, architecture, constraints = _given(workload, arch, words)
        named = all(isinstance(plugin, str) for plugin in (*mappers, *models))
        return cls(
            workload=network,
            architecture=architecture,
            constraints=with_factors(constraints, words["factors"]),
            objective=objective,
            budget=budget,
            seed=words["seed"],
            jobs=words["jobs"],
            progress=words["progress"],
            cache=words["cache"] if named else False,  # nobody knows when an object becomes another
            models=built,
            mappers=built_mappers,
            named=named,
        )

    def configuration(self, mapper: str | Mapper, model: BuiltModel) -> RunConfiguration:
        """Raises PluginError: the mapper could not be built."""
        built = self.mappers[name_of(mapper)]
        if isinstance(built, PluginError):
            raise built
        return RunConfiguration(
            architecture=self.architecture,
            constraints=self.constraints,
            mapper=built.mapper,
            mapper_record=built.record,
            model=model,
            objective=self.objective,
            budget=with_default(self.budget, built.spec),
            seed=self.seed,
            mapper_capabilities=Capabilities() if built.spec is None else built.spec.capabilities,
        )

    @classmethod
    def of_one(
        cls, workload: Sources, arch: Sources, mapper: str | Mapper | None, model: str | CostModel, settings: Settings
    ) -> tuple[Plan, RunConfiguration]:
        """Of one mapper and one cost model; None: the default mapper, and another one for layers of which it can prove nothing.

        Raises:
            InputError, UnknownNameError: a word is wrong.
            PluginError: mapper or model cannot be built.
        """
        named = api.MAPPER if mapper is None else mapper
        both = mapper is None and not settings.get("mapper_options")
        plan = cls.of(workload, arch, [named, *([api.OTHERWISE] if both else [])], [model], settings)
        (built,) = plan.models
        if built.error is not None:
            raise built.error
        configuration = plan.configuration(named, built)
        if both:
            configuration = replace(configuration, otherwise=plan.configuration(api.OTHERWISE, built))
        return plan, configuration

    @property
    def results(self) -> ResultCache | None:
        """Where results are found again and kept."""
        if self.cache is False:
            return None
        try:
            return ResultCache(cache_folder() if self.cache is True else Path(self.cache))
        except OutputError as error:
            logging.getLogger("tilewright").warning("warning: results are not kept: %s", error)
            return None


def _built(mapper: str | Mapper, options: MappingOf[str, Any]) -> _BuiltMapper | PluginError:
    """Raises UnknownPluginError, InputError: a word is wrong."""
    if not isinstance(mapper, str):
        if not callable(getattr(mapper, "search", None)) or options:
            raise InputError(
                f"{mapper!r} is no mapper", hint="give a name, or an object with search() and no mapper_options"
            )
        return _BuiltMapper(guarded_mapper(mapper), PluginRecord(name=name_of(mapper)))
    registration = installed().find(MapperSpec, mapper)
    assert isinstance(registration.spec, MapperSpec)
    try:
        built = installed().make(MapperSpec, mapper, options)
    except PluginError as error:
        return error
    return _BuiltMapper(built, record_of(registration, options), registration.spec)


def _given(work: Sources, arch: Sources, words: MappingOf[str, Any]) -> tuple[Workload, Architecture, Constraints]:
    """What is mapped, where to, and what mappings keep to.

    Another tool's hardware is read together with each problem; what its files say of mappings counts unless the user says
    otherwise. Raises InputError, UnknownNameError.
    """
    works, hardware = _several(work), _several(arch)
    chosen, notation, reading = words["constraints"], words["notation"], words["reading"]
    foreign_hardware = len(hardware) > 1 or is_foreign(hardware[0])
    if (notation or reading) and not foreign_hardware and not any(map(is_foreign, works)):
        raise InputError("no file of another tool is given", hint="leave --from, --set, --dense and --dataflow out")
    if not foreign_hardware:
        architecture = load_architecture(hardware[0])
        constraints = load_constraints(chosen, architecture)
        return _network(works, notation, reading), architecture, constraints
    if all(map(is_foreign, works)):
        network = None
        found = foreign(works, hardware, notation, reading)
    else:
        network = _network(works, notation, reading)
        found = foreign(network if chosen is None else None, hardware, notation, reading)
    network = found.workload or network
    assert network is not None and found.architecture is not None  # both were given
    if chosen is None:
        return _mappable(network), found.architecture, found.constraints or NO_CONSTRAINTS
    return _mappable(network), found.architecture, load_constraints(chosen, found.architecture)


def _several(source: Sources) -> list[Any]:
    """One source or several. Raises InputError: a list of something else than files, or of none."""
    if not isinstance(source, list | tuple):
        return [source]
    if not source or (len(source) > 1 and not all(isinstance(each, str | os.PathLike) for each in source)):
        raise InputError("several sources are several files", hint="give names of files, or one name or object alone")
    return list(source)


def _network(works: list[Any], notation: str | None, reading: MappingOf[str, Any] | None) -> Workload:
    """The layers of one source, or of several files. Raises InputError."""
    if all(map(is_foreign, works)):
        found = foreign(works, [], notation, reading).workload
        assert found is not None
        return _mappable(found)
    if any(map(is_foreign, works)):
        raise InputError("some of these files are ours and some another tool's", hint="map them in two calls")
    parts = [load_workload(each) for each in works]
    if len(parts) == 1:
        return _mappable(parts[0])
    layers = tuple(layer for part in parts for layer in part.layers)
    names = [layer.name for layer in layers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two layers are called {twice}", hint="give them names of their own, or map them in two calls"
        )
    unmapped = tuple(each for part in parts for each in part.unmapped)
    return _mappable(Workload(name="+".join(part.name for part in parts), layers=layers, unmapped=unmapped))


def _mappable(workload: Workload) -> Workload:
    """Raises InputError: there is nothing in it."""
    if not workload.layers:
        operators = ", ".join(dict.fromkeys(each.operator for each in workload.unmapped))
        raise InputError(
            f"{workload.name} has no layer that can be mapped{operators and f': its operators are {operators}'}",
            hint="layers are convolutions and products of matrices or tensors",
        )
    return workload


def folder_of(
    settings: Settings, workload: Workload, points: Sequence[tuple[str, RunConfiguration | None]]
) -> RunFolder | None:
    """Where the files of this run go. `points`: names and configurations of its searches.

    Raises:
        InputError: another run has the folder, or `resume` without what it needs.
        OutputError: it cannot be written to.
    """
    words = {**DEFAULTS, **settings}
    if words["resume"] and (words["folder"] is None or words["cache"] is False):
        raise InputError(
            "resume goes on with a run in a folder; what that finished comes from the cache", hint="give both"
        )
    if words["folder"] is None:
        return None
    folder = RunFolder(words["folder"])
    claim(folder, workload, points, resume=words["resume"], force=words["force"])
    return folder


def name_of(plugin: object) -> str:
    """What a plugin, or an object in its place, is called."""
    return plugin if isinstance(plugin, str) else type(plugin).__name__
