"""`space_to_depth`: a convolution with strides as one of stride 1, whose channels are those of all phases of a stride.

Input row s p + r is row p + r // s of the channel (c, r % s). So a filter of R rows has ceil(R / s) rows and s times the channels,
with zeros for the rows that it lacks. NVDLA stores images and filters in this way (nvdla/hw, perf).
"""

from __future__ import annotations

import math
from typing import Any

from tilewright.mapspace.counting import distinct_values
from tilewright.schema.alternative import Alternative, Movement
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Tensor
from tilewright.schema.structure import recognise
from tilewright.schema.workload import Workload
from tilewright_algorithms.gemm import operands, refusal

NAME = "space_to_depth"


class SpaceToDepth:
    """The algorithm, with one alternative."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        """Return the convolution of stride 1.

        Raises:
            NotConformableError: the problem is no convolution of two operands with a stride, or it is dilated along one.
        """
        operands(NAME, problem)
        structure = recognise(problem)
        if structure is None or structure.kind != "conv":
            raise refusal(NAME, problem, "structure", "it is not a convolution")
        data = next(tensor for tensor in problem.operands if tensor.role == "input")
        offsets = {name for letter in "RS" for name in structure.parts.get(letter, ())}
        strides: dict[str, int] = {}
        for rank in data.projection:
            window = sorted(rank.terms.items(), key=lambda term: term[0] in offsets)
            if len(window) == 2 and window[0][1] > 1:
                (_, stride), (offset, dilation) = window
                if dilation > 1:
                    raise refusal(NAME, problem, "dilation", f"{offset} is dilated along an axis with a stride")
                strides[offset] = stride
        if not strides:
            raise refusal(NAME, problem, "stride", "all strides are 1")
        digits = {
            name: FrozenDict({f"{name}_high": -(-problem.dimensions[name] // stride), f"{name}_low": stride})
            for name, stride in strides.items()
        }
        phases = tuple(f"{name}_low" for name in strides)
        channel = structure.parts["C"][-1] if structure.parts.get("C") else "_".join(phases)
        step = _step(problem, data, strides, channel)
        dimensions = {name: (f"{name}_high",) if name in strides else (name,) for name in problem.dimensions}
        dimensions[channel] = (*dimensions.get(channel, ()), *phases)
        moved = []
        for tensor in problem.operands:
            read = math.prod(
                distinct_values([(c, problem.dimensions[name]) for name, c in rank.terms.items()])
                for rank in tensor.projection
            )
            text = "phases of strides become channels"
            moved.append(
                Movement(
                    tensor=tensor.name,
                    words_read=read,
                    words_written=step.tensor_words(step.tensor(tensor.name)),
                    reason=text if tensor is data else f"{text}, and missing rows zeros",
                )
            )
        return [
            Alternative(
                name=NAME,
                steps=Workload.of(step),
                dimensions=FrozenDict(dimensions),
                digits=FrozenDict(digits),
                movements=tuple(moved),
            )
        ]


def _step(problem: Problem, data: Tensor, strides: dict[str, int], channel: str) -> Problem:
    """Return the convolution of stride 1. Both operands get the channel, if they have none."""
    sizes = {name: -(-size // strides.get(name, 1)) for name, size in problem.dimensions.items()}
    sizes[channel] = problem.dimensions.get(channel, 1) * math.prod(strides.values())

    def without_stride(rank: Rank) -> str:
        strided = any(name in strides for name in rank.terms)
        return " + ".join(f"{1 if strided else c}*{name}" for name, c in rank.terms.items())

    def changed(tensor: Tensor) -> dict[str, Any]:
        ranks = [without_stride(rank) if tensor is data else str(rank) for rank in tensor.projection]
        lacks = tensor in problem.operands and channel not in problem.dimensions
        return tensor.model_dump(mode="json") | {"projection": ranks + [channel] * lacks}

    tensors = [changed(tensor) for tensor in problem.tensors]
    return Problem.model_validate(problem.model_dump(mode="json") | {"dimensions": sizes, "tensors": tensors})
