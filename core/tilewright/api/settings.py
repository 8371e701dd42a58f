"""Settings that `map` and `compare` share: what may be said, the defaults, and what is made of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

from tilewright.api.load import Source, load_architecture, load_constraints, load_workload
from tilewright.api.progress import is_shown
from tilewright.api.words import at_least, budget_of, objective_of, options_by_name
from tilewright.errors import InputError, OutputError
from tilewright.files import RunFolder, cache_folder
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.mapper import Budget, Mapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec
from tilewright.run.cache import ResultCache
from tilewright.run.configuration import RunConfiguration, claim, with_default
from tilewright.run.evaluation import BuiltModel, build_model, record_of
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.report import Objective
from tilewright.schema.workload import Workload


class Settings(TypedDict, total=False):
    """Keyword, type and default; `map` says what they mean."""

    objective: Annotated[str, "edp"]
    constraints: Annotated[Source | None, None]
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


DEFAULTS = {name: get_args(hint)[1] for name, hint in get_type_hints(Settings, include_extras=True).items()}


@dataclass(frozen=True)
class Plan:
    """A run whose words are checked and whose plugins are built."""

    architecture: Architecture
    constraints: Constraints
    objective: Objective
    budget: Budget
    seed: int
    jobs: int
    progress: bool | None
    cache: bool | str | os.PathLike[str]
    models: tuple[BuiltModel, ...]
    mapper_options: MappingOf[str, MappingOf[str, Any]]
    """Name of a mapper -> its options."""

    @classmethod
    def of(cls, arch: Source, mappers: list[Any], models: list[Any], settings: Settings) -> Plan:
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
        architecture = load_architecture(arch)
        constraints = load_constraints(words["constraints"], architecture)
        named = all(isinstance(plugin, str) for plugin in (*mappers, *models))
        return cls(
            architecture=architecture,
            constraints=constraints,
            objective=objective,
            budget=budget,
            seed=words["seed"],
            jobs=words["jobs"],
            progress=words["progress"],
            cache=words["cache"] if named else False,  # nobody knows when an object becomes another
            models=built,
            mapper_options=for_mapper,
        )

    def configuration(self, mapper: str | Mapper, model: BuiltModel) -> RunConfiguration:
        """Build the mapper. Raises UnknownPluginError, InputError, PluginError."""
        options = self.mapper_options[name_of(mapper)]
        if isinstance(mapper, str):
            registration = installed().find(MapperSpec, mapper)
            spec = registration.spec if isinstance(registration.spec, MapperSpec) else None
            record = record_of(registration, options)
            mapper = installed().make(MapperSpec, mapper, options)
        elif callable(getattr(mapper, "search", None)) and not options:
            record, spec = PluginRecord(name=name_of(mapper)), None
            mapper = guarded_mapper(mapper)
        else:
            raise InputError(
                f"{mapper!r} is no mapper", hint="give a name, or an object with search() and no mapper_options"
            )
        return RunConfiguration(
            architecture=self.architecture,
            constraints=self.constraints,
            mapper=mapper,
            mapper_record=record,
            model=model,
            objective=self.objective,
            budget=with_default(self.budget, spec),
            seed=self.seed,
            mapper_capabilities=Capabilities() if spec is None else spec.capabilities,
        )

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


def work_of(source: Source) -> Workload:
    """What is to be mapped. Raises InputError: there is nothing in it."""
    workload = load_workload(source)
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
