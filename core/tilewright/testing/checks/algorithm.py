"""Contract checks for algorithms."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.application.algorithms.equality import Equality, executed
from tilewright.errors import NotConformableError
from tilewright.plugin.frontend import Algorithm
from tilewright.plugin.guard.answers import fault_of_alternatives
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.alternative import Alternative
from tilewright.schema.problem import Problem
from tilewright.testing.kit import CheckFailure, Subject, check, require

_TEXTS = (
    """
    name: contraction
    dimensions: {g: 2, a: 3, b: 2, n: 4, k: 2, l: 3, x: 2, u: 1}
    tensors:
    - {name: A, role: input, projection: [l, a, g, u, k, b, x]}
    - {name: B, role: weight, projection: [n, k, g, l]}
    - {name: C, role: output, projection: [g, b, n, a]}
    """,
    """
    name: in place
    dimensions: {g: 2, a: 3, b: 2, n: 4, k: 5}
    tensors:
    - {name: A, role: input, projection: [g, a, b, k]}
    - {name: B, role: weight, projection: [g, n, k]}
    - {name: C, role: output, projection: [g, n, a, b]}
    """,
    """
    name: outer product
    dimensions: {i: 3, j: 4}
    tensors:
    - {name: A, role: input, projection: [i]}
    - {name: B, role: weight, projection: [j]}
    - {name: C, role: output, projection: [j, i]}
    """,
    """
    name: grouped convolution
    dimensions: {N: 2, G: 2, K: 3, C: 2, P: 3, Q: 2, R: 2, S: 3}
    tensors:
    - {name: I, role: input, projection: [N, G, C, 2*P + R, Q + 2*S]}
    - {name: W, role: weight, projection: [G, K, C, R, S]}
    - {name: O, role: output, projection: [N, G, K, P, Q]}
    """,
    """
    name: convolution 1x1
    dimensions: {N: 1, K: 4, C: 3, P: 3, Q: 4, R: 1, S: 1}
    tensors:
    - {name: I, role: input, projection: [N, C, P + R, Q + S]}
    - {name: W, role: weight, projection: [K, C, R, S]}
    - {name: O, role: output, projection: [N, K, P, Q]}
    """,
)


def _problems(subject: Subject) -> list[Problem]:
    """Return the problems that the capabilities allow, and further ones that need more rearrangement."""
    of_corpus = {sample.problem.name: sample.problem for sample in subject.samples()}
    return [*of_corpus.values(), *(Problem.from_yaml(text) for text in _TEXTS)]


def _offers(subject: Subject) -> Iterator[tuple[Problem, object]]:
    """Yield each problem to which the algorithm applies, with the returned alternatives."""
    algorithm: Algorithm = subject.make()
    refusals = []
    count = 0
    for problem in _problems(subject):
        try:
            alternatives = algorithm.alternatives(problem)
        except NotConformableError as error:
            require(bool(error.reasons), f"{problem.name} is refused without a reason")
            refusals.append(str(error))
            continue
        count += 1
        yield problem, alternatives
    require(count > 0, f"it applies to no problem of the test corpus: {'; '.join(refusals)}")


def _alternatives(subject: Subject) -> Iterator[tuple[Problem, Alternative]]:
    for problem, alternatives in _offers(subject):
        wrong = fault_of_alternatives(alternatives, problem)
        require(wrong is None, f"{problem.name}: {wrong}")
        assert isinstance(alternatives, list | tuple)
        yield from ((problem, alternative) for alternative in alternatives)


def _executed(subject: Subject) -> Iterator[tuple[str, Alternative, Equality]]:
    for problem, alternative in _alternatives(subject):
        seen = executed(problem, alternative)
        if seen is None:
            raise CheckFailure(f"{problem.name}: the steps of {alternative.name} are too large to execute")
        yield f"{alternative.name} of {problem.name}", alternative, seen


@check(AlgorithmSpec)
def check_algorithm_alternatives_are_whole(subject: Subject) -> None:
    """Alternatives are consistent with the problem; unsupported problems are refused with reasons."""
    for _ in _alternatives(subject):
        pass


@check(AlgorithmSpec)
def check_algorithm_computes_the_same_tensor(subject: Subject) -> None:
    """The executed steps compute the problem's result, word by word."""
    for name, _, seen in _executed(subject):
        require(not seen.mixed, f"{name}: a word of {', '.join(seen.mixed)} is several words of the problem at once")
        require(not seen.wrong, f"{name}: {seen.wrong} of {seen.words} words of the result differ")


@check(AlgorithmSpec)
def check_algorithm_moves_what_does_not_lie_right(subject: Subject) -> None:
    """An exact alternative declares a Movement for every tensor that it reads in another layout."""
    for name, alternative, seen in _executed(subject):
        scattered = seen.scattered if alternative.exact else ()
        require(
            not scattered,
            f"{name}: {', '.join(scattered)} has another layout than its step reads; add a Movement, or set exact=False",
        )


@check(AlgorithmSpec)
def check_algorithm_answers_the_same_twice(subject: Subject) -> None:
    """Equal problems have equal alternatives: there is no hidden state and no randomness."""
    for problem, alternatives in _offers(subject):
        again: object = subject.make().alternatives(problem)
        require(alternatives == again, f"{problem.name}: the second call returns different alternatives")


@check(AlgorithmSpec)
def check_algorithm_alternatives_can_be_written(subject: Subject) -> None:
    """An alternative written as JSON and read again is equal, so that mapping files can store it."""
    for problem, alternative in _alternatives(subject):
        again = Alternative.model_validate_json(alternative.model_dump_json())
        require(again == alternative, f"{alternative.name} of {problem.name} does not survive JSON")
