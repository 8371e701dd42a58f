"""Contract checks for estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.errors import Reason
from tilewright.plugin.estimator import COMPONENTS, Attribute, Estimate, Estimator
from tilewright.plugin.guard.answers import fault_of_estimate
from tilewright.plugin.guard.calls import one_line_error
from tilewright.plugin.registry import installed
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
        asked: list[tuple[Question, bool]] = []
        for key, value in attributes.items():
            rest = {other: attribute for other, attribute in attributes.items() if other != key}
            asked.append(((name, rest, action, node), key not in OPTIONAL))
            impossible = not isinstance(value, str)
            for odd in ODD_VALUES:
                asked.append(((name, {**attributes, key: odd}, action, node), impossible and odd != 0.5))
        for other in ODD_NODES:
            asked.append(((name, attributes, action, other), _has_node(name) and not 1 <= other <= 1e4))
        for question, refused in asked:
            answer = _answer(estimator, question)
            require(
                not refused or isinstance(answer, Reason),
                f"estimate{question} is answered; expected a Reason, since a size or the node is missing or impossible",
            )


@check(EstimatorSpec)
def check_estimator_reads_attributes_by_name(subject: Subject) -> None:
    """Attributes have no order, whole numbers may be floats, and the caller's attributes stay unchanged."""
    estimator = subject.make()
    for name, attributes, action, node in questions(subject):
        answer = _answer(estimator, (name, attributes, action, node))
        for what, same in (
            ("in another order", dict(list(attributes.items())[::-1])),
            (
                "as floats",
                {key: value if isinstance(value, str) else float(value) for key, value in attributes.items()},
            ),
        ):
            given = dict(same)
            again = _answer(estimator, (name, given, action, node))
            alike = again == answer or (isinstance(again, Reason) and isinstance(answer, Reason))
            require(alike, f"{action} of {name}: {attributes} has {answer}, but {what} {again}")
            require(
                list(given.items()) == list(same.items()), f"estimate changes the attributes of its caller to {given}"
            )


@check(EstimatorSpec)
def check_estimator_uses_what_it_accepts(subject: Subject) -> None:
    """An attribute beyond the example that is accepted, such as `banks`, changes an estimate."""
    estimator = subject.make()
    for name, attributes in _spec(subject).components.items():
        for key in COMPONENTS.get(name, ((), ()))[1]:
            if key in attributes or key not in OPTIONAL:
                continue
            asked = [question for question in questions(subject) if question[0] == name]
            pairs = [
                (_answer(estimator, question), _answer(estimator, (name, {**attributes, key: 4}, *question[2:])))
                for question in asked
            ]
            answered = [pair for pair in pairs if all(isinstance(answer, Estimate) for answer in pair)]
            require(
                not answered or any(one != other for one, other in answered),
                f"{name} {attributes}: {key} 4 is accepted, but has no effect on any estimate; use it, or refuse it with a Reason",
            )


@check(EstimatorSpec)
def check_estimator_units_are_plausible(subject: Subject) -> None:
    """Figures of components that built-in estimators know are within a factor of 1,000 of theirs."""
    estimator = subject.make()
    others = [
        installed().make(EstimatorSpec, registration.long_name)
        for registration in installed().of_kind(EstimatorSpec)
        if registration.builtin and not registration.spec.needs and not registration.spec.programs
    ]
    for question in _sizes(subject):
        answer = _answer(estimator, question)
        if not isinstance(answer, Estimate):
            continue
        known = [other for asked in others if isinstance(other := asked.estimate(*question), Estimate)]
        for field, unit in (("energy_pj", "pJ"), ("area_um2", "um2"), ("leakage_w", "W")):
            value = getattr(answer, field)
            figures = [figure for other in known if (figure := getattr(other, field))]
            if not value or not figures:
                continue
            low, high = min(figures) / PLAUSIBLE, max(figures) * PLAUSIBLE
            require(
                low <= value <= high,
                f"estimate{question}: {field} is {value:g}, but built-in estimators have {min(figures):g} to {max(figures):g} {unit}; "
                "check the unit",
            )


def _sizes(subject: Subject) -> Iterator[Question]:
    """Yield the questions about components that others know, also about larger ones and at other nodes."""
    for name, attributes, action, example in questions(subject):
        for factor in (1, 4, 16) if name in COMPONENTS else ():
            larger = {key: value if isinstance(value, str) else value * factor for key, value in attributes.items()}
            for node in {example, 45.0}:
                yield name, larger, action, node


OPTIONAL = ("banks", "ports")
"""Attributes with a default."""
PLAUSIBLE = 1e3
"""Factor by which estimates of one component may differ."""


def _numbers(attributes: Mapping[str, Attribute]) -> dict[str, float]:
    return {name: value for name, value in attributes.items() if not isinstance(value, str) and value > 0}


def _scaled(
    estimator: Estimator, question: Question, key: str, factors: tuple[float, ...]
) -> list[tuple[Attribute, Estimate]]:
    """Return the answered values of an attribute, ascending, with their estimates."""
    name, attributes, action, node = question
    answers: list[tuple[Attribute, Estimate]] = []
    for factor in factors:
        value = _numbers(attributes)[key] * factor
        value = int(value) if value == int(value) else value
        answer = _answer(estimator, (name, {**attributes, key: value}, action, node))
        if isinstance(answer, Estimate):
            answers.append((value, answer))
    return answers


def _asked_larger(
    estimator: Estimator, subject: Subject
) -> Iterator[tuple[Question, str, list[tuple[Attribute, Estimate]]]]:
    """Yield each question and each number of it, with the answers for smaller and larger values."""
    for question in questions(subject):
        for key in _numbers(question[1]):
            yield question, key, _scaled(estimator, question, key, FACTORS)


FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Factors by which the numbers of examples are changed."""
ROUGH = 0.9
"""Fraction of a smaller component's figure that a larger one may have, since generators of arrays choose other shapes."""
LARGER = ("size_bits", "width_bits", "multiplier_bits", "adder_bits", "length_mm")
"""Attributes by which a component becomes larger."""


@check(EstimatorSpec)
def check_estimator_figures_grow_with_the_component(subject: Subject) -> None:
    """Larger components take no less energy, and arrays of more bits no less area and leakage."""
    estimator = subject.make()
    for (name, attributes, action, node), key, answers in _asked_larger(estimator, subject):
        if key not in LARGER:
            continue
        free = [value for value, answer in answers if answer.energy_pj == 0]
        require(
            not free or len(free) == len(answers),
            f"{action} of {name} {attributes} takes no energy with {key} {free}; expected some, since larger components take some",
        )
        fields = ("energy_pj", "area_um2", "leakage_w") if key == "size_bits" else ("energy_pj",)
        for (small, one), (large, other) in zip(answers, answers[1:], strict=False):
            for field in fields:
                low, high = getattr(one, field), getattr(other, field)
                if low is None or high is None:
                    continue
                require(
                    high >= ROUGH * low,
                    f"{action} of {name} {attributes} at {node:g} nm: {field} is {low:g} with {key} {small}, but {high:g} with {large}; "
                    "expected no less for more; check the sign and the unit of the formula",
                )


@check(EstimatorSpec)
def check_estimator_counts_the_bits_of_an_action(subject: Subject) -> None:
    """One action moves `width_bits`: the estimate has that in `bits`, and wider actions take more energy."""
    estimator = subject.make()
    for (name, attributes, action, node), key, answers in _asked_larger(estimator, subject):
        if key != "width_bits":
            continue
        for width, answer in answers:
            require(
                answer.bits == width,
                f"{action} of {name} at {node:g} nm with width_bits {width}: the estimate is for {answer.bits} bits; "
                "one action moves width_bits, so return the energy of all of them, and bits=width_bits",
            )
        if len(answers) > 1:
            (narrow, one), (wide, other) = answers[0], answers[-1]
            require(
                other.energy_pj > one.energy_pj or one.energy_pj == 0,
                f"{action} of {name} {attributes} at {node:g} nm takes {one.energy_pj:g} pJ for {narrow} bits and "
                f"{other.energy_pj:g} pJ for {wide}; expected more, since an estimate is for one action, not for one bit",
            )


@check(EstimatorSpec)
def check_estimator_uses_its_attributes(subject: Subject) -> None:
    """Each number of an example changes the estimate, or other values are refused."""
    estimator = subject.make()
    for name, attributes in _spec(subject).components.items():
        asked = [question for question in questions(subject) if question[0] == name]
        for key in _numbers(attributes):
            answers = [_scaled(estimator, question, key, FACTORS) for question in asked]
            same = all(len({answer for _, answer in answered}) == 1 for answered in answers if answered)
            most = max((len(answered) for answered in answers), default=0)
            require(
                most < 2 or not same,
                f"{name} {attributes}: {key} has no effect on any estimate, from {FACTORS[0]:g} to {FACTORS[-1]:g} times the example; "
                "use it, or refuse other values with a Reason",
            )


OF_THE_CHIP = ("sram", "smart_buffer", "register", "mac", "multiplier", "adder", "comparator", "counter", "float_mac")
"""Components whose figures depend on the technology node; those of DRAM and of wires need not."""


def _has_node(component: str) -> bool:
    return component not in COMPONENTS or component in OF_THE_CHIP


@check(EstimatorSpec)
def check_estimator_depends_on_the_node(subject: Subject) -> None:
    """Other technology nodes have other figures, or are refused; smaller transistors take no more energy."""
    estimator = subject.make()
    for name, attributes, action, node in questions(subject):
        if not _has_node(name):
            continue
        answers = []
        for other in (node / 2, node, 2 * node):
            answer = _answer(estimator, (name, attributes, action, other))
            if isinstance(answer, Estimate):
                answers.append((other, answer))
        for (small, one), (large, other_answer) in zip(answers, answers[1:], strict=False):
            for field, unit in (("energy_pj", "pJ"), ("area_um2", "um2")):
                low, high = getattr(one, field), getattr(other_answer, field)
                require(
                    not low or not high or high > low,
                    f"{action} of {name} {attributes}: {field} is {low} {unit} at {small:g} nm and {high} {unit} at {large:g} nm; "
                    "expected more at the larger node; scale the figures, or refuse nodes that they are not for",
                )
