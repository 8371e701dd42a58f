"""Queries to estimators: the pinned one alone, else named ones first, then built-in ones, then those of third parties.

The first estimator that answers is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilewright.errors import NotEstimatedError, PluginError, Reason
from tilewright.plugin.estimator import COMPONENTS, Attribute, Estimate, Estimator
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.registry import Registration, Registry, installed
from tilewright.plugin.specs import EstimatorSpec
from tilewright.schema.document import suggestion


@dataclass(frozen=True)
class Question:
    """A quantity to estimate.

    Attributes:
        component: such as `sram`.
        attributes: sizes given by the user; an estimator that does not know one of them refuses.
        action: such as `read`.
        technology_nm: nanometres.
        offered: sizes derived from the architecture, passed to estimators that accept them.
        pin: name of the only estimator to query; None for all.
    """

    component: str
    attributes: Mapping[str, Attribute]
    action: str
    technology_nm: float
    offered: Mapping[str, Attribute]
    pin: str | None = None


@dataclass(frozen=True)
class Answer:
    """An estimate, the name of the plugin that made it, and the version of its distribution."""

    estimate: Estimate
    estimator: str
    version: str | None


class Estimators:
    """The estimators of a registry, in the order in which they are queried.

    Args:
        named: name -> options. These are queried before all others, in this order. They may include
            estimators that are used only if named.
        registry: the plugins to choose from; None for all that are installed.
    """

    def __init__(self, named: Mapping[str, Mapping[str, Any]] | None = None, registry: Registry | None = None) -> None:
        self.registry = installed() if registry is None else registry
        self.options = {
            self.registry.find(EstimatorSpec, name).long_name: dict(given) for name, given in (named or {}).items()
        }
        self._built: dict[str, Estimator] = {}

    def all(self) -> list[Registration]:
        """Return named estimators first, then built-in ones, then those of third parties; each by priority and name.

        Estimators that are used only if named come last.
        """
        known, named = self.registry.of_kind(EstimatorSpec), list(self.options)

        def rank(registration: Registration) -> tuple[int, float, str]:
            priority = _spec(registration).priority
            if registration.long_name in named:
                return 0, named.index(registration.long_name), ""
            if priority is None:
                return 3, 0, registration.long_name
            return 1 if registration.builtin else 2, -priority, registration.long_name

        return sorted(known, key=rank)

    def ask(self, question: Question) -> Answer:
        """Return the first answer.

        Raises:
            NotEstimatedError: no estimator answers; each one's reason is listed.
            UnknownPluginError, AmbiguousPluginError: no single estimator has the name of the pin.
            PluginError: the pinned or a named estimator failed.
        """
        refusals = []
        for registration in self._asked(question):
            answer = self._answer(registration, question)
            if not isinstance(answer, Reason):
                if not (registration.builtin or self._is_chosen(registration, question)):
                    warn_once(f"note: {question.component} is estimated by {registration.owner}")
                return Answer(answer, registration.name, registration.version)
            refusals.append(answer.model_copy(update={"where": registration.name}))
        raise NotEstimatedError(f"{question.action} of {question.component} at {question.technology_nm:g} nm", refusals)

    def answers(self, question: Question) -> list[tuple[str, Answer | Reason]]:
        """Return the answer or refusal of every estimator, in order."""
        answers: list[tuple[str, Answer | Reason]] = []
        for registration in self._asked(question):
            answer = self._answer(registration, question)
            whole = answer if isinstance(answer, Reason) else Answer(answer, registration.name, registration.version)
            answers.append((registration.name, whole))
        return answers

    def _asked(self, question: Question) -> list[Registration]:
        return self.all() if question.pin is None else [self.registry.find(EstimatorSpec, question.pin)]

    def _is_chosen(self, registration: Registration, question: Question) -> bool:
        return question.pin is not None or registration.long_name in self.options

    def _answer(self, registration: Registration, question: Question) -> Estimate | Reason:
        spec, name = _spec(registration), registration.long_name
        chosen = self._is_chosen(registration, question)
        if question.component not in spec.components:
            told = f"does not know '{question.component}'{suggestion(question.component, spec.components)}"
            return _refusal("component", f"{told}; known: {', '.join(spec.components)}")
        if spec.priority is None and not chosen:
            return _refusal("unasked", f"is used only if named: estimator: {registration.name}")
        taken = _taken(spec, question.component)
        sizes = {key: value for key, value in question.offered.items() if key in taken} | dict(question.attributes)
        try:
            if name not in self._built:
                self._built[name] = self.registry.make(EstimatorSpec, name, self.options.get(name, {}))
            return self._built[name].estimate(question.component, sizes, question.action, question.technology_nm)
        except PluginError as error:
            if chosen:
                raise
            warn_once(f"warning: {error.message}; the estimator is skipped")
            return _refusal("failed", error.message)


def _spec(registration: Registration) -> EstimatorSpec:
    assert isinstance(registration.spec, EstimatorSpec)
    return registration.spec


def _taken(spec: EstimatorSpec, component: str) -> set[str]:
    """Return the names of the attributes that an estimator accepts for a component."""
    return set(spec.components[component]) | set(COMPONENTS.get(component, ((), ()))[1])


def _refusal(code: str, message: str) -> Reason:
    return Reason(code=code, where="", message=message)


# -- the estimators in use
# -----------------------------------------------------------------------------

_current: ContextVar[Estimators | None] = ContextVar("tilewright_estimators", default=None)


@lru_cache(maxsize=1)
def _unnamed(registry: Registry) -> Estimators:
    return Estimators(registry=registry)


def current() -> Estimators:
    """Return the estimators set by `using`, else all that are installed, by priority."""
    return _current.get() or _unnamed(installed())


@contextmanager
def using(estimators: Estimators) -> Iterator[Estimators]:
    """Use these estimators for all estimates made inside the `with` block."""
    token = _current.set(estimators)
    try:
        yield estimators
    finally:
        _current.reset(token)
