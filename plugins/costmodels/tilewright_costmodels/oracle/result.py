"""Check of an execution: every iteration runs exactly once, and the result equals that of `numpy.einsum`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Reason
from tilewright.reports import Execution
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.oracle.trace import Ints, OperationTrace


class Words:
    """Words of a tensor that the problem touches, with an index each.

    Attributes:
        of_iteration: index of the word that each iteration touches, [iteration], with iterations in
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
        """Return the name of a word in messages, e.g. `Z[0,3]`."""
        return f"{self.tensor.name}[{','.join(str(at) for at in self.coordinates[word])}]"


def inside(problem: Problem, trace: OperationTrace) -> Ints:
    """Return the index of each operation's iteration, [n]; -1 if the problem has no such iteration."""
    existing = (trace.points < np.array(problem.sizes)).all(axis=1)
    numbers = np.full(len(trace.points), -1, dtype=np.int64)
    numbers[existing] = np.ravel_multi_index(tuple(trace.points[existing].T), problem.sizes)
    return numbers


def examine(problem: Problem, words: dict[str, Words], iterations: Ints) -> tuple[Execution, list[Reason]]:
    """Return the outcome of executing these iterations, and its errors.

    Errors are iterations that are missing, repeated or outside the problem, and wrong words of the
    result.
    """
    existing = iterations[iterations >= 0]
    executions = np.bincount(existing, minlength=problem.macs)
    output = words[problem.output.name]
    computed, expected = _results(problem, words, existing)
    execution = Execution(
        operations=len(iterations),
        missing=int((executions == 0).sum()),
        repeated=int((executions > 1).sum()),
        outside=len(iterations) - len(existing),
        result_words=len(output),
        wrong_words=int((computed != expected).sum()),
    )

    def at(iteration: int) -> str:
        point = np.unravel_index(iteration, problem.sizes)
        return " ".join(f"{name}={int(index)}" for name, index in zip(problem.dimension_names, point, strict=True))

    first_missing = int(executions.argmin())
    most_repeated = int(executions.argmax())
    first_wrong = int((computed != expected).argmax())
    wrong = f"{output.name(first_wrong)} is {computed[first_wrong]} instead of {expected[first_wrong]} for one"
    problems = [
        (
            "uncovered",
            execution.missing,
            f"of {len(executions)} iterations are never executed, {at(first_missing)} for one",
        ),
        (
            "overlap",
            execution.repeated,
            f"of {len(executions)} iterations are executed more than once, {at(most_repeated)} {executions[most_repeated]} times",
        ),
        ("outside", execution.outside, "operations are on iterations that the problem does not have"),
        ("result", execution.wrong_words, f"of {len(output)} words of the result are wrong, {wrong}"),
    ]
    where = {"result": f"tensor {problem.output.name}"}
    return execution, [
        Reason(code=code, where=where.get(code, "execution"), message=f"{count} {text}")
        for code, count, text in problems
        if count
    ]


def _results(problem: Problem, words: dict[str, Words], iterations: Ints) -> tuple[Ints, Ints]:
    """Return the output [word] as the iterations compute it on small integers, and as `numpy.einsum` does.

    `numpy.einsum` has no strides and no sums of indices. Such operands are first copied to an array
    over their dimensions; such an output is gathered from one.
    """
    random, output = np.random.default_rng(0), words[problem.output.name]
    computed, expected = np.zeros((2, len(output)), dtype=np.int64)
    products = np.ones(len(iterations), dtype=np.int64)
    operands: list[Any] = [
        np.ones(problem.sizes, dtype=np.int64),
        range(len(problem.sizes)),
    ]  # so that all dimensions are summed over
    for tensor in problem.operands:
        touched = words[tensor.name]
        value = random.integers(1, 5, len(touched))[touched.of_iteration]
        products *= value[iterations]
        operands += _layout(problem, tensor, value)
    np.add.at(computed, output.of_iteration[iterations], products)
    values, axes = _layout(problem, problem.output, output.of_iteration)
    np.add.at(expected, values.reshape(-1), np.einsum(*operands, axes).reshape(-1))
    return computed, expected


def _layout(problem: Problem, tensor: Tensor, by_iteration: Ints) -> tuple[NDArray[np.int64], list[int]]:
    """Return values by iteration as (array over the tensor's dimensions, indices of these dimensions)."""
    axes = [axis for axis, name in enumerate(problem.dimension_names) if name in tensor.dimensions]
    pick = tuple(slice(None) if axis in axes else 0 for axis in range(len(problem.sizes)))
    return by_iteration.reshape(problem.sizes)[pick], axes
