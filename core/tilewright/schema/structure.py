"""Structure of a problem: the kind of operation, and the part that each dimension plays.

Both are derived from the projections. Published dataflows name K, C, P, Q, R, S or M, N, K; a
problem may use any names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Tensor

Kind = Literal["conv", "conv_transpose", "gemm"]


LETTERS: dict[Kind, str] = {"gemm": "GMNK", "conv": "NGKCPQRS", "conv_transpose": "NGKCPQRS"}
"""Canonical letters of each kind."""


@dataclass(frozen=True)
class Structure:
    """A recognised operation.

    `parts` maps a canonical letter to the problem's dimensions that play it. Convolutions: N batch, G group, K output
    channel, C input channel. Q and S are the last spatial axis of output and filter, P and R all other spatial axes. A
    transposed convolution calls P and Q the axes of its input. Contractions: G in all three tensors, M in weight and
    output, K in input and weight (reduced), N in input and output.
    """

    kind: Kind
    parts: FrozenDict[str, tuple[str, ...]]


def recognise(problem: Problem) -> Structure | None:
    """Return the structure of a two-operand problem; None if it is no convolution or contraction."""
    inputs = [tensor for tensor in problem.operands if tensor.role == "input"]
    weights = [tensor for tensor in problem.operands if tensor.role == "weight"]
    if len(inputs) != 1 or len(weights) != 1:
        return None
    data, weight, output = inputs[0], weights[0], problem.output
    if any(len(rank.terms) > 1 for rank in weight.projection):
        return None
    slides_in, slides_out = _windows(data, weight), _windows(output, weight)
    if slides_in is None or slides_out is None or (slides_in and slides_out):
        return None
    members = {name: _membership(name, data, weight, output) for name in problem.dimensions}
    if any(pattern not in _CONTRACTION for pattern in members.values()):
        return None
    windows = slides_in or slides_out
    if not windows:
        return Structure("gemm", _group(problem, {name: _CONTRACTION[pattern] for name, pattern in members.items()}))
    letters = {name: _CONVOLUTION[pattern] for name, pattern in members.items()}
    for index, (position, offset) in enumerate(windows):
        last = index == len(windows) - 1
        letters[position], letters[offset] = ("Q", "S") if last else ("P", "R")
    return Structure("conv" if slides_in else "conv_transpose", _group(problem, letters))


_CONTRACTION = {(1, 1, 1): "G", (0, 1, 1): "M", (1, 1, 0): "K", (1, 0, 1): "N"}
_CONVOLUTION = {(1, 1, 1): "G", (0, 1, 1): "K", (1, 1, 0): "C", (1, 0, 1): "N"}


def _membership(name: str, data: Tensor, weight: Tensor, output: Tensor) -> tuple[int, int, int]:
    return int(name in data.dimensions), int(name in weight.dimensions), int(name in output.dimensions)


def _windows(tensor: Tensor, weight: Tensor) -> list[tuple[str, str]] | None:
    """Return (position, filter offset) of every sliding coordinate; None if one is no plain window."""
    windows = []
    for rank in tensor.projection:
        if len(rank.terms) == 1:
            continue
        offsets = [name for name in rank.terms if name in weight.dimensions]
        positions = [name for name in rank.terms if name not in weight.dimensions]
        if len(offsets) != 1 or len(positions) != 1:
            return None
        windows.append((positions[0], offsets[0]))
    return windows


def _group(problem: Problem, letters: dict[str, str]) -> FrozenDict[str, tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {}
    for name in problem.dimensions:
        parts[letters[name]] = (*parts.get(letters[name], ()), name)
    return FrozenDict(parts)
