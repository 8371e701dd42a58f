"""Sparse problems and architectures that Timeloop's rules do not cover."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.errors import Reason
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Tensor
from tilewright_costmodels.timeloop.sparse.contents import WHOLE_BLOCKS


def uncovered(problem: Problem, architecture: Architecture) -> Iterator[Reason]:
    """Yield a reason for every part of sparse hardware that the model refuses; none for dense hardware."""
    if not architecture.sparse_parts:
        return
    if problem.operand_count != 2:
        text = f"{problem.operand_count} operands; sparse hardware is modelled for two"
        yield Reason(code="sparse_operands", where=problem.name, message=text)
    for tensor in problem.tensors:
        yield from _unbanded(problem, tensor)
        if tensor.density is not None and tensor.density.data is not None:
            axes, longest = len(tensor.projection), max(tensor.density.data.shape, default=1)
            if longest >= 2 ** (62 // max(1, axes)):
                text = (
                    f"data of {tensor.name} have {axes} axes of up to {longest:,} values; tiles have numbers of 62 bits"
                )
                yield Reason(code="data_axes", where=problem.name, message=text)
    for memory in architecture.memories:
        yield from _uncovered_in(problem, memory)


def _unbanded(problem: Problem, tensor: Tensor) -> Iterator[Reason]:
    """Yield a reason if a banded tensor is no square matrix wider than its band: then Timeloop's formulas fail."""
    if tensor.density is None or tensor.density.band_width is None:
        return
    words, width = problem.tensor_words(tensor), tensor.density.band_width
    side = math.isqrt(words)
    if side**2 != words:
        text = f"{tensor.name} is banded, but has {words} words, which are no square matrix"
        yield Reason(code="band", where=problem.name, message=text)
    elif width >= side:
        text = f"{tensor.name} has a band_width of {width}; expected less than its {side} rows"
        yield Reason(code="band", where=problem.name, message=text)


def _uncovered_in(problem: Problem, memory: Memory) -> Iterator[Reason]:
    if memory.sparse is None:
        return
    for saving in memory.sparse.actions_on(problem.tensors):
        for option in saving.options:
            name = option.tensor
            if name in option.when_empty:
                text = (
                    f"saves accesses of {name} when {name} itself is empty; Timeloop then counts impossible operations"
                )
                yield Reason(code="self_condition", where=memory.name, message=text)
            if saving.kind == "skip_units" and (len(option.when_empty) > 1 or len(saving.options) > 1):
                text = f"skips units of {name} on several conditions; Timeloop covers one, without alternatives"
                yield Reason(code="spatial_conditions", where=memory.name, message=text)
    compressed = [
        tensor.name
        for tensor in problem.tensors
        if (spec := memory.sparse.format_of(tensor)) is not None and spec.is_compressed
    ]
    if compressed and memory.block_words not in (1, *WHOLE_BLOCKS):
        known = ", ".join(map(str, (1, *WHOLE_BLOCKS)))
        text = f"compressed {', '.join(compressed)} in blocks of {memory.block_words} words; expected {known}"
        yield Reason(code="sparse_block", where=memory.name, message=text)
