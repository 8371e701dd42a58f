"""Two interfaces to the checks: a function that returns outcomes, and one pytest case per check."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from tilewright.errors import InputError, PluginError, UnknownPluginError
from tilewright.plugin.registry import GROUP, Registration, Registry, discover
from tilewright.plugin.specs import PluginSpec
from tilewright.schema.document import suggestion
from tilewright.testing.added import added_checks
from tilewright.testing.checks import (
    adapter,
    adapter_files,
    algorithm,
    any_plugin,
    costmodel,
    costmodel_capabilities,
    costmodel_prices,
    costmodel_proofs,
    costmodel_variants,
    estimator,
    frontend,
    frontend_files,
    groupmapper,
    mapper,
    mapper_results,
    mapper_spaces,
    others_files,
    strategy,
)
from tilewright.testing.kit import CHECKS, Check, CheckFailure, Subject

if TYPE_CHECKING:
    import pytest

ALL = (
    any_plugin,
    mapper,
    mapper_results,
    mapper_spaces,
    groupmapper,
    costmodel,
    costmodel_capabilities,
    costmodel_prices,
    costmodel_proofs,
    costmodel_variants,
    frontend,
    frontend_files,
    adapter,
    adapter_files,
    others_files,
    estimator,
    algorithm,
    strategy,
)
"""Modules that fill CHECKS when they are imported."""

Status = Literal["passed", "failed", "expected failure", "unexpected pass"]


@dataclass(frozen=True)
class Outcome:
    """Result of one check of one plugin.

    Example:
        >>> from tilewright.testing import Outcome
        >>> Outcome("check_summary_is_one_line", "mine/random", "passed").ok
        True
    """

    check: str
    plugin: str
    status: Status
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the check passed, or failed as expected."""
        return self.status in ("passed", "expected failure")


@dataclass(frozen=True)
class Case:
    """One check of one plugin. `expected` is the reason for an expected failure.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.testing import cases
        >>> registration = tw.installed().registrations[0]
        >>> case = cases(registration)[0]
        >>> case.outcome().ok
        True
    """

    check: Check
    subject: Subject
    expected: str | None = None

    def __str__(self) -> str:
        return f"{self.subject.spec.name}-{self.check.name.removeprefix('check_')}"

    def run(self) -> None:
        """Run the check.

        Raises:
            CheckFailure: The contract is violated. The message names plugin and check.
        """
        try:
            self.check.run(self.subject)
        except CheckFailure as failure:
            raise CheckFailure(
                f"{self.subject.registration.long_name} violates {self.check.name}: {failure}\n"
                f"  contract: {self.check.summary}"
            ) from failure

    def outcome(self) -> Outcome:
        """Run the check and return its outcome."""
        plugin = self.subject.registration.long_name
        try:
            self.check.run(self.subject)
        except CheckFailure as failure:
            status: Status = "failed" if self.expected is None else "expected failure"
            return Outcome(self.check.name, plugin, status, str(failure) if self.expected is None else self.expected)
        if self.expected is None:
            return Outcome(self.check.name, plugin, "passed")
        return Outcome(self.check.name, plugin, "unexpected pass", f"expected to fail: {self.expected}")


def checks_for(spec: PluginSpec[Any]) -> tuple[Check, ...]:
    """Return the checks for a plugin of this kind; those for all plugins come first.

    Example:
        >>> from tilewright.testing import checks_for
        >>> from tilewright.plugin import MapperSpec, installed
        >>> len(checks_for(installed().find(MapperSpec, "random").spec)) > 10
        True
    """
    checks = [check for check in CHECKS.values() if isinstance(spec, check.kinds)]
    return tuple(sorted(checks, key=lambda check: -len(check.kinds)))


def cases(
    registration: Registration,
    *,
    options: Mapping[str, Any] | None = None,
    sources: Iterable[str] = (),
    expects: Mapping[str, tuple[int, int]] | None = None,
    expected_failures: Mapping[str, str] | None = None,
    checks_of: Iterable[str] = (),
) -> tuple[Case, ...]:
    """Return one case per check of a plugin.

    Args:
        registration: Plugin, as returned by `Registry.find`.
        options: Options that the plugin is built with.
        sources: Inputs that a frontend should load, in addition to its library.
        expects: Source of a frontend -> number of its layers, and of the multiplications of all of them.
        expected_failures: Reasons by check name. Strict: such a check has to fail.
        checks_of: Plugins of other distributions that add checks (hook `tilewright_checks`).

    Raises:
        InputError: An expected failure has no reason, or names no check of this kind of plugin.
        UnknownPluginError: A plugin of `checks_of` adds no checks.
        PluginError: A plugin that adds checks failed.

    Example:
        >>> from tilewright.testing import cases
        >>> from tilewright.plugin import MapperSpec, installed
        >>> case = cases(installed().find(MapperSpec, "random"))[0]
        >>> str(case)
        'random-summary_is_one_line'
    """
    expected = dict(expected_failures or {})
    subject = Subject(registration, dict(options or {}), tuple(sources), dict(expects or {}))
    wanted = (*checks_for(registration.spec), *added_checks(registration, checks_of, CHECKS))
    known = [check.name for check in wanted]
    for name, reason in expected.items():
        if name not in known:
            raise InputError(
                f"no check of a {registration.spec.kind} is called '{name}'{suggestion(name, known)}",
                hint=f"the checks: {', '.join(known)}",
            )
        if not reason.strip():
            raise InputError(
                f"{name} is expected to fail without a reason", hint="give a reason for the readers of the test"
            )
    return tuple(Case(check, subject, expected.get(check.name)) for check in wanted)


def check_plugin(
    plugin: Registration | PluginSpec[Any],
    *,
    options: Mapping[str, Any] | None = None,
    sources: Iterable[str] = (),
    expects: Mapping[str, tuple[int, int]] | None = None,
    expected_failures: Mapping[str, str] | None = None,
    checks_of: Iterable[str] = (),
) -> list[Outcome]:
    """Run all checks of one plugin without pytest. The arguments are those of `cases`.

    Example:
        >>> from tilewright.testing import check_plugin
        >>> from tilewright.plugin import EstimatorSpec, installed
        >>> outcomes = check_plugin(installed().find(EstimatorSpec, "tables"))
        >>> [outcome.check for outcome in outcomes if not outcome.ok]
        []
    """
    registration = plugin if isinstance(plugin, Registration) else Registration(plugin, "unpackaged", None)
    checks = cases(
        registration,
        options=options,
        sources=sources,
        expects=expects,
        expected_failures=expected_failures,
        checks_of=checks_of,
    )
    return [case.outcome() for case in checks]


@cache
def _registry_of(distribution: str) -> Registry:
    try:
        points = importlib.metadata.distribution(distribution).entry_points.select(group=GROUP)
    except importlib.metadata.PackageNotFoundError:
        raise UnknownPluginError(f"no distribution '{distribution}' is installed", hint="install it first") from None
    if not points:
        raise UnknownPluginError(f"{distribution} has no entry point in the group '{GROUP}'")
    return discover(points)


def registrations_of(name: str) -> tuple[Registration, ...]:
    """Return the plugins of a distribution, or one of them (`distribution/plugin`).

    Raises:
        UnknownPluginError: The distribution is not installed, or registers no such plugin.
        PluginError: One of its entry points is broken.

    Example:
        >>> from tilewright.testing import registrations_of
        >>> [one.spec.kind for one in registrations_of("tilewright/random")]
        ['mapper']
    """
    distribution, _, plugin = name.partition("/")
    registry = _registry_of(distribution)
    registrations = tuple(
        registration for registration in registry.registrations if plugin in ("", registration.spec.name)
    )
    if not registrations and not registry.broken:
        names = [registration.spec.name for registration in registry.registrations]
        raise UnknownPluginError(f"{distribution} registers no plugin '{plugin}'{suggestion(plugin, names)}")
    if registry.broken and (not plugin or not registrations):
        raise PluginError("; ".join(str(broken) for broken in registry.broken))
    return registrations


def parametrize_conformance(
    *plugins: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    sources: Mapping[str, Iterable[str]] | None = None,
    expects: Mapping[str, Mapping[str, tuple[int, int]]] | None = None,
    expected_failures: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
    checks_of: Iterable[str] = (),
) -> pytest.MarkDecorator:
    """Return a decorator that runs a pytest test once per check of each plugin.

    The test has one parameter, `case`::

        @parametrize_conformance("tilewright-genetic")
        def test_conformance(case: Case) -> None:
            case.run()

    Args:
        plugins: Distributions, or `distribution/plugin`.
        options, sources, expects: Arguments of `cases`, by plugin name.
        expected_failures: Reasons by check name, or by `plugin:check name`. Strict: such a check has to fail.
        without: Plugins tested elsewhere, for example where their dependencies are installed. A
            name may include the kind (`cost model NAME`).
        checks_of: Plugins of other distributions that add checks.

    Raises:
        UnknownPluginError, PluginError, InputError: An argument is invalid. pytest reports it at collection.

    Example:
        >>> from tilewright.testing import parametrize_conformance
        >>> mark = parametrize_conformance("tilewright/random")
        >>> len(mark.args[1]) > 10
        True
    """
    import pytest

    left_out = set(without)
    subjects = [
        subject
        for name in plugins
        for subject in registrations_of(name)
        if not left_out & {subject.spec.name, f"{subject.spec.kind} {subject.spec.name}"}
    ]
    if not subjects:
        raise InputError("no plugin is named", hint='parametrize_conformance("my-distribution")')
    expected = dict(expected_failures or {})
    others = tuple(checks_of)
    _addressed(subjects, (*(options or {}), *(sources or {}), *(expects or {})), expected, others)
    parameters = []
    for registration in subjects:
        for case in cases(
            registration,
            options=(options or {}).get(registration.spec.name),
            sources=(sources or {}).get(registration.spec.name, ()),
            expects=(expects or {}).get(registration.spec.name),
            expected_failures=_expected_of(registration, expected, others),
            checks_of=others,
        ):
            marks = [pytest.mark.xfail(reason=case.expected, strict=True, raises=CheckFailure)] if case.expected else []
            parameters.append(pytest.param(case, id=_id(registration, case), marks=marks))
    return pytest.mark.parametrize("case", parameters)


def _id(registration: Registration, case: Case) -> str:
    return f"{registration.spec.kind.replace(' ', '')}-{case}"


def _names(registration: Registration, checks_of: Iterable[str]) -> list[str]:
    """Return the names of the checks of a plugin."""
    added = added_checks(registration, checks_of, CHECKS)
    return [check.name for check in (*checks_for(registration.spec), *added)]


def _addressed(
    subjects: list[Registration], plugins: Iterable[str], expected: Mapping[str, str], checks_of: Iterable[str]
) -> None:
    """Raise InputError for a plugin or a check that is named but was not found."""
    names = [registration.spec.name for registration in subjects]
    for plugin in (*plugins, *(key.partition(":")[0] for key in expected if ":" in key)):
        if plugin not in names:
            raise InputError(f"none of these plugins is called '{plugin}'{suggestion(plugin, names)}")
    meant = {key for registration in subjects for key in expected if _names_check(key, registration, checks_of)}
    known = sorted({name for registration in subjects for name in _names(registration, checks_of)})
    for key in expected:
        if key not in meant:
            name = key.rpartition(":")[2]
            raise InputError(
                f"none of these checks is called '{key}'{suggestion(name, known)}", hint=f"{', '.join(known)}"
            )


def _names_check(key: str, registration: Registration, checks_of: Iterable[str]) -> bool:
    """Return whether `key`, a `check` or a `plugin:check`, is a check of this plugin."""
    plugin, _, name = key.rpartition(":")
    return plugin in ("", registration.spec.name) and name in _names(registration, checks_of)


def _expected_of(registration: Registration, expected: Mapping[str, str], checks_of: Iterable[str]) -> dict[str, str]:
    """Return the expected failures that concern this plugin."""
    return {
        key.rpartition(":")[2]: reason for key, reason in expected.items() if _names_check(key, registration, checks_of)
    }
