"""Contract checks for algorithms."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.application.algorithms.equality import Equality, executed
from tilewright.errors import NotConformableError
from tilewright.mapspace.counting import used_words
from tilewright.plugin.frontend import Algorithm
from tilewright.plugin.guard.answers import fault_of_alternatives
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.alternative import Alternative
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank
from tilewright.testing.corpus import renamed
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


@check(AlgorithmSpec)
def check_algorithm_movements_have_the_words(subject: Subject) -> None:
    """A movement reads and writes each word that is used, and no more than all iterations of its steps; each tensor moves once."""
    for problem, alternative in _alternatives(subject):
        where = f"{alternative.name} of {problem.name}"
        moved = [movement.tensor for movement in alternative.movements]
        require(len(set(moved)) == len(moved), f"{where}: a tensor has two movements: {', '.join(moved)}")
        for movement in alternative.movements:
            original = problem.tensor(movement.tensor)
            used = used_words(problem, original)
            steps = [
                (layer.problem.tensor_words(layer.problem.tensor(original.name)), layer.count)
                for layer in alternative.steps.layers
                if original.name in layer.problem.tensor_names
            ]
            least, most = min(words for words, _ in steps), sum(words * count for words, count in steps)
            whole = max(problem.tensor_words(original), most)
            if original.is_output:  # the steps themselves may count one of both
                used = least = 0
                require(
                    movement.words_read + movement.words_written > 0, f"{where}: {movement.tensor} moves without a word"
                )
            for verb, words, low in (("reads", movement.words_read, used), ("writes", movement.words_written, least)):
                require(
                    low <= words <= whole,
                    f"{where}: the movement of {movement.tensor} {verb} {words} words; expected {low:g} to {whole}, since each used word "
                    "moves, and no word of a step more than once per iteration",
                )


@check(AlgorithmSpec)
def check_algorithm_does_not_depend_on_names(subject: Subject) -> None:
    """A problem with other names has the same alternatives under these names, and those of another problem are forgotten."""
    algorithm: Algorithm = subject.make()
    for problem, alternatives in _offers(subject):
        other = renamed(problem)
        try:
            again = algorithm.alternatives(other)
        except NotConformableError as error:
            raise CheckFailure(
                f"{problem.name} is refused with other names of its dimensions and tensors: {error}"
            ) from error
        require(
            _figures(alternatives) == _figures(again),
            f"{problem.name}: with other names of dimensions and tensors, the alternatives are {_figures(again)}; without, they are "
            f"{_figures(alternatives)}",
        )


def _figures(alternatives: object) -> list[object]:
    """Return what does not depend on names: sizes and counts of steps, and words of movements."""
    assert isinstance(alternatives, list | tuple)
    return [
        (
            [(layer.problem.sizes, layer.count) for layer in alternative.steps.layers],
            [(movement.words_read, movement.words_written) for movement in alternative.movements],
            alternative.exact,
        )
        for alternative in alternatives
    ]


@check(AlgorithmSpec)
def check_algorithm_keeps_problems_apart(subject: Subject) -> None:
    """Alternatives are of the problem that is asked for, also after one with its name, or with its sizes and other strides."""
    used: Algorithm = subject.make()
    for problem, _ in _offers(subject):
        for other in (_doubled(problem), _wider(problem)):
            answers = []
            for algorithm in (subject.make(), used):
                try:
                    answers.append(algorithm.alternatives(other))
                except NotConformableError as error:
                    require(bool(error.reasons), f"{other.name} is refused without a reason")
                    answers.append([])
            require(
                list(answers[0]) == list(answers[1]),
                f"{problem.name}, changed, has other alternatives after another problem",
            )
            for alternative in answers[0]:
                wrong = fault_of_alternatives([alternative], other)
                require(wrong is None, f"{problem.name}, changed: {wrong}")


def _doubled(problem: Problem) -> Problem:
    """Return the problem with twice as many iterations of each dimension."""
    return problem.replace({f"dimensions.{name}": 2 * size for name, size in problem.dimensions.items()})


def _wider(problem: Problem) -> Problem:
    """Return the problem with larger strides of its windows."""
    tensors = []
    for tensor in problem.tensors:
        ranks = [
            Rank(
                terms=FrozenDict({name: step + (number == 0) for number, (name, step) in enumerate(rank.terms.items())})
            )
            if len(rank.terms) > 1
            else rank
            for rank in tensor.projection
        ]
        tensors.append(tensor.model_copy(update={"projection": tuple(ranks)}))
    return problem.model_copy(update={"tensors": tuple(tensors)})


@check(AlgorithmSpec)
def check_algorithm_keeps_what_the_problem_states(subject: Subject) -> None:
    """Steps have the unit operation of the problem, and its tensors keep their roles; large problems have answers, too."""
    algorithm: Algorithm = subject.make()
    for problem, alternatives in _offers(subject):
        assert isinstance(alternatives, list | tuple)
        for alternative in alternatives:
            for layer in alternative.steps.layers:
                for tensor in layer.problem.operands:
                    known = {operand.name: operand.role for operand in problem.operands}.get(tensor.name, tensor.role)
                    require(
                        known == tensor.role,
                        f"{alternative.name} of {problem.name}: {tensor.name} has the role {tensor.role}",
                    )
        other = problem.model_copy(update={"unit_operation": "add_max"})
        large = problem.replace(
            {f"dimensions.{name}": 60 * size for name, size in list(problem.dimensions.items())[:4]}
        )
        for changed in (other, large):
            try:
                answer = algorithm.alternatives(changed)
            except NotConformableError as error:
                require(bool(error.reasons), f"{changed.name} is refused without a reason")
                continue
            units = {layer.problem.unit_operation for alternative in answer for layer in alternative.steps.layers}
            require(
                units <= {changed.unit_operation},
                f"{problem.name}: steps have the unit operation {', '.join(units)}; expected {changed.unit_operation}, or a refusal",
            )
