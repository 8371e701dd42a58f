"""Group mappers by name, with what a certificate records of them, and their searches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tilewright.application.run.branch_table import BranchTable
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import BuiltModel, evaluate_group, record_of
from tilewright.application.run.group_vectors import rows_of
from tilewright.application.run.network import LayerSearch, MappedLayer, map_searches
from tilewright.application.run.observing import RunObserver
from tilewright.plugin.groupmapper import GroupMapper, GroupResult, GroupTask
from tilewright.plugin.hook_data import ObservedRun
from tilewright.plugin.mapper import Budget
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import GroupMapperSpec, MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.objective import ENERGY, Objective


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
    *,
    table: BranchTable | None = None,
    apart: frozenset[tuple[str, str]] = frozenset(),
    rows: frozenset[tuple[str, str]] | None = None,
    stays: frozenset[str] = frozenset(),
) -> GroupResult:
    """Return the result of a group mapper under a cost model, and tell observer plugins of the search.

    Args:
        table: maps layers inside shared loops; None: the default mapper does, without constraints.
        apart, rows, stays: those of `GroupTask`. Without rows (None), the group's vector layers have their rows whole.

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
        whole = rows_of(group)[0] if rows is None else rows
        table = table or branch_table(group.architecture, model)
        task = GroupTask(group, partial(evaluate_group, model), objective, seconds, table, apart, whole, stays)
        result: GroupResult = mapper.mapper.search_group(task)
        if not (mapper.spec.space or result.space) and (result.bound or result.proved or result.unfused_proved):
            told = "it claims a bound, and its spec names no space; the bound is dropped"
            logging.getLogger("tilewright").warning("warning: group mapper %s: %s", mapper.record.long_name, told)
            result = replace(result, bound=0.0, proved=False, unfused_proved=False)
        observer.group_done(group.name, result)
        return result
    finally:
        observer.ended()


def branch_table(
    architecture: Architecture, model: BuiltModel, constraints: Constraints = NO_CONSTRAINTS, jobs: int = 1
) -> BranchTable:
    """Return the branch table of an architecture: the default mapper searches each visit of a layer, under a cost model."""
    registry = installed()
    registration = registry.find(MapperSpec, registry.default(MapperSpec, "search"))
    spec = registration.spec
    assert isinstance(spec, MapperSpec)
    configuration = RunConfiguration(
        architecture=architecture,
        constraints=constraints,
        mapper=registry.make(MapperSpec, registration.long_name, {}),
        mapper_record=record_of(registration, {}),
        model=model,
        objective=ENERGY,
        budget=Budget(),
        seed=0,
        mapper_capabilities=spec.capabilities,
    )

    def search(asked: Sequence[LayerSearch]) -> Iterator[MappedLayer]:
        return map_searches(asked, jobs=jobs)

    return BranchTable(configuration, search)
