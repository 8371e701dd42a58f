"""The parts of the conformance kit: a check is one promise, written as one function with a docstring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import NotConformableError, PluginError, TilewrightError
from tilewright.plugin.guard.calls import calling, said
from tilewright.plugin.registry import Registration, Registry
from tilewright.plugin.specs import KINDS, FrontendSpec, PluginSpec
from tilewright.run.accepted import accepted
from tilewright.testing.corpus import SAMPLES, Sample


class CheckFailure(AssertionError):
    """A plugin broke the promise that a check is named for; the message says how, and what would keep it."""


def require(kept: bool, message: str) -> None:
    """Raises CheckFailure unless `kept`."""
    if not kept:
        raise CheckFailure(message)


def require_refusal(what: str, call: Callable[[], object]) -> None:
    """Raises CheckFailure unless the call ends with an error of Tilewright's that says something."""
    try:
        call()
    except TilewrightError as error:
        require(bool(str(error)), f"{what} is refused without a word")
    except Exception as error:  # a third party's plugin may raise anything
        raise CheckFailure(f"{what} raised {said(error)}; raise tilewright.errors.InputError") from error
    else:
        raise CheckFailure(f"{what} returned something; an InputError is expected")


@dataclass(frozen=True)
class Subject:
    """The plugin under test, with the options it is built with. `sources`: what a frontend is asked to load."""

    registration: Registration
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @property
    def spec(self) -> PluginSpec[Any]:
        return self.registration.spec

    def make(self) -> Any:
        """A new object of the plugin, built as the host builds it, but without the guard that the host puts before it."""
        return Registry().build(self.registration, self.options)

    def samples(self) -> tuple[Sample, ...]:
        """What of the corpus the declared capabilities allow. Raises CheckFailure if that is nothing."""
        capabilities = self.spec.capabilities
        found = []
        for sample in SAMPLES:
            with suppress(NotConformableError):
                space = accepted(sample.space, capabilities, self.spec.name)
                found.append(Sample(sample.problem, sample.architecture, space.rules))
        require(bool(found), f"its capabilities exclude every problem of the corpus: {capabilities}")
        return tuple(found)

    def all_sources(self) -> tuple[str, ...]:
        """The library names of a frontend and the sources given for it. Raises CheckFailure if there are none."""
        library = tuple(self.spec.library) if isinstance(self.spec, FrontendSpec) else ()
        found = (*library, *self.sources)
        require(
            bool(found),
            "there is nothing to load: the spec has no library; give `sources` to the kit (--source to the command)",
        )
        return found


@dataclass(frozen=True)
class Check:
    """One promise. Its docstring is the explanation that users see."""

    name: str
    kinds: tuple[type[PluginSpec[Any]], ...]
    function: Callable[[Subject], None]

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def run(self, subject: Subject) -> None:
        """Raises CheckFailure; whatever else the plugin raises is one too."""
        failure = None
        try:
            with calling(subject.registration.owner, self.name):
                try:
                    self.function(subject)
                except CheckFailure as kept:
                    failure = kept
        except TilewrightError as error:
            told = error.__cause__ if isinstance(error, PluginError) and error.__cause__ else error
            raise CheckFailure(f"it raised {said(told)}") from error
        if failure is not None:
            raise failure


CHECKS: dict[str, Check] = {}
"""All checks by name, in the order in which they run."""


def check(*kinds: type[PluginSpec[Any]]) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Marks a function as a check of these kinds of plugin; without kinds, of all."""

    def mark(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
        CHECKS[function.__name__] = Check(function.__name__, kinds or KINDS, function)
        return function

    return mark
