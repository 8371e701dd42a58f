"""Group mappers by name, with what a certificate records of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.application.run.evaluation import record_of
from tilewright.plugin.groupmapper import GroupMapper
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import GroupMapperSpec
from tilewright.schema.mapped import PluginRecord


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
