"""Contract checks for estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.errors import Reason
from tilewright.plugin.estimator import COMPONENTS, Attribute, Estimate, Estimator
from tilewright.plugin.guard.answers import fault_of_estimate
from tilewright.plugin.guard.calls import one_line_error
from tilewright.plugin.specs import EstimatorSpec
from tilewright.testing.kit import CheckFailure, Subject, check, require

Question = tuple[str, Mapping[str, Attribute], str, float]
"""Component, attributes, action, and technology node in nm."""
ACTIONS = ("read", "write", "compute", "transfer")
ODD_VALUES: tuple[Attribute, ...] = (0, -1, 0.5, 1e300, float("inf"), float("nan"), "", "many", "\0")
"""Sizes that a file may give by mistake."""
ODD_NODES = (0.0, -7.0, 1e-9, 1e9, float("inf"), float("nan"))


def _spec(subject: Subject) -> EstimatorSpec:
    assert isinstance(subject.spec, EstimatorSpec)
    return subject.spec


def questions(subject: Subject) -> Iterator[Question]:
    """Yield a question for every action of every example."""
    spec = _spec(subject)
    for name, attributes in spec.components.items():
        for action in COMPONENTS.get(name, (ACTIONS,))[0]:
            yield name, attributes, action, spec.example_nm


def _answer(estimator: Estimator, question: Question) -> Estimate | Reason:
    """Return a valid answer, or raise CheckFailure."""
    try:
        answer = estimator.estimate(*question)
    except Exception as error:  # a third-party estimator may raise any exception
        raise CheckFailure(f"estimate{question} raised {one_line_error(error)}; return a Reason") from error
    wrong = fault_of_estimate(answer)
    require(wrong is None, f"estimate{question} {wrong}")
    return answer


@check(EstimatorSpec)
def check_estimator_answers_its_examples(subject: Subject) -> None:
    """Every component in the spec has an estimate for its example and each of its actions."""
    spec, estimator = _spec(subject), subject.make()
    require(bool(spec.components), "the spec lists no components, so the estimator would never be queried")
    answered = set()
    for question in questions(subject):
        answer = _answer(estimator, question)
        if isinstance(answer, Estimate):
            answered.add(question[0])
        else:
            require(question[0] not in COMPONENTS, f"estimate{question} is refused: {answer}")
    silent = [name for name in spec.components if name not in answered]
    require(not silent, f"{', '.join(silent)}: no action has an estimate for the spec's example")


@check(EstimatorSpec)
def check_estimator_answers_the_same_twice(subject: Subject) -> None:
    """Equal questions have equal answers: there is no hidden state and no randomness."""
    estimator, asked = subject.make(), list(questions(subject))
    first = [_answer(estimator, question) for question in asked]
    again = [_answer(estimator, question) for question in reversed(asked)][::-1]
    other = [_answer(subject.make(), question) for question in asked]
    for question, *answers in zip(asked, first, again, other, strict=True):
        require(answers[0] == answers[1] == answers[2], f"estimate{question} answers {answers}")


@check(EstimatorSpec)
def check_estimator_area_and_leakage_are_of_the_component(subject: Subject) -> None:
    """Area and leakage of a component do not depend on the action."""
    estimator = subject.make()
    for name in _spec(subject).components:
        answers = [_answer(estimator, question) for question in questions(subject) if question[0] == name]
        pairs = {(answer.area_um2, answer.leakage_w) for answer in answers if isinstance(answer, Estimate)}
        require(len(pairs) <= 1, f"area and leakage of {name} differ between actions: {sorted(map(str, pairs))}")


@check(EstimatorSpec)
def check_estimator_refuses_the_unknown(subject: Subject) -> None:
    """An unknown component, action or attribute is refused with a reason, never ignored."""
    estimator = subject.make()
    for name, attributes, action, node in questions(subject):
        for question in (
            ("no_such_component", attributes, action, node),
            (name, attributes, "no_such_action", node),
            (name, {**attributes, "no_such_attribute": 1}, action, node),
        ):
            require(isinstance(_answer(estimator, question), Reason), f"estimate{question} is answered")


@check(EstimatorSpec)
def check_estimator_survives_odd_sizes(subject: Subject) -> None:
    """Missing or impossible sizes and nodes are refused with a reason, and never raise an error."""
    estimator = subject.make()
    for name, attributes, action, node in questions(subject):
        for key in attributes:
            _answer(
                estimator,
                (name, {other: attribute for other, attribute in attributes.items() if other != key}, action, node),
            )
            for value in ODD_VALUES:
                _answer(estimator, (name, {**attributes, key: value}, action, node))
        for odd in ODD_NODES:
            _answer(estimator, (name, attributes, action, odd))
