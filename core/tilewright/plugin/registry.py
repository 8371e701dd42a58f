"""The registry: finds plugins by their entry points and survives the bad ones.

Built-in plugins come through the same entry-point group as a third party's.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import pluggy
from pydantic import BaseModel, ValidationError

from tilewright.errors import AmbiguousPluginError, OptionError, PluginError, TilewrightError, UnknownPluginError
from tilewright.plugin import hooks as hookspecs
from tilewright.plugin.specs import (
    INTERFACE,
    KINDS,
    AdapterSpec,
    Approximation,
    CostModelSpec,
    FrontendSpec,
    MapperSpec,
    PluginSpec,
)
from tilewright.schema.document import suggestion

if TYPE_CHECKING:
    from tilewright.plugin.adapter import Adapter
    from tilewright.plugin.costmodel import CostModel
    from tilewright.plugin.frontend import Frontend
    from tilewright.plugin.mapper import Mapper
    from tilewright.plugin.result import Result

GROUP = "tilewright"
BUILTIN = "tilewright"
"""The distribution whose plugin names nobody can take over."""
DISABLE = "TILEWRIGHT_DISABLE"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*")

S = TypeVar("S", bound=PluginSpec[Any])


@dataclass(frozen=True)
class Registration:
    """A plugin and the distribution it came from."""

    spec: PluginSpec[Any]
    distribution: str
    version: str | None

    @property
    def long_name(self) -> str:
        return f"{self.distribution}/{self.spec.name}"

    @property
    def name(self) -> str:
        """What finds it: a built-in's bare name, the long name of another."""
        return self.spec.name if self.distribution == BUILTIN else self.long_name


@dataclass(frozen=True)
class Broken:
    """A plugin that could not be used, and why; `stage` is import, hooks or specs."""

    entry_point: str
    distribution: str
    stage: str
    error: str

    def __str__(self) -> str:
        name = f"{self.distribution}/{self.entry_point}"
        return (
            f"{name} failed at {self.stage}: {self.error} -- "
            f"fix or uninstall {self.distribution}, or set {DISABLE}={name}"
        )


class Registry:
    """All plugins that loaded, those that did not, and those the user switched off.

    `disabled`: names (`name` or `distribution/name`) of entry points and plugins to leave out.
    """

    def __init__(self, disabled: Iterable[str] = ()) -> None:
        self.registrations: list[Registration] = []
        self.broken: list[Broken] = []
        self.disabled = frozenset(disabled)
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)

    def add(self, spec: PluginSpec[Any], distribution: str, version: str | None = None) -> None:
        """Register one plugin, unless it is disabled.

        Raises:
            ValueError: it is no spec of ours, badly filled in, or its name is taken in its distribution.
        """
        _check_spec(spec)
        new = Registration(spec, distribution, version)
        if self.disabled & {spec.name, new.long_name}:
            return
        for old in self.registrations:
            if old.spec.kind == spec.kind and old.long_name == new.long_name:
                raise ValueError(f"{distribution} registers two {spec.kind}s called '{spec.name}'")
        self.registrations.append(new)

    def of_kind(self, kind: type[S]) -> tuple[Registration, ...]:
        """Registrations of one kind, by name."""
        found = [entry for entry in self.registrations if isinstance(entry.spec, kind)]
        return tuple(sorted(found, key=lambda entry: (entry.spec.name, entry.distribution)))

    def find(self, kind: type[S], name: str) -> Registration:
        """The plugin called `name`, or `distribution/name`; a built-in's bare name is always the built-in.

        Raises:
            UnknownPluginError: with what is installed and what failed to load.
            AmbiguousPluginError: several third parties share the name.
        """
        known = self.of_kind(kind)
        found = [entry for entry in known if name in (entry.spec.name, entry.long_name)]
        found = [entry for entry in found if entry.distribution == BUILTIN or name == entry.long_name] or found
        if len(found) > 1:
            raise AmbiguousPluginError(
                f"several {kind.kind}s are called '{name}': {', '.join(entry.long_name for entry in found)}",
                hint="use the long form, distribution/name",
            )
        if not found:
            names = [entry.spec.name for entry in known]
            message = f"no {kind.kind} is called '{name}'{suggestion(name, names)}"
            message += f"; installed: {', '.join(names) or 'none'}"
            if self.disabled:
                message += f"; switched off by {DISABLE}: {', '.join(sorted(self.disabled))}"
            if self.broken:
                message += "\nplugins that failed to load:" + "".join(f"\n  - {broken}" for broken in self.broken)
            raise UnknownPluginError(message)
        return found[0]

    @overload
    def make(self, kind: type[MapperSpec], name: str, options: Mapping[str, Any] = ...) -> Mapper: ...
    @overload
    def make(self, kind: type[CostModelSpec], name: str, options: Mapping[str, Any] = ...) -> CostModel: ...
    @overload
    def make(self, kind: type[FrontendSpec], name: str, options: Mapping[str, Any] = ...) -> Frontend: ...
    @overload
    def make(self, kind: type[AdapterSpec], name: str, options: Mapping[str, Any] = ...) -> Adapter: ...
    def make(self, kind: type[PluginSpec[Any]], name: str, options: Mapping[str, Any] | None = None) -> Any:
        """Build a plugin.

        Raises:
            UnknownPluginError, AmbiguousPluginError: see `find`.
            InputError: an option is unknown or wrong.
            PluginError: a module it needs is missing, or its factory crashed.
        """
        registration = self.find(kind, name)
        spec = registration.spec
        missing = spec.missing(options or ())
        if missing:
            raise PluginError(
                f"{spec.kind} '{spec.name}' needs {', '.join(missing)}, which is not installed", hint=spec.hint
            )
        checked = check_options(spec, options or {})
        try:
            built = spec.factory(checked)
        except TilewrightError:
            raise
        except Exception as error:  # a third party's factory may raise anything
            raise PluginError(
                f"{spec.kind} '{spec.name}' of {registration.distribution} could not be built: "
                f"{type(error).__name__}: {error}"
            ) from error
        lacking = [name for name in spec.methods if not callable(getattr(built, name, None))]
        if lacking:
            raise PluginError(
                f"{spec.kind} '{spec.name}' of {registration.distribution} is a {type(built).__name__} "
                f"without {', '.join(lacking)}; it keeps no promise of a {spec.kind}"
            )
        return built

    def load(self, entry_point: EntryPoint) -> None:
        """Load one entry point; whatever goes wrong is recorded in `broken` and leaves nothing behind."""
        if self.disabled & {entry_point.name, f"{_origin(entry_point)[0]}/{entry_point.name}"}:
            return
        distribution, version = _origin(entry_point)
        name = f"{distribution}/{entry_point.name}"
        stage = "import"
        before = list(self.registrations)
        try:
            module = entry_point.load()
            stage = "hooks"
            self.manager.register(module, name)
            self.manager.check_pending()
            stage = "specs"
            for spec in self._specs(module, name):
                self.add(spec, distribution, version)
        except (Exception, SystemExit) as error:  # a third party's module may raise anything
            if self.manager.has_plugin(name):
                self.manager.unregister(name=name)
            self.registrations = before
            self.broken.append(Broken(entry_point.name, distribution, stage, f"{type(error).__name__}: {error}"))

    def _specs(self, module: ModuleType, name: str) -> list[PluginSpec[Any]]:
        """What one plugin's own hook returns: a hook that raises cannot take the others with it."""
        own = {caller.name for caller in self.manager.get_hookcallers(module) or ()}
        if not own:
            raise ValueError(f"{name} has no hook; mark tilewright_plugins() with tilewright.plugin.hooks.hookimpl")
        if "tilewright_plugins" not in own:
            return []  # it only watches
        answers = self._alone("tilewright_plugins", module)() or [None]  # pluggy drops an answer of None
        if not isinstance(answers[0], Sequence):
            raise ValueError(f"tilewright_plugins() of {name} returned {type(answers[0]).__name__}, expected a list")
        return list(answers[0])

    def _alone(self, hook: str, plugin: object) -> pluggy.HookCaller:
        """A hook that only one plugin hears."""
        others = [other for other in self.manager.get_plugins() if other is not plugin]
        return self.manager.subset_hook_caller(hook, others)

    def tell_search_done(self, layer: str, result: Result) -> list[str]:
        """Call `tilewright_search_done` of every plugin that has it; one line for each that raised."""
        complaints = []
        for watcher in self.manager.hook.tilewright_search_done.get_hookimpls():
            try:
                self._alone("tilewright_search_done", watcher.plugin)(layer=layer, result=result)
            except (Exception, SystemExit) as error:  # a third party's watcher may raise anything
                text = f"{type(error).__name__}: {error}"
                complaints.append(f"plugin {watcher.plugin_name} failed after the search of {layer}: {text}")
        return complaints


def _check_spec(spec: Any) -> None:  # from a third party: anything
    """Raises ValueError with what is wrong with a spec."""
    if not isinstance(spec, KINDS):
        raise ValueError(f"expected a MapperSpec, CostModelSpec, FrontendSpec or AdapterSpec, got {spec!r}")
    if spec.interface != INTERFACE:
        raise ValueError(f"'{spec.name}' was written for interface {spec.interface}, this is {INTERFACE}")
    name, options = cast(Any, spec.name), cast(Any, spec.options)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a plugin: a letter, then letters, digits, '_', '-' or '.'")
    if not callable(spec.factory):
        raise ValueError(f"the factory of '{spec.name}' is {spec.factory!r}, which cannot be called")
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        raise ValueError(f"the options of '{name}' are {options!r}, expected a pydantic model class")
    odd = [each for each in getattr(spec, "approximations", ()) if not isinstance(each, Approximation)]
    if odd:
        raise ValueError(f"the approximations of '{name}' have {odd[0]!r}, expected an Approximation")


def _origin(entry_point: EntryPoint) -> tuple[str, str | None]:
    """Name and version of the distribution an entry point belongs to; `unknown` where its metadata is broken."""
    if entry_point.dist is None or not entry_point.dist.metadata["Name"]:
        return "unknown", None
    return entry_point.dist.name, entry_point.dist.version


def check_options(spec: PluginSpec[Any], options: Mapping[str, Any]) -> Any:
    """Options checked against the plugin's own model. Raises OptionError that names plugin and option."""
    try:
        return spec.options.model_validate(dict(options))
    except ValidationError as error:
        known = list(spec.options.model_fields)
        faults = []
        for fault in error.errors():
            where = ".".join(str(step) for step in fault["loc"])
            text = fault["msg"]
            if fault["type"] == "extra_forbidden":
                text = f"unknown option{suggestion(where, known)}; it takes {', '.join(known) or 'none'}"
            faults.append(f"{where}: {text}")
        raise OptionError(f"options of {spec.kind} '{spec.name}': {'; '.join(faults)}") from None


def discover(entry_points: Iterable[EntryPoint] | None = None) -> Registry:
    """A registry of the given entry points, by default those of all installed distributions.

    Entry points and plugins named (`name` or `distribution/name`) in the environment variable TILEWRIGHT_DISABLE are
    left out.
    """
    disabled = {name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip()}
    found = importlib.metadata.entry_points(group=GROUP) if entry_points is None else entry_points
    registry = Registry(disabled)
    for entry_point in sorted(found, key=lambda point: (_origin(point)[0] != BUILTIN, _origin(point)[0], point.name)):
        registry.load(entry_point)
    return registry


@cache
def installed() -> Registry:
    """The registry of everything installed, discovered once."""
    return discover()
