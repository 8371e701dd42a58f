"""Group mappers by name, with what a certificate records of them, and their searches."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tilewright.application.run.evaluation import BuiltModel, evaluate_group, record_of
from tilewright.application.run.observing import RunObserver
from tilewright.plugin.groupmapper import GroupMapper, GroupResult, GroupTask
from tilewright.plugin.hook_data import ObservedRun
from tilewright.plugin.mapper import Budget
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import GroupMapperSpec
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.objective import Objective


@dataclass(frozen=True)
class BuiltGroupMapper:
    """A group mapper with its record and its declaration."""

    record: PluginRecord
    mapper: GroupMapper
    spec: GroupMapperSpec


def build_group_mapper(name: str | None = None, options: Mapping[str, Any] | None = None) -> BuiltGroupMapper:
    """Return an installed group mapper; without a name, the default one.

    Raises:
        UnknownPluginError, AmbiguousPluginError: No single group mapper has this name.
        InputError: An option is unknown or invalid.
        PluginError: It cannot be built.
    """
    registry, given = installed(), options or {}
    registration = registry.find(GroupMapperSpec, name or registry.default(GroupMapperSpec, "fusion"))
    spec = registration.spec
    assert isinstance(spec, GroupMapperSpec)
    mapper = registry.make(GroupMapperSpec, registration.long_name, given)
    return BuiltGroupMapper(record_of(registration, given), mapper, spec)


def search_group(
    mapper: BuiltGroupMapper,
    group: GroupMapping,
    model: BuiltModel,
    objective: Objective,
    seconds: float | None = None,
) -> GroupResult:
    """Return the result of a group mapper under a cost model, of which observer plugins are told.

    A bound whose space the mapper's spec does not name covers nothing: it is dropped, with a warning.

    Raises:
        NotConformableError: The mapper does not search the group.
        PluginError: The mapper failed.
    """
    names = tuple(layer.name for layer in group.layers)
    chosen = mapper.record.name, model.record.name, objective.name
    observer = RunObserver(ObservedRun(names, group.architecture.name, *chosen, Budget(seconds=seconds), seed=0))
    try:
        observer.started()
        task = GroupTask(group, partial(evaluate_group, model), objective, seconds)
        result: GroupResult = mapper.mapper.search_group(task)
        if not mapper.spec.space and (result.bound or result.proved or result.unfused_proved):
            told = "it claims a bound, and its spec names no space; the bound is dropped"
            logging.getLogger("tilewright").warning("warning: group mapper %s: %s", mapper.record.long_name, told)
            result = replace(result, bound=0.0, proved=False, unfused_proved=False)
        observer.group_done(group.name, result)
        return result
    finally:
        observer.ended()
