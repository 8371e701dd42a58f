"""Alternative: equivalent work for a problem, such as a matrix product, and what has to be moved for it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic import Field

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import DimensionName, Name, Problem, Tensor
from tilewright.schema.workload import Layer, Workload
from tilewright.values import Model


class Movement(Model):
    """A tensor of the problem that is laid out anew in the outermost memory, and how often its words are touched there."""

    tensor: Name
    words_read: int = Field(ge=0, le=2**53, strict=True)
    words_written: int = Field(ge=0, le=2**53, strict=True)
    reason: str


class Alternative(Model):
    """Steps that together compute the result of a problem.

    A step's operands are tensors of the problem, by their names, or results of earlier steps; the last step's result is the
    problem's. All dimensions of the steps stand in `dimensions`, with the problem's own dimensions that each runs over,
    outermost first: sizes multiply. Dimensions of the problem that stand nowhere are loops around all steps, and every step's
    `count` is how often they run. A tensor without a movement is used where it lies, row-major as the problem's projection
    has it. `exact`: what the steps and movements say is all that is moved; `remark`: what is not, or what else to know.
    """

    name: Name
    steps: Workload
    dimensions: FrozenDict[DimensionName, tuple[DimensionName, ...]]
    movements: tuple[Movement, ...] = ()
    exact: bool = True
    remark: str | None = None

    @property
    def words_moved(self) -> int:
        """Words read and written by the movements."""
        return sum(each.words_read + each.words_written for each in self.movements)

    def looped(self, problem: Problem) -> tuple[str, ...]:
        """The problem's dimensions that are loops around the steps."""
        inside = {name for names in self.dimensions.values() for name in names}
        return tuple(name for name in problem.dimensions if name not in inside)

    def faults(self, problem: Problem) -> Iterator[str]:
        """What shows, without executing it, that these are no steps for this problem."""
        broken = list(self._faults_of_dimensions(problem))
        yield from broken
        if not broken:
            yield from self._faults_of_steps(problem)
        for movement in self.movements:
            if movement.tensor not in problem.tensor_names:
                yield f"it moves {movement.tensor}, which is no tensor of the problem"

    def _faults_of_dimensions(self, problem: Problem) -> Iterator[str]:
        listed = [name for names in self.dimensions.values() for name in names]
        for name in sorted(set(listed)):
            if name not in problem.dimensions:
                yield f"{name} is no dimension of the problem"
            elif listed.count(name) > 1:
                yield f"dimension {name} stands twice in `dimensions`"
        if not self.steps.layers:
            yield "it has no steps"
        for layer in self.steps.layers:
            for name, size in layer.problem.dimensions.items():
                if name not in self.dimensions:
                    yield f"dimension {name} of step {layer.name} does not stand in `dimensions`"
                elif size != math.prod(problem.dimensions.get(each, 0) for each in self.dimensions[name]):
                    yield f"{name} of step {layer.name} has size {size}, not the product of those it runs over"
        for name in self.dimensions:
            if not any(name in layer.problem.dimensions for layer in self.steps.layers):
                yield f"no step has the dimension {name}"

    def _faults_of_steps(self, problem: Problem) -> Iterator[str]:
        looped = self.looped(problem)
        times = math.prod(problem.dimensions[name] for name in looped)
        made: dict[str, Tensor] = {}
        for layer in self.steps.layers:
            if layer.count != times:
                yield f"step {layer.name} counts {layer.count} times, the loops around it run {times} times"
            for tensor in layer.problem.operands:
                if tensor.name in made and tensor.projection != made[tensor.name].projection:
                    yield f"{tensor.name} of step {layer.name} has other coordinates than the result that it is"
                elif tensor.name not in made:
                    yield from self._faults_of_original(problem, problem.operands, layer, tensor, looped)
            made[layer.problem.output.name] = layer.problem.output
        *before, last = self.steps.layers
        names = [layer.problem.output.name for layer in before]
        if len({*names, *problem.tensor_names}) < len(names) + len(problem.tensors):
            yield "results between the steps have names of their own, each once"
        yield from self._faults_of_original(problem, (problem.output,), last, last.problem.output, looped)
        read = {tensor.name for layer in self.steps.layers for tensor in layer.problem.operands}
        for name in sorted({*names, *(tensor.name for tensor in problem.operands)} - read):
            yield f"no step reads {name}"

    def _faults_of_original(
        self, problem: Problem, among: tuple[Tensor, ...], layer: Layer, tensor: Tensor, looped: tuple[str, ...]
    ) -> Iterator[str]:
        """A step's tensor that ought to be one of these of the problem, every word of which it reaches."""
        original = next((each for each in among if each.name == tensor.name), None)
        if original is None:
            names = " or ".join(each.name for each in among)
            yield f"{tensor.name} of step {layer.name} is neither {names} nor the result of an earlier step"
            return
        reached = {*looped, *(name for dim in tensor.dimensions for name in self.dimensions[dim])}
        lost = [name for name in original.dimensions - reached if problem.dimensions[name] > 1]
        if lost:
            yield f"{tensor.name} of step {layer.name} does not run over {', '.join(sorted(lost))}"
