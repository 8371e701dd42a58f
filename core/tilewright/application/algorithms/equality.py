"""Check that an alternative computes the problem's result, by executing both on small integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.alternative import Alternative
from tilewright.schema.problem import Problem, Tensor

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MAX_OPERATIONS = 2_000_000
"""Upper bound on the operations that are executed, for the problem and for each step."""


@dataclass(frozen=True)
class Equality:
    """Result of executing a problem and an alternative.

    Attributes:
        words: number of words in the result.
        wrong: number of words that differ.
        mixed: tensors of the steps where one word would have to hold several words of the problem's tensor.
        scattered: tensors without a movement whose words are not evenly spaced: equal steps along a
            dimension of the step are unequal distances in memory.

    Example:
        >>> from tilewright.testing import Equality
        >>> Equality(words=4, wrong=0).right
        True
    """

    words: int
    wrong: int
    mixed: tuple[str, ...] = ()
    scattered: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether the alternative computes the same tensor."""
        return not self.wrong and not self.mixed


def executed(problem: Problem, alternative: Alternative, most: int = MAX_OPERATIONS) -> Equality | None:
    """Execute the problem and the alternative, and compare the results.

    >>> from tilewright import Workload, load
    >>> problem = load("nk,km->nm; n=2 k=3 m=4", "problem")
    >>> alone = Alternative(name="native", steps=Workload.of(problem), dimensions={name: (name,) for name in "nkm"})
    >>> executed(problem, alone).right
    True

    Args:
        problem: the problem to compute.
        alternative: an alternative for which `faults` yields nothing.
        most: maximum number of operations.

    Returns:
        The comparison; None if the problem or a step has more than `most` operations.
    """
    nests = [(problem, 1), *((layer.problem, layer.count) for layer in alternative.steps.layers)]
    operations = max(nest.macs * count for nest, count in nests)
    words = max(nest.tensor_words(tensor) * count for nest, count in nests for tensor in nest.tensors)
    if operations > most or words > 10 * most:
        return None
    run = _Run(problem, alternative)
    for layer in alternative.steps.layers:
        run.step(layer.problem)
    wrong = int((run.result != _expected(problem)).sum())
    moved = {movement.tensor for movement in alternative.movements}
    scattered = tuple(name for name in sorted(run.scattered) if name not in moved)
    reached = len(np.unique(_addresses(problem, problem.output, _grid(problem.sizes), problem.dimension_names)))
    return Equality(reached, wrong, tuple(sorted(run.mixed)), scattered)


class _Run:
    """Execution of the steps in sequence.

    `results` maps the name of each step's output to its words, [word x loop iteration]. Words span
    the bounding box of the output's coordinates.
    """

    def __init__(self, problem: Problem, alternative: Alternative) -> None:
        self.problem, self.alternative = problem, alternative
        self.looped = alternative.looped(problem)
        self.sizes = alternative.sizes(problem)
        self.around = tuple(self.sizes[name] for name in self.looped)
        self.results: dict[str, Ints] = {}
        self.mixed: set[str] = set()
        self.scattered: set[str] = set()
        self.result = np.zeros(problem.tensor_words(problem.output), dtype=np.int64)

    def step(self, step: Problem) -> None:
        """Execute one step and store its result.

        The last step's result is also copied to the problem's layout.
        """
        sizes, loops = step.sizes, int(np.prod(self.around, dtype=np.int64))
        points = _grid((*sizes, *self.around))
        old = self._old(step, points)
        loop = np.arange(points.shape[1]) % loops
        inside = np.ones(points.shape[1], dtype=np.bool_)
        for name in self.alternative.digits.keys() & old.keys():
            inside &= old[name] < self.problem.dimensions[name]
        products = inside.astype(np.int64)
        for tensor in step.operands:
            here = _addresses(step, tensor, points, step.dimension_names) * loops + loop
            if tensor.name in self.results:
                products *= self.results[tensor.name][here]
            else:
                there = self._original(tensor, old, points.shape[1])
                self._examine(tensor.name, here, there, sizes, inside)
                products *= _values(self.problem, tensor.name, there)
        here = _addresses(step, step.output, points, step.dimension_names) * loops + loop
        made = np.zeros(step.tensor_words(step.output) * loops, dtype=np.int64)
        np.add.at(made, here, products)
        self.results[step.output.name] = made
        if step.output.name == self.problem.output.name:
            there = self._original(step.output, old, points.shape[1])
            self._examine(step.output.name, here, there, sizes)
            self._examine(step.output.name, there * loops + loop, here)
            words, first = np.unique(here, return_index=True)
            np.add.at(self.result, there[first], made[words])

    def _old(self, step: Problem, points: Ints) -> dict[str, Ints]:
        """Return the problem's dimension indices at each point of a step, {name: [point]}."""
        values = {name: points[len(step.sizes) + at] for at, name in enumerate(self.looped)}
        for at, name in enumerate(step.dimension_names):
            names = self.alternative.dimensions[name]
            index = np.unravel_index(points[at], [self.sizes[dimension] for dimension in names]) if names else ()
            values |= {
                dimension: np.asarray(part, dtype=np.int64) for dimension, part in zip(names, index, strict=True)
            }
        for name, digits in self.alternative.digits.items():
            if any(digit in values for digit in digits):
                number = np.zeros(points.shape[1], dtype=np.int64)
                for digit, size in digits.items():
                    number = number * size + values.get(digit, 0)
                values[name] = number
        return values

    def _original(self, tensor: Tensor, old: dict[str, Ints], count: int) -> Ints:
        """Return the address in the problem's tensor of the word that each point touches, [point]."""
        original = self.problem.tensor(tensor.name)
        rows = [old.get(name, np.zeros(count, dtype=np.int64)) for name in self.problem.dimension_names]
        return _addresses(self.problem, original, np.stack(rows), self.problem.dimension_names)

    def _examine(
        self, name: str, here: Ints, there: Ints, sizes: tuple[int, ...] | None = None, inside: Bools | None = None
    ) -> None:
        """Record a tensor as mixed or scattered.

        `here` are addresses of the step's tensor, `there` of the problem's, both [point]. Points that are not `inside` touch
        no word of the problem.

        A tensor is mixed if one address `here` maps to several addresses `there`. With `sizes`, it
        is scattered if its words are not evenly spaced along each dimension.
        """
        left, right = (here, there) if inside is None else (here[inside], there[inside])
        if len(np.unique(left)) < len(np.unique(left * (right.max() + 1) + right)):
            self.mixed.add(name)
        if sizes is None:
            return
        box = there.reshape(*sizes, -1)
        predicted = np.broadcast_to(box[(0,) * len(sizes)], box.shape).copy()
        for axis, size in enumerate(sizes):
            if size > 1:
                origin = [0] * len(sizes)
                origin[axis] = 1
                distance = int(box[tuple(origin)][0] - box[(0,) * len(sizes)][0])
                predicted += distance * np.arange(size).reshape([-1 if at == axis else 1 for at in range(box.ndim)])
        if not np.array_equal(box, predicted):
            self.scattered.add(name)


def _expected(problem: Problem) -> Ints:
    """Return the problem's result, [word], over the bounding box of its coordinates."""
    points = _grid(problem.sizes)
    products = np.ones(points.shape[1], dtype=np.int64)
    for tensor in problem.operands:
        products *= _values(problem, tensor.name, _addresses(problem, tensor, points, problem.dimension_names))
    result = np.zeros(problem.tensor_words(problem.output), dtype=np.int64)
    np.add.at(result, _addresses(problem, problem.output, points, problem.dimension_names), products)
    return result


def _values(problem: Problem, name: str, addresses: Ints) -> Ints:
    """Return an operand's values, 1 to 4, derived from the tensor and the address."""
    mixed = (addresses + 1) * np.int64(2654435761 + 2 * problem.tensor_names.index(name))
    return np.asarray((mixed >> np.int64(13)) % 4 + 1, dtype=np.int64)


def _grid(sizes: tuple[int, ...]) -> Ints:
    """Return all points, [dimension, point], with the last dimension fastest."""
    return np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1)


def _addresses(problem: Problem, tensor: Tensor, points: Ints, names: tuple[str, ...]) -> Ints:
    """Return the row-major address of the word that each point touches, [point].

    The address counts over the bounding box of the tensor's coordinates.
    """
    place = np.zeros(points.shape[1], dtype=np.int64)
    for rank in tensor.projection:
        extent = 1 + sum(c * (problem.dimensions[name] - 1) for name, c in rank.terms.items())
        place = place * extent + sum(c * points[names.index(name)] for name, c in rank.terms.items())
    return place
