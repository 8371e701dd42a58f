"""Building blocks of the conformance kit. A check is one function whose docstring states one contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.application.run.accepted import accepted
from tilewright.errors import NotConformableError, PluginError, TilewrightError
from tilewright.mapspace.batch import Bools
from tilewright.plugin.guard.calls import calling, one_line_error
from tilewright.plugin.guard.hooks import manager_of
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.registry import Registration, Registry, installed
from tilewright.plugin.specs import KINDS, FrontendSpec, PluginSpec
from tilewright.testing.corpus import PRICED, SAMPLES, Sample


class CheckFailure(AssertionError):
    """A plugin violates the contract of a check. The message explains how, and what would satisfy it.

    Example:
        >>> from tilewright.testing import CheckFailure
        >>> issubclass(CheckFailure, AssertionError)
        True
    """


def first_row(wrong: Bools) -> int | None:
    """Return the number of the first wrong row, or None."""
    rows = np.flatnonzero(wrong)
    return int(rows[0]) if len(rows) else None


def require(kept: bool, message: str) -> None:
    """Raise CheckFailure unless `kept` holds."""
    if not kept:
        raise CheckFailure(message)


def require_refusal(what: str, call: Callable[[], object]) -> None:
    """Raise CheckFailure unless `call` raises a TilewrightError with a message.

    `what` names the call in the message.
    """
    try:
        call()
    except TilewrightError as error:
        require(bool(str(error)), f"{what} is refused without a message")
    except Exception as error:  # a third-party plugin may raise any exception
        raise CheckFailure(f"{what} raised {one_line_error(error)}; raise tilewright.errors.InputError") from error
    else:
        raise CheckFailure(f"{what} returned a value; expected an InputError")


@dataclass(frozen=True)
class Subject:
    """Plugin under test with its options. `sources` are the inputs that a frontend should load.

    Example:
        >>> from tilewright.testing import Subject
        >>> from tilewright.plugin import MapperSpec, installed
        >>> subject = Subject(installed().find(MapperSpec, "random"))
        >>> subject.spec.name
        'random'
    """

    registration: Registration
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    expects: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Results that several checks of one plugin use."""

    @property
    def spec(self) -> PluginSpec[Any]:
        return self.registration.spec

    def make(self) -> Any:
        """Return a new plugin object, built as the host does but without the host's guard."""
        return Registry().build(self.registration, self.options)

    def samples(self) -> tuple[Sample, ...]:
        """Return the samples that the declared capabilities allow.

        Raises:
            CheckFailure: The capabilities allow no sample.
        """
        samples = self._accepted(SAMPLES)
        require(bool(samples), f"its capabilities exclude every problem of the test corpus: {self.spec.capabilities}")
        return samples

    def priced(self) -> tuple[Sample, ...]:
        """Return the samples with small spaces, for comparisons with all mappings; there may be none."""
        return self._accepted(PRICED)

    def _accepted(self, corpus: tuple[Sample, ...]) -> tuple[Sample, ...]:
        samples = []
        for sample in corpus:
            with suppress(NotConformableError):
                space = accepted(sample.space, self.spec.capabilities, self.spec.name)
                samples.append(Sample(sample.problem, sample.architecture, space.rules))
        return tuple(samples)

    def all_sources(self) -> tuple[str, ...]:
        """Return the library names of a frontend and the sources given for it.

        Raises:
            CheckFailure: There are neither names nor sources.
        """
        library = tuple(self.spec.library) if isinstance(self.spec, FrontendSpec) else ()
        sources = (*library, *self.sources)
        require(
            bool(sources),
            "there is nothing to load, because the spec has no library;  give `sources` to the kit (--source to the command)",
        )
        return sources


@dataclass(frozen=True)
class Check:
    """One contract. Users see the docstring of its function as the explanation.

    A plugin adds checks by the hook `tilewright_checks`.

    Attributes:
        name: Unique, such as `check_summary_is_short`.
        kinds: Classes of the specs that it is for, such as `(MapperSpec,)`; `KINDS` for all.
        function: Raises CheckFailure if the contract is violated.
        origin: Distribution that adds it; empty for the kit's own.

    Example:
        >>> from tilewright.testing import checks_for
        >>> from tilewright.plugin import MapperSpec, installed
        >>> check = checks_for(installed().find(MapperSpec, "random").spec)[0]
        >>> check.name
        'check_summary_is_one_line'
    """

    name: str
    kinds: tuple[type[PluginSpec[Any]], ...]
    function: Callable[[Subject], None]
    origin: str = ""

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def run(self, subject: Subject) -> None:
        """Run the check on a plugin.

        Raises:
            CheckFailure: The plugin violates the contract, or raises an error of any kind.
        """
        failure = None
        try:
            with calling(subject.registration.owner, self.name):
                try:
                    _run(self, subject)
                except CheckFailure as kept:
                    failure = kept
        except TilewrightError as error:
            told = error.__cause__ if isinstance(error, PluginError) and error.__cause__ else error
            what = f"it, or the check of {self.origin}," if self.origin else "it"
            raise CheckFailure(f"{what} raised {one_line_error(told)}") from error
        if failure is not None:
            raise failure


def _run(check: Check, subject: Subject) -> None:
    """Run a check with the hooks of the subject's distribution around it."""
    hook = "tilewright_run_check"
    modules = [
        module
        for owner, module in installed().implementers(hook)
        if owner.distribution == subject.registration.distribution
    ]
    if not modules:
        check.function(subject)
        return
    getattr(manager_of(*modules, _Own).hook, hook)(check=check, subject=subject)


class _Own:
    """The kit's own implementation, after all others."""

    @staticmethod
    @hookimpl(trylast=True)
    def tilewright_run_check(check: Check, subject: Subject) -> bool:
        check.function(subject)
        return True


CHECKS: dict[str, Check] = {}
"""All checks by name, in the order of execution."""


def check(*kinds: type[PluginSpec[Any]]) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Return a decorator that registers a check for these kinds of plugin (default: all kinds)."""

    def mark(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
        CHECKS[function.__name__] = Check(function.__name__, kinds or KINDS, function)
        return function

    return mark
