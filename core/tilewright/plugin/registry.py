"""Registry of plugins, found by their entry points. Broken plugins do not affect others.

Built-in plugins use the same entry-point group as third-party ones.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import pluggy
from pydantic import ValidationError

from tilewright.child import is_child
from tilewright.errors import AmbiguousPluginError, OptionError, PluginError, TilewrightError, UnknownPluginError
from tilewright.plugin import hooks as hookspecs
from tilewright.plugin.guard.calls import BUILTIN, Owner, calling, described, fault, is_trusted, one_line_error
from tilewright.plugin.guard.hooks import ask_each
from tilewright.plugin.guard.hosted import hosted
from tilewright.plugin.guard.imports import check_import
from tilewright.plugin.guard.specs import NAME, whole_spec
from tilewright.plugin.guard.unchanged import unchanged_process
from tilewright.plugin.interface import InterfaceError
from tilewright.plugin.requirements import unmet_requirements
from tilewright.plugin.specs import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    PluginSpec,
    StrategySpec,
)
from tilewright.schema.document import suggestion
from tilewright.values import plain_fault

if TYPE_CHECKING:
    from tilewright.plugin.adapter import Adapter
    from tilewright.plugin.costmodel import CostModel
    from tilewright.plugin.estimator import Estimator
    from tilewright.plugin.frontend import Algorithm, Frontend
    from tilewright.plugin.groupmapper import GroupMapper
    from tilewright.plugin.mapper import Mapper
    from tilewright.plugin.result import Result
    from tilewright.plugin.strategy import Strategy

GROUP = "tilewright"
DISABLE = "TILEWRIGHT_DISABLE"
"""Environment variable with names of plugins to skip."""
SLOW_SECONDS = 1.0
"""Seconds after which an import is reported."""

S = TypeVar("S", bound=PluginSpec[Any])
_log = logging.getLogger("tilewright")


@dataclass(frozen=True)
class Registration:
    """A plugin and its distribution."""

    spec: PluginSpec[Any]
    distribution: str
    version: str | None

    @property
    def long_name(self) -> str:
        return f"{self.distribution}/{self.spec.name}"

    @property
    def builtin(self) -> bool:
        """Whether it belongs to Tilewright's own distribution."""
        return self.distribution == BUILTIN

    @property
    def name(self) -> str:
        """Shortest unambiguous name: a built-in's bare name, or the long name."""
        return self.spec.name if self.builtin else self.long_name

    @property
    def owner(self) -> Owner:
        """The plugin as messages name it."""
        return Owner(self.spec.kind, self.spec.name, self.distribution, self.version)


@dataclass(frozen=True)
class Broken:
    """A plugin that could not be used, with the error.

    `stage` is import, hooks or specs. `names` are those by which the user may request it. `upgrade` names the
    distribution whose upgrade would help, if that is known.
    """

    entry_point: str
    distribution: str
    stage: str
    error: str
    version: str | None = None
    plugin: str | None = None
    upgrade: str | None = None

    @property
    def names(self) -> frozenset[str]:
        names = {self.entry_point, self.plugin or self.entry_point}
        return frozenset(names | {f"{self.distribution}/{name}" for name in names})

    def __str__(self) -> str:
        name = f"{self.distribution}/{self.plugin or self.entry_point}"
        unmet = unmet_requirements([self.distribution])
        upgrade = self.upgrade or (self.distribution if unmet else None)
        remedy = f"python -m pip install --upgrade {upgrade}" if upgrade else f"fix or uninstall {self.distribution}"
        faults = "; ".join([self.error, *map(str, unmet)])
        return (
            f"{name} {self.version or '(no version)'} failed at {self.stage}: {faults} -- "
            f"{remedy}, or set {DISABLE}={name}"
        )


class Registry:
    """Registry of plugins: loaded, broken and disabled ones.

    Args:
        disabled: Names (`name` or `distribution/name`) of entry points and plugins to skip.

    Example:
        >>> import tilewright as tw
        >>> tw.Registry().registrations
        []
    """

    def __init__(self, disabled: Iterable[str] = ()) -> None:
        self.registrations: list[Registration] = []
        self.broken: list[Broken] = []
        self.disabled = frozenset(disabled)
        self.owners: dict[str, Owner] = {}
        self.failed: set[Owner] = set()
        """Plugins that failed, or took too long, and were not named by the user: they are asked no more."""
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)

    def add(self, spec: PluginSpec[Any], distribution: str, version: str | None = None) -> None:
        """Register one plugin, unless it is disabled.

        Raises:
            ValueError: It is not a valid spec, or its name is taken in its distribution.
        """
        new = Registration(whole_spec(spec), distribution, version)
        if self.disabled & {new.spec.name, new.long_name}:
            return
        for old in self.registrations:
            if old.spec.kind == new.spec.kind and old.long_name == new.long_name:
                raise ValueError(f"{distribution} registers two {new.spec.kind}s called '{new.spec.name}'")
        self.registrations.append(new)

    def third_parties(self) -> set[str]:
        """Return the distributions with plugins or hooks, loaded or broken, except the built-in one."""
        names = {owner.distribution for owner in self.owners.values() if owner.distribution is not None}
        return (names | {broken.distribution for broken in self.broken}) - {BUILTIN}

    def of_kind(self, kind: type[S]) -> tuple[Registration, ...]:
        """Return registrations of one kind by name, built-in ones first."""
        registrations = [entry for entry in self.registrations if isinstance(entry.spec, kind)]
        return tuple(sorted(registrations, key=lambda entry: (not entry.builtin, entry.spec.name, entry.distribution)))

    def find(self, kind: type[S], name: str) -> Registration:
        """Return the plugin called `name`, or `distribution/name`; a bare built-in name is the built-in.

        Raises:
            UnknownPluginError: There is none; the message lists installed and broken plugins.
            AmbiguousPluginError: Several third parties use the name.
            PluginError: The plugin of this name failed to load.
        """
        known = self.of_kind(kind)
        if not isinstance(cast(object, name), str):
            raise self._unknown(kind, f"a {kind.kind} has a name, not {name!r}", None)
        entries = [entry for entry in known if name in (entry.spec.name, entry.long_name)]
        entries = [entry for entry in entries if entry.builtin or name == entry.long_name] or entries
        if len(entries) > 1:
            raise AmbiguousPluginError(
                f"several {kind.kind}s are called '{name}': {', '.join(entry.long_name for entry in entries)}",
                hint="use the long form, distribution/name",
            )
        if not entries:
            meant = [broken for broken in self.broken if name in broken.names]
            if meant:
                others = f"; {len(meant) - 1} more: `tilewright plugins list`" if len(meant) > 1 else ""
                raise PluginError(f"{meant[0]}{others}", plugin=name)
            several = "name one; `tilewright compare` runs several" if "," in name else None
            raise self._unknown(kind, f"no {kind.kind} is called '{name}'{suggested(name, known)}", several)
        return entries[0]

    def short_name(self, registration: Registration) -> str:
        """Return the shortest name by which `find` returns this plugin."""
        bare = [entry for entry in self.of_kind(type(registration.spec)) if entry.spec.name == registration.spec.name]
        return registration.spec.name if registration.builtin or len(bare) == 1 else registration.long_name

    def default(self, kind: type[S], task: str) -> str:
        """Return the name of the plugin that is used for a task if the user names none of its kind.

        Raises:
            UnknownPluginError: No plugin is a default for the task.
        """
        names = [entry.name for entry in self.of_kind(kind) if task in entry.spec.default_for]
        if not names:
            raise self._unknown(kind, f"no {kind.kind} is the default for {task}: name one")
        return names[0]

    def _unknown(self, kind: type[S], message: str, hint: str | None = None) -> UnknownPluginError:
        """Return an error with installed, disabled and broken plugins after its message."""
        names = dict.fromkeys(entry.spec.name for entry in self.of_kind(kind))
        message += f"; installed: {', '.join(names) or 'none'}"
        if self.disabled:
            message += f"; switched off by {DISABLE}: {', '.join(sorted(self.disabled))}"
        if self.broken:
            message += "\nplugins that failed to load:" + "".join(f"\n  - {broken}" for broken in self.broken)
        return UnknownPluginError(message, hint=hint)

    @overload
    def make(self, kind: type[MapperSpec], name: str, options: Mapping[str, Any] = ...) -> Mapper: ...
    @overload
    def make(self, kind: type[GroupMapperSpec], name: str, options: Mapping[str, Any] = ...) -> GroupMapper: ...
    @overload
    def make(self, kind: type[CostModelSpec], name: str, options: Mapping[str, Any] = ...) -> CostModel: ...
    @overload
    def make(self, kind: type[FrontendSpec], name: str, options: Mapping[str, Any] = ...) -> Frontend: ...
    @overload
    def make(self, kind: type[AdapterSpec], name: str, options: Mapping[str, Any] = ...) -> Adapter: ...
    @overload
    def make(self, kind: type[EstimatorSpec], name: str, options: Mapping[str, Any] = ...) -> Estimator: ...
    @overload
    def make(self, kind: type[AlgorithmSpec], name: str, options: Mapping[str, Any] = ...) -> Algorithm: ...
    @overload
    def make(self, kind: type[StrategySpec], name: str, options: Mapping[str, Any] = ...) -> Strategy: ...
    def make(self, kind: type[PluginSpec[Any]], name: str, options: Mapping[str, Any] | None = None) -> Any:
        """Build a plugin behind a guard, which turns its failures into a PluginError with its name.

        Built-in plugins are built here, third-party ones in a child process.

        Raises:
            UnknownPluginError, AmbiguousPluginError: See `find`.
            InputError: An option is unknown or invalid.
            PluginError: It failed to load, a module it needs is missing, or its factory crashed.
        """
        registration = self.find(kind, name)
        starts = [self._first(registration.owner, start) for start in getattr(registration.spec, "starts_with", ())]
        if is_trusted(registration.owner) or is_child():
            return _built(registration, dict(options or {}), starts)
        return hosted(registration.owner, "its factory", _built, registration, dict(options or {}), starts)

    def _first(self, owner: Owner, name: str) -> Registration:
        """Return a warm-start mapper.

        Raises:
            PluginError: It cannot be found.
        """
        try:
            return self.find(MapperSpec, name)
        except TilewrightError as error:
            raise PluginError(f"{owner} starts with '{name}': {error.message}", plugin=str(owner)) from None

    @staticmethod
    def build(registration: Registration, options: Mapping[str, Any]) -> Any:
        """Build the plugin object here, without a guard; raises like `make`."""
        spec, owner = registration.spec, registration.owner
        missing = spec.missing(options)
        if missing:
            raise PluginError(
                f"{owner} needs {', '.join(missing)}, which is not installed", hint=spec.hint, plugin=str(owner)
            )
        checked = check_options(registration, options)

        with calling(owner, "its factory"):
            built = spec.factory(checked)
            lacking = [name for name in spec.methods if not callable(getattr(built, name, None))]
        if lacking:
            raise fault(owner, f"its factory returned {described(built)} without {', '.join(lacking)}")
        return built

    def load(self, entry_point: EntryPoint) -> None:
        """Load one entry point; an error is recorded in `broken` and undoes its registrations."""
        distribution, version = _origin(entry_point)
        name = f"{distribution}/{entry_point.name}"
        if self.disabled & {entry_point.name, name}:
            return
        owner = Owner("plugin", entry_point.name, distribution, version)
        stage, broken = "import", partial(Broken, entry_point.name, distribution, version=version)
        try:
            with unchanged_process():
                module = _imported(entry_point, owner)
                stage = "hooks"
                with calling(owner, "its hooks"):
                    self.manager.register(module, name)
                    self.manager.check_pending()
                stage = "specs"
                with calling(owner, "tilewright_plugins"):
                    specs = self._specs(module, name)
        except TilewrightError as error:
            self._forget(name, owner)
            self.broken.append(broken(stage, _cause(error), upgrade=_upgrade(error, owner)))
            return
        self.owners[name] = owner
        faults = list(self._add_all(specs, owner))
        self.broken += [
            broken(stage, _cause(error), plugin=called, upgrade=_upgrade(error, owner)) for called, error in faults
        ]
        if faults and len(faults) == len(specs):
            self._forget(name, owner)

    def _forget(self, name: str, owner: Owner) -> None:
        """Remove the hooks of a broken plugin."""
        with suppress(TilewrightError), calling(owner, "its hooks"):
            if self.manager.has_plugin(name):
                self.manager.unregister(name=name)

    def _add_all(self, specs: Iterable[object], owner: Owner) -> Iterator[tuple[str | None, Exception]]:
        """Register the specs of an entry point; yield (name, error) for each invalid one."""
        assert owner.distribution is not None
        whole = []
        for spec in specs:
            called = _name_of(spec, owner)
            if self.disabled & {called, f"{owner.distribution}/{called}"}:
                continue
            try:
                with calling(owner, "its spec"):
                    whole.append(whole_spec(spec))
            except TilewrightError as error:
                yield called, error
        count = Counter((spec.kind, spec.name) for spec in whole)
        for spec in whole:
            try:
                if count[spec.kind, spec.name] > 1:
                    raise ValueError(f"{owner.distribution} registers two {spec.kind}s called '{spec.name}'")
                self.add(spec, owner.distribution, owner.version)
            except ValueError as error:
                yield spec.name, error

    def _specs(self, module: ModuleType, name: str) -> list[PluginSpec[Any]]:
        """Return the specs from one plugin's hook, so that an exception affects no other plugin."""
        hooks = {caller.name for caller in self.manager.get_hookcallers(module) or ()}
        if not hooks:
            raise ValueError(f"{name} has no hook; mark tilewright_plugins() with tilewright.plugin.hooks.hookimpl")
        if "tilewright_plugins" not in hooks:
            return []  # an observer plugin
        answers = self._alone("tilewright_plugins", module)() or [None]  # pluggy drops an answer of None
        if not isinstance(answers[0], Sequence) or isinstance(answers[0], str | bytes):
            raise ValueError(f"tilewright_plugins() of {name} returned {type(answers[0]).__name__}, expected a list")
        return list(answers[0])

    def _alone(self, hook: str, plugin: object) -> pluggy.HookCaller:
        """Return a hook caller for a single plugin."""
        others = [other for other in self.manager.get_plugins() if other is not plugin]
        return self.manager.subset_hook_caller(hook, others)

    def implementers(self, hook: str) -> list[tuple[Owner, object]]:
        """Return (owner, module) of every plugin with this hook, by distribution and name."""
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        modules = {one.plugin_name: one.plugin for one in implementations}
        return [(self.owners.get(name, Owner("plugin", name)), modules[name]) for name in sorted(modules)]

    def tell_search_done(self, layer: str, result: Result, silenced: set[str]) -> list[str]:
        """Call `tilewright_search_done` of all observer plugins, and return one line per failure.

        Args:
            silenced: Plugins to skip; those that fail are added.
        """
        hook, told = "tilewright_search_done", [{"layer": layer, "result": result}]
        return ask_each(self.implementers(hook), hook, told, f"after the search of {layer}", silenced)[1]


def _built(registration: Registration, options: Mapping[str, Any], starts: Sequence[Registration]) -> Any:
    """Return a plugin behind its guard, with its warm-start mappers."""
    from tilewright.plugin.guard.kinds import guarded

    made = guarded(type(registration.spec), Registry.build(registration, options), registration.owner)
    starters = [guarded(MapperSpec, Registry.build(start, {}), start.owner) for start in starts]
    return made.starting_with(*starters) if starters else made


def _load_in_child(entry_point: EntryPoint) -> None:
    """Load an entry point into a registry that ends with the process. Errors are recorded there."""
    Registry().load(entry_point)


def _imported(entry_point: EntryPoint, owner: Owner) -> ModuleType:
    """Return the imported module; a slow import is reported."""
    if owner.distribution == BUILTIN:
        return cast(ModuleType, entry_point.load())
    check_import(entry_point, owner, _load_in_child)
    started = time.monotonic()
    with calling(owner, "its import"):
        module = entry_point.load()
    seconds = time.monotonic() - started
    if seconds > SLOW_SECONDS:
        name = f"{owner.distribution}/{owner.name}"
        _log.warning(f"{owner} took {seconds:.1f} s to import, which delays every command; {DISABLE}={name} skips it")
    return cast(ModuleType, module)


def _name_of(spec: Any, owner: Owner) -> str | None:
    """Return the name of an invalid spec, if it has one."""
    with suppress(TilewrightError), calling(owner, "its spec"):
        return spec.name if isinstance(spec.name, str) and NAME.fullmatch(spec.name) else None
    return None


def _cause(error: Exception) -> str:
    """Return the original error of a plugin as one line."""
    return one_line_error(error.__cause__ or error)


def _upgrade(error: Exception, owner: Owner) -> str | None:
    """Return the distribution to upgrade if the host and a plugin have no interface in common, else None."""
    cause = error.__cause__ or error
    return (cause.upgrade or owner.distribution) if isinstance(cause, InterfaceError) else None


def _origin(entry_point: EntryPoint) -> tuple[str, str | None]:
    """Return name and version of an entry point's distribution; `unknown` if its metadata is broken."""
    metadata = None if entry_point.dist is None else entry_point.dist.metadata  # each access reads the file
    if metadata is None or not metadata["Name"]:
        return "unknown", None
    return metadata["Name"], metadata["Version"]


def _place(entry_point: EntryPoint) -> tuple[bool, str, str]:
    """Return the sort key of an entry point; built-in ones come first."""
    name, _ = _origin(entry_point)
    return name != BUILTIN, name, entry_point.name


def suggested(name: str, known: Iterable[Registration]) -> str:
    """Return the suggestion of a similar name: of a built-in plugin, or else of a third party's."""
    entries = list(known)
    near = suggestion(name, [entry.spec.name for entry in entries if entry.builtin])
    return near or suggestion(name, [entry.spec.name for entry in entries])


def check_options(registration: Registration, options: Mapping[str, Any]) -> Any:
    """Return options validated by the plugin's own model.

    Raises:
        OptionError: An option is unknown or invalid; the message names plugin and option.
        PluginError: The model itself crashed.
    """
    spec, known = registration.spec, list(registration.spec.options.model_fields)
    with calling(registration.owner, "its options"):
        try:
            return spec.options.model_validate(dict(options))
        except ValidationError as error:
            faults = error.errors(include_url=False)
    texts = []
    for mistake in faults:
        where, text = ".".join(str(step) for step in mistake["loc"]), plain_fault(mistake)
        if mistake["type"] == "extra_forbidden":
            text = f"unknown option{suggestion(where, known)}; it takes {', '.join(known) or 'none'}"
        texts.append(f"{where}: {text}")
    raise OptionError(f"options of {spec.kind} '{registration.name}': {'; '.join(texts)}")


def discover(entry_points: Iterable[EntryPoint] | None = None) -> Registry:
    """Return a registry of the given entry points, by default those of all installed distributions.

    The environment variable TILEWRIGHT_DISABLE lists entry points and plugins to skip (`name` or `distribution/name`).

    Example:
        >>> from tilewright.plugin import discover
        >>> discover(entry_points=[]).registrations
        []
    """
    disabled = {name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip()}
    points = importlib.metadata.entry_points(group=GROUP) if entry_points is None else entry_points
    registry = Registry(disabled)
    for entry_point in sorted(points, key=_place):
        registry.load(entry_point)
    return registry


@cache
def installed() -> Registry:
    """Return the registry of all installed plugins, discovered once.

    Example:
        >>> from tilewright.plugin import MapperSpec, installed
        >>> installed().find(MapperSpec, "random").spec.name
        'random'
    """
    return discover()
