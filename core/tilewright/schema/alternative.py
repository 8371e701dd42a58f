"""Alternative: steps that compute a problem's result, such as a matrix product, plus data movement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import DimensionName, Name, Problem, Tensor
from tilewright.schema.workload import Layer, Workload
from tilewright.values import Model


class Movement(Model):
    """Rearrangement of a tensor in the outermost memory, with the words read and written there.

    Example:
        >>> from tilewright.plugin import Movement
        >>> Movement(tensor="A", words_read=4, words_written=8, reason="windows overlap").words_written
        8
    """

    tensor: Name
    """Name of the tensor."""
    words_read: int = Field(ge=0, le=2**53, strict=True)
    """Words read there."""
    words_written: int = Field(ge=0, le=2**53, strict=True)
    """Words written there."""
    reason: str
    """Why it is moved."""


class Alternative(Model):
    """Steps that together compute the result of a problem.

    A step's operands are tensors of the problem, by name, or results of earlier steps. The last step's result is the
    problem's. A tensor without a movement is read in place: row-major, as the problem projects it.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import AlgorithmSpec, installed
        >>> conv = tw.load("quickflow_convs/V", "problem")
        >>> [one.name for one in installed().make(AlgorithmSpec, "im2col").alternatives(conv)]
        ['im2col.explicit', 'im2col.implicit']
    """

    name: Name
    """Name of the alternative."""
    steps: Workload
    """Problems in their order; the `count` of each is the product of the sizes of loops around all steps."""
    dimensions: FrozenDict[DimensionName, tuple[DimensionName, ...]]
    """Dimension of the steps -> dimensions of the problem that it runs over, outermost first; its size is their product.

    Dimensions of the problem that are not listed are loops around all steps.
    """
    digits: FrozenDict[DimensionName, FrozenDict[DimensionName, Annotated[int, Field(ge=1, strict=True)]]] = FrozenDict(
        {}
    )
    """Dimension of the problem -> its digits and their sizes, the most significant first; `dimensions` has them instead.

    Products of numbers beyond the size of the dimension are zero.
    """
    movements: tuple[Movement, ...] = ()
    """Tensors that are rearranged."""
    exact: bool = True
    """Whether steps and movements cover all data movement."""
    remark: str | None = None
    """Movements that they omit."""

    @property
    def words_moved(self) -> int:
        """Total number of words read and written by the movements."""
        return sum(movement.words_read + movement.words_written for movement in self.movements)

    def sizes(self, problem: Problem) -> dict[str, int]:
        """Return the sizes of the problem's dimensions, or of their digits."""
        sizes: dict[str, int] = {}
        for name, size in problem.dimensions.items():
            sizes |= self.digits.get(name, {name: size})
        return sizes

    def looped(self, problem: Problem) -> tuple[str, ...]:
        """Return the problem's dimensions, or digits, that are loops around the steps."""
        inside = {name for names in self.dimensions.values() for name in names}
        return tuple(name for name in self.sizes(problem) if name not in inside)

    def faults(self, problem: Problem) -> Iterator[str]:
        """Yield reasons why these steps cannot compute the problem, without executing them."""
        broken = list(self._faults_of_dimensions(problem))
        yield from broken
        if not broken:
            yield from self._faults_of_steps(problem)
        for movement in self.movements:
            if movement.tensor not in problem.tensor_names:
                yield f"it moves {movement.tensor}, which is not a tensor of the problem"

    def _faults_of_dimensions(self, problem: Problem) -> Iterator[str]:
        listed, sizes = [name for names in self.dimensions.values() for name in names], self.sizes(problem)
        for name, digits in self.digits.items():
            if math.prod(digits.values()) < problem.dimensions.get(name, 0):
                yield f"the digits of {name} have fewer numbers than its {problem.dimensions[name]}"
            elif set(digits) & {*problem.dimensions} or name not in problem.dimensions:
                yield f"the digits of {name} need names of their own, and {name} has to be a dimension of the problem"
        if len(sizes) < sum(len(self.digits.get(name, (name,))) for name in problem.dimensions):
            yield "two digits have the same name"
        for name in sorted(set(listed)):
            if name not in sizes:
                yield f"{name} is not a dimension of the problem"
            elif listed.count(name) > 1:
                yield f"dimension {name} is repeated in `dimensions`"
        if not self.steps.layers:
            yield "it has no steps"
        for layer in self.steps.layers:
            for name, size in layer.problem.dimensions.items():
                if name not in self.dimensions:
                    yield f"dimension {name} of step {layer.name} is missing in `dimensions`"
                elif size != math.prod(sizes.get(dimension, 0) for dimension in self.dimensions[name]):
                    yield f"{name} of step {layer.name} has size {size}, not the product of those it runs over"
        for name in self.dimensions:
            if not any(name in layer.problem.dimensions for layer in self.steps.layers):
                yield f"no step has the dimension {name}"

    def _faults_of_steps(self, problem: Problem) -> Iterator[str]:
        looped, sizes = self.looped(problem), self.sizes(problem)
        times = math.prod(sizes[name] for name in looped)
        made: dict[str, Tensor] = {}
        for layer in self.steps.layers:
            if layer.count != times:
                yield f"step {layer.name} counts {layer.count} times, the loops around it run {times} times"
            for tensor in layer.problem.operands:
                if tensor.name in made and tensor.projection != made[tensor.name].projection:
                    yield f"{tensor.name} of step {layer.name} has other coordinates than the result of that name"
                elif tensor.name not in made:
                    yield from self._faults_of_original(problem, problem.operands, layer, tensor, looped)
            made[layer.problem.output.name] = layer.problem.output
        *before, last = self.steps.layers
        names = [layer.problem.output.name for layer in before]
        if len({*names, *problem.tensor_names}) < len(names) + len(problem.tensors):
            yield "results between the steps need unique names"
        yield from self._faults_of_original(problem, (problem.output,), last, last.problem.output, looped)
        read = {tensor.name for layer in self.steps.layers for tensor in layer.problem.operands}
        for name in sorted({*names, *(tensor.name for tensor in problem.operands)} - read):
            yield f"no step reads {name}"

    def _faults_of_original(
        self, problem: Problem, among: tuple[Tensor, ...], layer: Layer, tensor: Tensor, looped: tuple[str, ...]
    ) -> Iterator[str]:
        """Yield reasons why a step's tensor is none of the tensors `among`, or misses words."""
        original = next((candidate for candidate in among if candidate.name == tensor.name), None)
        if original is None:
            names = " or ".join(candidate.name for candidate in among)
            yield f"{tensor.name} of step {layer.name} is not {names} or the result of an earlier step"
            return
        reached = {*looped, *(name for dim in tensor.dimensions for name in self.dimensions[dim])}
        sizes = self.sizes(problem)
        needed = {digit for name in original.dimensions for digit in self.digits.get(name, (name,))}
        lost = [name for name in needed - reached if sizes[name] > 1]
        if lost:
            yield f"{tensor.name} of step {layer.name} does not run over {', '.join(sorted(lost))}"
