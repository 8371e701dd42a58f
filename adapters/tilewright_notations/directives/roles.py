"""A problem as a layer of MAESTRO: the letter that each dimension plays."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import NotConformableError, Reason
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.structure import Structure, recognise
from tilewright_notations.directives.layer import FILTER, INPUT, OUTPUT, WINDOWS, LayerType

_GEMM = {"N": "M", "K": "K", "M": "N"}
"""MAESTRO multiplies input (M, K) by filter (K, N)."""
_CONV = {"N": "N", "K": "K", "C": "C", "P": "Y", "Q": "X", "R": "R", "S": "S", "G": "C"}


@dataclass(frozen=True)
class Roles:
    """Assignment of a problem's dimensions and tensors to MAESTRO's.

    `letters` maps a dimension of the problem to MAESTRO's letter; P and Q play Y and X, as output
    rows and columns. `tensors` maps MAESTRO's tensors to the problem's.
    """

    type: LayerType
    letters: FrozenDict[str, str]
    strides: FrozenDict[str, int]
    tensors: FrozenDict[str, Tensor]

    def sizes(self, problem: Problem) -> dict[str, int]:
        """Return the sizes of MAESTRO's dimensions; 1 for those that the problem lacks.

        Rows and columns are those of the input.
        """
        letters = "MNK" if self.type == "GEMM" else "NKCRSYX"
        sizes = dict.fromkeys(letters, 1)
        sizes |= {self.letters[name]: size for name, size in problem.dimensions.items()}
        if self.type != "GEMM":
            sizes |= {name: self.inputs(name, sizes[name], sizes[window]) for name, window in WINDOWS.items()}
        return sizes

    def dimension(self, letter: str) -> str:
        """Return the problem's dimension that plays a letter."""
        return next((name for name, plays in self.letters.items() if plays == letter), letter)

    def inputs(self, letter: str, outputs: int, window: int) -> int:
        """Return the number of input rows or columns that `outputs` results need."""
        return (outputs - 1) * self.strides.get(letter, 1) + window


def roles_of(problem: Problem) -> Roles:
    """Return how the problem's dimensions play MAESTRO's.

    Raises:
        NotConformableError: no layer type of MAESTRO computes this operation.
    """
    structure = recognise(problem)
    if structure is None or structure.kind == "conv_transpose":
        raise refusal("operation", problem.name, "is not a convolution or matrix product of one input and one weight")
    parts = structure.parts
    twice = next((names for names in parts.values() if len(names) > 1), None)
    if twice:
        message = f"{' and '.join(twice)} play the same part; MAESTRO has one dimension for it"
        raise refusal("operation", problem.name, message)
    tensors = {tensor.role: tensor for tensor in problem.tensors}
    named = FrozenDict({INPUT: tensors["input"], FILTER: tensors["weight"], OUTPUT: tensors["output"]})
    if structure.kind == "gemm" and "G" not in parts:
        return Roles("GEMM", _letters(structure, _GEMM), FrozenDict(), named)
    if structure.kind == "gemm":
        message = f"MAESTRO has no batched matrix product ({parts['G'][0]} is in all tensors)"
        raise refusal("operation", problem.name, message)
    if "G" in parts and ("K" in parts or "C" in parts):
        message = "MAESTRO's grouped convolution counts outputs once per input channel; only depthwise is translated"
        raise refusal("operation", problem.name, message)
    letters = _letters(structure, _CONV)
    return Roles("DSCONV" if "G" in parts else "CONV", letters, _strides(problem, tensors["input"], letters), named)


def _letters(structure: Structure, table: dict[str, str]) -> FrozenDict[str, str]:
    return FrozenDict({names[0]: table[part] for part, names in structure.parts.items()})


def _strides(problem: Problem, data: Tensor, letters: FrozenDict[str, str]) -> FrozenDict[str, int]:
    """Return the coefficients of P and Q.

    Raises:
        NotConformableError: a window is dilated, which MAESTRO cannot express.
    """
    strides: dict[str, int] = {}
    for rank in data.projection:
        for name, coefficient in rank.terms.items():
            if letters[name] in WINDOWS:
                strides[letters[name]] = coefficient
            elif coefficient != 1:
                raise refusal("affine", problem.name, f"{name} has coefficient {coefficient}; MAESTRO has no dilation")
    return FrozenDict(strides)


def refusal(code: str, where: str, message: str) -> NotConformableError:
    return NotConformableError("MAESTRO", [Reason(code=code, where=where, message=message)])
