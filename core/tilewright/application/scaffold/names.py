"""Names of new plugins, and of their distributions and packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from typing import TYPE_CHECKING, Any

from tilewright.application.scaffold import Kind
from tilewright.errors import InputError
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.registry import Registry
from tilewright.plugin.specs import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    StrategySpec,
)

if TYPE_CHECKING:
    from tilewright.plugin.specs import PluginSpec

PREFIX = "tilewright"
"""Prefix of distributions and packages, which makes them easy to find and avoids name clashes."""
LONGEST = 50
NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")

SPECS: dict[Kind, type[PluginSpec[Any]]] = {
    Kind.mapper: MapperSpec,
    Kind.groupmapper: GroupMapperSpec,
    Kind.costmodel: CostModelSpec,
    Kind.composed: CostModelSpec,
    Kind.frontend: FrontendSpec,
    Kind.adapter: AdapterSpec,
    Kind.estimator: EstimatorSpec,
    Kind.algorithm: AlgorithmSpec,
    Kind.strategy: StrategySpec,
}


def distribution_of(name: str) -> str:
    """Return the distribution name of a new plugin.

    >>> distribution_of("hill_climber")
    'tilewright-hill-climber'
    """
    return f"{PREFIX}-{name.replace('_', '-')}"


def module_of(name: str) -> str:
    """Return the name of the package to import.

    >>> module_of("hill-climber")
    'tilewright_hill_climber'
    """
    return f"{PREFIX}_{name.replace('-', '_')}"


def class_of(name: str) -> str:
    """Return the prefix of class names.

    >>> class_of("hill-climber")
    'HillClimber'
    """
    return "".join(part.capitalize() for part in re.split("[-_]", name))


def check_name(kind: Kind, name: str, registry: Registry) -> None:
    """Check whether a new plugin may have this name.

    Raises:
        InputError: The name is not valid for plugin, distribution and package, or it is taken. The
            hint is a command to type.
    """
    command = f"tilewright plugins new {kind}"
    if name.startswith((f"{PREFIX}-", f"{PREFIX}_")):
        raise InputError(
            f"'{name}' is the name of a distribution; give only the plugin's own name",
            hint=f"{command} {name[len(PREFIX) + 1 :] or 'NAME'}",
        )
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise InputError(
            f"'{name[: 2 * LONGEST]}' is not a valid plugin name: expected at most {LONGEST} lower-case letters and digits, "
            "beginning with a letter, with single '-' or '_' between them",
            hint=f"{command} {_proper(name)}",
        )
    for entry in registry.of_kind(SPECS[kind]):
        if module_of(entry.spec.name) == module_of(name):
            whose = "is built in" if entry.distribution == BUILTIN else f"already exists in {entry.distribution}"
            raise InputError(f"a {entry.spec.kind} '{entry.spec.name}' {whose}", hint=f"{command} my-{name}")
    if _is_installed(distribution_of(name)) or importlib.util.find_spec(module_of(name)) is not None:
        raise InputError(
            f"'{name}' would be in the distribution {distribution_of(name)} with the package {module_of(name)}, "
            "which already exists",
            hint=f"{command} my-{name}",
        )


def _proper(name: str) -> str:
    """Return a valid name close to the given one."""
    words = re.findall("[a-z0-9]+", name.lower())
    return "-".join(words).lstrip("-0123456789")[:LONGEST].rstrip("-") or "my-plugin"


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
