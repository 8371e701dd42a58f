"""Is every iteration executed exactly once, and is the tensor result that of `numpy.einsum`?"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Reason
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.oracle.trace import Ints, Trace


class Words:
    """The words of a tensor that the problem touches, numbered.

    `of_iteration`: number of the word that every iteration of the problem touches, [iteration], iterations in
    row-major order of the problem's dimensions.
    """

    def __init__(self, problem: Problem, tensor: Tensor) -> None:
        self.tensor = tensor
        grid = np.indices(problem.sizes, dtype=np.int64).reshape(len(problem.sizes), -1)
        coordinates = (problem.projection_matrix(tensor) @ grid).T
        self.coordinates, number = np.unique(coordinates, axis=0, return_inverse=True)
        self.of_iteration: Ints = number.reshape(-1)

    def __len__(self) -> int:
        return len(self.coordinates)

    def name(self, word: int) -> str:
        """How messages name a word, e.g. `Z[0,3]`."""
        return f"{self.tensor.name}[{','.join(str(at) for at in self.coordinates[word])}]"


@dataclass(frozen=True)
class Coverage:
    """How often every iteration was executed, [iteration]; and operations that are no iteration of the problem."""

    times: Ints
    outside: int
    sizes: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def missing(self) -> int:
        return int((self.times == 0).sum())

    @property
    def repeated(self) -> int:
        return int((self.times > 1).sum())

    def faults(self) -> Iterator[Reason]:
        """One reason for iterations left out, one for those done again, one for those that do not exist."""
        total = len(self.times)
        if self.missing:
            where = self._at(int(np.argmax(self.times == 0)))
            text = f"{self.missing} of {total} iterations are never executed, {where} for one"
            yield Reason(code="uncovered", where="execution", message=text)
        if self.repeated:
            worst = int(np.argmax(self.times))
            text = f"{self.repeated} of {total} iterations are executed more than once, {self._at(worst)} {self.times[worst]} times"
            yield Reason(code="overlap", where="execution", message=text)
        if self.outside:
            text = f"{self.outside} operations are on iterations that the problem does not have"
            yield Reason(code="outside", where="execution", message=text)

    def _at(self, iteration: int) -> str:
        point = np.unravel_index(iteration, self.sizes)
        return " ".join(f"{name}={int(at)}" for name, at in zip(self.names, point, strict=True))


def inside(problem: Problem, trace: Trace) -> Ints:
    """Number of the iteration that each operation is of, -1 where the problem has no such iteration, [n]."""
    real = (trace.points < np.array(problem.sizes)).all(axis=1)
    numbers = np.full(len(trace.points), -1, dtype=np.int64)
    numbers[real] = np.ravel_multi_index(tuple(trace.points[real].T), problem.sizes)
    return numbers


def coverage(problem: Problem, iterations: Ints) -> Coverage:
    """Count the executions of every iteration."""
    real = iterations[iterations >= 0]
    times = np.bincount(real, minlength=problem.macs).astype(np.int64)
    return Coverage(times, len(iterations) - len(real), problem.sizes, problem.dimension_names)


@dataclass(frozen=True)
class TensorResult:
    """The computed tensor beside the true one, [word]."""

    words: Words
    computed: Ints
    expected: Ints

    @property
    def wrong(self) -> int:
        return int((self.computed != self.expected).sum())

    def faults(self) -> Iterator[Reason]:
        """A reason if some word is wrong."""
        if self.wrong:
            first = int(np.argmax(self.computed != self.expected))
            text = (
                f"{self.wrong} of {len(self.words)} words of the result are wrong, {self.words.name(first)} is "
                f"{self.computed[first]} instead of {self.expected[first]} for one"
            )
            yield Reason(code="result", where=f"tensor {self.words.tensor.name}", message=text)


def compute(problem: Problem, words: dict[str, Words], iterations: Ints) -> TensorResult:
    """Do the executed operations on small integers, one after another, and compare."""
    random = np.random.default_rng(0)
    values = {tensor.name: random.integers(1, 5, len(words[tensor.name])) for tensor in problem.operands}
    real = iterations[iterations >= 0]
    products = np.ones(len(real), dtype=np.int64)
    for name, value in values.items():
        products *= value[words[name].of_iteration[real]]
    output = words[problem.output.name]
    computed = np.zeros(len(output), dtype=np.int64)
    np.add.at(computed, output.of_iteration[real], products)
    return TensorResult(output, computed, _expected(problem, words, values))


def _expected(problem: Problem, words: dict[str, Words], values: dict[str, NDArray[np.int64]]) -> Ints:
    """The true result, [word]. Operands with strides or sums are first laid out over their dimensions, where
    `numpy.einsum` can take them; an output with strides or sums is gathered from such a layout."""
    letters = dict(zip(problem.dimension_names, string.ascii_letters, strict=False))
    used = [name for name in problem.dimension_names if name in problem.output.dimensions]
    operands = [(_layout(problem, words[name], value[words[name].of_iteration])) for name, value in values.items()]
    ones = np.ones(problem.sizes, dtype=np.int64)  # dimensions that no operand has are summed over too
    formula = ",".join("".join(letters[name] for name in names) for names, _ in operands)
    formula = f"{formula},{''.join(letters[n] for n in problem.dimension_names)}->{''.join(letters[n] for n in used)}"
    summed = np.einsum(formula, *(array for _, array in operands), ones)
    _, at = _layout(problem, words[problem.output.name], words[problem.output.name].of_iteration)
    result = np.zeros(len(words[problem.output.name]), dtype=np.int64)
    np.add.at(result, at.reshape(-1), summed.reshape(-1))
    return result


def _layout(problem: Problem, words: Words, by_iteration: Ints) -> tuple[list[str], Ints]:
    """What does not depend on the dimensions that a tensor lacks: (its dimensions, array over them)."""
    names = [name for name in problem.dimension_names if name in words.tensor.dimensions]
    pick = tuple(slice(None) if name in names else 0 for name in problem.dimension_names)
    return names, by_iteration.reshape(problem.sizes)[pick]
